"""Loops over the pieces of products, and over what is packed, in chunks that threads may share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.split import Split

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.mlir.bindings import Value


def emit_chunks(
    e: Emitter,
    counts: Sequence[int],
    together: int,
    body: Callable[[Sequence[Index]], None],
    *,
    brief: bool,
) -> None:
    """Emit ``body`` for each index of nested loops, innermost first, in chunks of ``together``.

    Args:
        e: Emits the loops.
        counts: How many iterations each loop has.
        together: How many iterations of all loops make up a chunk.
        body: Given the index of each loop.
        brief: Whether no thread is to be woken for them.
    """
    total = math.prod(counts)

    def one(number: Index) -> list[Value]:
        digits: list[Index] = []
        for place, count in enumerate(counts):
            is_last = math.prod(counts[place:]) == count
            digits.append(0 if count == 1 else number if is_last else e.modulo(number, count))
            number = 0 if is_last else e.floordiv(number, count)
        body(digits)
        return []

    def several(first: Index, end: Index, _: list[Value]) -> list[Value]:
        if together == 1:
            return one(first)
        return e.loop((first, end, 1), [], lambda number, _: one(number))

    e.chunks(Split(together, -(-total // together), "", brief), total, [], several)


def least(e: Emitter, extent: int, digit: Index, size: int) -> Index:
    """Return how much of ``extent`` the piece ``digit`` of ``size`` has."""
    if extent % size == 0:
        return size
    return e.minimum(e.sub(extent, e.mul(digit, size)), size)
