"""What samples say: order statistics, covariances, counts, and lines between points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.numpy.arrays import filled, floats, op, together, traced
from mind_mlir.numpy.calling import spelled
from mind_mlir.numpy.elementwise import isnan
from mind_mlir.numpy.reductions import sort
from mind_mlir.support import argument_checks
from mind_mlir.tracing.operators import choose, compare
from mind_mlir.tracing.reductions import axes_of

if TYPE_CHECKING:
    from mind_mlir.numpy.arrays import Array, ArrayLike, Axes
    from mind_mlir.tracing.array import TracedArray


@spelled("ArgSort")
def quantile(
    a: ArrayLike, /, q: float | Sequence[float], axis: Axes = None, *, keepdims: bool = False
) -> Array:
    """Return what a part ``q`` of the elements lies below, with lines between neighbours; NaN beside NaN.

    Args:
        a: The array.
        q: Numbers from 0 to 1, known when the function is traced; several are the first axis of the result.
        axis: The axes to reduce, negative ones from the end; None for all.
        keepdims: Whether the axes stay with extent 1.
    """
    parts = np.asarray(q, np.float64)
    if parts.ndim > 1 or not ((parts >= 0) & (parts <= 1)).all():
        raise ValueError(f"q must be one or several numbers from 0 to 1, not {argument_checks.describe(q)}")
    rows, kept = _rows(floats(a), axis, keepdims=argument_checks.flag(keepdims, "keepdims"))
    ordered, last = traced(sort(rows)), rows.shape[-1] - 1
    if last < 0:
        raise ValueError("quantiles of no elements are none")
    found = [
        choose(isnan(ordered[:, last]), math.nan, _between(ordered, float(part) * last)).reshape(kept)
        for part in parts.reshape(-1)
    ]
    if not parts.ndim:
        return found[0]
    return op("Concat", *(op("ExpandDims", each, axes=[0]) for each in found), axis=0)


@spelled("ArgSort")
def percentile(
    a: ArrayLike, /, q: float | Sequence[float], axis: Axes = None, *, keepdims: bool = False
) -> Array:
    """Return what ``q`` percent of the elements lie below: `quantile` of a hundredth of it."""
    return quantile(a, (np.asarray(q, np.float64) / 100).tolist(), axis, keepdims=keepdims)


@spelled("ArgSort")
def median(a: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return the element in the middle of their order, or the mean of both; NaN beside NaN."""
    return quantile(a, 0.5, axis, keepdims=keepdims)


