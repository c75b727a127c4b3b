"""Fourier transforms with the arguments of `numpy.fft`; f32 stays so, and all other numbers become f64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mind_mlir.builders.compositions import fourier
from mind_mlir.ir.types import DType
from mind_mlir.numpy import shaping
from mind_mlir.numpy.arrays import traced
from mind_mlir.numpy.calling import callable_anywhere, defined_in
from mind_mlir.support import argument_checks
from mind_mlir.tracing.composing import composed
from mind_mlir.tracing.reductions import axes_of

if TYPE_CHECKING:
    from mind_mlir.builders.compositions.composer import Composer
    from mind_mlir.ir.value import Value
    from mind_mlir.numpy.arrays import Array, ArrayLike
    from mind_mlir.tracing.array import TracedArray

_REAL = (DType.F32, DType.F64)
_COMPLEX = {DType.F32: DType.CF32, DType.CF32: DType.CF32}


@callable_anywhere
def fft(a: ArrayLike, /, n: int | None = None, axis: int = -1) -> Array:
    """Return the Fourier transform along ``axis``, of ``n`` elements, cut or with zeros."""
    x, place, _ = _complex(a, n, axis)
    return _of_complex(x, place, inverse=False)


@callable_anywhere
def ifft(a: ArrayLike, /, n: int | None = None, axis: int = -1) -> Array:
    """Return what `fft` makes ``a`` of, divided by the number of elements."""
    x, place, _ = _complex(a, n, axis)
    return _of_complex(x, place, inverse=True)


@callable_anywhere
def rfft(a: ArrayLike, /, n: int | None = None, axis: int = -1) -> Array:
    """Return the first half of the Fourier transform of real numbers, and the element in the middle."""
    x = traced(a)
    x = x if x.value.type.dtype in _REAL else x.astype(DType.F64)
    x, place = _of_length(x, n, axis)

    def append(to: Composer, value: Value) -> Sequence[Value]:
        return [fourier.joined(to, fourier.of_real(to, value, [place], one_sided=True))]

    return composed(append, x)[0]


@callable_anywhere
def irfft(a: ArrayLike, /, n: int | None = None, axis: int = -1) -> Array:
    """Return the ``n`` real numbers of which `rfft` makes ``a``: by default an even number of them."""
    x, place, _ = _complex(a, None, axis)
    count = 2 * (x.shape[place] - 1) if n is None else argument_checks.integer(n, "n")
    x, _ = _of_length(x, count // 2 + 1, place)

    def append(to: Composer, value: Value) -> Sequence[Value]:
        found = fourier.to_real(to, fourier.Pair(*to.parts(value)), [place], count)
        return [fourier.scaled(to, fourier.Pair(found, None), 1 / count).real]

    return composed(append, x)[0]


@callable_anywhere
def fftn(a: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None) -> Array:
    """Return the Fourier transform along ``axes``, of ``s`` elements each: by default along all of them."""
    return _along(fft, a, s, axes)


@callable_anywhere
def ifftn(a: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None) -> Array:
    """Return what `fftn` makes ``a`` of."""
    return _along(ifft, a, s, axes)


@callable_anywhere
def rfftn(a: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None) -> Array:
    """Return what `fftn` does of real numbers, and of the last of ``axes`` what `rfft` does."""
    return _along(fft, a, s, axes, first=rfft)


@callable_anywhere
def irfftn(a: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None) -> Array:
    """Return the real numbers of which `rfftn` makes ``a``: by default an even number along the last axis."""
    return _along(ifft, a, s, axes, last=irfft)


@callable_anywhere
def fft2(a: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1)) -> Array:
    """Return what `fftn` does, by default along the last two axes."""
    return _along(fft, a, s, axes)


@callable_anywhere
def ifft2(a: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1)) -> Array:
    """Return what `ifftn` does, by default along the last two axes."""
    return _along(ifft, a, s, axes)


@callable_anywhere
def rfft2(a: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1)) -> Array:
    """Return what `rfftn` does, by default along the last two axes."""
    return _along(fft, a, s, axes, first=rfft)


@callable_anywhere
def irfft2(a: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1)) -> Array:
    """Return what `irfftn` does, by default along the last two axes."""
    return _along(ifft, a, s, axes, last=irfft)


def _counts(
    x: TracedArray, s: Sequence[int] | None, axes: Sequence[int] | None
) -> list[tuple[int, int | None]]:
    """Return the axes of a transform, and how many elements each has, None where as many as there are.

    Raises:
        ValueError: There is no axis, or not a number of elements for each.
    """
    counts = None if s is None else [argument_checks.integer(each, "s") for each in s]
    if axes is None:
        axes = range(-(x.ndim if counts is None else len(counts)), 0)
    listed = axes_of(axes, x.ndim)
    if not listed:
        raise ValueError("a Fourier transform is along one axis or more, but axes has none")
    if counts is not None and len(counts) != len(listed):
        raise ValueError(f"s has {len(counts)} elements for {len(listed)} axes")
    return [(axis, None if counts is None else counts[place]) for place, axis in enumerate(listed)]


def _along(
    transform: Callable[..., Array],
    a: ArrayLike,
    s: Sequence[int] | None,
    axes: Sequence[int] | None,
    first: Callable[..., Array] | None = None,
    last: Callable[..., Array] | None = None,
) -> Array:
    """Return the transform along axes, the last one first, as numpy has it.

    Along the last axis it may be another one, which comes ``first``, or ``last``.
    """
    x: Array = traced(a)
    *others, end = _counts(traced(a), s, axes)
    order = [(each, transform) for each in reversed(others)]
    order.insert(len(order) if last else 0, (end, first or last or transform))
    for (axis, count), function in order:
        x = function(x, count, axis)
    return x


def _complex(a: ArrayLike, n: int | None, axis: int) -> tuple[TracedArray, int, int]:
    x = traced(a)
    x, place = _of_length(x.astype(_COMPLEX.get(x.value.type.dtype, DType.CF64)), n, axis)
    return x, place, x.shape[place]


def _of_complex(x: TracedArray, place: int, *, inverse: bool) -> TracedArray:
    factor = 1 / x.shape[place] if inverse else None

    def append(to: Composer, value: Value) -> Sequence[Value]:
        found = fourier.of_complex(to, fourier.Pair(*to.parts(value)), [place], inverse=inverse)
        return [fourier.joined(to, found if factor is None else fourier.scaled(to, found, factor))]

    return composed(append, x)[0]


def _of_length(x: TracedArray, n: int | None, axis: int) -> tuple[TracedArray, int]:
    """Return an array with ``n`` elements along an axis, cut or with zeros, and the axis from the front.

    Raises:
        ValueError: It would have none.
    """
    (place,) = axes_of(argument_checks.integer(axis, "axis"), x.ndim)
    count = x.shape[place] if n is None else argument_checks.integer(n, "n")
    if count < 1:
        raise ValueError(f"a Fourier transform is of 1 element or more, not of {count}")
    there = x.shape[place]
    if count < there:
        x = x[(slice(None),) * place + (slice(count),)]
    if count > there:
        widths = [(0, (count - there) * (each == place)) for each in range(x.ndim)]
        return traced(shaping.pad(x, widths)), place
    return x, place


def __dir__() -> list[str]:
    return defined_in(globals())
