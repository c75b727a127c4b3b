"""Programs that a launcher of MPI starts, for tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def launcher() -> str:
    """Return the launcher; without one, the test is skipped."""
    pytest.importorskip("mpi4py")
    found = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        pytest.skip("there is no mpiexec")
    return found


def command(processes: int, *arguments: str) -> list[str]:
    """Return the command that runs Python in so many processes."""
    return [launcher(), "-n", str(processes), sys.executable, *arguments]


def environment() -> dict[str, str]:
    """Return the environment of such a command: one thread each, and the tree first."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "MIND_MLIR_NUM_THREADS": "1", "PYTHONPATH": path}


def launch(processes: int, *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run Python in so many processes, and return what they have printed."""
    return subprocess.run(
        command(processes, *arguments),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=environment(),
    )
