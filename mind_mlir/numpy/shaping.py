"""Other shapes, and other places, for the same elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.numpy.arrays import op, shape_of, stretched, together, traced
from mind_mlir.numpy.calling import spelled
from mind_mlir.support import argument_checks
from mind_mlir.tracing.operators import choose
from mind_mlir.tracing.reductions import axes_of

if TYPE_CHECKING:
    from mind_mlir.numpy.arrays import Array, ArrayLike, Axes, Shape
    from mind_mlir.tracing.array import TracedArray


@spelled("Reshape")
def reshape(a: ArrayLike, /, shape: Shape) -> Array:
    """Give ``a`` another shape, with the same elements in row-major order; one extent may be -1."""
    return traced(a).reshape(shape_of(shape))


@spelled("Reshape")
def ravel(a: ArrayLike, /) -> Array:
    """Return the elements of ``a`` as a vector, in row-major order."""
    return traced(a).ravel()


@spelled("ExpandDims")
def expand_dims(a: ArrayLike, /, axis: int | Sequence[int]) -> Array:
    """Insert dimensions of extent 1, which are at the places ``axis`` of the result."""
    x = traced(a)
    count = (
        1 if argument_checks.whole(axis) is not None else len(argument_checks.items(axis, "axis", "integers"))
    )
    return op("ExpandDims", x, axes=axes_of(axis, x.ndim + count))


@spelled("Squeeze")
def squeeze(a: ArrayLike, /, axis: Axes = None) -> Array:
    """Remove the dimensions ``axis``, which have extent 1, or all that have."""
    return traced(a).squeeze(axis)


@spelled("Transpose")
def transpose(a: ArrayLike, /, axes: Sequence[int] | None = None) -> Array:
    """Return ``a`` with its dimensions in the order of ``axes``, by default reversed."""
    return traced(a).transpose(axes)


@spelled("Transpose")
def swapaxes(a: ArrayLike, /, axis1: int, axis2: int) -> Array:
    """Return ``a`` with two dimensions exchanged."""
    return traced(a).swapaxes(axis1, axis2)


@spelled("Transpose")
def moveaxis(a: ArrayLike, /, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Return ``a`` with the dimensions ``source`` at the places ``destination``, the others in order."""
    x = traced(a)
    origins, places = axes_of(source, x.ndim), axes_of(destination, x.ndim)
    if len(origins) != len(places):
        raise ValueError(f"destination must be as many axes as source, {len(origins)}, not {len(places)}")
    order = [axis for axis in range(x.ndim) if axis not in origins]
    for place, origin in sorted(zip(places, origins, strict=True)):
        order.insert(place, origin)
    return x.transpose(order)


@spelled("BroadcastTo")
def broadcast_to(a: ArrayLike, /, shape: Shape) -> Array:
    """Repeat ``a`` along dimensions of extent 1, and new ones in front, to reach ``shape``."""
    return stretched(traced(a), shape_of(shape))


@spelled("Concat")
def concatenate(arrays: Sequence[ArrayLike], /, axis: int | None = 0) -> Array:
    """Join arrays along an axis that they have, or for None all their elements as one vector."""
    parts = several(arrays)
    if axis is None:
        return op("Concat", *(part.reshape(-1) for part in parts), axis=0)
    (place,) = axes_of(argument_checks.integer(axis, "axis"), parts[0].ndim)
    return op("Concat", *parts, axis=place)


@spelled("Concat")
def stack(arrays: Sequence[ArrayLike], /, axis: int = 0) -> Array:
    """Join arrays of one shape along a new axis, at the place ``axis`` of the result."""
    parts = several(arrays)
    (place,) = axes_of(argument_checks.integer(axis, "axis"), parts[0].ndim + 1)
    return op("Concat", *(op("ExpandDims", part, axes=[place]) for part in parts), axis=place)


