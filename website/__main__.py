"""Lays the pages of the site out; `properdocs build --strict -f build/properdocs.yml` then builds it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from website.links import ROOT
from website.pages import Site, site


def lay_out(made: Site, build: Path) -> None:
    """Write all pages to the folder `pages` of `build`, and the configuration of the site beside it."""
    folder = build / "pages"
    shutil.rmtree(folder, ignore_errors=True)
    for place, text in made.texts.items():
        _made(folder / place).write_text(text, encoding="utf-8")
    for place, path in made.files.items():
        shutil.copyfile(path, _made(folder / place))
    # JSON is YAML, too; what stays the same stands in a file for people.
    places = {"docs_dir": str(folder), "site_dir": str(build / "site")}
    settings = {"INHERIT": str(Path(__file__).with_name("properdocs.yml")), **places, "nav": made.menu}
    (build / "properdocs.yml").write_text(json.dumps(settings, indent=1), encoding="utf-8")


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


if __name__ == "__main__":
    lay_out(site(), ROOT / "build")
