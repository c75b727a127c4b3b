"""Arrays put together of several, parts of matrices, and differences along axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType
from mind_mlir.numpy.arrays import op, stretched, traced
from mind_mlir.numpy.calling import spelled
from mind_mlir.numpy.shaping import concatenate, diagonals, flip, several
from mind_mlir.support import argument_checks
from mind_mlir.tracing.operators import choose, compare
from mind_mlir.tracing.reductions import axes_of

if TYPE_CHECKING:
    from mind_mlir.numpy.arrays import Array, ArrayLike
    from mind_mlir.tracing.array import TracedArray


@spelled("Concat")
def vstack(tup: Sequence[ArrayLike], /) -> Array:
    """Join arrays as rows, one below the other; vectors are a row each."""
    return concatenate([_of_rank(part, 2) for part in several(tup)], axis=0)


@spelled("Concat")
def hstack(tup: Sequence[ArrayLike], /) -> Array:
    """Join arrays along the second axis, and vectors along their only one."""
    parts = [_of_rank(part, 1) for part in several(tup)]
    return concatenate(parts, axis=min(1, parts[0].ndim - 1))


@spelled("Concat")
def dstack(tup: Sequence[ArrayLike], /) -> Array:
    """Join arrays along a third axis."""
    return concatenate([_of_rank(part, 3) for part in several(tup)], axis=2)


@spelled("Concat")
def column_stack(tup: Sequence[ArrayLike], /) -> Array:
    """Join arrays as columns, side by side; vectors are a column each."""
    parts = [part if part.ndim > 1 else part.reshape((-1, 1)) for part in several(tup)]
    return concatenate(parts, axis=1)


@spelled("Reshape")
def atleast_1d(a: ArrayLike, /) -> Array:
    """Return ``a``, a number as a vector."""
    return _of_rank(traced(a), 1)


@spelled("Reshape")
def atleast_2d(a: ArrayLike, /) -> Array:
    """Return ``a``, a number or a vector as a matrix of one row."""
    return _of_rank(traced(a), 2)


@spelled("BroadcastTo")
def meshgrid(*xi: ArrayLike, sparse: bool = False, indexing: str = "xy") -> list[Array]:
    """Return the coordinates of a grid, an array for each axis, from those along each axis.

    Args:
        xi: The coordinates along each axis, vectors.
        sparse: Whether the arrays have extent 1 along the other axes.
        indexing: ``"ij"``, or ``"xy"``, where the first two axes are exchanged.
    """
    argument_checks.choice(indexing, ("xy", "ij"), "indexing")
    parts = [traced(x).reshape(-1) for x in xi]
    rank = len(parts)
    places = list(range(rank))
    if indexing == "xy" and rank > 1:
        places[:2] = 1, 0
    shape = [0] * rank
    for place, part in zip(places, parts, strict=True):
        shape[place] = part.size
    lines = [
        part.reshape(tuple(part.size if axis == place else 1 for axis in range(rank)))
        for place, part in zip(places, parts, strict=True)
    ]
    kept = argument_checks.flag(sparse, "sparse")
    return [line if kept else stretched(line, shape) for line in lines]


@spelled("GatherElements")
def diagonal(a: ArrayLike, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return diagonals of matrices, along a last axis.

    Args:
        a: The array.
        offset: Which diagonal: 0 is the main one, greater ones are above.
        axis1: The axis of the rows.
        axis2: The axis of the columns.
    """
    x, above = traced(a), argument_checks.integer(offset, "offset")
    axes = axes_of((axis1, axis2), x.ndim)
    x = x.transpose([*(axis for axis in range(x.ndim) if axis not in axes), *axes])
    *batch, rows, columns = x.shape
    first, left = max(-above, 0), max(above, 0)
    count = max(0, min(rows - first, columns - left))
    if not count:
        return x.reshape((*batch, rows * columns))[..., :0]
    flat = x.reshape((*batch, rows * columns))
    start = first * columns + left
    return flat[..., start : start + (count - 1) * (columns + 1) + 1 : columns + 1]


@spelled("Sum")
def trace(a: ArrayLike, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Add the elements of diagonals, which `diagonal` returns."""
    return traced(diagonal(a, offset, axis1, axis2)).sum(-1)


@spelled("Select", "Iota")
def diag(v: ArrayLike, /, k: int = 0) -> Array:
    """Return diagonal ``k`` of a matrix, or of a vector the matrix of zeros that has it there."""
    x, above = traced(v), argument_checks.integer(k, "k")
    if x.ndim == 2:
        return diagonal(x, above)
    if x.ndim != 1:
        raise ValueError(f"v must be an array of rank 1 or 2, not {x.ndim}")
    side = x.size + abs(above)
    padded = op("Pad", x, low=[max(-above, 0)], high=[max(above, 0)], interior=[0], pad_value=0)
    rows = stretched(padded.reshape((side, 1)), (side, side))
    return choose(compare("Equal", diagonals(side, side), above), rows, False)


@spelled("Sub")
def diff(a: ArrayLike, /, n: int = 1, axis: int = -1) -> Array:
    """Return differences of neighbours along ``axis``, ``n`` times; of truth values whether they differ."""
    x = traced(a)
    (place,) = axes_of(argument_checks.integer(axis, "axis"), x.ndim)
    before = (slice(None),) * place
    times = argument_checks.integer(n, "n")
    if times < 0:
        raise ValueError(f"n must not be negative, {times}")
    for _ in range(times):
        next_, last = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = compare("NotEqual", next_, last) if x.value.type.dtype is DType.I1 else next_ - last
    return x


@spelled("Slice")
def fliplr(m: ArrayLike, /) -> Array:
    """Return matrices with their columns in reverse order."""
    return flip(m, 1)


@spelled("Slice")
def flipud(m: ArrayLike, /) -> Array:
    """Return ``m`` with its rows in reverse order."""
    return flip(m, 0)


def _of_rank(x: TracedArray, rank: int) -> TracedArray:
    """Return an array of at least so many dimensions, as numpy's functions make it."""
    if x.ndim >= rank:
        return x
    if rank == 3:
        return x.reshape((1, x.size, 1) if x.ndim < 2 else (*x.shape, 1))
    return x.reshape((1,) * (rank - x.ndim) + x.shape)
