"""Fourier transforms as products with matrices of roots of unity.

A short transform is one product. A long one of `n = n1 * n2` numbers is transforms of `n1` numbers, factors,
and transforms of `n2` numbers, each of them many products at once; one of a long prime length is a
convolution, which transforms of a length without large factors make (Bluestein). Real and imaginary parts go
apart, so that all of it is products, sums and moves of real tensors.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mind_mlir.languages.stablehlo.rules.contracting import product
from mind_mlir.languages.stablehlo.rules.use import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.languages.stablehlo.rules.use import Use

#: A transform of at most so many numbers is one product.
_SHORT = 64
#: One of a prime length is a product up to here.
_LONGEST_PRIME = 256


class Pair(NamedTuple):
    """Complex numbers in two tensors, of real and of imaginary parts; None where these are zero."""

    real: Value
    imaginary: Value | None


def _fft(use: Use) -> Value:
    (operand,) = use.operands
    kind, lengths = use.keyword("fft_type"), use.integers("fft_length")
    rank, shape = operand.type.rank, use.result_type().extents
    if 0 in shape or 0 in operand.shape:
        return use.full(0, use.result_type())
    last, others = rank - 1, range(rank - len(lengths), rank - 1)
    pair = Pair(operand, None) if kind == "RFFT" else Pair(*use.parts(operand))
    inverse = kind in ("IFFT", "IRFFT")
    if kind != "IRFFT":
        pair = transformed(use, pair, last, inverse=inverse)
    if kind == "RFFT":
        pair = _each(pair, lambda part: use.part(part, last, 0, shape[last]))
    for axis in others:
        pair = transformed(use, pair, axis, inverse=inverse)
    if kind == "IRFFT":
        mirrored = _mirrored(use, pair, last, lengths[-1])
        return _scaled(use, transformed(use, mirrored, last, inverse=True).real, math.prod(lengths))
    if inverse:
        pair = _each(pair, lambda part: _scaled(use, part, math.prod(lengths)))
    imaginary = use.like(0, pair.real) if pair.imaginary is None else pair.imaginary
    return use.complex_of(pair.real, imaginary)


def transformed(use: Use, pair: Pair, axis: int, *, inverse: bool) -> Pair:
    """Append the transform along an axis, without the factor of the inverse one."""
    rank, count = pair.real.type.rank, pair.real.type.extents[axis]
    if count == 1:
        return pair
    if _is_product(count):
        found = _multiplied(use, pair, axis, _roots(count, inverse=inverse))
    else:
        order = [*(each for each in range(rank) if each != axis), axis]
        found = _long(use, _each(pair, lambda part: use.transposed(part, order)), inverse=inverse)
    back = [*range(axis), rank - 1, *range(axis, rank - 1)]
    return _each(found, lambda part: use.transposed(part, back))


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


def _long(use: Use, pair: Pair, *, inverse: bool) -> Pair:
    """Append the transform along the last axis."""
    *outer, count = pair.real.type.extents
    if _is_product(count):
        return _multiplied(use, pair, len(outer), _roots(count, inverse=inverse))
    first = _factor(count)
    if first is None:
        return _convolved(use, pair, inverse=inverse)
    second, rank = count // first, len(outer)
    apart = _each(pair, lambda part: use.reshaped(part, (*outer, first, second)))
    # f[..., n2, k1], from f[..., n1, n2]
    if _is_product(first):
        turned = _multiplied(use, apart, rank, _roots(first, inverse=inverse))
    else:
        turned = _long(use, _swapped(use, apart), inverse=inverse)
    steps = np.outer(np.arange(second), np.arange(first))
    turned = _times(use, turned, _powers(steps, count, inverse=inverse))
    if _is_product(second):
        found = _multiplied(use, turned, rank, _roots(second, inverse=inverse))
    else:
        found = _long(use, _swapped(use, turned), inverse=inverse)
    # f[..., k1, k2], of which k1 counts fastest
    return _each(_swapped(use, found), lambda part: use.reshaped(part, (*outer, count)))


def _convolved(use: Use, pair: Pair, *, inverse: bool) -> Pair:
    """Append the transform along the last axis as a convolution with roots of unity of the squares."""
    rank, count = pair.real.type.rank, pair.real.type.extents[-1]
    length = 1 << (2 * count - 2).bit_length()
    chirp = _powers(np.arange(count) ** 2, 2 * count, inverse=inverse)
    around = np.zeros(length, np.complex128)
    around[:count] = chirp.conj()
    around[length - count + 1 :] = chirp[:0:-1].conj()
    last, zeros = rank - 1, [0] * rank
    behind = [length - count if axis == last else 0 for axis in range(rank)]
    wide = _each(_times(use, pair, chirp), lambda part: use.padded(part, zeros, behind, zeros, 0))
    product_ = _times(use, _long(use, wide, inverse=False), np.fft.fft(around) / length)
    found = _each(_long(use, product_, inverse=True), lambda part: use.part(part, last, 0, count))
    return _times(use, found, chirp)


def _powers(exponents: Array, count: int, *, inverse: bool) -> Array:
    """Return powers of the root of unity that transforms of ``count`` numbers are made with."""
    angles = 2 * np.pi / count * (exponents % count)
    return np.cos(angles) + (1j if inverse else -1j) * np.sin(angles)


def _roots(count: int, *, inverse: bool) -> Array:
    """Return the matrix of a transform of ``count`` numbers."""
    return _powers(np.outer(np.arange(count), np.arange(count)), count, inverse=inverse)


def _multiplied(use: Use, pair: Pair, axis: int, matrix: Array) -> Pair:
    """Append products of the numbers along an axis and a complex matrix, in the place of the last axis."""
    count, dtype = matrix.shape[1], pair.real.type.dtype
    factor, data = np.concatenate([matrix.real, matrix.imag], 1), pair.real
    if pair.imaginary is not None:
        factor = np.concatenate([factor, np.concatenate([-matrix.imag, matrix.real], 1)])
        data = use.emit("Concat", pair.real, pair.imaginary, axis=axis)
    constant = use.builder.constant(factor.astype(dtype.numpy), dtype)
    found = product(use, data, constant, dtype, ((axis,), (0,)))
    last = found.type.rank - 1
    return Pair(use.part(found, last, 0, count), use.part(found, last, count, 2 * count))


def _times(use: Use, pair: Pair, factors: Array) -> Pair:
    """Append complex numbers times constants, whose shape is that of the last axes."""
    dtype = pair.real.type.dtype
    real, imaginary = (
        use.stretched(use.builder.constant(part.astype(dtype.numpy), dtype), pair.real.shape)
        for part in (factors.real, factors.imag)
    )
    by_real, by_imaginary = use.emit("Mul", pair.real, real), use.emit("Mul", pair.real, imaginary)
    if pair.imaginary is None:
        return Pair(by_real, by_imaginary)
    return Pair(
        use.emit("Sub", by_real, use.emit("Mul", pair.imaginary, imaginary)),
        use.emit("Add", by_imaginary, use.emit("Mul", pair.imaginary, real)),
    )


def _mirrored(use: Use, pair: Pair, axis: int, count: int) -> Pair:
    """Append the whole of a transform of ``count`` real numbers, of which the first half is given."""
    behind = count - pair.real.type.extents[axis]
    if behind <= 0:
        return _each(pair, lambda part: use.part(part, axis, 0, count))

    def whole(part: Value, *, turned: bool) -> Value:
        rest = use.reversed(use.part(part, axis, 1, 1 + behind), (axis,))
        return use.emit("Concat", part, use.emit("Neg", rest) if turned else rest, axis=axis)

    imaginary = pair.imaginary
    return Pair(whole(pair.real, turned=False), None if imaginary is None else whole(imaginary, turned=True))


def _scaled(use: Use, value: Value, count: int) -> Value:
    return use.emit("Mul", value, use.like(1 / count, value))


def _swapped(use: Use, pair: Pair) -> Pair:
    rank = pair.real.type.rank
    order = (*range(rank - 2), rank - 1, rank - 2)
    return _each(pair, lambda part: use.transposed(part, order))


def _each(pair: Pair, change: Callable[[Value], Value]) -> Pair:
    return Pair(change(pair.real), None if pair.imaginary is None else change(pair.imaginary))


RULES: Mapping[str, Rule] = {"stablehlo.fft": Rule(_fft)}
