"""Writes the pictures: `python -m website.pictures`."""

from __future__ import annotations

from website.links import ROOT
from website.pictures.product import schedule, stages
from website.pictures.timeline import threads
from website.pictures.traced import tracing

#: The pictures by the stems of their files.
PICTURES = {"stages": stages, "schedule": schedule, "tracing": tracing, "threads": threads}
FOLDER = ROOT / "docs" / "pictures"


def main() -> None:
    """Write all pictures anew."""
    FOLDER.mkdir(exist_ok=True)
    for name, drawn in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(drawn(), encoding="utf-8")


if __name__ == "__main__":
    main()
