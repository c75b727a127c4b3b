"""Times tasks in one process of one thread and in two, beside torch (DDP, gloo) and jax (gloo).

    python -m benchmarks.distributed [--tasks gpt2 product] [--only ours torch jax] [--rounds 5]

GPT-2 small makes steps of training with AdamW, whose batch two processes share; a product has its columns
divided, and its result is left so, or gathered. Each process has a processor of its own. Of a framework, one
process and two take turns, and while one works the others are stopped, and a loop keeps the second processor
from what else there is. What is not installed is left out; `--peers` names a Python that has it.
"""

from __future__ import annotations

import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.command import ONE_THREAD, parser, show
from benchmarks.distributed.child import TASKS
from benchmarks.report import Report

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from benchmarks.report import Row

FRAMEWORKS = ("ours", "torch", "jax")
SETTINGS = {**ONE_THREAD, "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}


class Group:
    """The processes of a framework that do a task together; they stand still but when they are asked."""

    def __init__(self, framework: str, task: str, processes: int, options: argparse.Namespace) -> None:
        self._folder = tempfile.TemporaryDirectory()
        python = sys.executable if framework == "ours" else options.peers
        command = [
            python,
            "-m",
            f"benchmarks.distributed.{framework}_tasks",
            task,
            "--folder",
            self._folder.name,
        ]
        for name in ("layers", "batch", "length", "size"):
            command += [f"--{name}", str(getattr(options, name))]
        command += ["--processes", str(processes), "--port", str(_free_port())]
        ranks = [["--rank", str(rank)] for rank in range(processes)]
        if framework == "ours" and processes > 1:
            command = [str(Path(sys.executable).with_name("mpiexec")), "-n", str(processes), *command]
            ranks = [[]]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 -- `end` closes it
        self._started = [self._start([*command, *rank]) for rank in ranks]
        self._pids = [self._pid(rank) for rank in range(processes)]
        self._signal(signal.SIGSTOP)

    def _start(self, command: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603 - our own modules
            command,
            env={**os.environ, **SETTINGS},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def _pid(self, rank: int) -> int:
        """Wait until a process is ready, and return its number."""
        path = Path(self._folder.name, str(rank))
        while not path.exists():
            if any(each.poll() is not None for each in self._started):
                self.end()
            time.sleep(0.05)
        return int(path.read_text())

    def _signal(self, number: signal.Signals) -> None:
        for pid in self._pids:
            os.kill(pid, number)

    def time(self) -> float:
        """Return how many seconds the task takes once."""
        first = self._started[0]
        assert first.stdin is not None
        assert first.stdout is not None
        self._signal(signal.SIGCONT)
        first.stdin.write("\n")
        first.stdin.flush()
        while not (line := first.stdout.readline()).startswith("took"):
            if not line:
                self.end()
        self._signal(signal.SIGSTOP)
        return float(line.split()[1])

    def end(self) -> None:
        """End all processes.

        Raises:
            RuntimeError: One had ended before.
        """
        failed = any(each.poll() is not None for each in self._started)
        for each in self._started:
            each.kill()
            each.communicate()
        self._errors.seek(0)
        said = self._errors.read().strip().splitlines()
        self._errors.close()
        self._folder.cleanup()
        if failed:
            raise RuntimeError(said[-1] if said else "it failed")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return int(found.getsockname()[1])


def _while_busy(run: Callable[[], float]) -> float:
    """Return what ``run`` does while the second processor does nothing of use, nor anything for others."""
    second = sorted(os.sched_getaffinity(0))[1]
    program = f"import os; os.sched_setaffinity(0, {{{second}}})\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", program]) as busy:  # noqa: S603 - our own program
        try:
            return run()
        finally:
            busy.kill()


def measure(framework: str, task: str, options: argparse.Namespace) -> Row:
    """Return the median times of one process and of two, which take turns."""
    groups: list[Group] = []
    try:
        groups += [Group(framework, task, processes, options) for processes in (1, 2)]
        times = [[_while_busy(groups[0].time), groups[1].time()] for _ in range(options.rounds)]
    finally:
        for group in groups:
            group.end()
    one, two = (statistics.median(each) for each in zip(*times, strict=True))
    ratio = statistics.median(first / second for first, second in times)
    return {"task": task, "framework": framework, "1 process s": one, "2 processes s": two, "ratio": ratio}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    options_parser = parser("distributed", __doc__)
    options_parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    options_parser.add_argument("--only", nargs="+", default=list(FRAMEWORKS), choices=FRAMEWORKS)
    options_parser.add_argument("--peers", default=sys.executable, help="a Python that has torch and jax")
    options_parser.add_argument("--rounds", type=int, default=5)
    options_parser.add_argument("--layers", type=int, default=12)
    options_parser.add_argument("--batch", type=int, default=16)
    options_parser.add_argument("--length", type=int, default=128)
    options_parser.add_argument("--size", type=int, default=4096)
    options = options_parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which ends the processes that it has started
    rows: list[Row] = []
    notes = ["medians of rounds by turns; ratio: of the throughput of 2 processes to that of 1"]
    for task in options.tasks:
        for framework in options.only:
            try:
                rows.append(measure(framework, task, options))
                print(rows[-1], file=sys.stderr)
            except RuntimeError as error:
                notes.append(f"{framework}, {task}: {error}")
    title = (
        f"1 and 2 processes of one thread: GPT-2 of {options.layers} layers, {options.batch} sequences of "
    )
    title += f"{options.length} tokens, and a product of {options.size}"
    return show(Report(title, rows, notes), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
