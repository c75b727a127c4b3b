"""New arrays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType
from mind_mlir.numpy.arrays import constructed, filled, op, shape_of, stretched, together, traced
from mind_mlir.numpy.calling import spelled
from mind_mlir.numpy.shaping import diagonals
from mind_mlir.support import argument_checks
from mind_mlir.tracing.array import TracedArray
from mind_mlir.tracing.conversion import as_dtype
from mind_mlir.tracing.trace import current_trace

if TYPE_CHECKING:
    from mind_mlir.numpy.arrays import Array, ArrayLike, DTypeLike, Shape


@spelled("ConstTensor")
def asarray(a: ArrayLike, /, dtype: DTypeLike | None = None) -> Array:
    """Return ``a``, a number, nested lists or an array, as an array of ``dtype``, by default its own."""
    x = _stacked(a)
    return _own(x) if dtype is None else x.astype(as_dtype(dtype))


@spelled("BroadcastTo")
def full(shape: Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """Return an array of one number, or of several ones that are broadcast, of ``dtype`` or their own."""
    x = traced(fill_value)
    if dtype is not None:
        x = x.astype(as_dtype(dtype))
    return _own(stretched(x, shape_of(shape)))


@spelled("BroadcastTo")
def zeros(shape: Shape, dtype: DTypeLike | None = None) -> Array:
    """Return an array of zeros."""
    return constructed(dtype, lambda wanted: filled(shape_of(shape), 0, wanted))


@spelled("BroadcastTo")
def ones(shape: Shape, dtype: DTypeLike | None = None) -> Array:
    """Return an array of ones."""
    return constructed(dtype, lambda wanted: filled(shape_of(shape), 1, wanted))


@spelled("BroadcastTo")
def zeros_like(a: ArrayLike, /, dtype: DTypeLike | None = None) -> Array:
    """Return zeros of the shape of ``a``, and of its dtype if no other is given."""
    return _like(traced(a), 0, dtype)


@spelled("BroadcastTo")
def ones_like(a: ArrayLike, /, dtype: DTypeLike | None = None) -> Array:
    """Return ones of the shape of ``a``, and of its dtype if no other is given."""
    return _like(traced(a), 1, dtype)


@spelled("BroadcastTo")
def full_like(a: ArrayLike, /, fill_value: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """Return an array of the shape of ``a`` that holds ``fill_value``, of its dtype if no other is given."""
    x = traced(a)
    wanted = x.value.type.dtype if dtype is None else as_dtype(dtype)
    return stretched(traced(fill_value).astype(wanted), x.shape)


@spelled("Iota", "Compare")
def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:  # noqa: N803 -- numpy's names
    """Return a matrix of ``N`` rows and ``M`` columns, or as many, with ones on diagonal ``k``, and zeros."""
    rows, columns = (
        argument_checks.integer(each, name) for each, name in ((N, "N"), (N if M is None else M, "M"))
    )
    return constructed(dtype, (diagonals(rows, columns) == argument_checks.integer(k, "k")).astype)


@spelled("Iota", "Compare")
def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """Return the square matrix of ``n`` rows with ones on the diagonal."""
    return constructed(dtype, (diagonals(argument_checks.integer(n, "n"), n) == 0).astype)


@spelled("Iota")
def arange(start: float, stop: float | None = None, step: float = 1, dtype: DTypeLike | None = None) -> Array:
    """Return the numbers ``start``, ``start + step``, ... up to, and without, ``stop``.

    Args:
        start: The first number; where it stands alone, that is ``stop``, and the first number 0.
        stop: What the numbers do not reach.
        step: How far they are apart.
        dtype: Their dtype; by default i64 for integers, else floats that take that of what they meet.
    """
    first, last = (0, start) if stop is None else (start, stop)
    for name, each in (("start", first), ("stop", last), ("step", step)):
        _number(each, name)
    if not step:
        raise ValueError("step must not be 0")
    is_float = any(isinstance(each, (float, np.floating)) for each in (first, last, step))
    count = max(0, math.ceil((last - first) / step))
    wanted = DType.SI64 if dtype is None and not is_float else dtype
    return constructed(wanted, lambda found: _line(count, first, step, found))


@spelled("Iota")
def linspace(
    start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """Return ``num`` numbers that are equally far apart, from ``start`` to ``stop``.

    Args:
        start: The first number.
        stop: The last number, or with ``endpoint=False`` the one that would follow.
        num: How many.
        endpoint: Whether ``stop`` is among them.
        dtype: Their dtype; by default floats that take that of what they meet. Integers are rounded down.
    """
    first, last = float(_number(start, "start")), float(_number(stop, "stop"))
    count = argument_checks.integer(num, "num")
    steps = count - 1 if argument_checks.flag(endpoint, "endpoint") else count
    x = _line(count, first, (last - first) / steps if steps > 0 else 0.0, DType.F64)
    if endpoint and steps > 0:
        is_last = op("Iota", shape=(count,), dtype="i64", axis=0) == steps
        x = op("Select", is_last, filled((count,), last, DType.F64), x)
    return constructed(dtype, lambda wanted: (op("Floor", x) if wanted.is_integer else x).astype(wanted))


@spelled("Power")
def logspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return ``num`` powers of ``base``, whose exponents are those numbers that `linspace` returns."""
    exponents = linspace(start, stop, num, endpoint, DType.F64)
    found = op("Power", float(_number(base, "base")), exponents)
    return constructed(dtype, found.astype)


