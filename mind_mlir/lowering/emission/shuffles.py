"""Networks of shuffles between the vectors of a square."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from mind_mlir.mlir.bindings import Value, vector

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_Vector = TypeVar("_Vector")


def transpose(rows: Sequence[Value]) -> list[Value]:
    """Return the columns of a square of vectors: as many vectors as each has lanes, a power of two."""
    return exchange(rows, lambda left, right, lanes: vector.ShuffleOp(left, right, lanes).result)


def transpose_side_by_side(rows: Sequence[Value], lanes: int) -> list[Value]:
    """Return the columns of squares that stand side by side in vectors of ``lanes``.

    Each stage interleaves the vectors of the first half with those of the second one. Of squares as wide as
    16 bytes, that is an instruction for each vector, whatever its length; of numbers of few bits, `exchange`
    takes two.
    """
    side, values = len(rows), list(rows)
    half = side // 2
    first = [at + place // 2 + place % 2 * lanes for at in range(0, lanes, side) for place in range(side)]
    halves = first, [place + half for place in first]
    for _ in range(side.bit_length() - 1):
        values = [
            vector.ShuffleOp(values[at // 2], values[at // 2 + half], halves[at % 2]).result
            for at in range(side)
        ]
    return values


def joined(parts: Sequence[Value]) -> Value:
    """Return vectors, a power of two of the same length, as one."""
    while len(parts) > 1:
        lanes = range(2 * parts[0].type.shape[0])
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [vector.ShuffleOp(left, right, lanes).result for left, right in pairs]
    return parts[0]


def exchange(
    rows: Sequence[_Vector],
    shuffle: Callable[[_Vector, _Vector, list[int]], _Vector],
    lanes: int | None = None,
) -> list[_Vector]:
    """Return the columns of squares of vectors, given what emits a shuffle of two of them.

    Each stage exchanges between partners at one distance: off-diagonal blocks of two by two blocks swap.

    Args:
        rows: As many as a square has, a power of two.
        shuffle: Takes lanes of two vectors.
        lanes: Of a vector, a multiple of the rows: squares stand side by side. As many as rows by default.
    """
    lanes = lanes or len(rows)
    values = list(rows)
    distance = 1
    while distance < len(rows):
        low = [lane if not lane & distance else lanes + lane - distance for lane in range(lanes)]
        high = [lane + distance if not lane & distance else lanes + lane for lane in range(lanes)]
        for row in (row for row in range(len(rows)) if not row & distance):
            pair = values[row], values[row + distance]
            values[row], values[row + distance] = shuffle(*pair, low), shuffle(*pair, high)
        distance *= 2
    return values
