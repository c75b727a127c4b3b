"""Runs a step of `fault_steps` again and again, each time with another system call that fails; prints JSON.

    python tests/faults/fault_runs.py STEP [COUNT]

Calls are of several kinds (`KINDS`). First none fails, which tells how many calls of a kind there are; then
for each number n the n-th fails alone, and once more with all after it. COUNT draws so many numbers, evenly.
"""

from __future__ import annotations

import importlib
import json
import mmap
import os
import signal
import sys
import tempfile
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import answered_calls as calls
import fault_steps

from mind_mlir.diagnostics import MindError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Calls by what they take from the system.
KINDS = {
    "memory": ("mmap", "mprotect", "brk", "mremap", "madvise"),
    "threads": ("clone", "clone3"),
}
KINDS["files"] = tuple(name for name in calls.CALLS if not any(name in each for each in KINDS.values()))
#: How many seconds a run may go on without a call.
_PATIENCE = 60.0


@dataclass
class Run:
    """What came of one run.

    Attributes:
        step: The step.
        first: Which call failed, counted from 0; -1 for none.
        and_after: Whether all after it failed, too.
        calls: How many calls the step made.
        call: The name of the one that failed first.
        during: What came of the step: ``right``, ``wrong``, or the class and the message of an error.
        after: What came of it once nothing failed any more.
        trouble: What no user may meet: a traceback, or how the process ended.
    """

    step: str
    first: int
    and_after: bool
    calls: int = 0
    call: str = ""
    during: str = ""
    after: str = ""
    trouble: str = ""

    def fails(self, name: str) -> bool:
        """Count a call, and return whether it fails."""
        number, self.calls = self.calls, self.calls + 1
        if number == self.first:
            self.call = name
        return number == self.first or (self.and_after and 0 <= self.first < number)


class Shared:
    """Memory of parent and child, which is written to without a system call."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1 << 18)

    @property
    def counts(self) -> bool:
        """Return whether calls count at the moment."""
        return bool(self._memory[0])

    @counts.setter
    def counts(self, value: bool) -> None:
        self._memory[0] = value

    def write(self, words: dict[str, str]) -> None:
        """Leave words for the parent, in place of those before."""
        data = json.dumps({name: text[-50_000:] for name, text in words.items()}).encode()
        self._memory[8 : 8 + len(data)] = data
        self._memory[1:5] = len(data).to_bytes(4, "little")

    def read(self) -> dict[str, str]:
        """Return the words that the child has left."""
        size = int.from_bytes(self._memory[1:5], "little")
        words: dict[str, str] = json.loads(self._memory[8 : 8 + size] or b"{}")
        return words


def run(step: Callable[[Path], bool], names: tuple[str, ...], first: int, *, and_after: bool) -> Run:
    """Run ``step`` in a child in which the call ``first`` of ``names`` fails."""
    outcome = Run(step.__name__, first, and_after)
    shared = Shared()
    with tempfile.TemporaryDirectory() as folder:
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            _child(step, Path(folder), names, shared, writer)
        listener = calls.listener_of(child, int(os.read(reader, 16)))
        files = [reader, writer]
        if listener is not None:
            files.append(listener)
            try:
                calls.answer(listener, names, lambda name: shared.counts and outcome.fails(name), _PATIENCE)
            except TimeoutError:
                os.kill(child, signal.SIGKILL)
                outcome.trouble = "it hangs"
        for file in files:
            os.close(file)
        _, status = os.waitpid(child, 0)
    words = shared.read()
    outcome.during, outcome.after = words.get("during", ""), words.get("after", "")
    outcome.trouble = outcome.trouble or words.get("trouble", "")
    if status and not outcome.trouble:
        outcome.trouble = f"the process ends with {os.waitstatus_to_exitcode(status)}"
    return outcome


def _child(
    step: Callable[[Path], bool], folder: Path, names: tuple[str, ...], shared: Shared, writer: int
) -> None:
    """Run the step while calls may fail, and once more when none does; never return."""
    words: dict[str, str] = {}
    status = 1
    try:
        fault_steps.prepare(step, folder)
        os.write(writer, str(calls.next_file()).encode())
        calls.report(names)
        shared.counts = True
        words["during"], words["trouble"] = _outcome(step, folder)
        shared.counts = False
        shared.write(words)
        words["after"], trouble = _outcome(step, folder)
        words["trouble"] += trouble
        shared.write(words)
        status = 0
    finally:
        os._exit(status)


def _outcome(step: Callable[[Path], bool], folder: Path) -> tuple[str, str]:
    """Return what comes of a step, and what is wrong with that."""
    try:
        return ("right", "") if step(folder) else ("wrong", "the results are wrong")
    except (MindError, MemoryError) as error:
        return f"{type(error).__name__}: {error}", ""
    except BaseException as error:
        return f"{type(error).__name__}: {error}", traceback.format_exc()


def runs(step: Callable[[Path], bool], kind: str, count: int | None = None) -> Iterator[Run]:
    """Yield the runs of a step (see the module)."""
    whole = run(step, KINDS[kind], -1, and_after=False)
    yield whole
    drawn = range(whole.calls) if count is None else range(0, whole.calls, -(-whole.calls // count) or 1)
    for number in drawn:
        yield run(step, KINDS[kind], number, and_after=False)
        if kind != "memory":  # LLVM ends a process that has no more
            yield run(step, KINDS[kind], number, and_after=True)


def _load_modules(step: Callable[[Path], bool]) -> None:
    """Import what the step imports: Python itself says what is wrong with files of modules."""
    shared = Shared()
    if not (child := os.fork()):
        with tempfile.TemporaryDirectory() as folder:
            fault_steps.prepare(step, Path(folder))
            step(Path(folder))
        # What was never a file has no specification.
        names = (name for name, each in sys.modules.items() if getattr(each, "__spec__", None))
        shared.write({"modules": " ".join(names)})
        os._exit(0)
    os.waitpid(child, 0)
    for name in shared.read()["modules"].split():
        importlib.import_module(name)


def main(name: str, count: str | None = None) -> None:
    """Print the runs of a step."""
    step = getattr(fault_steps, name)
    _load_modules(step)
    for kind in KINDS:
        for each in runs(step, kind, int(count) if count else None):
            print(json.dumps(asdict(each)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
