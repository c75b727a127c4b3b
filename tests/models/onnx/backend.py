"""Runs ONNX's own tests of operators, in child processes that are started again where one dies.

    python tests/models/onnx/backend.py [--jobs 2] [--only WORD] [--list failed] [--timeout 120]

Prints the reasons of what is refused, and how many agree, are refused, differ, and end the process. Its exit
code is 0 where none differs and none ends the process.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[3])]

from node_cases import Outcome, cases, run  # noqa: E402 -- found by the path above

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def serve(pipe: Connection) -> None:
    """Answer names of tests with what comes of them."""
    while True:
        pipe.send(run(pipe.recv()))


class Child:
    """A process that runs tests; the one after a death is another one."""

    def __init__(self, timeout: float) -> None:
        """Start it."""
        self._timeout = timeout
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def run(self, name: str) -> Outcome:
        """Run a test in it."""
        self._pipe.send(name)
        try:
            if self._pipe.poll(self._timeout):
                found: Outcome = self._pipe.recv()
                return found
            reason = f"no answer in {self._timeout:g} s"
        except EOFError:
            self._process.join()
            reason = f"exit code {self._process.exitcode}"
        self._process.kill()
        self._start()
        return Outcome(name, "died", reason)

    def stop(self) -> None:
        """End it."""
        self._process.kill()


def run_all(names: list[str], jobs: int, timeout: float) -> list[Outcome]:
    """Run tests in several children."""
    waiting: Queue[str] = Queue()
    for name in names:
        waiting.put(name)
    children = [Child(timeout) for _ in range(jobs)]

    def work(child: Child) -> list[Outcome]:
        found: list[Outcome] = []
        while True:
            try:
                name = waiting.get_nowait()
            except Empty:
                child.stop()
                return found
            found.append(child.run(name))

    with ThreadPoolExecutor(jobs) as pool:
        return [outcome for listed in pool.map(work, children) for outcome in listed]


def main() -> int:
    """Run the tests that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="run tests whose names have this in them")
    parser.add_argument("--list", default="failed,died", help="verdicts whose tests are listed one by one")
    parser.add_argument("--timeout", type=float, default=120)
    arguments = parser.parse_args()
    names = [name for name in cases() if arguments.only in name]
    outcomes = run_all(names, arguments.jobs, arguments.timeout)
    counts: Counter[str] = Counter(each.verdict for each in outcomes)
    report(outcomes, set(arguments.list.split(",")))
    print(
        f"{len(names)} tests:",
        ", ".join(f"{counts[each]} {each}" for each in ("passed", "refused", "failed", "died")),
    )
    return 1 if counts["failed"] + counts["died"] else 0


def report(outcomes: list[Outcome], listed: set[Any]) -> None:
    """Print tests of some verdicts, and the reasons of refusals with their counts."""
    for each in sorted(outcomes):
        if each.verdict in listed:
            print(f"{each.verdict} {each.name}: {each.reason}")
    reasons = Counter(_without_label(each.reason) for each in outcomes if each.verdict == "refused")
    for reason, count in reasons.most_common():
        print(f"{count:5} {reason}")


def _without_label(reason: str) -> str:
    """Return a reason without the name of a node or value."""
    words = reason.split(" '")
    return words[0] + "".join(part.partition("'")[2] for part in words[1:])


if __name__ == "__main__":
    sys.exit(main())
