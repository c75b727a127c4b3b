"""No byte of a `.mind` text crashes or hangs the compiler: mutated programs, in child processes.

python -m benchmarks.fuzz_surface [--mutations 100000] [--first 0] [--seconds 380] [--seed 0] [--compile 20]

Each mutation is read and checked, and lowered where it is accepted; one in so many of these is compiled. A
child that dies, takes too long or needs too much memory for one of them is a failure, and the next child goes
on behind it. What is printed last says where to go on (``--first``).
"""

from __future__ import annotations

import multiprocessing
import re
import resource
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import mind_mlir
from benchmarks.command import parser
from benchmarks.mutations import mutated
from mind_mlir.diagnostics import InternalError, MindError
from mind_mlir.diagnostics.codes import CATALOGUE, samples
from mind_mlir.diagnostics.render import render
from mind_mlir.languages.mind import elaboration
from mind_mlir.languages.mind.program import SurfaceProgram
from mind_mlir.languages.source import decode_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.connection import Connection

    from mind_mlir.diagnostics import Diagnostic

_ROOT = Path(__file__).parent.parent
#: Seconds that one mutation may take.
LIMIT = 20.0
#: Bytes of address space that a child may use.
_MEMORY = 6 << 30
#: What the compiler itself takes for its bug is told so.
_INTERNAL = "InternalError:"
_BLOCK = re.compile(r"```mind\n(.*?)```", re.DOTALL)


def texts() -> list[bytes]:
    """Return every program that there is: files, pages of the documentation, examples of the catalogue."""
    found: dict[bytes, None] = {}
    for folder in ("examples", "tests", "lit_tests", "benchmarks"):
        for path in sorted((_ROOT / folder).rglob("*.mind")):
            found[path.read_bytes()] = None
    for path in sorted((_ROOT / "docs").glob("*.md")):
        for block in _BLOCK.findall(path.read_text(encoding="utf-8")):
            found[block.encode()] = None
    for entry in CATALOGUE.values():
        for language, sample in samples(entry):
            if language == "surface":
                found[sample.bad.encode()] = None
                found[sample.good.encode()] = None
    return [text for text in found if len(text) < 20_000]


def outcome(data: bytes, *, compiles: bool = False) -> str:
    """Return what becomes of a text: ``unread``, ``refused``, ``accepted``, ``lowered``, or ``compiled``.

    Raises:
        Exception: Anything but a `MindError` is a mistake of the compiler; so is a finding without a place.
    """
    try:
        source = decode_source(data, "mutated.mind")
    except MindError as error:
        _look_at(error.diagnostics)
        return "unread"
    program = SurfaceProgram(source)
    findings = elaboration.check(program)
    _look_at(findings)
    if findings:
        return "refused"
    assert not program.findings, "what is not well-formed is refused"
    return _lowered(program, compiles=compiles)


def _lowered(program: SurfaceProgram, *, compiles: bool) -> str:
    try:
        module = elaboration.lower(program)
    except MindError as error:
        _look_at(error.diagnostics)
        return "accepted"
    if not compiles:
        return "lowered"
    try:
        mind_mlir.compile(module)
    except MindError as error:
        _look_at(error.diagnostics)
        return "refused when compiled"
    return "compiled"


def _look_at(findings: Sequence[Diagnostic]) -> None:
    assert bool(render(findings)) == bool(findings)
    for finding in findings:
        assert finding.code in CATALOGUE, finding
        if finding.location is not None:
            start, end = finding.location.offsets
            assert 0 <= start < end <= len(finding.location.source.text) + 1, finding


@dataclass(slots=True)
class Tally:
    """What has become of the mutations so far."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, -1)


def run(seed: int, numbers: range, every: int, seconds: float) -> tuple[Tally, int]:
    """Run mutations in children until ``seconds`` are over; return what happened, and the next number."""
    tally, position, end = Tally(), numbers.start, time.monotonic() + seconds
    programs = texts()
    while position < numbers.stop and time.monotonic() < end:
        for number, what, took in _child(seed, range(position, numbers.stop), every, programs, end):
            position = number + 1
            if what.startswith("!"):
                tally.failures.append((number, what[1:]))
            tally.outcomes[_counted_as(what)] += 1
            tally.slowest = max(tally.slowest, (took, number))
    return tally, position


def _counted_as(what: str) -> str:
    if not what.startswith("!"):
        return what
    return "internal errors" if what[1:].startswith(_INTERNAL) else "otherwise failed"


def _child(
    seed: int, numbers: range, every: int, programs: list[bytes], end: float
) -> Iterator[tuple[int, str, float]]:
    """Yield what becomes of each mutation in one child process, until it fails or the time is over."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, seed, numbers, every, programs), daemon=True)
    process.start()
    theirs.close()
    number = numbers.start
    try:
        while number < numbers.stop and time.monotonic() < end:
            if not ours.poll(LIMIT):
                yield number, f"!takes more than {LIMIT} s", LIMIT
                return
            try:
                number, what, took = ours.recv()
            except EOFError:
                process.join()
                yield number, f"!the process ended with {process.exitcode}", 0.0
                return
            yield number, what, took
            number += 1
    finally:
        process.kill()
        process.join()
        ours.close()


def _work(pipe: Connection, seed: int, numbers: range, every: int, programs: list[bytes]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    for number in numbers:
        text, started = mutated(seed, number, programs), time.perf_counter()
        try:
            what = outcome(text, compiles=number % every == 0)
        except InternalError as error:
            what = f"!{_INTERNAL} {error}, in the program\n{error.reduced().program}"
        except BaseException:  # whatever it is, it is what is looked for
            what = "!" + traceback.format_exc(limit=-6)
        pipe.send((number, what, time.perf_counter() - started))


def main() -> int:
    """Run the mutations and print what became of them; return 1 where one failed."""
    arguments = parser("fuzz_surface", __doc__)
    arguments.add_argument("--mutations", type=int, default=100_000)
    arguments.add_argument("--first", type=int, default=0)
    arguments.add_argument("--seconds", type=float, default=380.0)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--compile", type=int, default=20, help="compile one in so many")
    arguments.add_argument("--show", type=int, help="print this mutation")
    given = arguments.parse_args()
    if given.show is not None:
        sys.stdout.buffer.write(mutated(given.seed, given.show, texts()))
        return 0
    numbers = range(given.first, given.mutations)
    tally, following = run(given.seed, numbers, given.compile, given.seconds)
    kinds: dict[str, list[tuple[int, str]]] = {}
    for number, what in tally.failures:
        kinds.setdefault("".join(what.splitlines()[-3:]), []).append((number, what))
    for found in kinds.values():
        numbers_ = ", ".join(str(number) for number, _ in found[:10])
        print(f"{len(found)} like mutation {numbers_}: {found[0][1]}")
    print(", ".join(f"{count:,} {what}" for what, count in sorted(tally.outcomes.items())))
    print(f"slowest: {tally.slowest[0]:.2f} s (mutation {tally.slowest[1]})")
    print(f"{len(tally.failures)} failures; go on with --first {following}")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
