"""The same program in one process and in several, which MPI connects: the same bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("ranks_program.py")
MPIEXEC = Path(sys.executable).with_name("mpiexec")


def run(count: int, program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program in so many processes."""
    command = [sys.executable, str(program), *arguments]
    if count > 1:
        command = [str(MPIEXEC), "-n", str(count), *command]
    environment = os.environ | {"MIND_MLIR_NUM_THREADS": "1", "MIND_MLIR_CACHE": "off"}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)


def facts(count: int) -> list[Any]:
    """Return what each of so many processes prints."""
    ended = run(count, PROGRAM)
    assert ended.returncode == 0, ended.stderr
    # Lines of several processes may come without their ends between them.
    return json.loads(f"[{ended.stdout.strip().replace('}', '},').replace(chr(10), '').rstrip(',')}]")  # type: ignore[no-any-return]  # a list of objects


@pytest.fixture(scope="module")
def alone() -> Any:
    """What one process prints."""
    (found,) = facts(1)
    return found


@pytest.mark.parametrize("count", [2, 4, 8])
def test_any_number_of_processes_computes_the_same_bits(count: int, alone: Any) -> None:
    found = facts(count)
    assert [each["of"] for each in found] == [count] * count
    assert {each["digest"] for each in found} == {alone["digest"]}
    assert alone["sent"] == 0
    assert all(each["sent"] > 0 for each in found)


def test_ranks_that_cannot_be_spread_are_told() -> None:
    ended = run(3, PROGRAM)
    assert ended.returncode != 0
    assert (
        "error[E6201]: the 8 ranks of the mesh data=4,model=2 cannot be spread over 3 processes"
        in ended.stderr
    )
    assert "start 1, 2, 4, 8 processes" in ended.stderr
