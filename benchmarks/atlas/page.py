"""The page of the atlas."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import TYPE_CHECKING

from benchmarks.peers.machine import facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.atlas.measuring import Found

_WORST = 50
#: A point is listed where it takes so many times the median of its class, or so much scratch memory.
_SLOW_COMPILE, _MUCH_SCRATCH = 3.0, 2.0
_EDGES = (0.1, 0.25, 0.5, 0.75, 1.0)


_INTRODUCTION = """\
Every operation is compiled for the examples of its record, in several sizes and dtypes, and every pair of
some classes of operations; nothing is tuned for a point. A point's limit is the time in which this machine
could move the bytes that any program for it has to move, or do its arithmetic, as if all were multiply-adds,
measured as [profiles](profiling.md) do; its fraction is that limit over the time of a call, less the half
microsecond that a call of nothing takes. An exponential and its kind count as many operations as their
records say. Of sorts, and where values say which elements are read or written, only bytes are counted: no
program reaches that, and they have a table of their own."""


def page(found: Sequence[Found], command: str) -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines(found, command)) + "\n"


def _lines(found: Sequence[Found], command: str) -> Iterator[str]:
    whole = [each for each in found if not each.refused]
    yield "# Atlas"
    yield ""
    yield f"Written by `{command}`; do not edit."
    yield ""
    yield _INTRODUCTION
    yield ""
    yield from (f"- {fact}" for fact in facts())
    yield ""
    yield f"{len(whole)} points, {len(found) - len(whole)} refused."
    yield ""
    limited = [each for each in whole if each.limit]
    for title, by_value in (("Arithmetic and movement", False), ("By value: sorts, gathers, scatters", True)):
        yield f"## {title}"
        yield ""
        yield from _fractions([each for each in limited if each.by_value is by_value])
        yield ""
    medians = {
        key: statistics.median(each.compile_ms for each in points)
        for key, points in _by(whole, lambda each: (each.is_pair, each.size)).items()
    }
    slow = [each for each in whole if each.compile_ms > _SLOW_COMPILE * medians[each.is_pair, each.size]]
    yield ""
    yield f"## Compiled in more than {_SLOW_COMPILE:g} times the median of their size"
    yield ""
    yield from _table(
        sorted(slow, key=lambda each: -each.compile_ms),
        ("ms", "median"),
        lambda each: (f"{each.compile_ms:.0f}", f"{medians[each.is_pair, each.size]:.0f}"),
    )
    much = [each for each in whole if each.scratch > _MUCH_SCRATCH]
    yield ""
    yield f"## Scratch memory of more than {_MUCH_SCRATCH:g} times arguments and results"
    yield ""
    yield from _table(
        sorted(much, key=lambda each: -each.scratch), ("times",), lambda each: (f"{each.scratch:.1f}",)
    )
    refused = [each for each in found if each.refused]
    if refused:
        yield ""
        yield "## Refused"
        yield ""
        yield from _table(refused, ("why",), lambda each: (each.refused,))


def _fractions(found: Sequence[Found]) -> Iterator[str]:
    """Yield how far points are from their limit: how many, and the farthest."""
    yield "| size | points | median | " + " | ".join(f"below {edge}" for edge in _EDGES) + " |"
    yield "|---|" + "---:|" * (len(_EDGES) + 2)
    for size, points in sorted(_by(found, lambda each: str(each.size)).items()):
        fractions = [each.fraction for each in points]
        below = " | ".join(str(sum(each < edge for each in fractions)) for edge in _EDGES)
        yield f"| {size} | {len(points)} | {statistics.median(fractions):.2f} | {below} |"
    yield ""
    yield f"The {_WORST} farthest from their limit, but for those in the first-level cache:"
    yield ""
    worst = sorted((each for each in found if each.size != "L1"), key=lambda each: each.fraction)[:_WORST]
    yield from _table(
        worst,
        ("fraction", "time", "limit", "bound"),
        lambda each: (
            f"{each.fraction:.3f}",
            f"{each.microseconds:.1f} us",
            f"{each.limit:.1f} us",
            each.bound,
        ),
    )


def _by(found: Sequence[Found], key: Callable[[Found], object]) -> dict[object, list[Found]]:
    groups: dict[object, list[Found]] = defaultdict(list)
    for each in found:
        groups[key(each)].append(each)
    return groups


def _table(
    found: Sequence[Found], columns: Sequence[str], cells: Callable[[Found], Sequence[str]]
) -> Iterator[str]:
    if not found:
        yield "None."
        return
    yield "| " + " | ".join(("operation", "dtype", "size", "operands", *columns)) + " |"
    yield "|" + "---|" * (4 + len(columns))
    for each in found:
        yield "| " + " | ".join((each.name, each.dtype, each.size, each.shapes, *cells(each))) + " |"
