"""Conversions between bf16 and f32, of which bf16 is the upper half, as arithmetic on integers.

What is rounded to bf16 to go on as f32, as between two operations, stays an f32 whose lower half is zero, and
what is chosen among such numbers is one already: it is not rounded again.

A quotient of two of them becomes a product with the reciprocal where a loop divides by the same number again
and again. Its bits are those of the division: where rounding to 8 bits is decided, at numbers of 9 bits, a
quotient of two significands of 8 bits is 2**-17 away, relative to itself, and the product is off by 2**-23 at
most. Only quotients that are subnormal may be such a number; f32 is so coarse there that the product is, too.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.emitter import EXACT_ATTRIBUTE, PLAIN_ATTRIBUTE
from mind_mlir.lowering.math import bits as emit
from mind_mlir.mlir.bindings import arith, ir, vector

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Operation, Type, Value
    from mind_mlir.target import Target

#: What the format is called.
SHORT = "bf16"

_BITS = 16
#: Bits of the significand of an f32 in memory: with all of them zero, it is no NaN.
_MANTISSA = 23
_UPPER = 0xFFFF_0000
#: The bit of a significand that makes a NaN quiet.
_QUIET = 0x0040_0000
#: Operations whose result is one of these operands, or that one with another sign.
_CHOICES = {
    "vector.broadcast": (0,),
    "arith.maximumf": (0, 1),
    "arith.minimumf": (0, 1),
    "arith.maxnumf": (0, 1),
    "arith.minnumf": (0, 1),
    "arith.negf": (0,),
    "math.absf": (0,),
    "arith.select": (1, 2),
}
#: Divisors of greater and of lesser magnitude are scaled by a power of two, so that reciprocals are normal.
_GREATEST, _LEAST, _SCALE = 2.0**125, 2.0**-125, 2.0**64
#: Arithmetic whose NaN is one of its operands, quiet, or the processor's own, whose lower half is zero.
_ARITHMETIC = {
    "arith.addf",
    "arith.subf",
    "arith.mulf",
    "arith.divf",
    "arith.negf",
    "math.fma",
    "math.sqrt",
    "math.rsqrt",
    "vector.broadcast",
}
#: Choices in a row that are looked through.
_DEPTH = 8


class ShortFloats:
    """Emits conversions, and knows the numbers of bf16 among the f32 that it has emitted.

    Args:
        target: Says whether one instruction moves halves of numbers within two registers.
    """

    def __init__(self, target: Target) -> None:
        self._moved = target.lanes(_BITS) if target.masks else 0
        self._wide: dict[Value, Value] = {}
        self._exact: set[Value] = set()
        self._plain: dict[Value, bool] = {}
        self._reciprocals: dict[Value, tuple[Value, Value]] = {}

    def widened(self, bits: Value) -> Value:
        """Emit the f32 that the bits of a bf16 are; a NaN keeps its payload."""
        if bits not in self._wide:
            single, word = (emit.like(bits.type, each) for each in (ir.F32Type.get(), emit.integer(32)))
            if self._moves(bits.type):
                count, zero = bits.type.shape[0], ir.IntegerAttr.get(emit.integer(_BITS), 0)
                order = [place for number in range(count) for place in (count, number)]
                halves = vector.ShuffleOp(bits, emit.splat(bits.type, zero), order).result
                number = vector.BitCastOp(single, halves).result
            else:
                number = emit.bitcast(single, emit.shift_left(arith.ExtUIOp(word, bits).result, _BITS))
            self._exact.add(number)
            return number
        return self._wide[bits]

    def narrowed(self, number: Value, type_: Type) -> Value:
        """Emit the bits, of ``type_``, of the bf16 nearest to an f32; NaNs that are rounded become quiet."""
        number = self._multiplied(number)
        word = emit.like(number.type, emit.integer(32))
        bits = emit.bitcast(word, number)
        if not self._is_exact(number):
            rounded = emit.rounded_up(bits, _BITS)
            if not self._is_plain(number):  # else a NaN stays what it is: there is nothing to round up
                is_nan = arith.CmpFOp(arith.CmpFPredicate.UNO, number, number).result
                rounded = arith.SelectOp(is_nan, emit.joined(bits, _QUIET), rounded).result
            bits = emit.masked(rounded, _UPPER)
            number = emit.bitcast(number.type, bits)
            self._exact.add(number)
        if self._moves(type_):
            count = 2 * type_.shape[0]
            halves = vector.BitCastOp(ir.VectorType.get([count], emit.integer(_BITS)), bits).result
            result = vector.ShuffleOp(halves, halves, list(range(1, count, 2))).result
        else:
            result = arith.TruncIOp(type_, emit.shift_right(bits, _BITS)).result
        self._wide[result] = number
        return result

    def _moves(self, type_: Type) -> bool:
        """Return whether ``type_`` is whole registers of bf16, whose elements an instruction moves."""
        is_row = isinstance(type_, ir.VectorType) and type_.rank == 1 and not type_.scalable
        return is_row and self._moved > 0 and type_.shape[0] % self._moved == 0

    def _multiplied(self, number: Value) -> Value:
        """Return ``number`` or, for a quotient by what its loop does not change, what rounds to the same."""
        op = None if isinstance(number.owner, ir.Block) else number.owner.operation
        if op is None or op.name != "arith.divf" or not all(self._is_exact(each) for each in op.operands):
            return number
        dividend, divisor = op.operands
        if isinstance(divisor.owner, ir.Block) or divisor.owner.operation.block == op.block:
            return number
        scale, reciprocal = self._reciprocal(divisor)
        return arith.MulFOp(arith.MulFOp(dividend, scale).result, reciprocal).result

    def _reciprocal(self, divisor: Value) -> tuple[Value, Value]:
        """Emit, behind ``divisor``, a power of two and the reciprocal of the product of the two."""
        if divisor not in self._reciprocals:
            with ir.InsertionPoint.after(divisor.owner.operation):
                one, up, down, greatest, least = (
                    emit.number_of(divisor.type, each)
                    for each in (1.0, _SCALE, 1 / _SCALE, _GREATEST, _LEAST)
                )
                magnitude = emit.masked(
                    emit.bitcast(emit.like(divisor.type, emit.integer(32)), divisor), (1 << 31) - 1
                )
                magnitude = emit.bitcast(divisor.type, magnitude)
                is_tiny = arith.CmpFOp(arith.CmpFPredicate.OLT, magnitude, least).result
                is_huge = arith.CmpFOp(arith.CmpFPredicate.OGT, magnitude, greatest).result
                scale = arith.SelectOp(is_huge, down, arith.SelectOp(is_tiny, up, one).result).result
                scaled = arith.MulFOp(divisor, scale).result
                self._reciprocals[divisor] = scale, arith.DivFOp(one, scaled).result
        return self._reciprocals[divisor]

    def _is_plain(self, number: Value) -> bool:
        """Return whether ``number``, if it is a NaN, is a quiet one whose lower half is zero for certain."""
        if number not in self._plain:
            self._plain[number] = self._is_plain_result(number)
        return self._plain[number]

    def _is_plain_result(self, number: Value) -> bool:
        if isinstance(number.owner, ir.Block):
            return False
        op = number.owner.operation
        if op.name == "arith.constant":
            return _is_short(op.attributes["value"]) or not _is_nan(op.attributes["value"])
        if PLAIN_ATTRIBUTE in op.attributes or EXACT_ATTRIBUTE in op.attributes:
            return True  # what was kept was rounded before
        if op.name in _ARITHMETIC or _is_function(op):
            return all(self._is_plain(each) or each in self._exact for each in op.operands)
        if op.name in _CHOICES:
            return all(self._is_plain(op.operands[place]) for place in _CHOICES[op.name])
        return op.name == "arith.bitcast" and _is_shifted(op.operands[0])

    def _is_exact(self, number: Value, depth: int = _DEPTH) -> bool:
        """Return whether ``number`` is for certain an f32 whose lower half is zero."""
        if number in self._exact:
            return True
        if isinstance(number.owner, ir.Block) or depth == 0:
            return False
        op = number.owner.operation
        if op.name == "arith.constant":
            return _is_short(op.attributes["value"])
        if EXACT_ATTRIBUTE in op.attributes:
            return True
        places = _CHOICES.get(op.name, ())
        return bool(places) and all(self._is_exact(op.operands[place], depth - 1) for place in places)


def _is_function(op: Operation) -> bool:
    """Return whether ``op`` calls one of the functions of `lowering.vector_math`, which are arithmetic."""
    return op.name == "llvm.call" and str(op.attributes["callee"]).startswith(("@mind.", '@"mind.'))


def _is_shifted(bits: Value) -> bool:
    """Return whether integers have been moved up by so much that their lower half is zero, and no NaN's."""
    if isinstance(bits.owner, ir.Block) or bits.owner.operation.name != "arith.shli":
        return False
    count = bits.owner.operation.operands[1]
    if isinstance(count.owner, ir.Block) or count.owner.operation.name != "arith.constant":
        return False
    attribute = count.owner.operation.attributes["value"]
    if isinstance(attribute, ir.DenseIntElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return isinstance(attribute, ir.IntegerAttr) and attribute.value >= _MANTISSA


def _is_short(attribute: ir.Attribute) -> bool:
    """Return whether a constant, of one number, is one of bf16."""
    value = _number(attribute)
    return value is not None and _has_short_bits(value)


def _is_nan(attribute: ir.Attribute) -> bool:
    """Return whether a constant may be a NaN."""
    value = _number(attribute)
    return value is None or math.isnan(value)


def _number(attribute: ir.Attribute) -> float | None:
    if isinstance(attribute, ir.DenseFPElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return float(attribute.value) if isinstance(attribute, ir.FloatAttr) else None


def _has_short_bits(value: float) -> bool:
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return bits % (1 << _BITS) == 0
