"""`TimeProfile`: where the time of a function goes, as data, a table, JSON and a timeline."""

from __future__ import annotations

import bisect
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from mind_mlir.lowering.profiling.rows import Work
from mind_mlir.lowering.profiling.stamps import CHUNK
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.notebooks import shown_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mind_mlir.diagnostics.checks import Place
    from mind_mlir.lowering.profiling.rows import StampedRow
    from mind_mlir.profiling.limits import Limits
    from mind_mlir.profiling.recording import Interval

_FUNCTION = "function"
#: How many spans a timeline shows at most.
_SHOWN_SPANS = 100_000


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """What one nest takes of a call, on average.

    Attributes:
        name: The numbers of the nests, as `--emit=schedule` counts them, and the kind of their schedules; of
            what is no nest, what it is.
        operations: What it computes: the opcodes, each with what the program calls its value.
        place: File, line and column of the first one, as text; empty where that is not known.
        runs: How often it runs in a call.
        seconds: How long it takes on the thread that calls, all runs of a call together.
        busy: Seconds that each thread computes, the one that calls first.
        bytes: What it has to move in a call.
        arithmetic: The operations on elements that it has to do in a call.
        limit: The least seconds that this machine would take for that, with the threads that took part; 0.0
            where that is not known.
        bound: What limits it then: ``compute`` or ``memory``; empty where that is not known.
        places: File, line and column of each that is known.
    """

    name: str
    operations: tuple[str, ...]
    place: str
    runs: float
    seconds: float
    busy: tuple[float, ...]
    bytes: int
    arithmetic: int
    limit: float
    bound: str
    places: tuple[Place, ...] = ()

    @property
    def fraction(self) -> float:
        """Return how much of what the machine could do is reached; 0.0 where that is not known."""
        return self.limit / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class TimeProfile:
    """Where the time of calls of a function goes.

    Attributes:
        rows: The nests, and what else has its time taken, those that take longest first.
        calls: How many calls the rows are the means of.
        seconds: How long these took, from and to Python, the mean.
        unstamped: How long a call takes without stamps.
        code: How long the compiled code takes of it, the mean.
        threads: How many threads took part.
        is_whole: Whether the time of all runs was taken; there was no room for more else.
        limits: What the machine can do.
        spans: Every run, for the timeline: the number of a row in `rows`, -1 for what is in none; the thread;
            start and end in seconds; and whether it is a thread's part of a shared loop.
    """

    _repr_html_ = shown_by("reports.profile")

    rows: tuple[ProfileRow, ...]
    calls: int
    seconds: float
    unstamped: float
    code: float
    threads: int
    is_whole: bool
    limits: Limits
    spans: tuple[tuple[int, int, float, float, bool], ...]

    @property
    def explained(self) -> float:
        """Return the share of a call's time that is in the rows."""
        return sum(row.seconds for row in self.rows) / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        return self.table()

    def table(self) -> str:
        """Return a table for people."""
        from mind_mlir.profiling.tables import table  # noqa: PLC0415 -- few who profile print

        return table(self)

    def to_json(self) -> str:
        """Return all but the timeline as JSON; times are in seconds."""
        shown = [name for name in (*ProfileRow.__slots__, "fraction") if name != "places"]
        rows = [{name: getattr(row, name) for name in shown} for row in self.rows]
        names = ("calls", "seconds", "unstamped", "code", "threads", "is_whole", "explained")
        limits = {
            "threads": self.limits.threads,
            "multiply_adds": self.limits.multiply_adds,
            "levels": [[size, rate] for size, rate in self.limits.levels],
        }
        found = {**{name: getattr(self, name) for name in names}, "limits": limits, "rows": rows}
        return json.dumps(found, indent=2) + "\n"

    def to_trace(self) -> str:
        """Return the runs as a timeline in the trace event format, which Perfetto and Chromium show."""
        events: list[dict[str, Any]] = [
            {"name": "thread_name", "ph": "M", "pid": 1, "tid": thread, "args": {"name": _thread(thread)}}
            for thread in range(self.threads)
        ]
        for number, thread, start, end, is_part in self.spans[:_SHOWN_SPANS]:
            row = self.rows[number] if number >= 0 else None
            name = _FUNCTION if row is None else row.name
            event: dict[str, Any] = {
                "name": f"{name} (a thread's part)" if is_part else name,
                "ph": "X",
                "pid": 1,
                "tid": thread,
                "ts": start * 1e6,
                "dur": (end - start) * 1e6,
            }
            if row is not None and not is_part:
                event["args"] = {"operations": ", ".join(row.operations), "place": row.place}
            events.append(event)
        return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}) + "\n"


def _thread(number: int) -> str:
    return "the thread that calls" if number == 0 else f"thread {number} of the pool"


