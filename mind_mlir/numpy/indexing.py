"""Elements at places that are known when the program runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.numpy.arrays import op, traced
from mind_mlir.numpy.calling import spelled
from mind_mlir.support import argument_checks
from mind_mlir.tracing.indexing import as_places
from mind_mlir.tracing.operators import choose
from mind_mlir.tracing.reductions import axes_of

if TYPE_CHECKING:
    from mind_mlir.numpy.arrays import Array, ArrayLike


@spelled("Gather", "Take", "GatherWindows")
def take(a: ArrayLike, indices: ArrayLike, /, axis: int | None = None) -> Array:
    """Return the slices of ``a`` at ``indices`` of an axis, or for None elements in row-major order.

    Args:
        a: The array.
        indices: Integers; negative ones count from the end, others than the axis has are E6001.
        axis: The axis; its place in the result is that of all dimensions of ``indices``.
    """
    x, places = traced(a), traced(indices)
    if axis is None:
        return x.reshape(-1)[places]
    (along,) = axes_of(argument_checks.integer(axis, "axis"), x.ndim)
    return x[(*[slice(None)] * along, places)]


@spelled("GatherElements")
def take_along_axis(a: ArrayLike, indices: ArrayLike, /, axis: int | None = -1) -> Array:
    """Return single elements along an axis: at the place of each index that index of the axis.

    Args:
        a: The array.
        indices: Integers, an array of the rank of ``a``; negative ones count from the end.
        axis: The axis; None takes ``a`` as a vector.
    """
    x, places = traced(a), as_places(traced(indices))
    if axis is None:
        x, axis = x.reshape(-1), 0
    (along,) = axes_of(argument_checks.integer(axis, "axis"), x.ndim)
    return op("GatherElements", x, choose(places < 0, places + x.shape[along], places), axis=along)
