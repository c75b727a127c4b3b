"""Fourier transforms as products with matrices of roots of unity.

A short transform is one product. A long one of `n = n1 * n2` numbers is transforms of `n1` numbers, factors,
and transforms of `n2` numbers, each of them many products at once; one of a long prime length is a
convolution, which transforms of a length without large factors make (Bluestein). Real and imaginary parts go
apart, so that all of it is products, sums and moves of real tensors. What products with roots of unity have
in common is found when they are scheduled (`lowering/schedule/shared`), which makes fast transforms of them;
so equal and opposite roots are that to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from mind_mlir.builders.compositions.composer import Composer
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value

#: A transform of at most so many numbers is one product, and one of fewer than so many along the last axis,
#: where steps would have vectors of few elements.
_SHORT, _SHORT_LAST = 32, 64
#: One of a prime length is a product up to here.
_LONGEST_PRIME = 256


class Pair(NamedTuple):
    """Complex numbers in two tensors, of real and of imaginary parts; None where these are zero."""

    real: Value
    imaginary: Value | None


def of_complex(to: Composer, pair: Pair, axes: Sequence[int], *, inverse: bool) -> Pair:
    """Append the transform along axes, one after the other, without the factor of the inverse one."""
    for axis in axes:
        pair = transformed(to, pair, axis, inverse=inverse)
    return pair


def of_real(to: Composer, value: Value, axes: Sequence[int], *, one_sided: bool) -> Pair:
    """Append the transform of real numbers; ``one_sided`` leaves out the second half of the first axis."""
    first, *others = axes
    kept = value.type.extents[first] // 2 + 1 if one_sided else None
    pair = transformed(to, Pair(value, None), first, inverse=False, kept=kept)
    return of_complex(to, pair, others, inverse=False)


def to_real(to: Composer, pair: Pair, axes: Sequence[int], count: int) -> Value:
    """Append the inverse transform whose result is real, without its factor.

    Args:
        to: Appends the operations.
        pair: The numbers, whose second half along the last of ``axes`` is left out.
        axes: What is transformed.
        count: How many numbers the whole of the last of them is.
    """
    *others, last = axes
    mirrored = _mirrored(to, of_complex(to, pair, others, inverse=True), last, count)
    return transformed(to, mirrored, last, inverse=True, real=True).real


def scaled(to: Composer, pair: Pair, factor: float) -> Pair:
    """Append complex numbers times a real one."""
    return _each(pair, lambda part: to.emit("Mul", part, to.like(factor, part)))


def joined(to: Composer, pair: Pair) -> Value:
    """Append the complex numbers that have some parts."""
    return to.complex_of(pair.real, to.like(0, pair.real) if pair.imaginary is None else pair.imaginary)


def transformed(
    to: Composer, pair: Pair, axis: int, *, inverse: bool, kept: int | None = None, real: bool = False
) -> Pair:
    """Append the transform along an axis, without the factor of the inverse one.

    Args:
        to: Appends the operations.
        pair: The numbers.
        axis: The axis.
        inverse: Whether it is the inverse transform.
        kept: How many of its numbers are wanted, from the first one on; None: all.
        real: Whether only their real parts are wanted.
    """
    count = pair.real.type.extents[axis]
    if count == 1:
        return pair
    if _is_product(count) or (count < _SHORT_LAST and axis == pair.real.type.rank - 1):
        return _multiplied(to, pair, axis, _roots(count, inverse=inverse)[:, :kept], real=real)
    first = _factor(count)
    if first is None:
        found = _convolved(to, pair, axis, inverse=inverse)
        return found if kept is None else _part(to, found, axis, kept)
    return _in_steps(to, pair, axis, first, inverse=inverse, kept=kept, real=real)


def _is_product(count: int) -> bool:
    return count <= _SHORT or (count <= _LONGEST_PRIME and _factor(count) is None)


def _factor(count: int) -> int | None:
    """Return the factor that a long transform is divided by: None of a prime, or one with a large prime."""
    factors = [each for each in range(2, math.isqrt(count) + 1) if count % each == 0]
    divisors = {each for small in factors for each in (small, count // small)}
    short = [each for each in divisors if each <= _SHORT]
    if short:
        return min(
            short, key=lambda each: (max(each, count // each) > _SHORT, abs(each - math.sqrt(count)), each)
        )
    return min(divisors, default=None)


def _in_steps(
    to: Composer, pair: Pair, axis: int, first: int, *, inverse: bool, kept: int | None, real: bool
) -> Pair:
    """Append the transform along an axis as transforms of ``first`` numbers, and of those of the others."""
    *outer, count = pair.real.type.extents[: axis + 1]
    inner = pair.real.type.extents[axis + 1 :]
    second = count // first
    apart = _each(pair, lambda part: to.reshaped(part, (*outer, first, second, *inner)))
    # f[..., k1, n2], from f[..., n1, n2]; of each k1 so many k2 are wanted, of which k1 counts fastest.
    turned = transformed(to, apart, axis, inverse=inverse)
    steps = np.outer(np.arange(first), np.arange(second))
    turned = _times(to, turned, axis, _powers(steps, count, inverse=inverse))
    columns = second if kept is None else -(-kept // first)
    if _is_product(second):
        roots = _roots(second, inverse=inverse)[:, :columns]
        found = _multiplied(to, turned, axis, roots, real=real, swapped=True)
    else:
        swapped = _each(turned, lambda part: _swapped(to, part, axis))
        found = transformed(to, swapped, axis, inverse=inverse, kept=columns, real=real)
    found = _each(found, lambda part: to.reshaped(part, (*outer, columns * first, *inner)))
    return found if kept is None else _part(to, found, axis, kept)


def _convolved(to: Composer, pair: Pair, axis: int, *, inverse: bool) -> Pair:
    """Append the transform along an axis as a convolution with roots of unity of the squares."""
    shape = pair.real.type.extents
    rank, count = len(shape), shape[axis]
    length = 1 << (2 * count - 2).bit_length()
    chirp = _powers(np.arange(count) ** 2, 2 * count, inverse=inverse)
    around = np.zeros(length, np.complex128)
    around[:count] = chirp.conj()
    around[length - count + 1 :] = chirp[:0:-1].conj()
    zeros = [0] * rank
    behind = [length - count if each == axis else 0 for each in range(rank)]
    wide = _each(_times(to, pair, axis, chirp), lambda part: to.padded(part, zeros, behind, zeros, 0))
    product_ = _times(to, transformed(to, wide, axis, inverse=False), axis, np.fft.fft(around) / length)
    found = _part(to, transformed(to, product_, axis, inverse=True), axis, count)
    return _times(to, found, axis, chirp)


def _powers(exponents: Array, count: int, *, inverse: bool) -> Array:
    """Return powers of the root of unity that transforms of ``count`` numbers are made with.

    What is equal, opposite or zero among their parts is so to the bit: they are turned from the first octant.
    """
    octants, rest = np.divmod(8 * (exponents % count), count)
    angles = np.pi / 4 / count * np.where(octants % 2, count - rest, rest)
    near, far = np.cos(angles), np.where(angles < np.pi / 4, np.sin(angles), np.sqrt(0.5))
    near = np.where(angles < np.pi / 4, near, far)
    swapped = (octants + 1) // 2 % 2 == 1
    cosines = np.where(swapped, far, near) * np.where((octants >= 2) & (octants < 6), -1, 1)
    sines = np.where(swapped, near, far) * np.where(octants >= 4, -1, 1)
    return cosines + (1j if inverse else -1j) * sines


def _roots(count: int, *, inverse: bool) -> Array:
    """Return the matrix of a transform of ``count`` numbers."""
    return _powers(np.outer(np.arange(count), np.arange(count)), count, inverse=inverse)


def _multiplied(
    to: Composer, pair: Pair, axis: int, matrix: Array, *, real: bool = False, swapped: bool = False
) -> Pair:
    """Append products of the numbers along an axis and a complex matrix, in their place.

    Only their ``real`` parts, if no others are wanted. The numbers are along the next axis if that is
    ``swapped`` with this one, which happens on the way.
    """
    count, dtype = matrix.shape[1], pair.real.type.dtype
    factor, data = np.concatenate([matrix.real, matrix.imag], 1), pair.real
    if pair.imaginary is not None:
        factor = np.concatenate([factor, np.concatenate([-matrix.imag, matrix.real], 1)])
        data = to.emit("Concat", pair.real, pair.imaginary, axis=axis + swapped)
    data = _swapped(to, data, axis) if swapped else data
    factor = factor[:, :count] if real else factor
    constant = to.builder.constant(factor.astype(dtype.numpy), dtype)
    found = to.product(data, constant, ((axis,), (0,)))
    last = found.type.rank - 1
    found = to.transposed(found, [*range(axis), last, *range(axis, last)])
    if real:
        return Pair(found, None)
    return Pair(to.part(found, axis, 0, count), to.part(found, axis, count, 2 * count))


def _times(to: Composer, pair: Pair, axis: int, factors: Array) -> Pair:
    """Append complex numbers times constants, which lie along an axis and those behind it."""
    dtype, shape = pair.real.type.dtype, pair.real.type.extents
    factors = factors.reshape(factors.shape + (1,) * (len(shape) - axis - factors.ndim))
    real, imaginary = (
        to.stretched(to.builder.constant(part.astype(dtype.numpy), dtype), shape)
        for part in (factors.real, factors.imag)
    )
    by_real, by_imaginary = to.emit("Mul", pair.real, real), to.emit("Mul", pair.real, imaginary)
    if pair.imaginary is None:
        return Pair(by_real, by_imaginary)
    return Pair(
        to.emit("Sub", by_real, to.emit("Mul", pair.imaginary, imaginary)),
        to.emit("Add", by_imaginary, to.emit("Mul", pair.imaginary, real)),
    )


def _mirrored(to: Composer, pair: Pair, axis: int, count: int) -> Pair:
    """Append the whole of a transform of ``count`` real numbers, of which the first half is given."""
    behind = count - pair.real.type.extents[axis]
    if behind <= 0:
        return _each(pair, lambda part: to.part(part, axis, 0, count))

    def whole(part: Value, *, turned: bool) -> Value:
        rest = to.reversed(to.part(part, axis, 1, 1 + behind), (axis,))
        return to.emit("Concat", part, to.emit("Neg", rest) if turned else rest, axis=axis)

    imaginary = pair.imaginary
    return Pair(whole(pair.real, turned=False), None if imaginary is None else whole(imaginary, turned=True))


def _swapped(to: Composer, part: Value, axis: int) -> Value:
    """Append a tensor with an axis and the next one exchanged."""
    return to.transposed(part, [*range(axis), axis + 1, axis, *range(axis + 2, part.type.rank)])


def _part(to: Composer, pair: Pair, axis: int, count: int) -> Pair:
    """Append so many of the numbers along an axis, from the first one on."""
    return _each(pair, lambda part: to.part(part, axis, 0, count))


def _each(pair: Pair, change: Callable[[Value], Value]) -> Pair:
    return Pair(change(pair.real), None if pair.imaginary is None else change(pair.imaginary))
