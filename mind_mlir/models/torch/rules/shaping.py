"""Operators that move elements: views, joins, cuts, padding. A view is an array of its own here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType
from mind_mlir.models.torch.rules.use import UnreadUse
from mind_mlir.models.torch.rules.values import (
    axes_of,
    axis_of,
    cast,
    dtype_of,
    expanded,
    full,
    number,
    reshaped,
    select,
)
from mind_mlir.numpy.arrays import op
from mind_mlir.tracing.operators import compare

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray


def _view(_: OperatorUse, x: TracedArray, shape: Sequence[int]) -> TracedArray:
    return reshaped(x, _whole_shape(x, shape))


def _whole_shape(x: TracedArray, shape: Sequence[int]) -> list[int]:
    """Return a shape with the extent that -1 stands for."""
    if -1 not in shape:
        return list(shape)
    others = -math.prod(shape)
    return [(x.size // others if others else 0) if extent == -1 else extent for extent in shape]


def _expand(_: OperatorUse, x: TracedArray, shape: Sequence[int], *, implicit: bool = False) -> TracedArray:
    new = len(shape) - x.ndim
    extents = [x.shape[place - new] if extent == -1 else extent for place, extent in enumerate(shape)]
    return expanded(x, extents)


def _permute(_: OperatorUse, x: TracedArray, dims: Sequence[int]) -> TracedArray:
    order = [axis_of(dim, x.ndim) for dim in dims]
    return x if order == list(range(x.ndim)) else x.transpose(order)


def _transpose(_: OperatorUse, x: TracedArray, one: int, two: int) -> TracedArray:
    first, second = axis_of(one, x.ndim), axis_of(two, x.ndim)
    return x if first == second else x.swapaxes(first, second)


def _squeeze(_: OperatorUse, x: TracedArray, dims: Any = None) -> TracedArray:
    axes = [axis for axis in axes_of(dims, x.ndim) if x.shape[axis] == 1]
    if isinstance(dims, list) and not dims:
        return x
    return op("Squeeze", x, axes=axes) if axes else x


def sliced(x: TracedArray, dim: int, start: int | None, end: int | None, step: int = 1) -> TracedArray:
    """Return every ``step``-th element between two places of a dimension."""
    axis = axis_of(dim, x.ndim)
    if slice(start, end, step).indices(x.shape[axis]) == (0, x.shape[axis], 1):
        return x
    return x[(slice(None),) * axis + (slice(start, end, step),)]


def _split_with_sizes(
    _: OperatorUse, x: TracedArray, sizes: Sequence[int], dim: int = 0
) -> list[TracedArray]:
    ends = np.cumsum(sizes).tolist()
    return [sliced(x, dim, end - size, end) for size, end in zip(sizes, ends, strict=True)]


def _split(_: OperatorUse, x: TracedArray, size: int, dim: int = 0) -> list[TracedArray]:
    extent = x.shape[axis_of(dim, x.ndim)]
    return [
        sliced(x, dim, start, min(start + size, extent)) for start in range(0, max(extent, 1), max(size, 1))
    ]


def _unbind(_: OperatorUse, x: TracedArray, dim: int = 0) -> list[TracedArray]:
    axis = axis_of(dim, x.ndim)
    return [x[(slice(None),) * axis + (place,)] for place in range(x.shape[axis])]


def _cat(to: OperatorUse, arrays: Sequence[TracedArray], dim: int = 0) -> TracedArray:
    # torch lets vectors without elements stand for nothing at all.
    kept = [cast(x, to.dtype) for x in arrays if x.shape != (0,)] or [cast(arrays[0], to.dtype)]
    if len(kept) == 1:
        return kept[0]
    return op("Concat", *kept, axis=axis_of(dim, kept[0].ndim))


def _stack(to: OperatorUse, arrays: Sequence[TracedArray], dim: int = 0) -> TracedArray:
    axis = dim % (arrays[0].ndim + 1)
    return op("Concat", *[op("ExpandDims", cast(x, to.dtype), axes=[axis]) for x in arrays], axis=axis)


def _repeat(_: OperatorUse, x: TracedArray, repeats: Sequence[int]) -> TracedArray:
    whole = reshaped(x, (1,) * (len(repeats) - x.ndim) + x.shape)
    shape = [extent * count for extent, count in zip(whole.shape, repeats, strict=True)]
    if 0 in shape:
        return full(shape, 0, dtype_of(x))
    return whole if tuple(shape) == whole.shape else op("Tile", whole, repeats=list(repeats))


def _flip(_: OperatorUse, x: TracedArray, dims: Sequence[int]) -> TracedArray:
    axes = [] if not dims else axes_of(dims, x.ndim)
    if not axes:
        return x
    return x[tuple(slice(None, None, -1 if axis in axes else None) for axis in range(x.ndim))]


def _roll(_: OperatorUse, x: TracedArray, shifts: Any, dims: Any = ()) -> TracedArray:
    counts = [shifts] if isinstance(shifts, int) else list(shifts)
    axes = [dims] if isinstance(dims, int) else list(dims)
    if not axes:
        return reshaped(_rolled(reshaped(x, (x.size,)), counts[0], 0), x.shape)
    for count, dim in zip(counts, axes, strict=True):
        x = _rolled(x, count, axis_of(dim, x.ndim))
    return x


def _rolled(x: TracedArray, count: int, axis: int) -> TracedArray:
    extent = x.shape[axis] if x.ndim else 0
    cut = -count % extent if extent else 0
    if not cut:
        return x
    return op("Concat", sliced(x, axis, cut, None), sliced(x, axis, 0, cut), axis=axis)


def padded(x: TracedArray, low: Sequence[int], high: Sequence[int], value: Any = 0) -> TracedArray:
    """Return an array with a constant around it; negative widths cut elements away."""
    cuts = [(max(-a, 0), max(-b, 0)) for a, b in zip(low, high, strict=True)]
    for axis, (a, b) in enumerate(cuts):
        if a or b:
            x = sliced(x, axis, a, x.shape[axis] - b)
    low, high = [max(a, 0) for a in low], [max(b, 0) for b in high]
    if not any(low) and not any(high):
        return x
    if 0 in x.shape:
        extents = [sum(each) for each in zip(x.shape, low, high, strict=True)]
        return full(extents, value, dtype_of(x))
    filled = number(value, dtype_of(x))
    if isinstance(value, (bool, int, float)):
        kept = bool(value) if dtype_of(x) is DType.I1 else value
        return op("Pad", x, low=low, high=high, interior=[0] * x.ndim, pad_value=kept)
    inside = full(x.shape, True, DType.I1)
    where = op("Pad", inside, low=low, high=high, interior=[0] * x.ndim, pad_value=False)
    whole = op("Pad", x, low=low, high=high, interior=[0] * x.ndim, pad_value=0)
    return select(where, whole, filled, dtype_of(x))


def pairs_of(pads: Sequence[int], rank: int) -> tuple[list[int], list[int]]:
    """Return widths in front and behind, of each dimension, where torch names them from the last one on."""
    low, high = [0] * rank, [0] * rank
    for place in range(len(pads) // 2):
        low[rank - 1 - place], high[rank - 1 - place] = pads[2 * place], pads[2 * place + 1]
    return low, high


def _constant_pad(_: OperatorUse, x: TracedArray, pads: Sequence[int], value: Any = 0) -> TracedArray:
    low, high = pairs_of(pads, x.ndim)
    return padded(x, low, high, value)


def _reflected(_: OperatorUse, x: TracedArray, pads: Sequence[int]) -> TracedArray:
    low, high = pairs_of(pads, x.ndim)
    for axis, (a, b) in enumerate(zip(low, high, strict=True)):
        if a or b:
            extent = x.shape[axis]
            front = x[(slice(None),) * axis + (slice(a, 0, -1),)]
            back = x[
                (slice(None),) * axis
                + (slice(extent - 2, extent - 2 - b if extent - 2 - b >= 0 else None, -1),)
            ]
            kept = [part for part, count in ((front, a), (x, 1), (back, b)) if count > 0]
            if a < 0 or b < 0:
                raise UnreadUse("it pads by negative widths")
            x = op("Concat", *kept, axis=axis)
    return x


def _replicated(_: OperatorUse, x: TracedArray, pads: Sequence[int]) -> TracedArray:
    low, high = pairs_of(pads, x.ndim)
    for axis, (a, b) in enumerate(zip(low, high, strict=True)):
        if a < 0 or b < 0:
            x = sliced(x, axis, max(-a, 0), x.shape[axis] - max(-b, 0))
        ends = []
        for count, place in ((a, 0), (b, x.shape[axis] - 1)):
            edge = sliced(x, axis, place, place + 1)
            extents = [count if each == axis else extent for each, extent in enumerate(x.shape)]
            ends.append(expanded(edge, extents) if count > 0 else None)
        parts = [part for part in (ends[0], x, ends[1]) if part is not None]
        x = op("Concat", *parts, axis=axis) if len(parts) > 1 else x
    return x


def _diagonal(_: OperatorUse, x: TracedArray, offset: int = 0, dim1: int = 0, dim2: int = 1) -> TracedArray:
    one, two = axis_of(dim1, x.ndim), axis_of(dim2, x.ndim)
    rest = [axis for axis in range(x.ndim) if axis not in (one, two)]
    matrices = x.transpose([*rest, one, two])
    rows, columns = matrices.shape[-2:]
    first_row, first_column = max(-offset, 0), max(offset, 0)
    count = max(0, min(rows - first_row, columns - first_column))
    if not count:
        return full([*matrices.shape[:-2], 0], 0, dtype_of(x))
    flat = reshaped(matrices, (*matrices.shape[:-2], rows * columns))
    start = first_row * columns + first_column
    return sliced(flat, flat.ndim - 1, start, start + (count - 1) * (columns + 1) + 1, columns + 1)


def _diagonal_scatter(
    to: OperatorUse, x: TracedArray, source: TracedArray, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> TracedArray:
    one, two = axis_of(dim1, x.ndim), axis_of(dim2, x.ndim)
    order = [axis for axis in range(x.ndim) if axis not in (one, two)] + [one, two]
    matrices = x.transpose(order)
    rows, columns = matrices.shape[-2:]
    count = source.shape[-1]
    if not source.size:
        return x
    flat = reshaped(matrices, (*matrices.shape[:-2], rows * columns))
    start = max(-offset, 0) * columns + max(offset, 0)
    span = slice(start, start + (count - 1) * (columns + 1) + 1, columns + 1)
    made = flat.at[..., span].set(cast(source, to.dtype))
    back = [int(place) for place in np.argsort(order)]
    return reshaped(made, matrices.shape).transpose(back)


def _triangle(relation: str) -> Rule:
    def rule(to: OperatorUse, x: TracedArray, diagonal: int = 0) -> TracedArray:
        rows, columns = x.shape[-2:]
        if not x.size:
            return x
        apart = op("Iota", shape=(rows, columns), dtype="i64", axis=1) - op(
            "Iota", shape=(rows, columns), dtype="i64", axis=0
        )
        return select(compare(relation, apart, number(diagonal, DType.SI64)), x, 0, to.dtype)

    return rule


def _slice_scatter(
    to: OperatorUse,
    x: TracedArray,
    source: TracedArray,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> TracedArray:
    axis = axis_of(dim, x.ndim)
    first, last, _ = slice(start, end, step).indices(x.shape[axis])
    count = len(range(first, last, step))
    if not count:
        return x
    source = expanded(
        cast(source, to.dtype), [count if each == axis else e for each, e in enumerate(x.shape)]
    )
    if count == x.shape[axis]:
        return source
    if step != 1:
        return x.at[(slice(None),) * axis + (slice(first, last, step),)].set(source)
    parts = [sliced(x, axis, 0, first), source, sliced(x, axis, first + count, x.shape[axis])]
    return op("Concat", *[part for part in parts if part.shape[axis]], axis=axis)


def _select_scatter(
    to: OperatorUse, x: TracedArray, source: TracedArray, dim: int, index: int
) -> TracedArray:
    axis = axis_of(dim, x.ndim)
    place = index % x.shape[axis]
    return _slice_scatter(to, x, op("ExpandDims", source, axes=[axis]), axis, place, place + 1)


def _as_strided(
    _: OperatorUse, x: TracedArray, size: Sequence[int], stride: Sequence[int], offset: int | None = None
) -> TracedArray:
    _require_rows(x, size, stride, offset)
    return reshaped(x, size)


def _as_strided_scatter(
    to: OperatorUse,
    x: TracedArray,
    source: TracedArray,
    size: Sequence[int],
    stride: Sequence[int],
    offset: int | None = None,
) -> TracedArray:
    _require_rows(x, size, stride, offset)
    return reshaped(cast(source, to.dtype), x.shape)


def _require_rows(x: TracedArray, size: Sequence[int], stride: Sequence[int], offset: int | None) -> None:
    """Refuse steps but those of all elements in row-major order: others are a matter of memory."""
    expected = 1
    for extent, step in zip(reversed(size), reversed(stride), strict=True):
        if extent != 1 and step != expected:
            raise UnreadUse("it reads memory at steps of its own")
        expected *= extent
    if offset or expected != x.size:
        raise UnreadUse("it reads memory at steps of its own")


def _unfold(_: OperatorUse, x: TracedArray, dim: int, size: int, step: int) -> TracedArray:
    axis = axis_of(dim, x.ndim)
    if not x.ndim:
        return reshaped(x, (size,))
    count = (x.shape[axis] - size) // step + 1
    parts = [sliced(x, axis, place, place + (count - 1) * step + 1, step) for place in range(size)]
    return op("Concat", *[op("ExpandDims", part, axes=[x.ndim]) for part in parts], axis=x.ndim)


RULES: Mapping[str, Rule] = {
    "aten.view": _view,
    "aten._unsafe_view": _view,
    "aten.reshape": _view,
    "aten._reshape_copy": _view,
    "aten.expand": _expand,
    "aten.permute": _permute,
    "aten.transpose": _transpose,
    "aten.t": lambda _, x: x.T if x.ndim == 2 else x,
    "aten.unsqueeze": lambda _, x, dim: op("ExpandDims", x, axes=[dim % (x.ndim + 1)]),
    "aten.squeeze": _squeeze,
    "aten.slice": lambda _, x, dim=0, start=None, end=None, step=1: sliced(x, dim, start, end, step),
    "aten.select": lambda _, x, dim, index: x[(slice(None),) * axis_of(dim, x.ndim) + (index,)],
    "aten.split": _split,
    "aten.split.sizes": _split_with_sizes,
    "aten.split_with_sizes": _split_with_sizes,
    "aten.unbind": _unbind,
    "aten.cat": _cat,
    "aten.stack": _stack,
    "aten.repeat": _repeat,
    "aten.flip": _flip,
    "aten.roll": _roll,
    "aten.constant_pad_nd": _constant_pad,
    **{f"aten.reflection_pad{rank}d": _reflected for rank in (1, 2, 3)},
    **{f"aten.replication_pad{rank}d": _replicated for rank in (1, 2, 3)},
    "aten.diagonal": _diagonal,
    "aten.diagonal_scatter": _diagonal_scatter,
    "aten.tril": _triangle("LessEqual"),
    "aten.triu": _triangle("GreaterEqual"),
    "aten.slice_scatter": _slice_scatter,
    "aten.select_scatter": _select_scatter,
    "aten.as_strided": _as_strided,
    "aten.as_strided_scatter": _as_strided_scatter,
    "aten.unfold": _unfold,
}
