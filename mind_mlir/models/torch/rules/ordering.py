"""Operators that rank elements: running extrema, medians, places in sorted arrays, histograms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType
from mind_mlir.models.torch.rules.reductions import summed
from mind_mlir.models.torch.rules.shaping import sliced
from mind_mlir.models.torch.rules.use import UnreadUse
from mind_mlir.models.torch.rules.values import (
    axis_of,
    cast,
    dtype_of,
    expanded,
    full,
    inner_dtype,
    number,
    reshaped,
    together,
)
from mind_mlir.numpy.arrays import op
from mind_mlir.tracing.operators import binary, choose, common_shape, compare

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray


def running_extremum(kind: str) -> Rule:
    """Return the rule of the greatest or the least elements up to each one, and where the last of them is."""
    relation = "GreaterEqual" if kind == "Max" else "LessEqual"

    def rule(_: OperatorUse, x: TracedArray, dim: int) -> list[TracedArray]:
        if not x.ndim or not x.size:
            return [x, full(x.shape, 0, DType.SI64)]
        axis = axis_of(dim, x.ndim)
        values, places = x, op("Iota", shape=x.shape, dtype=DType.SI64, axis=axis)
        extent, reach = x.shape[axis], 1
        while reach < extent:
            new, old = sliced(values, axis, reach, None), sliced(values, axis, 0, extent - reach)
            is_new = compare(relation, new, old) | compare("NotEqual", new, new)
            keeps_nan = compare("NotEqual", old, old) & compare("Equal", new, new)
            chosen = is_new & op("Not", keeps_nan)
            values = _joined(values, choose(chosen, new, old), axis, reach)
            where = choose(chosen, sliced(places, axis, reach, None), sliced(places, axis, 0, extent - reach))
            places, reach = _joined(places, where, axis, reach), 2 * reach
        return [values, places]

    return rule


def _joined(x: TracedArray, rest: TracedArray, axis: int, count: int) -> TracedArray:
    """Return the first elements of one array, and the others from another."""
    return op("Concat", sliced(x, axis, 0, count), rest, axis=axis)


def _log_sum_up_to(to: OperatorUse, x: TracedArray, dim: int) -> TracedArray:
    if not x.ndim or not x.size:
        return cast(x, to.dtype)
    inner = inner_dtype(to.dtype)
    found, axis = cast(x, inner), axis_of(dim, x.ndim)
    extent, reach = x.shape[axis], 1
    while reach < extent:
        new, old = sliced(found, axis, reach, None), sliced(found, axis, 0, extent - reach)
        found, reach = _joined(found, _log_of_sum(new, old), axis, reach), 2 * reach
    return cast(found, to.dtype)


def _log_of_sum(x: TracedArray, y: TracedArray) -> TracedArray:
    high, low = binary("Maximum", x, y), binary("Minimum", x, y)
    apart = choose(compare("Equal", high, low), number(0.0, dtype_of(x)), low - high)
    return high + op("Log1p", op("Exp", apart))


def _kth(x: TracedArray, place: int, axis: int, *, keepdim: bool) -> list[TracedArray]:
    """Return the element of a rank along an axis, counted from the least, and where it is."""
    order = op("ArgSort", x, axis=axis, indices_dtype=DType.SI64)
    where = sliced(order, axis, place, place + 1)
    values = op("GatherElements", x, where, axis=axis)
    return [values, where] if keepdim else [values.squeeze(axis), where.squeeze(axis)]


def _kth_value(
    _: OperatorUse, x: TracedArray, rank: int, dim: int = -1, keepdim: bool = False
) -> list[TracedArray]:
    if not x.ndim:
        return [x, number(0, DType.SI64)]
    return _kth(x, rank - 1, axis_of(dim, x.ndim), keepdim=keepdim)


def _median(_: OperatorUse, x: TracedArray, dim: int | None = None, keepdim: bool = False) -> Any:
    if not x.size:
        raise UnreadUse("it is the median of no elements")
    if not x.ndim:
        return x if dim is None else [x, number(0, DType.SI64)]
    flat = reshaped(x, (x.size,)) if dim is None else x
    axis = 0 if dim is None else axis_of(dim, x.ndim)
    values, where = _kth(flat, (flat.shape[axis] - 1) // 2, axis, keepdim=True)
    if dtype_of(x).is_float:  # NaN comes last in the order, and is the median where it is anywhere
        is_nan = compare("NotEqual", flat, flat)
        first = op("ArgMax", is_nan.astype(DType.UI8), axis=axis, output_dtype=DType.SI64)
        has_nan = is_nan.any(axis, keepdims=True)
        values = choose(has_nan, number(float("nan"), dtype_of(x)), values)
        where = choose(has_nan, op("ExpandDims", first, axes=[axis]), where)
    if dim is None:
        return reshaped(values, ())
    return [values, where] if keepdim else [values.squeeze(axis), where.squeeze(axis)]


def _searched(
    to: OperatorUse,
    edges: TracedArray,
    x: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: TracedArray | None = None,
) -> TracedArray:
    if sorter is not None:
        edges = op("GatherElements", edges, sorter, axis=edges.ndim - 1)
    edges, values = together(edges, x)
    if not edges.size or not values.size:
        return full(values.shape, 0, to.dtype)
    is_right = right or side == "right"
    rows = op("ExpandDims", values, axes=[values.ndim])
    shape = edges.shape if edges.ndim == 1 else (*edges.shape[:-1], 1, edges.shape[-1])
    before = compare("LessEqual" if is_right else "Less", reshaped(edges, shape), rows)
    if dtype_of(values).is_float:  # NaN is greater than all numbers
        before = before | compare("NotEqual", rows, rows)
    return summed(before.astype(to.dtype), [before.ndim - 1], keepdim=False)


def _histogram(
    to: OperatorUse, x: TracedArray, bins: int = 100, low: float = 0, high: float = 0
) -> TracedArray:
    if low == high:
        raise UnreadUse("its bounds are those of the numbers, which are known only when the program runs")
    inner = DType.F64
    flat = cast(reshaped(x, (x.size,)), inner)
    places = op("Floor", (flat - number(low, inner)) * number(bins / (high - low), inner))
    places = binary("Minimum", places, number(bins - 1, inner)).astype(DType.SI64)
    inside = compare("GreaterEqual", flat, number(low, inner)) & compare(
        "LessEqual", flat, number(high, inner)
    )
    places = choose(inside, places, number(bins, DType.SI64))
    counts = full((bins + 1,), 0, DType.SI64).at[places].add(full((x.size,), 1, DType.SI64))
    return cast(sliced(counts, 0, 0, bins), to.dtype)


def _distances(
    to: OperatorUse, x: TracedArray, y: TracedArray, order: float, mode: int | None = None
) -> TracedArray:
    dtype = to.dtype
    rows, columns = op("ExpandDims", x, axes=[x.ndim - 1]), op("ExpandDims", y, axes=[y.ndim - 2])
    apart = abs(rows - columns)
    axis = apart.ndim - 1
    if not apart.shape[axis] or not apart.size:
        return full(apart.shape[:-1], 0, dtype)
    if order == 0:
        return compare("NotEqual", apart, number(0, dtype)).astype(dtype).sum(axis)
    if order == float("inf"):
        return apart.max(axis)
    if order in (1, 2):
        return apart.sum(axis) if order == 1 else op("Sqrt", (apart * apart).sum(axis))
    total = binary("Power", apart, number(order, dtype)).sum(axis)
    return binary("Power", total, number(1 / order, dtype))


def _masked_scatter(to: OperatorUse, x: TracedArray, mask: TracedArray, source: TracedArray) -> TracedArray:
    """Take the elements of ``source`` in order for the places where a mask is true."""
    shape = common_shape([x.shape, mask.shape])
    x, mask = expanded(x, shape), expanded(mask, shape)
    if not x.size or not source.size:
        return x
    flat = reshaped(mask, (x.size,)).astype(DType.SI64)
    count = op("Cumulate", flat, kind="Sum", axis=0)
    places = choose(compare("NotEqual", flat, number(0, DType.SI64)), count - 1, number(0, DType.SI64))
    taken = op("Gather", reshaped(source, (source.size,)), places)
    return choose(mask, reshaped(taken, shape), x)


RULES: Mapping[str, Rule] = {
    "aten.cummax": running_extremum("Max"),
    "aten.cummin": running_extremum("Min"),
    "aten.logcumsumexp": _log_sum_up_to,
    "aten.kthvalue": _kth_value,
    "aten.median": _median,
    "aten.searchsorted": _searched,
    "aten.bucketize": lambda to, x, edges, **how: _searched(to, edges, x, **how),
    "aten.histc": _histogram,
    "aten._cdist_forward": _distances,
    "aten.masked_scatter": _masked_scatter,
}
