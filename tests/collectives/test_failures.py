"""When a process fails, or does what the others do not, all end within seconds, and say where they were."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from mpi_harness import command, environment, launcher

from mind_mlir import ExecutionError, Mesh
from mind_mlir.collectives import team

PROGRAM = Path(__file__).with_name("failing_program.py")
#: From the failure on, all may take so long to end, in seconds.
MOST = 10.0

_ENDED = "process 1 has ended"
_REDUCES = r"process {} (?:is|waits) at AllReduce \({}\) of .* along .*, at .*failing_program.py:\d+:\d+"
_BARRIER = r"process {} waits at a barrier, at .*failing_program.py:\d+:\d+"
#: What is said, by what fails.
SAID = {
    "raise": ["ValueError: what one process raises", "process 1 of 2 ends by this, and all others with it"],
    "exit": ["E6203", _REDUCES.format(0, "sum") + " for process 1", _ENDED],
    "early": ["E6203", _BARRIER.format(0) + " for process 1", _ENDED],
    "gone": [],  # the launcher may be the first to know, and says nothing
    "killed": [r"E6204.* process 1 |EXIT CODE: 9"],
    "kind": ["E6202", _REDUCES.format(0, "sum"), _REDUCES.format(1, "max")],
    "caught": ["E620[23]", _REDUCES.format(0, "sum")],
    "order": ["E6203", _REDUCES.format(0, "sum"), _BARRIER.format(1)],
    "groups": ["E6203", *[_REDUCES.format(rank, "sum") for rank in range(4)]],
    "interrupted": ["Ctrl-C", "KeyboardInterrupt"],
    "stopped": [],
}


class Ended(NamedTuple):
    output: str
    status: int
    seconds: float


def run(how: str) -> Ended:
    """Run the program until it has failed, and return how long it took from there."""
    with subprocess.Popen(
        command(4 if how == "groups" else 2, str(PROGRAM), how),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        shown = ""
        if how == "interrupted":
            while "now" not in shown:
                shown += process.stdout.readline()
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
        more, _ = process.communicate(timeout=60)
    times = re.findall(r"now (\d+\.\d+)", shown + more)
    assert times, shown + more
    begun = max(map(float, times))
    return Ended(shown + more, process.returncode, time.time() - begun)


@pytest.fixture(scope="module")
def ended() -> dict[str, Ended]:
    """How each ends; several run at a time."""
    launcher()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(SAID, pool.map(run, SAID), strict=True))


@pytest.mark.parametrize("how", SAID)
def test_all_processes_end_and_say_why(ended: dict[str, Ended], how: str) -> None:
    found = ended[how]
    assert found.seconds < MOST
    for words in SAID[how]:
        assert re.search(words, found.output), found.output
    if how == "stopped":
        assert found.output.count("went on") == 2
        assert found.status == 0
        assert found.seconds > 2.9
    else:
        assert found.status != 0
        assert "went on" not in found.output


def test_a_second_thread_is_refused_where_there_are_several_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(team, "current_world", lambda: SimpleNamespace(rank=0, size=2))
    mesh = Mesh("data=2")

    def inner(_: int) -> list[int]:
        with ThreadPoolExecutor(1) as pool, pytest.raises(ExecutionError, match=r"E6202.* two threads"):
            pool.submit(team.run_ranks, mesh, lambda rank: rank).result()
        return team.run_ranks(mesh, lambda rank: rank)

    assert team.run_ranks(mesh, inner) == [[0]]
    assert team.run_ranks(mesh, lambda rank: rank) == [0]