@spelled("Reduce")
def ptp(a: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return how far apart the greatest and the least element are."""
    x = traced(a)
    return x.max(axis, keepdims=keepdims) - x.min(axis, keepdims=keepdims)


@spelled("Mean")
def average(
    a: ArrayLike, /, axis: Axes = None, weights: ArrayLike | None = None, *, keepdims: bool = False
) -> Array:
    """Return the mean along ``axis``, or of all, in which each element counts as its weight says."""
    x = floats(a)
    if weights is None:
        return x.mean(axis, keepdims=keepdims)
    x, scale = together(x, weights)
    if scale.shape != x.shape:
        (place,) = [0] if axis is None else axes_of(axis, x.ndim)
        scale = scale.reshape(tuple(scale.size if dim == place else 1 for dim in range(x.ndim)))
        scale = scale + filled(x.shape, 0, scale.value.type.dtype)
    return (x * scale).sum(axis, keepdims=keepdims) / scale.sum(axis, keepdims=keepdims)


@spelled("DotGeneral")
def cov(m: ArrayLike, /, *, rowvar: bool = True, bias: bool = False, ddof: int | None = None) -> Array:
    """Return the covariances of variables, which are rows.

    Args:
        m: The samples: a matrix, or a vector of one variable's.
        rowvar: Whether variables are rows, or columns.
        bias: Whether to divide by the number of samples, or by one less.
        ddof: What to take from that number before dividing by it, in place of what ``bias`` says.
    """
    x = floats(m)
    if x.ndim > 2:
        raise ValueError(f"m must be an array of rank 1 or 2, not {x.ndim}")
    rows = x.reshape((1, -1)) if x.ndim < 2 else x if argument_checks.flag(rowvar, "rowvar") else x.T
    apart = rows - rows.mean(1, keepdims=True)
    taken = (0 if argument_checks.flag(bias, "bias") else 1) if ddof is None else ddof
    found = apart @ apart.T / float(max(rows.shape[1] - argument_checks.integer(taken, "ddof"), 0))
    return found.squeeze()


@spelled("DotGeneral")
def corrcoef(x: ArrayLike, /, *, rowvar: bool = True) -> Array:
    """Return the correlation coefficients of variables, which are rows, or with ``rowvar=False`` columns."""
    found = traced(cov(x, rowvar=rowvar))
    if not found.ndim:
        return found / found
    size = found.shape[0]
    deviations = op("Sqrt", found.reshape(-1)[:: size + 1])
    return (found / deviations.reshape((-1, 1)) / deviations).clip(-1, 1)


@spelled("GatherElements")
def searchsorted(a: ArrayLike, v: ArrayLike, /, side: str = "left") -> Array:
    """Return where each of ``v`` is to be inserted into the vector ``a``, which is sorted, in i64.

    Args:
        a: The vector; NaN comes after all numbers.
        v: What to insert.
        side: Whether in front of elements that are equal, ``"left"``, or behind them, ``"right"``.
    """
    argument_checks.choice(side, ("left", "right"), "side")
    ordered, wanted = together(a, v)
    if ordered.ndim != 1:
        raise ValueError(f"a must be a vector, not of rank {ordered.ndim}")
    place, count = filled(wanted.shape, 0, DType.SI64), ordered.size
    for bit in reversed(range(count.bit_length())):
        beyond = place + (1 << bit)
        there = ordered[op("Minimum", beyond, count) - 1]
        is_left = _first(there, wanted) if side == "left" else op("Not", _first(wanted, there))
        place = choose(op("And", compare("LessEqual", beyond, count), is_left), beyond, place)
    return place


@spelled("SegmentReduce")
def bincount(x: ArrayLike, /, weights: ArrayLike | None = None, minlength: int = 0) -> Array:
    """Count how often each integer occurs, or add up the weights of where it does.

    Args:
        x: A vector of integers, which are 0 or greater; one that is ``minlength`` or greater is E6001.
        weights: What each counts, by default 1.
        minlength: How many counts there are, which is to be known when the function is traced.
    """
    numbers, count = traced(x), argument_checks.integer(minlength, "minlength")
    if count < 1:
        raise ValueError("minlength must be given: the integers that occur are known only when it runs")
    values = filled(numbers.shape, 1, DType.SI64) if weights is None else traced(weights).astype(DType.F64)
    dtype = numbers.value.type.dtype
    places = numbers if dtype in (DType.SI32, DType.SI64) else numbers.astype(DType.SI64)
    if dtype.kind not in (DTypeKind.SIGNED, DTypeKind.UNSIGNED):
        raise ValueError(f"x must be integers, not {dtype.core_name}")
    return op("SegmentReduce", values, places, kind="Sum", num_segments=count)


@spelled("SegmentReduce")
def histogram(
    a: ArrayLike,
    /,
    bins: int = 10,
    range: tuple[float, float] | None = None,  # noqa: A002 -- numpy's name
) -> tuple[Array, Array]:
    """Count the elements in each of several bins, and return the counts, in i64, and the bins' edges.

    Args:
        a: The array.
        bins: How many bins of one width there are.
        range: Where the first one begins and the last one ends; by default the least and greatest element.
    """
    x, count = floats(traced(a).reshape(-1)), argument_checks.integer(bins, "bins")
    if count < 1:
        raise ValueError(f"bins must be 1 or greater, not {count}")
    first, last = (x.min(), x.max()) if range is None else (traced(float(each)) for each in range)
    first, last, _ = together(first, last, x)
    same = compare("Equal", first, last)
    first, last = choose(same, first - 0.5, first), choose(same, last + 0.5, last)
    part = op("Iota", shape=(count + 1,), dtype=x.dtype, axis=0)
    edges = first + part * ((last - first) / float(count))
    edges = choose(compare("Equal", part, count), last, edges)
    kept = op("And", compare("GreaterEqual", x, first), compare("LessEqual", x, last))
    place = op("Minimum", searchsorted(edges, choose(kept, x, first), "right") - 1, count - 1)
    counts = op("SegmentReduce", kept.astype(DType.SI64), place, kind="Sum", num_segments=count)
    return counts, edges


@spelled("GatherElements")
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    /,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
) -> Array:
    """Return values on lines between points, at ``x``; beyond these the first or the last one's.

    Args:
        x: Where.
        xp: Where the points are, a vector that increases.
        fp: The values there.
        left: The value in front of the first point.
        right: The value behind the last one.
    """
    places, points, values = together(floats(x), floats(xp), floats(fp))
    if points.ndim != 1 or points.shape != values.shape or not points.size:
        raise ValueError("xp and fp must be vectors of one length, 1 or greater")
    last = points.size - 1
    if last:
        at = op("Maximum", op("Minimum", searchsorted(points, places, "right"), last), 1)
        low, begin = points[at - 1], values[at - 1]
        found = begin + (values[at] - begin) / (points[at] - low) * (places - low)
        found = choose(compare("Equal", places, points[last]), values[last], found)
    else:
        found = places * 0.0 + values[0]
    found = choose(compare("Less", places, points[0]), values[0] if left is None else left, found)
    return choose(compare("Greater", places, points[last]), values[last] if right is None else right, found)


def _rows(x: TracedArray, axis: Axes, *, keepdims: bool) -> tuple[TracedArray, tuple[int, ...]]:
    """Return the axes to reduce as rows of a matrix, and the shape of what one number of each is."""
    axes = list(range(x.ndim)) if axis is None else axes_of(axis, x.ndim)
    others = [place for place in range(x.ndim) if place not in axes]
    kept = [1 if place in axes else x.shape[place] for place in range(x.ndim)]
    shape = [x.shape[place] for place in others]
    length = math.prod(x.shape[place] for place in axes)
    rows = x.transpose([*others, *axes]).reshape((math.prod(shape), length))
    return rows, tuple(kept if keepdims else shape)


def _between(ordered: TracedArray, place: float) -> TracedArray:
    """Return the numbers at a place of each row, which may lie between two elements."""
    low = math.floor(place)
    part = place - low
    one = ordered[:, low]
    if not part:
        return one
    other = ordered[:, low + 1]
    line = one + (other - one) * part if part < 0.5 else other - (other - one) * (1.0 - part)
    return choose(compare("Equal", one, other), one, line)


def _first(one: TracedArray, other: TracedArray) -> TracedArray:
    """Return where one comes before the other, in an order that has NaN behind all numbers."""
    less = compare("Less", one, other)
    if one.value.type.dtype.kind is not DTypeKind.FLOAT:
        return less
    return op("Or", less, op("And", isnan(other), op("Not", isnan(one))))
