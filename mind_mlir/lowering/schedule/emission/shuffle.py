"""Networks of shuffles between vector registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.bindings import vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.bindings import Value


def transpose(rows: Sequence[Value]) -> list[Value]:
    """Return the columns of a square of vectors: as many vectors as each has lanes, a power of two.

    Each stage exchanges between partners at one distance: off-diagonal blocks of two by two blocks swap.
    """
    lanes = len(rows)
    values = list(rows)
    distance = 1
    while distance < lanes:
        low = [lane if not lane & distance else lanes + lane - distance for lane in range(lanes)]
        high = [lane + distance if not lane & distance else lanes + lane for lane in range(lanes)]
        for row in range(lanes):
            if row & distance:
                continue
            pair = values[row], values[row + distance]
            values[row] = vector.ShuffleOp(*pair, low).result
            values[row + distance] = vector.ShuffleOp(*pair, high).result
        distance *= 2
    return values
