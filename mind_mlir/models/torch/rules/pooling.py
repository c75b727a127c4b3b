"""Pooling: the greatest and the mean elements of windows, of given size or of as many as there shall be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType
from mind_mlir.models.torch.rules.indexing import scattered
from mind_mlir.models.torch.rules.shaping import padded, sliced
from mind_mlir.models.torch.rules.use import UnreadUse
from mind_mlir.models.torch.rules.values import cast, dtype_of, expanded, full, number, reshaped
from mind_mlir.numpy.arrays import op
from mind_mlir.tracing.conversion import as_value
from mind_mlir.tracing.operators import choose, compare
from mind_mlir.tracing.trace import current_trace
from mind_mlir.tracing.transforms import vjp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray


class PoolWindows:
    """The windows of the last dimensions of an array.

    Attributes:
        size: The extents of a window.
        strides: How far apart windows begin.
        dilation: How far apart their elements lie.
        low: What is padded in front.
        high: What is padded behind, with what the last windows need that are cut off.
        counts: How many windows there are.
    """

    def __init__(
        self,
        extents: Sequence[int],
        size: Sequence[int],
        stride: Sequence[int] | None,
        padding: Sequence[int],
        dilation: Sequence[int],
        *,
        ceil_mode: bool,
    ) -> None:
        """Count the windows, as torch does."""
        rank = len(extents)
        self.size, self.dilation = _spread(size, rank), _spread(dilation, rank)
        self.strides = _spread(stride, rank) if stride else self.size
        self.low = _spread(padding, rank)
        self.high, self.counts = [], []
        for axis, extent in enumerate(extents):
            reach = self.dilation[axis] * (self.size[axis] - 1) + 1
            room = extent + 2 * self.low[axis] - reach
            step = self.strides[axis]
            count = (-(-room // step) if ceil_mode else room // step) + 1
            if ceil_mode and (count - 1) * step >= extent + self.low[axis]:
                count -= 1
            self.counts.append(count)
            self.high.append(max((count - 1) * step + reach - extent - self.low[axis], 0))

    def reduced(self, x: TracedArray, kind: str) -> TracedArray:
        """Return the sum or the greatest element of each window."""
        front = x.ndim - len(self.size)
        dtype = dtype_of(x)
        found = op(
            "ReduceWindow",
            x,
            window_dims=[1] * front + self.size,
            strides=[1] * front + self.strides,
            padding_low=[0] * front + self.low,
            padding_high=[0] * front + self.high,
            base_dilation=[1] * x.ndim,
            window_dilation=[1] * front + self.dilation,
            reduce=kind,
            accum_dtype=DType.F32 if dtype.is_narrow else dtype,
        )
        for axis, count in enumerate(self.counts):
            found = sliced(found, front + axis, 0, count)
        return found

    def elements(self, x: TracedArray, value: Any) -> list[TracedArray]:
        """Return, for each place in a window, the elements of all windows there."""
        front = x.ndim - len(self.size)
        whole = padded(x, [0] * front + self.low, [0] * front + self.high, value)
        found = []
        for place in np.ndindex(*self.size):
            part = whole
            for axis, each in enumerate(place):
                start, step = each * self.dilation[axis], self.strides[axis]
                part = sliced(part, front + axis, start, start + (self.counts[axis] - 1) * step + 1, step)
            found.append(part)
        return found


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
        windows = PoolWindows(extents, size, stride, padding, dilation, ceil_mode=ceil_mode)
        return [windows.reduced(x, "Max"), _places(x, windows, extents)]

    return rule


def _places(x: TracedArray, windows: PoolWindows, extents: Sequence[int]) -> TracedArray:
    """Return where the first of the greatest elements of each window is, among all of a channel."""
    dtype = dtype_of(x)
    least = -math.inf if dtype.is_float else -(1 << (dtype.bits - 1))
    numbers = np.arange(math.prod(extents)).reshape(extents)
    trace = current_trace()
    own = windows.elements(trace.wrap(as_value(trace, numbers, DType.SI64)), -1)
    best = place = None
    for value, inner in zip(windows.elements(x, least), own, strict=True):
        at = reshaped(inner, (1,) * (value.ndim - inner.ndim) + inner.shape)
        if best is None or place is None:
            best, place = value, at
            continue
        is_inside = compare("GreaterEqual", at, number(0, DType.SI64))
        is_first = compare("Less", place, number(0, DType.SI64))
        is_better = compare("Greater", value, best) | compare("NotEqual", value, value) | is_first
        better = is_better & is_inside
        best, place = choose(better, value, best), choose(better, at, place)
    assert best is not None, "a window has elements"
    assert place is not None, "so it has a first one"
    return expanded(place, best.shape)


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
    divisor: int | None = None,
) -> TracedArray:
    extents = x.shape[-rank:]
    windows = PoolWindows(extents, size, stride, padding, (1,), ceil_mode=ceil_mode)
    total = windows.reduced(x, "Sum")
    counts = _counts(windows, extents, include_padding=count_include_pad)
    if divisor is not None:
        counts = np.full_like(counts, divisor)
    if (counts == counts.flat[0]).all():
        return total / number(float(counts.flat[0]), dtype_of(x))
    trace = current_trace()
    return total / trace.wrap(as_value(trace, counts.astype(dtype_of(x).numpy)))


def _counts(windows: PoolWindows, extents: Sequence[int], *, include_padding: bool) -> np.ndarray[Any, Any]:
    """Return of how many elements each window is the mean."""
    found = np.ones((), np.int64)
    for axis, extent in enumerate(extents):
        starts = np.arange(windows.counts[axis]) * windows.strides[axis] - windows.low[axis]
        ends = np.minimum(starts + windows.size[axis], extent + windows.low[axis])
        if not include_padding:
            starts, ends = np.maximum(starts, 0), np.minimum(ends, extent)
        found = np.multiply.outer(found, ends - starts)
    return found


def avg_pool(rank: int) -> Rule:
    """Return the rule of the means of windows."""

    def rule(to: OperatorUse, x: TracedArray, size: Sequence[int], *how: Any, **named: Any) -> TracedArray:
        inner = DType.F32 if to.dtype.is_narrow else to.dtype
        named = {("divisor" if name == "divisor_override" else name): value for name, value in named.items()}
        return cast(_mean_of_windows(cast(x, inner), rank, size, *how, **named), to.dtype)

    return rule


def avg_pool_backward(rank: int) -> Rule:
    """Return the rule of the gradient of the means of windows."""

    def rule(
        to: OperatorUse, gradient: TracedArray, x: TracedArray, size: Sequence[int], *how: Any
    ) -> TracedArray:
        inner = DType.F32 if to.dtype.is_narrow else to.dtype
        _, pull = vjp(lambda x: _mean_of_windows(x, rank, size, *how), cast(x, inner))
        return cast(pull(cast(gradient, inner))[0], to.dtype)

    return rule


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


def _adaptive_avg_pool(to: OperatorUse, x: TracedArray, sizes: Sequence[int]) -> TracedArray:
    inner = DType.F32 if to.dtype.is_narrow else to.dtype
    return cast(_adaptive_mean(cast(x, inner), sizes), to.dtype)


def _adaptive_avg_pool_backward(to: OperatorUse, gradient: TracedArray, x: TracedArray) -> TracedArray:
    inner = DType.F32 if to.dtype.is_narrow else to.dtype
    sizes = (
        gradient.shape[-2:]
        if to.node.operator.startswith("aten._adaptive_avg_pool2d")
        else gradient.shape[-3:]
    )
    _, pull = vjp(lambda x: _adaptive_mean(x, sizes), cast(x, inner))
    return cast(pull(cast(gradient, inner))[0], to.dtype)


def _adaptive_max_pool(to: OperatorUse, x: TracedArray, sizes: Sequence[int]) -> list[TracedArray]:
    rank = len(sizes)
    extents = x.shape[-rank:]
    if any(extent % count for extent, count in zip(extents, sizes, strict=True)):
        raise UnreadUse("its windows are not of one size")
    size = [extent // count for extent, count in zip(extents, sizes, strict=True)]
    found: list[TracedArray] = max_pool(rank)(to, x, size)
    return found


RULES: Mapping[str, Rule] = {
    "aten.max_pool2d_with_indices": max_pool(2),
    "aten.max_pool3d_with_indices": max_pool(3),
    "aten.max_pool2d_with_indices_backward": max_pool_backward(2),
    "aten.max_pool3d_with_indices_backward": max_pool_backward(3),
    "aten.adaptive_max_pool2d": _adaptive_max_pool,
    "aten.avg_pool1d": avg_pool(1),
    "aten.avg_pool2d": avg_pool(2),
    "aten.avg_pool3d": avg_pool(3),
    "aten.avg_pool2d_backward": avg_pool_backward(2),
    "aten.avg_pool3d_backward": avg_pool_backward(3),
    "aten._adaptive_avg_pool2d": _adaptive_avg_pool,
    "aten._adaptive_avg_pool3d": _adaptive_avg_pool,
    "aten._adaptive_avg_pool2d_backward": _adaptive_avg_pool_backward,
    "aten._adaptive_avg_pool3d_backward": _adaptive_avg_pool_backward,
}
