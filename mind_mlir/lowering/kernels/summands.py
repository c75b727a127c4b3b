"""Floats as sums of bf16, for tiles to multiply: of three where they are f32, of two where they are f16.

A summand is what is left of a number, rounded to bf16. So the first one has its upper 8 bits, and all of
them together are the number exactly: three times 8 bits are the 24 of f32. A product of two numbers is the
products of their summands (`PRODUCTS`); those that are left out, of the second one by the third and smaller
ones, are at most 2**-24 of it, half of its last bit.

Tiles take subnormal numbers for zeros, and infinity less infinity is NaN. So packing notes the least and the
greatest magnitude, and tiles multiply only where nothing is lost and nothing overflows (`are_near`). A number
for which that is never so is packed as its bits: the upper half, the lower one, and `_BITS` in the place of
the third summand, if there is one. So what is multiplied elsewhere is the number that was packed (`joined`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mind_mlir.lowering.kernels.vnni import WORD
from mind_mlir.mlir.bindings import Value, arith, ir

if TYPE_CHECKING:
    from mind_mlir.lowering.kernels.llvm_text import TextValue

Array: TypeAlias = npt.NDArray[Any]

#: Which summands are multiplied, of the left factor and the right one, by how many there are. The largest
#: products are added last, and each pair has one in common with the one before it, which stays in registers.
PRODUCTS = {
    1: ((0, 0),),
    2: ((1, 0), (1, 1), (0, 1), (0, 0)),
    3: ((2, 0), (1, 0), (1, 1), (0, 1), (0, 2), (0, 0)),
}

#: Bits of an f32, but for the sign, and the upper half of a word.
_MAGNITUDE, _UPPER = 0x7FFFFFFF, -1 << 16
_MANTISSA = 23
#: The least and the greatest exponents, as stored, of numbers that are sums of normal bf16. 32 leaves 8 bits
#: below the last one of the number; a greater one than 253 may be rounded to infinity.
_LEAST, _GREATEST = 24 + 8, 253
#: What the least exponents of both factors add up to at least: each operation on tiles may lose what is less
#: than the least normal number, 18 of them for a product, which is 2**-27 of the least product then.
_LEAST_SUM = 2 * 127 - 126 + 24 + 8
#: What the greatest ones add up to at most: no sum of fewer than 2**30 products overflows.
_GREATEST_SUM = 2 * 127 + 127 - 32
#: What stands for the third summand of a number that is packed as its bits: a NaN.
_BITS = 0x7FFF


def split(value: TextValue, summands: int) -> list[TextValue]:
    """Append so many bf16 that add up to a vector of f32, each in the upper half of a word of zeros."""
    bits = value.cast("bitcast", WORD)
    magnitude = bits & _MAGNITUDE
    # Less one: zero, the greatest of all then, is a sum like any other.
    is_small = (magnitude + -1).compare("ult", (_LEAST << _MANTISSA) - 1)
    is_apart = is_small | magnitude.compare("uge", (_GREATEST + 1) << _MANTISSA)
    upper = (is_apart.select(bits, bits + 0x8000)) & _UPPER
    found, rest = [upper], value - upper.cast("bitcast", "f32")
    lower = bits << 16
    for _ in range(summands - 2):
        following = (rest.cast("bitcast", WORD) + 0x8000) & _UPPER
        found.append(is_apart.select(lower, following))
        rest = rest - following.cast("bitcast", "f32")
        lower = lower.like(_BITS << 16)
    return [*found, is_apart.select(lower, rest.cast("bitcast", WORD))]


def packed_summands(array: Array, summands: int) -> Array:
    """Return words of ``array[...][line][term]``, f32, lines of summands side by side, and packing info."""
    bits = array.view(np.uint32)
    magnitude = bits & np.uint32(_MAGNITUDE)
    bounds = np.array([_LEAST, _GREATEST + 1], np.uint32) << _MANTISSA
    is_apart = ((magnitude < bounds[0]) & (magnitude > 0)) | (magnitude >= bounds[1])
    found, rest = [], np.where(is_apart, np.float32(0), array)
    for _ in range(summands):
        upper = (rest.view(np.uint32) + np.uint32(0x8000)) & np.uint32(0xFFFF0000)
        found.append(upper >> 16)
        rest = rest - upper.view(np.float32)
    raw = bits >> 16, bits & np.uint32(0xFFFF), np.full_like(bits, _BITS)
    halves = [np.where(is_apart, *each).astype(np.uint16) for each in zip(raw, found, strict=False)]
    words = np.ascontiguousarray(np.stack(halves, axis=-3)).view(np.int32).reshape(-1)
    least = (magnitude - np.uint32(1)).min(initial=0xFFFFFFFF)
    info = np.array([least, ~magnitude.max(initial=0)], np.uint32).view(np.int32)
    return np.concatenate([words, info])


def can_be_split(array: Array) -> bool:
    """Return whether tiles may multiply all numbers of a factor, as far as these alone tell."""
    magnitude = array.astype(np.float32, copy=False).view(np.uint32) & np.uint32(_MAGNITUDE)
    least = (magnitude - np.uint32(1)).min(initial=0xFFFFFFFF)
    return bool(least >> _MANTISSA >= _LEAST and magnitude.max(initial=0) >> _MANTISSA <= _GREATEST)


def joined(summands: list[TextValue]) -> TextValue:
    """Append the f32 that `split` took apart."""
    total, *others = (each.cast("bitcast", "f32") for each in summands)
    for each in others:
        total = total + each
    if len(summands) < 3:
        return total
    is_apart = summands[2].compare("eq", _BITS << 16)
    return is_apart.select((summands[0] | summands[1] >> 16).cast("bitcast", "f32"), total)


def seen(value: TextValue) -> list[TextValue]:
    """Append of what packing info is the least: magnitudes of f32 less one, and these with all bits inverted.

    Zero less one is the greatest of all, and the greatest magnitude is the least inverted one.
    """
    magnitude = value.cast("bitcast", WORD) & _MAGNITUDE
    return [magnitude + -1, magnitude ^ -1]


def are_near(left: list[Value], right: list[Value]) -> Value:
    """Emit whether tiles may multiply two factors, of which the packing info is given."""

    def number(value: int) -> Value:
        return arith.ConstantOp(left[0].type, ir.IntegerAttr.get(left[0].type, value)).result

    def exponent(info: Value) -> Value:
        return arith.ShRUIOp(info, number(_MANTISSA)).result

    leasts, greatests = [], []
    for least, inverted in (left, right):
        leasts.append(exponent(least))
        greatests.append(exponent(arith.XOrIOp(inverted, number(-1)).result))
    more, less = arith.CmpIPredicate.uge, arith.CmpIPredicate.ule
    flags = [arith.CmpIOp(more, each, number(_LEAST)).result for each in leasts]
    flags += [arith.CmpIOp(less, each, number(_GREATEST)).result for each in greatests]
    for both, predicate, bound in ((leasts, more, _LEAST_SUM), (greatests, less, _GREATEST_SUM)):
        flags.append(arith.CmpIOp(predicate, arith.AddIOp(*both).result, number(bound)).result)
    found = flags[0]
    for each in flags[1:]:
        found = arith.AndIOp(found, each).result
    return found
