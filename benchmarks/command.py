"""The command line that every benchmark has, and the child process it measures in.

numpy's matrix library reads its settings when it is first imported, so a comparison runs in a child whose
environment is set for it: one thread, and otherwise numpy as it comes. Settings that the surroundings make
(a fixed kernel, a smaller cache) are dropped: they can halve numpy's speed and flatter us.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Report

ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MIND_MLIR_NUM_THREADS": "1",
}
_LIBRARIES = ("OPENBLAS", "MKL", "OMP", "BLIS", "GOTO")

#: Marks the child, which measures instead of starting another one.
_CHILD = "MIND_MLIR_BENCHMARK_CHILD"

_CORE_NAME = ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename")


def parser(module: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser for ``python -m benchmarks.<module>`` with the options that all benchmarks share."""
    first_paragraph = (description or "").split("\n\n")[0]
    result = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=first_paragraph)
    result.add_argument("--json", action="store_true", help="print one line of JSON instead of a table")
    return result


def is_child() -> bool:
    """Return whether this process is to measure."""
    return _CHILD in os.environ


def child_environment(surroundings: dict[str, str]) -> dict[str, str]:
    """Return the environment of a child that compares with numpy on one thread."""
    kept = {name: value for name, value in surroundings.items() if name.split("_")[0] not in _LIBRARIES}
    return {**kept, **ONE_THREAD, _CHILD: "1"}


def run_child(module: str, arguments: Sequence[str] | None) -> int:
    """Run ``benchmarks.<module>`` in a child and return its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    command = [sys.executable, "-m", f"benchmarks.{module}", *given]
    environment = child_environment(dict(os.environ))
    return subprocess.run(command, env=environment, check=False).returncode  # noqa: S603 - our own module


def numpy_kernels() -> str:
    """Return which processor numpy's matrix library has chosen its kernels for."""
    site = Path(np.__file__).parent
    for folder in (site.parent / "numpy.libs", site / ".dylibs"):
        for path in sorted(folder.glob("*openblas*")):
            library = ctypes.CDLL(str(path))
            for name in _CORE_NAME:
                if hasattr(library, name):
                    function = getattr(library, name)
                    function.restype = ctypes.c_char_p
                    return str(function().decode())
    return "not known"


def show(report: Report, *, as_json: bool) -> int:
    """Print a report and return the exit status."""
    print(report.as_json() if as_json else report.as_text())
    return 0
