"""Installs the frameworks of the extra ``bench``, each for itself: what cannot be installed is left out.

    python -m benchmarks.peers.install

Where pip sees an index of PyTorch's builds for the CPU, it takes torch from there: the same version without
CUDA.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import requires

_MARKER = 'extra == "bench"'


def requirements() -> list[str]:
    """Return the requirements of the extra."""
    found = [line.split(";") for line in requires("mind-mlir") or ()]
    return [line[0].strip() for line in found if len(line) > 1 and line[1].strip() == _MARKER]


def main() -> int:
    """Install; what fails is said, and no error."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for requirement in requirements():
        print(f"installing {requirement}", flush=True)
        if subprocess.run([*pip, requirement], check=False).returncode:  # noqa: S603 - our own requirements
            print(f"{requirement} cannot be installed here and is left out", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