@spelled("Power")
def geomspace(
    start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """Return ``num`` numbers from ``start`` to ``stop``, each the same multiple of the one before."""
    first, last = float(_number(start, "start")), float(_number(stop, "stop"))
    if first * last <= 0:
        raise ValueError(f"start and stop must have one sign, and not be 0, not {start} and {stop}")
    parts = traced(linspace(0, 1, num, endpoint, DType.F64))
    found = first * op("Power", last / first, parts)
    found = op("Select", parts == 1.0, filled(parts.shape, last, DType.F64), found)
    return constructed(dtype, found.astype)


@spelled("Iota", "Compare")
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:  # noqa: N803 -- numpy's names
    """Return a matrix of ``N`` rows and ``M`` columns, or as many: ones up to diagonal ``k``, else zeros."""
    rows = argument_checks.integer(N, "N")
    columns = rows if M is None else argument_checks.integer(M, "M")
    return constructed(dtype, (diagonals(rows, columns) <= argument_checks.integer(k, "k")).astype)


def _own(x: TracedArray) -> TracedArray:
    """Return an array that is made of ``x``: of floats without a dtype, it has none of its own either."""
    trace = current_trace()
    return trace.wrap(x.value, weak=x.weak and trace.promotes and not x.value.type.dtype.is_integer)


def _line(count: int, first: float, step: float, dtype: DType) -> TracedArray:
    x = op("Iota", shape=(count,), dtype=dtype, axis=0)
    if step != 1:
        x = x * step
    return x + first if first else x


def _like(x: TracedArray, number: int, dtype: DTypeLike | None) -> TracedArray:
    return filled(x.shape, number, x.value.type.dtype if dtype is None else as_dtype(dtype))


def _number(value: Any, parameter: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        argument_checks.reject(parameter, "a number that is known when the function is traced", value)
    return value


def _stacked(a: Any) -> TracedArray:
    """Return nested lists as one array, which may hold traced arrays."""
    if not isinstance(a, (list, tuple)) or not _holds_traced(a):
        x = traced(a)
        return current_trace().wrap(x.value, weak=x.weak or _is_plain(a))
    parts = together(*[_stacked(part) if isinstance(part, (list, tuple)) else part for part in a])
    return op("Concat", *(op("ExpandDims", part, axes=[0]) for part in parts), axis=0)


def _is_plain(a: Any) -> bool:
    """Return whether nested lists hold nothing but numbers of Python."""
    if isinstance(a, (list, tuple)):
        return all(map(_is_plain, a))
    return isinstance(a, (bool, int, float, complex)) and not isinstance(a, np.generic)


def _holds_traced(a: Any) -> bool:
    return any(
        isinstance(part, TracedArray) or (isinstance(part, (list, tuple)) and _holds_traced(part))
        for part in a
    )


array = asarray
empty, empty_like = zeros, zeros_like