@spelled("Slice")
def split(a: ArrayLike, /, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """Cut ``a`` along an axis: into so many equal parts, or in front of each of the indices."""
    x = traced(a)
    (place,) = axes_of(argument_checks.integer(axis, "axis"), x.ndim)
    extent, parts = x.shape[place], argument_checks.whole(indices_or_sections)
    if parts is None:
        cuts = list(shape_of(indices_or_sections, "indices_or_sections"))
    elif parts <= 0 or extent % parts:
        raise ValueError(f"indices_or_sections must divide the extent, {extent}, not be {parts}")
    else:
        cuts = list(range(extent // parts, extent, extent // parts))
    before = (slice(None),) * place
    ends = zip([None, *cuts], [*cuts, None], strict=True)
    return [x[(*before, slice(begin, end))] for begin, end in ends]


@spelled("Tile")
def tile(a: ArrayLike, /, reps: Shape) -> Array:
    """Repeat ``a`` as a whole along each axis; missing dimensions and repeats count as 1, in front."""
    x, repeats = traced(a), shape_of(reps, "reps")
    rank = max(x.ndim, len(repeats))
    whole = x.reshape((1,) * (rank - x.ndim) + x.shape) if rank > x.ndim else x
    return op("Tile", whole, repeats=(1,) * (rank - len(repeats)) + repeats)


@spelled("BroadcastTo")
def repeat(a: ArrayLike, /, repeats: int, axis: int | None = None) -> Array:
    """Repeat each element so many times, along ``axis`` or for None those of the whole as a vector."""
    x = traced(a).reshape(-1) if axis is None else traced(a)
    (place,) = axes_of(argument_checks.integer(0 if axis is None else axis, "axis"), x.ndim)
    count = argument_checks.integer(repeats, "repeats")
    before, after = x.shape[: place + 1], x.shape[place + 1 :]
    times = stretched(x.reshape((*before, 1, *after)), (*before, count, *after))
    return times.reshape((*before[:-1], before[-1] * count, *after))


@spelled("Pad")
def pad(
    a: ArrayLike,
    /,
    pad_width: int | Sequence[int] | Sequence[Sequence[int]],
    mode: str = "constant",
    *,
    constant_values: complex = 0,
) -> Array:
    """Surround ``a`` with a constant.

    Args:
        a: The array.
        pad_width: How many elements: a number, ``(before, after)``, or such a pair for each axis.
        mode: Only ``"constant"``.
        constant_values: The constant.
    """
    x = traced(a)
    argument_checks.choice(mode, ("constant",), "mode")
    widths = _pairs(pad_width, x.ndim)
    return op(
        "Pad",
        x,
        low=[low for low, _ in widths],
        high=[high for _, high in widths],
        interior=[0] * x.ndim,
        pad_value=constant_values,
    )


@spelled("Slice")
def flip(a: ArrayLike, /, axis: Axes = None) -> Array:
    """Return ``a`` with its elements in reverse order along ``axis``, one or several, or along all."""
    x = traced(a)
    axes = range(x.ndim) if axis is None else axes_of(axis, x.ndim)
    return x[tuple(slice(None, None, -1 if place in axes else None) for place in range(x.ndim))]


@spelled("Slice", "Concat")
def roll(a: ArrayLike, /, shift: int, axis: int | None = None) -> Array:
    """Move elements on along ``axis``, or for None in row-major order, the last ones to the front."""
    x = traced(a)
    if axis is None:
        return _rolled(x.reshape(-1), argument_checks.integer(shift, "shift"), 0).reshape(x.shape)
    (place,) = axes_of(argument_checks.integer(axis, "axis"), x.ndim)
    return _rolled(x, argument_checks.integer(shift, "shift"), place)


@spelled("Select", "Iota")
def tril(m: ArrayLike, /, k: int = 0) -> Array:
    """Return matrices with zeros above diagonal ``k``."""
    return _triangle(traced(m), argument_checks.integer(k, "k"), lower=True)


@spelled("Select", "Iota")
def triu(m: ArrayLike, /, k: int = 0) -> Array:
    """Return matrices with zeros below diagonal ``k``."""
    return _triangle(traced(m), argument_checks.integer(k, "k"), lower=False)


def diagonals(rows: int, columns: int) -> TracedArray:
    """Return of each place of a matrix which diagonal it is on: 0 is the main one, greater ones above."""
    shape = (rows, columns)
    return op("Iota", shape=shape, dtype="i64", axis=1) - op("Iota", shape=shape, dtype="i64", axis=0)


def several(arrays: Sequence[ArrayLike]) -> list[TracedArray]:
    """Return arrays of which there is one or more, of the dtype that they have together."""
    listed: tuple[Any, ...] = argument_checks.items(arrays, "arrays", "a sequence of arrays")
    if not listed:
        raise ValueError("arrays must be one or more")
    return together(*listed)


def _pairs(widths: object, rank: int) -> list[tuple[int, int]]:
    expected = "an integer, a pair of them, or a pair for each axis"
    one = argument_checks.whole(widths)
    if one is not None:
        return [(one, one)] * rank
    listed = argument_checks.items(widths, "pad_width", expected)
    if all(argument_checks.whole(width) is not None for width in listed):
        pair = shape_of(widths, "pad_width")
        listed = (pair * 2 if len(pair) == 1 else pair,) * rank
    pairs = [shape_of(pair, "each pair of pad_width") for pair in listed]
    if len(pairs) == 1:
        pairs *= rank
    if len(pairs) != rank or any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"pad_width must be {expected}: {rank}")
    return [(low, high) for low, high in pairs]


def _rolled(x: TracedArray, shift: int, axis: int) -> TracedArray:
    extent = x.shape[axis]
    cut = -shift % extent if extent else 0
    if not cut:
        return x
    before = (slice(None),) * axis
    return op("Concat", x[(*before, slice(cut, None))], x[(*before, slice(0, cut))], axis=axis)


def _triangle(x: TracedArray, k: int, *, lower: bool) -> TracedArray:
    if x.ndim < 2:
        raise ValueError(f"m must be an array of rank 2 or more, not {x.ndim}")
    places = diagonals(*x.shape[-2:])
    kept = places <= k if lower else places >= k
    return choose(kept, x, False)


concat = concatenate
permute_dims = transpose
