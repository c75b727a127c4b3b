"""The split of a loop into chunks that threads share.

A split depends on shapes, dtypes and target alone, never on the number of threads: chunks are claimed one by
one by whichever thread is free, so that results are the same bits with any number of them. A loop that is
over sooner than its threads have met stays one chunk.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import CHUNK_NS, MOST_CHUNKS, WAKING_NS, WORTHWHILE_NS
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.mlir.bindings import Value


@dataclass(frozen=True)
class Split:
    """A loop cut in chunks.

    Attributes:
        step: Iterations in a chunk; the last one may have fewer.
        count: Chunks; with one, the loop is not parallel.
        reason: Why so many, for people.
        brief: Whether it is so little work that no thread is to be woken for it.
        epilogue: The number of the product whose macro-tiles the chunks are, if they are such.
    """

    step: int
    count: int
    reason: str
    brief: bool = False
    epilogue: int | None = None


def split(extent: int, nanoseconds: float, *, multiple: int = 1) -> Split:
    """Return how a loop of ``extent`` independent iterations, at least one, is split.

    Args:
        extent: The number of iterations.
        nanoseconds: How long one thread takes for all of them, about.
        multiple: Chunks start at multiples of it.
    """
    if nanoseconds < WORTHWHILE_NS:
        return Split(extent, 1, f"one thread: about {nanoseconds / 1000:.1f} us of work")
    units = -(-extent // multiple)
    wanted = min(MOST_CHUNKS, max(2, round(nanoseconds / CHUNK_NS)), units)
    if wanted < 2:
        return Split(extent, 1, f"one thread: no more than {multiple} iterations")
    # Powers of two: chunks of loops over the same rows then fit together (see `buffers/merging`).
    each = -(-units // wanted)
    step = (1 << (each.bit_length() - 1)) * multiple
    count = -(-extent // step)
    return Split(step, count, f"about {nanoseconds / 1000:.0f} us of work", nanoseconds < WAKING_NS)


def emit_chunks(
    e: Emitter, counts: Sequence[int], together: int, body: Callable[[Sequence[Index]], None], *, brief: bool
) -> None:
    """Emit ``body``, given an index of each, for nested loops, innermost first, of so many iterations.

    So many iterations ``together`` make up a chunk; no thread is woken for ``brief`` ones.
    """

    def one(number: Index) -> None:
        body(e.digits(number, counts))

    def several(first: Index, end: Index) -> None:
        if together == 1:
            one(first)
        else:
            e.each((first, end, 1), one)

    emit_ranges(e, math.prod(counts), together, several, brief=brief)


def emit_ranges(
    e: Emitter, extent: int, size: int, body: Callable[[Index, Index], object], *, brief: bool = False
) -> None:
    """Emit ``body``, given where they begin and end, for chunks of ``size`` iterations of a loop."""

    def chunk(first: Index, end: Index, _: list[Value]) -> list[Value]:
        body(first, end)
        return []

    e.chunks(Split(size, -(-extent // size), "", brief), extent, [], chunk)


def least(e: Emitter, extent: int, digit: Index, size: int) -> Index:
    """Return how much of ``extent`` the macro-tile ``digit`` of ``size`` has."""
    if extent % size == 0:
        return size
    return e.minimum(e.sub(extent, e.mul(digit, size)), size)
