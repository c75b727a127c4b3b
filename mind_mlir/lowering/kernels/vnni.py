"""Instructions that add several products of narrow factors to one accumulator.

Factors are words of 32 bits, which hold as many consecutive terms of a sum, the first one lowest. Of terms
that are not there, words hold zeros.

The instruction for bf16 takes subnormal numbers for zeros, and gives zeros for them. So it is called only
where there are none on the way, which is known once factors are packed: each kernel that packs stores the
least magnitude of a number other than zero (`LEAST`). Elsewhere the same words are converted to f32. Both
round after each product, the upper one of a pair first: where both may be called, results are the same bits.

The instruction for bytes takes one factor as unsigned. If none is, the left one is given as 128 more than the
number, and sums start from -128 times the sum of the other factor (`SUMS`). Integers wrap around, so that is
exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import Value, arith, ir

if TYPE_CHECKING:
    from mind_mlir.lowering.kernels.llvm_function import Text
    from mind_mlir.lowering.kernels.llvm_text import TextValue

#: The type of words.
WORD = "i32"

#: Kinds of dot products: pairs of bf16, the same by conversion to f32, pairs of i16, and four bytes each,
#: with signs, and without them on one side.
BF16, WIDENED, I16, I8, U8_I8, I8_U8 = "bf16", "widened", "i16", "i8", "u8i8", "i8u8"

#: What a kernel that packs does besides: it stores the least magnitude, or the least and the greatest one, or
#: -128 times the sums of columns, or adds 128 to each byte.
LEAST, SPREAD, SUMS, RAISED = "least", "spread", "sums", "raised"

#: Intrinsics by kind, without their width, and the elements of their factors.
_INTRINSICS = {
    BF16: ("llvm.x86.avx512bf16.dpbf16ps", "bf16", 2),
    I16: ("llvm.x86.avx512.vpdpwssd", "i16", 2),
    **dict.fromkeys((I8, U8_I8, I8_U8), ("llvm.x86.avx512.vpdpbusd", "i8", 4)),
}

#: The highest bit of each byte of a word: 128 as a number without a sign.
HIGH = 0x80808080 - (1 << 32)
#: The least magnitude of a factor that is all zeros: more than any magnitude less one.
NO_MAGNITUDE = 0xFFFF
#: What is stored before any magnitude is: the least of what `packing_info` notes takes its place.
NOTHING_SEEN = {LEAST: (NO_MAGNITUDE,), SPREAD: (-1, -1)}
#: Bits of the significand of a bf16 in memory.
_MANTISSA = 7
#: Products of numbers whose exponents, as stored, add up to so much are multiples of the least normal f32,
#: 2**-126, and so are their sums: a bf16 is a multiple of its power of two over 2**7.
_LEAST_EXPONENTS = 2 * (127 + _MANTISSA) - 126


def dot_products(t: Text, kind: str, left: TextValue, right: TextValue, sums: TextValue) -> TextValue:
    """Append the accumulators ``sums`` plus the dot products of the words of two vectors."""
    if kind == WIDENED:
        for is_upper in (True, False):
            halves = (each & (-1 << 16) if is_upper else each << 16 for each in (left, right))
            one, other = (each.cast("bitcast", "f32") for each in halves)
            sums = one.multiply_add(other, sums, fma=True)
        return sums
    name, element, vnni = _INTRINSICS[kind]
    pair = (right, left) if kind == I8_U8 else (left, right)
    factors = [each.cast("bitcast", element, vnni * sums.lanes) for each in pair]
    return t.call(f"{name}.{32 * sums.lanes}", [sums, *factors], sums.element, sums.lanes)


def are_normal(left: Value, right: Value) -> Value:
    """Emit whether no product of two bf16, nor any sum of products, is subnormal, and neither is a factor.

    Of both factors the packing info is given, an i32.
    """

    def number(value: int) -> Value:
        return arith.ConstantOp(left.type, ir.IntegerAttr.get(left.type, value)).result

    def at_least(value: Value, least: int) -> Value:
        return arith.CmpIOp(arith.CmpIPredicate.uge, value, number(least)).result

    exponents = [arith.ShRUIOp(info, number(_MANTISSA)).result for info in (left, right)]
    both = arith.AndIOp(*(at_least(each, 1) for each in exponents)).result
    return arith.AndIOp(both, at_least(arith.AddIOp(*exponents).result, _LEAST_EXPONENTS)).result
