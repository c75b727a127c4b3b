"""Instructions that add several products of narrow factors to one accumulator: what they take and compute.

Factors are words of 32 bits, which hold as many consecutive terms of a sum, the first one lowest. Of terms
that are not there, words hold zeros.

The instruction for bf16 takes subnormal numbers for zeros, and gives zeros for them. So it is called only
where there are none on the way, which is known once factors are packed: each kernel that packs stores the
least magnitude of a number other than zero (`LEAST`). Elsewhere the same words are converted to f32. Both
round after each product, the upper one of a pair first: where both may be called, results are the same bits.

The instruction for bytes takes one factor as unsigned. It is given 128 more than the number, and sums start
from -128 times the sum of the other factor (`SUMS`). Integers wrap around, so that is exact.
"""

from __future__ import annotations

from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import Text, vector
from mind_mlir.mlir.bindings import Value, arith, ir

#: The type of words.
WORD = "i32"

#: Kinds of dot products: pairs of bf16, the same by conversion to f32, pairs of i16, and four bytes each.
BF16, WIDENED, I16, I8 = "bf16", "widened", "i16", "i8"

#: What a kernel that packs does besides: it stores the least magnitude, or -128 times the sums of columns, or
#: adds 128 to each byte.
LEAST, SUMS, RAISED = "least", "sums", "raised"

#: Intrinsics by kind, without their width, and the elements of their factors.
_INTRINSICS = {
    BF16: ("llvm.x86.avx512bf16.dpbf16ps", "bf16", 2),
    I16: ("llvm.x86.avx512.vpdpwssd", "i16", 2),
    I8: ("llvm.x86.avx512.vpdpbusd", "i8", 4),
}

#: The least magnitude of a factor that is all zeros: more than any magnitude less one.
NO_MAGNITUDE = 0xFFFF
#: Bits of the significand of a bf16 in memory.
_MANTISSA = 7
#: Products of numbers whose exponents, as stored, add up to so much are multiples of the least normal f32,
#: 2**-126, and so are their sums: a bf16 is a multiple of its power of two over 2**7.
_LEAST_EXPONENTS = 2 * (127 + _MANTISSA) - 126


def dot_products(t: Text, kind: str, left: str, right: str, sums: str, lanes: int) -> str:
    """Append the accumulators ``sums`` plus the dot products of the words of two vectors."""
    words, floats = vector(lanes, WORD), vector(lanes, "f32")
    if kind == WIDENED:
        for half in (_upper, _lower):
            factors = [
                t.op(f"llvm.bitcast {half(t, each, words)} : {words} to {floats}") for each in (left, right)
            ]
            operands = ", ".join((*factors, sums))
            sums = t.op(f"llvm.intr.fma({operands}) : ({floats}, {floats}, {floats}) -> {floats}")
        return sums
    name, element, vnni = _INTRINSICS[kind]
    narrow = vector(vnni * lanes, element)
    factors = [t.op(f"llvm.bitcast {each} : {words} to {narrow}") for each in (left, right)]
    result = floats if kind == BF16 else words
    return t.op(
        f'llvm.call_intrinsic "{name}.{32 * lanes}"({", ".join((sums, *factors))})'
        f" : ({result}, {narrow}, {narrow}) -> {result}"
    )


def _upper(t: Text, word: str, type_: str) -> str:
    return t.binary("and", word, t.constant(f"dense<{-1 << 16}>", type_), type_)


def _lower(t: Text, word: str, type_: str) -> str:
    return t.binary("shl", word, t.constant("dense<16>", type_), type_)


def magnitudes(t: Text, words: str, lanes: int) -> str:
    """Append the magnitudes, less one, of words of bf16: zero less one is the greatest number of all."""
    type_ = vector(2 * lanes, "i16")
    halves = t.op(f"llvm.bitcast {words} : {vector(lanes, WORD)} to {type_}")
    magnitude = t.binary("and", halves, t.constant(f"dense<{0x7FFF}>", type_), type_)
    return t.binary("add", magnitude, t.constant("dense<-1>", type_), type_)


def least(t: Text, left: str, right: str, lanes: int) -> str:
    """Append the lesser of `magnitudes`."""
    type_ = vector(2 * lanes, "i16")
    return t.op(f"llvm.intr.umin({left}, {right}) : ({type_}, {type_}) -> {type_}")


def are_normal(left: Value, right: Value) -> Value:
    """Emit whether no product of two bf16, nor any sum of products, is subnormal, and neither is a factor.

    Args:
        left: The packing info of one factor, an i32.
        right: That of the other one.
    """

    def at_least(value: Value, least: int) -> Value:
        limit = arith.ConstantOp(value.type, ir.IntegerAttr.get(value.type, least)).result
        return arith.CmpIOp(arith.CmpIPredicate.uge, value, limit).result

    def exponent(info: Value) -> Value:
        shift = arith.ConstantOp(info.type, ir.IntegerAttr.get(info.type, _MANTISSA)).result
        return arith.ShRUIOp(info, shift).result

    exponents = [exponent(info) for info in (left, right)]
    both = arith.AndIOp(*(at_least(each, 1) for each in exponents)).result
    return arith.AndIOp(both, at_least(arith.AddIOp(*exponents).result, _LEAST_EXPONENTS)).result
