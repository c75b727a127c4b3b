"""Reductions along axes, and what is made of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.numpy.arrays import apply, floats, op, traced
from mind_mlir.numpy.calling import spelled
from mind_mlir.ops.registry import by_opcode
from mind_mlir.support import argument_checks
from mind_mlir.tracing.operators import choose, compare
from mind_mlir.tracing.reductions import axes_of, counted

if TYPE_CHECKING:
    from mind_mlir.numpy.arrays import Array, ArrayLike, Axes, DTypeLike
    from mind_mlir.tracing.array import TracedArray


@spelled("Sum", "Reduce")
def sum(  # noqa: A001 -- numpy's name
    a: ArrayLike, /, axis: Axes = None, *, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Array:
    """Add the elements along ``axis``, one or several, or all of them.

    Args:
        a: The array; truth values are counted.
        axis: The axes to reduce, negative ones from the end; None for all.
        dtype: What to add in, which is the dtype of the result; by default that of ``a``, and for integers
            and truth values i64, or ui64.
        keepdims: Whether the axes stay with extent 1.
    """
    return traced(a).sum(axis, dtype=dtype, keepdims=keepdims)


@spelled("Mean")
def mean(
    a: ArrayLike, /, axis: Axes = None, *, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Array:
    """Return the mean along ``axis``, one or several, or of all; integers and truth values are floats.

    With ``dtype``, that of the elements converted to it.
    """
    return traced(a).mean(axis, dtype=dtype, keepdims=keepdims)


@spelled("ReduceProd")
def prod(
    a: ArrayLike, /, axis: Axes = None, *, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Array:
    """Multiply the elements along ``axis``, one or several, or all of them; as numbers of ``dtype``."""
    return traced(a).prod(axis, dtype=dtype, keepdims=keepdims)


@spelled("Reduce")
def max(a: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Array:  # noqa: A001 -- numpy's name
    """Return the greatest element along ``axis``, one or several, or of all."""
    return traced(a).max(axis, keepdims=keepdims)


@spelled("Reduce")
def min(a: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Array:  # noqa: A001 -- numpy's name
    """Return the least element along ``axis``, one or several, or of all."""
    return traced(a).min(axis, keepdims=keepdims)


@spelled("Reduce")
def all(a: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Array:  # noqa: A001 -- numpy's name
    """Return whether all elements along ``axis`` are true, or not 0."""
    return traced(a).all(axis, keepdims=keepdims)


@spelled("Reduce")
def any(a: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Array:  # noqa: A001 -- numpy's name
    """Return whether an element along ``axis`` is true, or not 0."""
    return traced(a).any(axis, keepdims=keepdims)


amax, amin = max, min


@spelled("Sum")
def count_nonzero(a: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Count the elements along ``axis`` that are true, or not 0, in i64."""
    return traced(a).astype(DType.I1).sum(axis, keepdims=keepdims)


@spelled("Mean")
def var(a: ArrayLike, /, axis: Axes = None, *, ddof: float = 0, keepdims: bool = False) -> Array:
    """Return the mean of the squared distances of numbers from their mean.

    Args:
        a: The array.
        axis: The axes to reduce, negative ones from the end; None for all.
        ddof: What is taken from the number of elements before the sum of squares is divided by it.
        keepdims: Whether the axes stay with extent 1.
    """
    x = traced(a)
    apart = x - x.mean(axis, keepdims=True)
    squares = apart * apart
    if not ddof:
        return squares.mean(axis, keepdims=keepdims)
    total = squares.sum(axis, keepdims=keepdims)
    terms = x.size // total.size if total.size else 0
    return total / float(terms - ddof)


@spelled("Mean")
def std(a: ArrayLike, /, axis: Axes = None, *, ddof: float = 0, keepdims: bool = False) -> Array:
    """Return the square root of `var`."""
    return op("Sqrt", var(a, axis, ddof=ddof, keepdims=keepdims))


