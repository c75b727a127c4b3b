"""The command line that every benchmark has, and the child process it measures in.

numpy's matrix library reads its settings when it is first imported, so they are made in the environment of a
child. It also picks its kernels by the processor's model name and falls back to AVX2 kernels, half as fast,
on AVX-512 processors whose name it does not know. A comparison with that would flatter us: unless the user
has chosen, the child asks for the AVX-512 kernels wherever the processor has the instructions.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from mind_mlir.lowering.target import host_target

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.report import Report

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

KERNELS = "OPENBLAS_CORETYPE"
_AVX512_BYTES = 64

#: Marks the child, which measures instead of starting another one.
_CHILD = "MIND_MLIR_BENCHMARK_CHILD"


def parser(module: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser for ``python -m benchmarks.<module>`` with the options that all benchmarks share."""
    first_paragraph = (description or "").split("\n\n")[0]
    result = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=first_paragraph)
    result.add_argument("--json", action="store_true", help="print one line of JSON instead of a table")
    return result


def best_kernels() -> dict[str, str]:
    """Return the environment that gives numpy's matrix library its fastest kernels for this machine."""
    if KERNELS in os.environ or host_target().vector_bytes < _AVX512_BYTES:
        return {}
    return {KERNELS: "SkylakeX"}


def is_child() -> bool:
    """Return whether this process is to measure."""
    return _CHILD in os.environ


def run_child(
    module: str, arguments: Sequence[str] | None, kernels: Mapping[str, str], *, capture: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run ``benchmarks.<module>`` in a child whose numpy uses one thread and the given kernels."""
    given = sys.argv[1:] if arguments is None else arguments
    return subprocess.run(  # noqa: S603 - our own module
        [sys.executable, "-m", f"benchmarks.{module}", *given],
        env={**os.environ, **ONE_THREAD, **kernels, _CHILD: "1"},
        check=False,
        text=True,
        stdout=subprocess.PIPE if capture else None,
    )


def show(report: Report, *, as_json: bool) -> int:
    """Print a report and return the exit status."""
    print(report.as_json() if as_json else report.as_text())
    return 0
