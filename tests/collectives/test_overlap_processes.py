"""Collectives that go on while processes compute: bits, bytes, messages, and what goes wrong meanwhile."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from overlap_child import train

CHILD = Path(__file__).parent / "overlap_child.py"
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:/usr/bin")

pytestmark = pytest.mark.skipif(
    MPIEXEC is None or find_spec("mpi4py") is None, reason="needs mpi4py and an MPI with mpiexec"
)


def run(what: str) -> subprocess.CompletedProcess[str]:
    command = [str(MPIEXEC), "-n", "2", sys.executable, str(CHILD), what]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def said(done: subprocess.CompletedProcess[str], word: str) -> list[str]:
    """Return what processes have said about something, each a line."""
    return [line.removeprefix(word).strip() for line in done.stdout.splitlines() if line.startswith(word)]


def test_bits_and_bytes_are_the_same_and_messages_fewer() -> None:
    both = run("good")
    assert both.returncode == 0, both.stderr
    (bits, sent, _), (without, *_) = train(()), train(("overlap",))
    assert (bits, sent) == (without, 0)
    found, apart = ([line.split() for line in said(both, word)] for word in ("overlap", "apart"))
    assert [each[0] for each in (*found, *apart)] == [bits] * 4
    assert {each[1] for each in found} == {each[1] for each in apart} != {"0"}
    # Two steps of 8 gradients, of which those of 96 x 96 are sent twice, as chunks and as sums of these.
    assert [each[2] for each in apart] == [str(2 * (4 * 2 + 4))] * 2
    assert all(int(each[2]) <= 8 for each in found)
    # A started collective that waits is no deadlock as long as its rank computes.
    assert said(both, "late") == ["2.0"] * 2
    assert (
        said(both, "in order")
        == [str([1.0, *(float(1 + 20 * number) for number in reversed(range(20)))])] * 2
    )
    # What one process raises and catches, the other one does not notice: what was started is done.
    assert sorted(said(both, "raised")) == ["", "2.0"]
    assert said(both, "afterwards") == ["3.0"] * 2


def test_mistakes_are_told_where_ranks_wait() -> None:
    done = run("bad")
    assert done.returncode == 0, done.stderr
    first, second = said(done, "error[E6202]"), said(done, "error[E6203]")
    assert len(first) == 2
    assert all("at line 0" in line and "at line 1" in line for line in first)
    assert any(
        "process 0 waits at AllReduce (sum) of f32[3] along data, at line 7" in line for line in second
    )


def test_what_a_process_raises_ends_all() -> None:
    done = run("raises")
    assert done.returncode != 0
    assert "Traceback" in done.stderr


def test_ctrl_c_ends_the_wait_for_what_was_started() -> None:
    done = run("interrupted")
    assert done.returncode != 0
    (line,) = said(done, "interrupted after")
    assert int(line) <= 5
