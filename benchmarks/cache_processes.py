"""Processes that compile the same programs into one cache at once, while another is killed again and again.

python -m benchmarks.cache_processes [--programs 100] [--processes 8] [--seconds 0.5] [--seed 1]

Each process takes the programs in an order of its own, and compares every result with one of a process that
has no cache. The one that is killed does the same, and writes what it finds again and again, so that it dies
in the middle of many an entry; another one follows, for as long as the others work. In the end each program
is found by a new process, and gives the same again; and whatever else the killed ones have left is looked at.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import mind_mlir
from benchmarks.command import parser, show
from benchmarks.report import Report
from benchmarks.soak import small_program
from mind_mlir import Builder, DType, TensorType
from mind_mlir.cache.directory import store_for
from mind_mlir.cache.inspection import look_through
from mind_mlir.cache.removal import files_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from multiprocessing.connection import Connection
    from typing import TypeAlias

    from mind_mlir import Executable, Module

    #: Does something with programs, given the directory of the cache, and says something of each.
    Work: TypeAlias = Callable[[Path | None, Sequence[int]], dict[int, object]]

# A child has what its parent has loaded, and starts at once; nothing is compiled before it does.
_PROCESSES = multiprocessing.get_context("fork")
#: One of so many programs has a check, whose labels an entry is for.
_CHECKED_EVERY = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the programs.

    Attributes:
        results: How many results were compared.
        wrong: How many were other ones, or exceptions; a process that ends early counts for all of its own.
        found: How many of the programs a new process found in the end.
        killed: How many processes were killed.
        entries: How many entries there are in the end.
        damaged: How many of them are none. No entry may be.
        unfinished: How many files there are besides, which are never read.
        seconds: How long the processes took.
    """

    results: int
    wrong: int
    found: int
    killed: int
    entries: int
    damaged: int
    unfinished: int
    seconds: float


def share(directory: Path, programs: int, processes: int, seconds: float, seed: int) -> Outcome:
    """Let ``processes`` compile so many programs, and one besides that lives for at most ``seconds``."""
    expected = _in_child(_digests, None, range(programs))
    draw = random.Random(seed)  # noqa: S311 -- no secret
    orders = [draw.sample(range(programs), programs) for _ in range(processes)]
    start = time.monotonic()
    workers = [_Worker(_digests, directory, order) for order in orders]
    killed = 0
    while any(worker.works() for worker in workers):
        victim = _Worker(_rewrite, directory, draw.sample(range(programs), programs))
        time.sleep(draw.uniform(0, seconds))
        victim.kill()
        killed += 1
    results = [worker.result() for worker in workers]
    took = time.monotonic() - start
    kept = [program for program, was_kept in _in_child(_kept, directory, range(programs)).items() if was_kept]
    results.append(_in_child(_digests, directory, range(programs)))
    found = look_through(directory)
    return Outcome(
        results=len(results) * programs,
        wrong=sum(result.get(number) != expected[number] for result in results for number in expected),
        found=len(kept),
        killed=killed,
        entries=len(found),
        damaged=sum(each.problem is not None for each in found),
        unfinished=sum(not file.is_entry for file in files_of(directory)),
        seconds=took,
    )


class _Worker:
    """A process that does something with programs, and what it says of each."""

    def __init__(self, work: Work, directory: Path | None, numbers: Iterable[int]) -> None:
        self._ours, theirs = _PROCESSES.Pipe(duplex=False)
        self._process = _PROCESSES.Process(target=_run, args=(theirs, work, directory, list(numbers)))
        self._process.start()
        theirs.close()

    def works(self) -> bool:
        return self._process.is_alive() and not self._ours.poll()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def result(self) -> dict[int, object]:
        """Return what it has said; nothing where it ended before."""
        try:
            said: dict[int, object] = self._ours.recv()
        except EOFError:
            said = {}
        self._process.join()
        return said


def _run(pipe: Connection, work: Work, directory: Path | None, numbers: Sequence[int]) -> None:
    pipe.send(work(directory, numbers))


def _in_child(work: Work, directory: Path | None, numbers: Iterable[int]) -> dict[int, object]:
    return _Worker(work, directory, numbers).result()


def _compiled(number: int, directory: Path | None) -> Executable:
    cache = False if directory is None else directory
    return mind_mlir.compile(_program(number), cache=cache, threads=1)


def _digests(directory: Path | None, numbers: Sequence[int]) -> dict[int, object]:
    """Return a digest of what each program gives."""
    x = np.arange(64, dtype=np.float32).reshape(8, 8) / 64
    found: dict[int, object] = {}
    for number in numbers:
        results = _compiled(number, directory)(x)
        found[number] = hashlib.sha256(b"".join(each.tobytes() for each in results)).hexdigest()
    return found


def _kept(directory: Path | None, numbers: Sequence[int]) -> dict[int, object]:
    """Return whether the code of each program was found."""
    return {number: "codegen" not in _compiled(number, directory).timings for number in numbers}


def _rewrite(directory: Path | None, numbers: Sequence[int]) -> dict[int, object]:
    """Write what there is, and compile one program after the other, until somebody ends this."""
    store = store_for(str(directory))
    assert store is not None, "there is a directory"
    for number in numbers:
        for each in look_through(store.directory):
            content = store.get(each.file.key)
            if content is not None:
                store.put(each.file.key, [content])
        _compiled(number, directory)
    return {}


def _program(number: int) -> Module:
    if number % _CHECKED_EVERY:
        return small_program(number)
    b = Builder()
    x = b.input("x", TensorType(DType.F32, (8, 8)))
    at = b.emit("Cast", b.emit("Mul", x, b.constant(1.0 + number % 7, DType.F32)), dtype=DType.SI64)
    return b.build([b.emit("Take", b.constant(np.arange(8.0) + number, DType.F32), at)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status says whether all was well."""
    options = parser("cache_processes", __doc__)
    options.add_argument("--programs", type=int, default=100)
    options.add_argument("--processes", type=int, default=8)
    options.add_argument("--seconds", type=float, default=0.5, help="how long the one that is killed lives")
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="mind-mlir-cache-") as directory:
        outcome = share(
            Path(directory, "cache"), chosen.programs, chosen.processes, chosen.seconds, chosen.seed
        )
    row: dict[str, str | int | float] = {
        name: getattr(outcome, name)
        for name in ("results", "wrong", "found", "killed", "entries", "damaged", "unfinished", "seconds")
    }
    title = f"{chosen.processes} processes, {chosen.programs} programs, one cache, and one that is killed"
    show(Report(title, [row]), as_json=chosen.json)
    return int(outcome.wrong != 0 or outcome.damaged != 0 or outcome.found != chosen.programs)


if __name__ == "__main__":
    sys.exit(main())
