"""``python -m mind_mlir.cmake`` prints where the CMake package is: ``cmake -DMindMLIR_DIR=$(...)``."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

CONFIG = "MindMLIRConfig.cmake"


def directory() -> Path:
    """Return the folder of the CMake package: that of the checkout, or the one that the wheel installed.

    Raises:
        FileNotFoundError: The package was installed without its data files.
    """
    checkout = Path(__file__).parents[1] / "cmake"
    if (checkout / CONFIG).is_file():
        return checkout
    for path in _installed():
        if path.name == CONFIG and path.is_file():
            return path.parent
    raise FileNotFoundError(f"{CONFIG} is not installed; install mind-mlir anew, from a wheel or a checkout")


def _installed() -> list[Path]:
    try:
        files = distribution("mind-mlir").files or []
    except PackageNotFoundError:
        return []
    return [Path(str(file.locate())).resolve() for file in files]


def main() -> int:
    """Print the folder, and return 0, or 1 where there is none."""
    try:
        print(directory())
    except FileNotFoundError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
