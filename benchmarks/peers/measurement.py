"""Measures all frameworks, one workload at a time, so that what disturbs one disturbs all."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.peers.process import Process
from benchmarks.peers.workloads import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Workloads whose memory is measured.
MEMORY = ("attention", "mlp_grad", "gpt2_block")


@dataclass(slots=True)
class Result:
    """One workload on one framework and a number of threads.

    Attributes:
        workload: The workload.
        peer: The framework.
        threads: How many threads.
        seconds: Median of one call, that of the quietest round; None where it was not measured.
        compile_seconds: What compiling took; None where nothing is compiled.
        error: Largest error relative to f64.
        faults: Minor page faults of a call in the steady state.
        others: Cores that other processes used meanwhile.
        missing: Why it was not measured.
        note: What a reader should know.
    """

    workload: str
    peer: str
    threads: int
    seconds: float | None = None
    compile_seconds: float | None = None
    error: float | None = None
    faults: float | None = None
    others: float | None = None
    missing: str = ""
    note: str = ""


@dataclass(slots=True)
class Memory:
    """Peak memory of a workload above that of the imported framework, in bytes; None where it failed.

    Attributes:
        workload: The workload.
        peer: The framework.
        with_compile: Of compiling and the first call.
        calls: Of calls thereafter.
        files: How much of both are pages of libraries, which the system takes back when it wants to.
    """

    workload: str
    peer: str
    with_compile: int | None
    calls: int | None
    files: int | None = None


@dataclass(slots=True)
class Measurement:
    """All that was measured.

    Attributes:
        results: A row for each workload, framework and number of threads.
        memory: A row for each workload of `MEMORY` and framework.
        versions: Of each framework.
        absent: Why a framework was not measured at all.
    """

    results: list[Result] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Measurement:
        """Return what `as_json` was made of."""
        return cls(
            [Result(**row) for row in data["results"]],
            [Memory(**row) for row in data["memory"]],
            data["versions"],
            data["absent"],
        )

    def updated(self, new: Measurement) -> Measurement:
        """Return this with what is ``new`` in the place of what was measured of the same before."""
        rows = {(row.workload, row.peer, row.threads): row for row in [*self.results, *new.results]}
        memory = {(row.workload, row.peer): row for row in [*self.memory, *new.memory]}
        return Measurement(
            list(rows.values()),
            list(memory.values()),
            {**self.versions, **new.versions},
            {**self.absent, **new.absent},
        )


def measure(
    workloads: Sequence[str],
    peers: Sequence[str],
    threads: Sequence[int],
    *,
    seconds: float,
    rounds: int,
    say: Callable[[str], object],
) -> Measurement:
    """Measure.

    Args:
        workloads: Which.
        peers: The frameworks.
        threads: Numbers of threads.
        seconds: How long each is called in a round.
        rounds: How often each has its turn with a workload, the order turned round each time.
        say: Told what is going on.
    """
    found = Measurement()
    with tempfile.TemporaryDirectory(prefix="mind-mlir-peers-") as folder:
        references = {name: _reference(name, Path(folder)) for name in workloads}
        for count in threads:
            with ExitStack() as stack:
                processes = [stack.enter_context(Process(name, count)) for name in peers]
                for process in processes:
                    found.versions.setdefault(process.name, process.versions)
                    if process.missing:
                        found.absent[process.name] = process.missing
                present = [process for process in processes if not process.missing]
                for name in workloads:
                    rows = _row(name, count, present, references[name], seconds, rounds)
                    found.results += rows
                    say(_line(rows))
    for name in (name for name in workloads if name in MEMORY):
        found.memory += [_memory(name, peer, max(threads)) for peer in peers if peer not in found.absent]
    return found


def _reference(name: str, folder: Path) -> Path:
    path = folder / f"{name}.npz"
    np.savez(path, *WORKLOADS[name].expected())
    return path


def _row(
    workload: str, threads: int, processes: Sequence[Process], expected: Path, seconds: float, rounds: int
) -> list[Result]:
    results = {process.name: Result(workload, process.name, threads) for process in processes}
    for process in processes:
        result = results[process.name]
        answer = process.ask("prepare", workload=workload, expected=str(expected))
        result.missing = answer.get("failed") or answer.get("not_written") or ""
        if not result.missing:
            result.error, result.compile_seconds = answer["error"], answer["compile_seconds"]
            result.note = answer["note"]
    for turn in range(rounds):
        for process in processes[:: 1 if turn % 2 == 0 else -1]:
            result = results[process.name]
            if not result.missing:
                _take(result, process.ask("sample", seconds=seconds))
    for process in processes:
        process.ask("release")
    return list(results.values())


def _take(result: Result, answer: dict[str, Any]) -> None:
    """Keep a sample if it is the quickest so far."""
    if "failed" in answer:
        result.missing = answer["failed"]
    elif result.seconds is None or answer["seconds"] < result.seconds:
        result.seconds, result.faults, result.others = answer["seconds"], answer["faults"], answer["others"]


def _memory(workload: str, peer: str, threads: int) -> Memory:
    with Process(peer, threads) as process:
        answer = process.ask("memory", workload=workload)
    return Memory(workload, peer, *(answer.get(key) for key in ("with_compile", "calls", "files")))


def _line(rows: Sequence[Result]) -> str:
    """Return one line for those who wait."""
    times = ["-" if row.seconds is None else f"{row.seconds * 1e6:.1f}" for row in rows]
    cells = [f"{row.peer} {time}" for row, time in zip(rows, times, strict=True)]
    return f"{rows[0].workload}, threads: {rows[0].threads}, us: {', '.join(cells)}" if rows else ""
