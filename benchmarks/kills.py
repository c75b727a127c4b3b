"""Kills processes of a training at random moments, which goes on from its checkpoints.

    python -m benchmarks.kills [--kills 200] [--processes 2 2 4] [--seed 0]

The digits train with eight ranks, and save a checkpoint after each step. SIGKILL hits a random process, or
the launcher, some time between the start and the end. It is measured when the last process has ended, and the
checkpoint is compared, bit by bit, with that of a training that nobody disturbed. The next training goes on
from there, with a number of processes of its own. It fails if processes are left after 10 seconds, if a
checkpoint is damaged or another one, or if nothing is said of why the others ended.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.command import parser, show
from benchmarks.report import Report
from mind_mlir.distributed import latest_step, load_checkpoint
from mind_mlir.support.pytrees import flatten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.report import Row

#: All processes have to be gone after so many seconds.
MOST = 10.0
STEPS = 40
#: So many kills come after the first checkpoint of a training.
_LATER = 0.7
#: So many hit the launcher; besides, those that come before any process is there.
_LAUNCHER = 0.1
_MARK = "MIND_MLIR_KILLS"
_SAID = re.compile(rb"error\[E62|BAD TERMINATION|Abort\(")


@dataclass(frozen=True, slots=True)
class Kill:
    """What a kill has done.

    Attributes:
        whom: What was killed, and when: a process before its first checkpoint, or later; or the launcher.
        seconds: When the last process had ended.
        said: Whether something was said of why.
        damaged: Whether the checkpoint cannot be loaded, or is another one.
    """

    whom: str
    seconds: float
    said: bool
    damaged: bool


class Training:
    """A training that runs."""

    def __init__(self, folder: Path, processes: int, *options: str) -> None:
        self._mark = secrets.token_hex(8)
        command = [str(Path(sys.executable).with_name("mpiexec")), "-n", str(processes), sys.executable]
        command += ["-m", "examples.distributed.digits", "--data", "8", "--steps", str(STEPS), "--every", "1"]
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 -- `end` closes it
        self.launcher = subprocess.Popen(  # noqa: S603 - our own module
            [*command, "--checkpoint", str(folder), *options],
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env={**os.environ, _MARK: self._mark, "MIND_MLIR_NUM_THREADS": "1"},
        )

    def processes(self) -> list[int]:
        """Return the processes that train and are not over."""
        mark = f"{_MARK}={self._mark}".encode()
        return [
            pid for pid in _pids() if mark in _read(pid, "environ") and b"digits" in _read(pid, "cmdline")
        ]

    def is_over(self) -> bool:
        """Return whether the launcher has ended, and all others that it started."""
        return self.launcher.poll() is not None and not self._all()

    def _all(self) -> list[int]:
        mark = f"{_MARK}={self._mark}".encode()
        return [pid for pid in _pids() if mark in _read(pid, "environ")]

    def wait(self, seconds: float) -> float:
        """Wait until all have ended, at most so long; end those that are left. Return how long it took."""
        start = time.monotonic()
        while not self.is_over() and time.monotonic() - start < seconds:
            time.sleep(0.01)
        taken = time.monotonic() - start
        for pid in self._all():
            os.kill(pid, signal.SIGKILL)
        return taken

    def output(self) -> bytes:
        """Return what all have printed."""
        self._output.seek(0)
        with self._output:
            return self._output.read()


def _pids() -> Iterator[int]:
    yield from (int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal())


def _read(pid: int, what: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:  # it is gone, or another user's
        return b""


def _bits(folder: Path, step: int) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in flatten(load_checkpoint(folder, step=step).tree)[0]]


def kill(folder: Path, processes: int, dice: np.random.Generator, longest: float, truth: Path) -> Kill | None:
    """Start a training, kill one of its processes, and see what becomes of it; None where it was over."""
    before, training = latest_step(folder), Training(folder, processes)
    if dice.random() < _LATER:
        while latest_step(folder) == before and not training.is_over():
            time.sleep(0.005)
    time.sleep(dice.uniform(0.0, longest / 3))
    ranks = sorted(training.processes())
    if latest_step(folder) == STEPS or training.launcher.poll() is not None:
        training.wait(MOST)
        training.output()
        return None
    victim = training.launcher.pid if dice.random() < _LAUNCHER or not ranks else int(dice.choice(ranks))
    os.kill(victim, signal.SIGKILL)
    seconds = training.wait(2 * MOST)
    output, last = training.output(), latest_step(folder)
    whom = "the launcher" if victim == training.launcher.pid else "a process that trains"
    whom = "a process that starts" if whom != "the launcher" and last == before else whom
    said = whom == "the launcher" or _SAID.search(output) is not None
    try:
        damaged = last is not None and _bits(folder, last) != _bits(truth, last)
    except Exception as error:  # whatever it is, the checkpoint cannot be loaded
        print(error, file=sys.stderr)
        damaged = True
    return Kill(whom, seconds, said, damaged)


def measure(kills: int, processes: Sequence[int], seed: int) -> list[Kill]:
    """Kill so often, and return what became of it."""
    dice, found = np.random.default_rng(seed), list[Kill]()
    with tempfile.TemporaryDirectory() as temporary:
        truth, number = Path(temporary, "truth"), 0
        start = time.monotonic()
        Training(truth, processes[0], "--keep", str(STEPS)).wait(600)
        longest = time.monotonic() - start
        while len(found) < kills:
            folder = Path(temporary, str(number))
            outcome = kill(folder, int(dice.choice(processes)), dice, longest, truth)
            found += [] if outcome is None else [outcome]
            number += latest_step(folder) == STEPS
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("kills", __doc__)
    options_parser.add_argument("--kills", type=int, default=200)
    options_parser.add_argument("--processes", type=int, nargs="+", default=[2, 2, 4], metavar="N")
    options_parser.add_argument("--seed", type=int, default=0)
    options = options_parser.parse_args(arguments)
    kills = measure(options.kills, options.processes, options.seed)
    rows: list[Row] = []
    for whom in sorted({each.whom for each in kills}):
        of = [each for each in kills if each.whom == whom]
        seconds = [each.seconds for each in of]
        rows.append(
            {
                "killed": whom,
                "times": len(of),
                "median s": statistics.median(seconds),
                "most s": max(seconds),
                "hung": sum(each.seconds > MOST for each in of),
                "nothing said": sum(not each.said for each in of),
                "damaged": sum(each.damaged for each in of),
            }
        )
    notes = ["seconds from the kill until the last process has ended; damaged: checkpoints, of all bits"]
    show(Report(f"{len(kills)} kills of a training on several processes", rows, notes), as_json=options.json)
    return int(any(each.seconds > MOST or each.damaged or not each.said for each in kills))


if __name__ == "__main__":
    sys.exit(main())
