"""Pooling: the greatest and the mean elements of windows, of given size or of as many as there shall be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.ir.types import DType
from mind_mlir.models.functions.windows import SlidingWindows, counted, greatest, means, reduced
from mind_mlir.models.torch.rules.indexing import scattered
from mind_mlir.models.torch.rules.values import dtype_of, expanded, full, reshaped, wide
from mind_mlir.numpy.arrays import op
from mind_mlir.tracing.conversion import as_value
from mind_mlir.tracing.trace import current_trace
from mind_mlir.tracing.transforms import vjp

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray


def _windows(
    extents: Sequence[int],
    size: Sequence[int],
    stride: Sequence[int] | None,
    padding: Sequence[int],
    dilation: Sequence[int] = (1,),
    *,
    ceil_mode: bool,
) -> SlidingWindows:
    """Return the windows of the last axes of an array, as torch counts them."""
    rank = len(extents)
    kernel = _spread(size, rank)
    around = tuple(_spread(padding, rank))
    strides = _spread(stride, rank) if stride else kernel
    found = SlidingWindows(tuple(kernel), tuple(strides), tuple(_spread(dilation, rank)), around, around)
    return found.with_last(extents) if ceil_mode else found


def _spread(numbers: Sequence[int] | int, rank: int) -> list[int]:
    listed = [numbers] if isinstance(numbers, int) else list(numbers)
    return listed * rank if len(listed) == 1 else listed


def max_pool(rank: int) -> Rule:
    """Return the rule of the greatest elements of windows, and where they are in the input."""

    def rule(
        to: OperatorUse,
        x: TracedArray,
        size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> list[TracedArray]:
        extents = x.shape[-rank:]
        windows = _windows(extents, size, stride, padding, dilation, ceil_mode=ceil_mode)
        numbers = np.arange(math.prod(extents)).reshape(extents)
        return [reduced(x, windows, "Max", x.ndim - rank), greatest(x, numbers, windows)[1]]

    return rule


def max_pool_backward(rank: int) -> Rule:
    """Return the rule of the gradient, which goes where the greatest elements are."""

    def rule(_: OperatorUse, gradient: TracedArray, x: TracedArray, *args: Any) -> TracedArray:
        indices: TracedArray = args[-1]
        front = x.shape[: x.ndim - rank]
        flat = full((*front, math.prod(x.shape[-rank:])), 0, dtype_of(x))
        counts = (*front, math.prod(gradient.shape[-rank:]))
        found = scattered(flat, flat.ndim - 1, reshaped(indices, counts), reshaped(gradient, counts), "Add")
        return reshaped(found, x.shape)

    return rule


def _mean_of_windows(
    x: TracedArray,
    rank: int,
    size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> TracedArray:
    extents, first = x.shape[-rank:], x.ndim - rank
    windows = _windows(extents, size, stride, padding, ceil_mode=ceil_mode)
    around = windows.low if count_include_pad else (0,) * rank
    ends = [extent + low for extent, low in zip(extents, around, strict=True)]
    counts = counted(extents, windows, [-low for low in around], ends)
    if divisor_override is not None:
        counts = np.full_like(counts, divisor_override)
    found: TracedArray = means(x, windows, counts, first)
    return found


def avg_pool(rank: int) -> Rule:
    """Return the rule of the means of windows."""
    return wide(lambda x, *how, **named: _mean_of_windows(x, rank, *how, **named))


def avg_pool_backward(rank: int) -> Rule:
    """Return the rule of the gradient of the means of windows."""
    return wide(lambda gradient, x, *how: _pulled(lambda x: _mean_of_windows(x, rank, *how), x, gradient))


def _pulled(forward: Callable[[TracedArray], TracedArray], x: TracedArray, gradient: TracedArray) -> Any:
    """Return what a gradient becomes on its way back."""
    return vjp(forward, x)[1](gradient)[0]


def _adaptive_bounds(extent: int, count: int) -> list[tuple[int, int]]:
    return [(place * extent // count, -(-(place + 1) * extent // count)) for place in range(count)]


def _adaptive_mean(x: TracedArray, sizes: Sequence[int]) -> TracedArray:
    """Return the means of so many windows: sums of products with a matrix where they are not equal."""
    front = x.ndim - len(sizes)
    for place, count in enumerate(sizes):
        axis = front + place
        extent = x.shape[axis]
        if count == extent:
            continue
        if extent % count == 0:
            parts = reshaped(x, (*x.shape[:axis], count, extent // count, *x.shape[axis + 1 :]))
            x = parts.mean(axis + 1)
            continue
        matrix = np.zeros((extent, count), dtype_of(x).numpy)
        for column, (start, end) in enumerate(_adaptive_bounds(extent, count)):
            matrix[start:end, column] = 1 / (end - start)
        trace = current_trace()
        factor = trace.wrap(as_value(trace, matrix))
        moved = op("DotGeneral", x, factor, contract_lhs=[axis], contract_rhs=[0])
        order = list(range(x.ndim - 1))
        order.insert(axis, x.ndim - 1)
        x = moved.transpose(order)
    return x


def _adaptive_mean_backward(rank: int) -> Rule:
    return wide(lambda gradient, x: _pulled(lambda x: _adaptive_mean(x, gradient.shape[-rank:]), x, gradient))


def _adaptive_max_pool(_: OperatorUse, x: TracedArray, sizes: Sequence[int]) -> list[TracedArray]:
    first, extents = x.ndim - len(sizes), x.shape[-len(sizes) :]
    taken: Any = x
    # Windows that are shorter than others have their last element several times.
    numbers = np.arange(math.prod(extents)).reshape(extents)
    for place, (extent, count) in enumerate(zip(extents, sizes, strict=True)):
        bounds = _adaptive_bounds(extent, count)
        longest = max(end - start for start, end in bounds)
        at = np.array([[min(start + step, end - 1) for step in range(longest)] for start, end in bounds])
        taken, numbers = mnp.take(taken, at, first + 2 * place), np.take(numbers, at, 2 * place)
    kernel = [taken.shape[first + 2 * place + 1] for place in range(len(sizes))]
    order = [*range(0, 2 * len(sizes), 2), *range(1, 2 * len(sizes), 2)]
    rows = taken.transpose([*range(first), *(first + axis for axis in order)])
    rows = reshaped(rows, (*rows.shape[:first], *sizes, math.prod(kernel)))
    own = numbers.transpose(order).reshape((*sizes, math.prod(kernel)))
    trace, axis = current_trace(), rows.ndim - 1
    places = op("ArgMax", rows, axis=axis, keepdims=True, output_dtype=DType.SI64)
    spread = expanded(trace.wrap(as_value(trace, own, DType.SI64)), rows.shape)
    return [op("GatherElements", each, places, axis=axis).squeeze(-1) for each in (rows, spread)]


RULES: Mapping[str, Rule] = {
    **{f"aten.max_pool{rank}d_with_indices": max_pool(rank) for rank in (2, 3)},
    **{f"aten.max_pool{rank}d_with_indices_backward": max_pool_backward(rank) for rank in (2, 3)},
    **{f"aten.adaptive_max_pool{rank}d": _adaptive_max_pool for rank in (2, 3)},
    **{f"aten.adaptive_max_pool{rank}d_backward": max_pool_backward(rank) for rank in (2, 3)},
    **{f"aten.avg_pool{rank}d": avg_pool(rank) for rank in (1, 2, 3)},
    **{f"aten.avg_pool{rank}d_backward": avg_pool_backward(rank) for rank in (2, 3)},
    **{f"aten._adaptive_avg_pool{rank}d": wide(_adaptive_mean) for rank in (2, 3)},
    **{f"aten._adaptive_avg_pool{rank}d_backward": _adaptive_mean_backward(rank) for rank in (2, 3)},
}
