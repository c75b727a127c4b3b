"""Fourier transforms with the arguments of `numpy.fft`; f32 stays so, and all other numbers become f64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.builders.compositions import fourier
from mind_mlir.ir.types import DType
from mind_mlir.numpy.arrays import traced
from mind_mlir.numpy.calling import callable_anywhere
from mind_mlir.numpy.shaping import pad
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
        return traced(pad(x, widths)), place
    return x, place