def profile_of(
    stamped: Sequence[StampedRow],
    pieces: Mapping[int, int],
    spans: Sequence[Interval],
    taken: Sequence[float],
    unstamped: float,
    limits: Limits,
    *,
    is_whole: bool,
) -> TimeProfile:
    """Return the profile of calls: of the half of them that took least, since others were interrupted.

    Args:
        stamped: What each stamp is for.
        pieces: In how many places of the code each stamp stands.
        spans: What was recorded.
        taken: Nanoseconds of each call, as Python saw it.
        unstamped: Seconds of a call of the code without stamps.
        limits: What the machine can do.
        is_whole: Whether all of it was recorded.
    """
    functions = sorted(
        (span for span in spans if stamped[span.stamp].kind == _FUNCTION and not span.depth),
        key=lambda span: span.start,
    )
    threads = 1 + max((span.thread for span in spans), default=0)
    quickest = sorted(range(len(functions)), key=lambda number: taken[number])
    chosen = set(quickest[: max(1, len(functions) // 2)])
    owners = _Owners(stamped, spans, [functions[number] for number in sorted(chosen)])
    calls = max(len(chosen), 1)
    order = sorted(owners.tops, key=lambda stamp: -_seconds(owners.tops[stamp]))
    rows = []
    for stamp in order:
        busy = [0.0] * threads
        for span in owners.parts.get(stamp) or owners.tops[stamp]:
            busy[span.thread] += span.nanoseconds / 1e9 / calls
        runs = len(owners.tops[stamp]) / calls / pieces[stamp]
        seconds = _seconds(owners.tops[stamp]) / calls
        rows.append(_row(stamped[stamp], runs, seconds, busy, limits))
    shown = [(-1, span, False) for span in functions]
    for place, stamp in enumerate(order):
        shown += [(place, span, False) for span in owners.tops[stamp]]
        shown += [(place, span, True) for span in owners.parts.get(stamp, ())]
    shown.sort(key=lambda each: (each[1].start, -each[1].end))
    return TimeProfile(
        rows=tuple(rows),
        calls=calls,
        seconds=sum(taken[number] for number in chosen) / calls / 1e9,
        unstamped=unstamped,
        code=sum(functions[number].nanoseconds for number in chosen) / calls / 1e9,
        threads=threads,
        is_whole=is_whole,
        limits=limits,
        spans=tuple(
            (number, span.thread, span.start / 1e9, span.end / 1e9, is_part)
            for number, span, is_part in shown
        ),
    )


class _Owners:
    """The spans of nests, and what threads computed in the time of each, by the stamps of the nests.

    A thread's part of a loop is part of the nest that the calling thread was at: what nests that a program
    repeats share is code of their own, and has the stamps of none of them.

    Attributes:
        tops: Of each stamp, the spans on the thread that calls, which are in no other nest's.
        parts: Of each stamp, what threads computed meanwhile of loops that they share.
    """

    def __init__(
        self, stamped: Sequence[StampedRow], spans: Sequence[Interval], calls: Sequence[Interval]
    ) -> None:
        self.tops: dict[int, list[Interval]] = defaultdict(list)
        self.parts: dict[int, list[Interval]] = defaultdict(list)
        starts = [call.start for call in calls]
        inside = [span for span in spans if _holder(calls, starts, span) is not None]
        tops = sorted((span for span in inside if _is_top(span, stamped)), key=lambda span: span.start)
        for span in tops:
            self.tops[span.stamp].append(span)
        starts = [span.start for span in tops]
        for span in inside:
            holder = _holder(tops, starts, span) if stamped[span.stamp].kind == CHUNK else None
            if holder is not None:
                self.parts[holder.stamp].append(span)


def _holder(spans: Sequence[Interval], starts: Sequence[float], span: Interval) -> Interval | None:
    """Return the one of ``spans``, which begin at ``starts``, in whose time ``span`` begins."""
    at = bisect.bisect_right(starts, span.start) - 1
    return spans[at] if at >= 0 and span.start < spans[at].end else None


def _seconds(spans: Sequence[Interval]) -> float:
    return sum(span.nanoseconds for span in spans) / 1e9


def _is_top(span: Interval, stamped: Sequence[StampedRow]) -> bool:
    """Return whether a span is that of a nest, or of what is none, and in no other one."""
    return span.thread == 0 and span.depth == 1 and stamped[span.stamp].kind not in (CHUNK, _FUNCTION)


def _row(row: StampedRow, runs: float, seconds: float, busy: Sequence[float], limits: Limits) -> ProfileRow:
    numbers = _numbers(row.numbers)
    operations = tuple(f"{each.label} {each.opcode}".strip() for each in row.computes)
    place = next((each.place for each in row.computes if each.place is not None), None)
    took_part = sum(each > 0 for each in busy)
    work = Work(round(row.work.bytes * runs), round(row.work.operations * runs), row.work.element)
    return ProfileRow(
        name=f"{numbers} {row.kind}".strip(),
        operations=operations,
        place="" if place is None else ":".join(map(str, place)),
        runs=runs,
        seconds=seconds,
        busy=tuple(busy),
        bytes=work.bytes,
        arithmetic=work.operations,
        limit=runs * limits.seconds(row.work, took_part),
        bound=limits.binds(row.work),
        places=tuple(each.place for each in row.computes if each.place is not None),
    )


def _numbers(numbers: Iterable[int]) -> str:
    """Return numbers as text, those that follow one another as a range."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
