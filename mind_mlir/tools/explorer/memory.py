"""The plan of memory and the timeline of a profile, with the operations that each part is for."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from mind_mlir.conversion.buffers.plan import described
from mind_mlir.tools.explorer.exploration import ArenaBuffer, TimelineSpan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mind_mlir.diagnostics.checks import Place
    from mind_mlir.lowering.buffers.plan import Arena
    from mind_mlir.profiling.profile import TimeProfile

    #: What a file and a line of it stand for.
    Numbers = Callable[[str, int], frozenset[int]]


def memory_of(arenas: Sequence[Arena], symbol: str, numbers: Numbers) -> tuple[tuple[ArenaBuffer, ...], int]:
    """Return the buffers of a function, and the size of its arena.

    Args:
        arenas: The arenas of the functions of a module.
        symbol: The function, as compiled code calls it.
        numbers: Says which operations a place stands for.
    """
    arena = next((each for each in arenas if each.function == symbol), None)
    if arena is None:
        return (), 0
    buffers = tuple(
        ArenaBuffer(
            f"{described(each)}: {each.type}",
            each.offset,
            each.stop - each.offset,
            each.start,
            each.end,
            _numbers(each.places, numbers),
        )
        for each in arena.buffers
    )
    return buffers, arena.bytes


def timeline_of(profile: TimeProfile, numbers: Numbers) -> tuple[TimelineSpan, ...]:
    """Return what threads did in the quickest call of those that a profile is of."""
    inside = [span for span in profile.spans if span[0] >= 0]  # in order of their starts
    starts = [start for _, _, start, _, _ in inside]
    calls = [
        (end - start, start, end)
        for row, _, start, end, _ in profile.spans
        if row < 0 and bisect_left(starts, start) < bisect_left(starts, end)
    ]
    if not calls:
        return ()
    _, begin, stop = min(calls)
    found = []
    for number, thread, start, end, is_part in inside[bisect_left(starts, begin) : bisect_left(starts, stop)]:
        row = profile.rows[number]
        name = f"{row.name}: {', '.join(row.operations)}"
        found.append(
            TimelineSpan(
                thread,
                (start - begin) * 1e6,
                (end - begin) * 1e6,
                f"{name} (a thread's part)" if is_part else name,
                _numbers(row.places, numbers),
            )
        )
    return tuple(found)


def _numbers(places: Iterable[Place], numbers: Numbers) -> tuple[int, ...]:
    found = frozenset[int]().union(*(numbers(file, line) for file, line, _ in places))
    return tuple(sorted(found))
