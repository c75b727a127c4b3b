"""Fourier transforms as products with matrices of roots of unity.

A short transform is one product. A long one of `n = n1 * n2` numbers is transforms of `n1` numbers, factors,
and transforms of `n2` numbers, each of them many products at once; one of a long prime length is a
convolution, which transforms of a length without large factors make (Bluestein). Real and imaginary parts go
apart, so that all of it is products, sums and moves of real tensors.
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

#: A transform of at most so many numbers is one product.
_SHORT = 64
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
    rank, count = pair.real.type.rank, pair.real.type.extents[axis]
    if count == 1:
        return pair
    if _is_product(count):
        found = _multiplied(to, pair, axis, _roots(count, inverse=inverse)[:, :kept], real=real)
    else:
        order = [*(each for each in range(rank) if each != axis), axis]
        last = _each(pair, lambda part: to.transposed(part, order))
        found = _long(to, last, inverse=inverse, kept=kept, real=real)
    back = [*range(axis), rank - 1, *range(axis, rank - 1)]
    return _each(found, lambda part: to.transposed(part, back))


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


def _long(to: Composer, pair: Pair, *, inverse: bool, kept: int | None = None, real: bool = False) -> Pair:
    """Append the transform along the last axis (see `transformed`)."""
    *outer, count = pair.real.type.extents
    rank, first = len(outer), _factor(count)
    if _is_product(count):
        return _multiplied(to, pair, rank, _roots(count, inverse=inverse)[:, :kept], real=real)
    if first is None:
        found = _convolved(to, pair, inverse=inverse)
        return found if kept is None else _each(found, lambda part: to.part(part, rank, 0, kept))
    second = count // first
    apart = _each(pair, lambda part: to.reshaped(part, (*outer, first, second)))
    # f[..., n2, k1], from f[..., n1, n2]
    if _is_product(first):
        turned = _multiplied(to, apart, rank, _roots(first, inverse=inverse))
    else:
        turned = _long(to, _swapped(to, apart), inverse=inverse)
    steps = np.outer(np.arange(second), np.arange(first))
    turned = _times(to, turned, _powers(steps, count, inverse=inverse))
    if not _is_product(second):
        found = _in_order(to, _long(to, _swapped(to, turned), inverse=inverse, real=real))
        return found if kept is None else _each(found, lambda part: to.part(part, rank, 0, kept))
    roots = _roots(second, inverse=inverse)
    if kept is None:
        return _in_order(to, _multiplied(to, turned, rank, roots, real=real))
    # Of each k1 only the first k2 are wanted; of the one behind these, that of the first k1 alone, if any.
    columns, others = divmod(kept, first)
    columns += others > 1
    found = _in_order(to, _multiplied(to, turned, rank, roots[:, :columns], real=real))
    if others > 1:
        return _each(found, lambda part: to.part(part, rank, 0, kept))
    if not others:
        return found
    column = _each(turned, lambda part: to.part(part, rank + 1, 0, 1))
    last = _in_order(to, _multiplied(to, column, rank, roots[:, columns : columns + 1], real=real))
    return _both(found, last, lambda one, other: to.emit("Concat", one, other, axis=rank))


def _in_order(to: Composer, found: Pair) -> Pair:
    """Append f[..., k1, k2], of which k1 counts fastest, as f[..., k]."""
    *outer, first, second = found.real.type.extents
    return _each(_swapped(to, found), lambda part: to.reshaped(part, (*outer, first * second)))


def _convolved(to: Composer, pair: Pair, *, inverse: bool) -> Pair:
    """Append the transform along the last axis as a convolution with roots of unity of the squares."""
    rank, count = pair.real.type.rank, pair.real.type.extents[-1]
    length = 1 << (2 * count - 2).bit_length()
    chirp = _powers(np.arange(count) ** 2, 2 * count, inverse=inverse)
    around = np.zeros(length, np.complex128)
    around[:count] = chirp.conj()
    around[length - count + 1 :] = chirp[:0:-1].conj()
    last, zeros = rank - 1, [0] * rank
    behind = [length - count if axis == last else 0 for axis in range(rank)]
    wide = _each(_times(to, pair, chirp), lambda part: to.padded(part, zeros, behind, zeros, 0))
    product_ = _times(to, _long(to, wide, inverse=False), np.fft.fft(around) / length)
    found = _each(_long(to, product_, inverse=True), lambda part: to.part(part, last, 0, count))
    return _times(to, found, chirp)


def _powers(exponents: Array, count: int, *, inverse: bool) -> Array:
    """Return powers of the root of unity that transforms of ``count`` numbers are made with."""
    angles = 2 * np.pi / count * (exponents % count)
    return np.cos(angles) + (1j if inverse else -1j) * np.sin(angles)


def _roots(count: int, *, inverse: bool) -> Array:
    """Return the matrix of a transform of ``count`` numbers."""
    return _powers(np.outer(np.arange(count), np.arange(count)), count, inverse=inverse)


def _multiplied(to: Composer, pair: Pair, axis: int, matrix: Array, *, real: bool = False) -> Pair:
    """Append products of the numbers along an axis and a complex matrix, in the place of the last axis.

    Only their ``real`` parts, if no others are wanted.
    """
    count, dtype = matrix.shape[1], pair.real.type.dtype
    factor, data = np.concatenate([matrix.real, matrix.imag], 1), pair.real
    if pair.imaginary is not None:
        factor = np.concatenate([factor, np.concatenate([-matrix.imag, matrix.real], 1)])
        data = to.emit("Concat", pair.real, pair.imaginary, axis=axis)
    factor = factor[:, :count] if real else factor
    constant = to.builder.constant(factor.astype(dtype.numpy), dtype)
    found = to.product(data, constant, ((axis,), (0,)))
    if real:
        return Pair(found, None)
    last = found.type.rank - 1
    return Pair(to.part(found, last, 0, count), to.part(found, last, count, 2 * count))


def _times(to: Composer, pair: Pair, factors: Array) -> Pair:
    """Append complex numbers times constants, whose shape is that of the last axes."""
    dtype = pair.real.type.dtype
    real, imaginary = (
        to.stretched(to.builder.constant(part.astype(dtype.numpy), dtype), pair.real.shape)
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


def _swapped(to: Composer, pair: Pair) -> Pair:
    rank = pair.real.type.rank
    order = (*range(rank - 2), rank - 1, rank - 2)
    return _each(pair, lambda part: to.transposed(part, order))


def _both(one: Pair, other: Pair, join: Callable[[Value, Value], Value]) -> Pair:
    imaginary = None
    if one.imaginary is not None and other.imaginary is not None:
        imaginary = join(one.imaginary, other.imaginary)
    return Pair(join(one.real, other.real), imaginary)


def _each(pair: Pair, change: Callable[[Value], Value]) -> Pair:
    return Pair(change(pair.real), None if pair.imaginary is None else change(pair.imaginary))
