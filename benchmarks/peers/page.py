"""The measurement as a page of tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchmarks.peers.frameworks import OURS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from benchmarks.peers.measurement import Measurement, Memory, Result

_READING = """\
Each framework runs in a process of its own, with the same inputs from a fixed seed in its own kind of
tensor. A call returns when its outputs are there, in memory that the framework allocates as it usually
does. Times are medians of calls, of the quietest of the rounds; the frameworks take turns with each
workload. `ratio` is the time of the quickest other framework over ours: above 1, we are quicker. The error
is the largest one of any output relative to the largest element of that output in f64."""


def page(found: Measurement, machine: Sequence[str], command: str, chart: str | None) -> str:
    """Return the page.

    Args:
        found: What was measured.
        machine: Facts about the machine, a line each.
        command: What measures it again.
        chart: Name of the file of the chart beside the page, if there is one.
    """
    return "\n".join(_lines(found, machine, command, chart)) + "\n"


def ratio(rows: Mapping[str, Result]) -> float | None:
    """Return the time of the quickest other framework over ours, for one workload and number of threads."""
    ours = rows[OURS].seconds if OURS in rows else None
    others = [row.seconds for row in rows.values() if row.peer != OURS and row.seconds is not None]
    return min(others) / ours if ours is not None and others else None


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of at least one value."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


def by_workload(found: Measurement, threads: int) -> dict[str, dict[str, Result]]:
    """Return the results on so many threads, by workload and framework."""
    rows: dict[str, dict[str, Result]] = {}
    for result in found.results:
        if result.threads == threads:
            rows.setdefault(result.workload, {})[result.peer] = result
    return rows


def counts(found: Measurement) -> list[int]:
    """Return the numbers of threads that were measured."""
    return sorted({result.threads for result in found.results})


def peers(found: Measurement) -> list[str]:
    """Return the frameworks that were measured, in their order."""
    return [name for name in found.versions if name not in found.absent]


def _lines(found: Measurement, machine: Sequence[str], command: str, chart: str | None) -> Iterator[str]:
    names = peers(found)
    yield from ("# Beside other frameworks", "", f"Measured by `{command}`.", "", _READING, "")
    yield from (f"- {fact}" for fact in machine)
    for name in names:
        yield f"- {name}: " + ", ".join(f"{what} {version}" for what, version in found.versions[name].items())
    yield from (f"- {name}: not measured ({why})" for name, why in found.absent.items())
    yield ""
    yield from _summary(found)
    if chart is not None:
        yield from (f"![Times relative to ours, by workload]({chart})", "")
    for threads in counts(found):
        yield from _times(found, threads, names)
    yield from _table("Compile time, ms", found, names, lambda row: _number(row.compile_seconds, 1e3))
    yield from _table(
        "Relative error", found, names, lambda row: "" if row.error is None else f"{row.error:.1e}"
    )
    yield from _table("Minor page faults of a call", found, names, lambda row: _number(row.faults))
    yield from _memory(found, names)
    yield from _notes(found)


def _summary(found: Measurement) -> Iterator[str]:
    for threads in counts(found):
        ratios = [ratio(rows) for rows in by_workload(found, threads).values()]
        known = [value for value in ratios if value is not None]
        if known:
            mean = geometric_mean(known)
            yield f"Geometric mean of the ratios, {_threads(threads)}: **{mean:.2f}**."
    yield ""


def _times(found: Measurement, threads: int, names: Sequence[str]) -> Iterator[str]:
    rows = by_workload(found, threads)
    yield from (f"## {_threads(threads).capitalize()}: microseconds", "")
    yield from _head([*names, "ratio"])
    for workload, results in rows.items():
        best = min((r.seconds for r in results.values() if r.seconds is not None), default=None)
        cells = []
        for name in names:
            seconds = results[name].seconds
            text = _number(seconds, 1e6)
            cells.append(f"**{text}**" if seconds is not None and seconds == best else text)
        value = ratio(results)
        yield _cells(workload, [*cells, "" if value is None else f"{value:.2f}"])
    yield ""


def _table(
    title: str, found: Measurement, names: Sequence[str], cell: Callable[[Result], str]
) -> Iterator[str]:
    threads = counts(found)[-1]
    yield from (f"## {title}, {_threads(threads)}", "")
    yield from _head(names)
    for workload, results in by_workload(found, threads).items():
        yield _cells(workload, [cell(results[name]) for name in names])
    yield ""


def _memory(found: Measurement, names: Sequence[str]) -> Iterator[str]:
    if not found.memory:
        return
    yield from ("## Peak memory above that of the imported framework, MB", "")
    yield "Of calls, and behind the stroke with compiling; inputs count. In brackets: how much of it are"
    yield "pages of libraries' files, code that processes share and the system takes back when it wants to."
    yield ""
    yield from _head(names)
    for workload in dict.fromkeys(row.workload for row in found.memory):
        rows = {row.peer: row for row in found.memory if row.workload == workload}
        yield _cells(workload, [_memory_cell(rows.get(name)) for name in names])
    yield ""


def _memory_cell(row: Memory | None) -> str:
    if row is None or row.calls is None:
        return ""
    files = "" if row.files is None else f" ({_number(row.files, 1e-6)})"
    return f"{_number(row.calls, 1e-6)} / {_number(row.with_compile, 1e-6)}{files}"


def _notes(found: Measurement) -> Iterator[str]:
    notes: dict[str, list[str]] = {}
    for result in found.results:
        for text in filter(None, (result.note, f"not measured: {result.missing}" if result.missing else "")):
            workloads = notes.setdefault(f"{result.peer}, {text}", [])
            if result.workload not in workloads:
                workloads.append(result.workload)
    if notes:
        yield from ("## Notes", "")
        yield from (f"- {text}: {', '.join(workloads)}" for text, workloads in notes.items())


def _threads(count: int) -> str:
    return f"{count} thread{'' if count == 1 else 's'}"


def _head(columns: Sequence[str]) -> list[str]:
    return [_cells("workload", columns), "|---|" + "---:|" * len(columns)]


def _cells(first: str, others: Sequence[str]) -> str:
    return f"| {first} | " + " | ".join(others) + " |"


def _error(row: Result) -> str:
    return "" if row.error is None else f"{row.error:.1e}"


def _number(value: float | None, factor: float = 1.0) -> str:
    """Return ``value`` to three digits; nothing where there is none."""
    if value is None:
        return ""
    scaled = value * factor
    if scaled >= 100 or scaled == 0:
        return f"{scaled:.0f}"
    return f"{scaled:.1f}" if scaled >= 10 else f"{scaled:.2f}"