@spelled("ArgMax")
def argmax(a: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Return where the greatest element is, in i64: along ``axis``, or among all in row-major order."""
    return traced(a).argmax(axis, keepdims=keepdims)


@spelled("ArgMax")
def argmin(a: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Return where the least element is, in i64: along ``axis``, or among all in row-major order."""
    return traced(a).argmin(axis, keepdims=keepdims)


@spelled("ArgSort")
def argsort(
    a: ArrayLike, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True
) -> Array:
    """Return the indices, in i64, that sort ``a`` along ``axis``, or for None all elements as a vector.

    Args:
        a: The array.
        axis: The axis to sort along.
        descending: Whether the greatest come first.
        stable: Elements that are equal stay in their order whatever this is.
    """
    x, place = _along(a, axis)
    return _order(x, place, descending=descending)


@spelled("ArgSort", "GatherElements")
def sort(a: ArrayLike, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Array:
    """Sort along ``axis``, or for None all elements as a vector; NaN comes after all numbers.

    Args:
        a: The array.
        axis: The axis to sort along.
        descending: Whether the greatest come first.
        stable: Elements that are equal stay in their order whatever this is.
    """
    x, place = _along(a, axis)
    return op("GatherElements", x, _order(x, place, descending=descending), axis=place)


@spelled("TopK")
def top_k(
    a: ArrayLike, /, k: int, axis: int = -1, *, largest: bool = True, indices_dtype: DTypeLike = "i64"
) -> tuple[Array, Array]:
    """Return the ``k`` greatest elements along ``axis``, the greatest first, and where they are.

    Args:
        a: The array.
        k: How many.
        axis: The axis to search.
        largest: Whether the greatest, or the least ones, the least first.
        indices_dtype: The dtype of the indices, i32 or i64.
    """
    x, place = _along(a, axis)
    how = {
        "k": k,
        "axis": place,
        "largest": argument_checks.flag(largest, "largest"),
        "indices_dtype": indices_dtype,
    }
    values, indices = apply(by_opcode()["TopK"], (x,), how)
    return values, indices


@spelled("Sum", "Reduce")
def nansum(a: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Add the elements that are not NaN along ``axis``, one or several, or all of them."""
    return sum(_numbers(traced(a), 0), axis, keepdims=keepdims)


@spelled("ReduceProd")
def nanprod(a: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Multiply the elements that are not NaN along ``axis``, one or several, or all of them."""
    return prod(_numbers(traced(a), 1), axis, keepdims=keepdims)


@spelled("Mean")
def nanmean(a: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return the mean of the elements that are not NaN along ``axis``, or of all; NaN of none."""
    x = floats(a)
    total = traced(_numbers(x, 0)).sum(axis, keepdims=keepdims)
    return total / _counted(x, axis, keepdims=keepdims)


@spelled("Reduce")
def nanmax(a: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return the greatest element that is not NaN along ``axis``, or of all; NaN of none."""
    return _extreme(traced(a), -math.inf, lambda x: x.max(axis, keepdims=keepdims), axis, keepdims=keepdims)


@spelled("Reduce")
def nanmin(a: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return the least element that is not NaN along ``axis``, or of all; NaN of none."""
    return _extreme(traced(a), math.inf, lambda x: x.min(axis, keepdims=keepdims), axis, keepdims=keepdims)


@spelled("Mean")
def nanvar(a: ArrayLike, /, axis: Axes = None, *, ddof: float = 0, keepdims: bool = False) -> Array:
    """Return the mean of the squared distances of elements that are not NaN from their mean: see `var`."""
    x = floats(a)
    apart = _numbers(x - traced(nanmean(x, axis, keepdims=True)), 0)
    total, count = (apart * apart).sum(axis, keepdims=keepdims), _counted(x, axis, keepdims=keepdims) - ddof
    return total / choose(count > 0, count, math.nan)


@spelled("Mean")
def nanstd(a: ArrayLike, /, axis: Axes = None, *, ddof: float = 0, keepdims: bool = False) -> Array:
    """Return the square root of `nanvar`."""
    return op("Sqrt", nanvar(a, axis, ddof=ddof, keepdims=keepdims))


@spelled("Cumulate")
def cumsum(a: ArrayLike, /, axis: int | None = None) -> Array:
    """Return the sums of the elements up to each one, along ``axis`` or for None of all as a vector."""
    x, place = _along(a, axis)
    return op("Cumulate", counted(x), kind="Sum", axis=place)


@spelled("Cumulate")
def cumprod(a: ArrayLike, /, axis: int | None = None) -> Array:
    """Return the products of the elements up to each one, along ``axis`` or for None of all as a vector."""
    x, place = _along(a, axis)
    return op("Cumulate", counted(x), kind="Prod", axis=place)


def _is_nan(x: TracedArray) -> TracedArray | None:
    """Return where elements are NaN, or None where the dtype has none."""
    is_float = x.value.type.dtype.kind in (DTypeKind.FLOAT, DTypeKind.COMPLEX)
    return compare("NotEqual", x, x) if is_float else None


def _numbers(x: TracedArray, number: float) -> TracedArray:
    """Return ``x`` with ``number`` in place of NaN."""
    nan = _is_nan(x)
    return x if nan is None else choose(nan, number, x)


def _counted(x: TracedArray, axis: Axes, *, keepdims: bool) -> TracedArray:
    """Return how many elements are not NaN, in floats."""
    return compare("Equal", x, x).astype(x.dtype).sum(axis, keepdims=keepdims)


def _extreme(
    x: TracedArray,
    start: float,
    reduced: Callable[[TracedArray], TracedArray],
    axis: Axes,
    *,
    keepdims: bool,
) -> TracedArray:
    nan = _is_nan(x)
    if nan is None:
        return reduced(x)
    return choose(nan.all(axis, keepdims=keepdims), math.nan, reduced(choose(nan, start, x)))


def _along(a: ArrayLike, axis: int | None) -> tuple[TracedArray, int]:
    """Return the array whose axis is meant, and the axis counted from the front."""
    x = traced(a)
    if axis is None:
        return x.reshape(-1), 0
    (place,) = axes_of(argument_checks.integer(axis, "axis"), x.ndim)
    return x, place


def _order(x: TracedArray, axis: int, *, descending: bool) -> TracedArray:
    return op(
        "ArgSort",
        x,
        axis=axis,
        descending=argument_checks.flag(descending, "descending"),
        indices_dtype=DType.SI64,
    )
