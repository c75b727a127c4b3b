"""Emits arithmetic on floats and on their bits, on scalars and on vectors alike."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from mind_mlir.bindings import arith, ir, math

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.bindings import Attribute, Type, Value


class FloatEmitter:
    """Emits arithmetic on one type, f32, f64 or a vector of either, and on integers of the same width.

    Everything is rounded on its own, but for `fma` where the target fuses; constants are emitted once.

    Args:
        type_: The type of the floats.
        fma: Whether multiplication and addition are fused.
    """

    def __init__(self, type_: Type, *, fma: bool) -> None:
        self._type = type_
        self._fma = fma
        self._vector = isinstance(type_, ir.VectorType)
        self._element = type_.element_type if self._vector else type_
        self._integer = ir.IntegerType.get_signless(self._element.width)
        self._bits = ir.VectorType.get(type_.shape, self._integer) if self._vector else self._integer
        self._constants: dict[tuple[Type, int], Value] = {}

    def number(self, value: float) -> Value:
        """Emit a constant, rounded to the format."""
        return self._constant(self._type, self.bits_of(value), ir.FloatAttr.get(self._element, value))

    def integer(self, value: int) -> Value:
        """Emit a constant integer."""
        return self._constant(self._bits, value, ir.IntegerAttr.get(self._integer, value))

    def _constant(self, type_: Type, bits: int, attribute: Attribute) -> Value:
        key = (type_, bits)
        if key not in self._constants:
            value = ir.DenseElementsAttr.get_splat(type_, attribute) if self._vector else attribute
            self._constants[key] = arith.ConstantOp(type_, value).result
        return self._constants[key]

    def bits_of(self, value: float) -> int:
        """Return the bits of ``value``, rounded to the format."""
        code = {32: "<f", 64: "<d"}[self._element.width]
        return int.from_bytes(struct.pack(code, value), "little")

    def bits(self, x: Value) -> Value:
        """Emit the bits of a float, as an integer."""
        return arith.BitcastOp(self._bits, x).result

    def float_of(self, bits: Value) -> Value:
        """Emit the float that has these bits."""
        return arith.BitcastOp(self._type, bits).result

    def add(self, x: Value, y: Value) -> Value:
        """Emit a sum of floats."""
        return arith.AddFOp(x, y).result

    def subtract(self, x: Value, y: Value) -> Value:
        """Emit a difference of floats."""
        return arith.SubFOp(x, y).result

    def multiply(self, x: Value, y: Value) -> Value:
        """Emit a product of floats."""
        return arith.MulFOp(x, y).result

    def divide(self, x: Value, y: Value) -> Value:
        """Emit a quotient of floats."""
        return arith.DivFOp(x, y).result

    def fma(self, x: Value, y: Value, z: Value) -> Value:
        """Emit ``x * y + z``, rounded once where the target fuses, else twice."""
        # On other targets a fused multiply-add is a call of libm.
        return math.FmaOp(x, y, z).result if self._fma else self.add(self.multiply(x, y), z)

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """Emit a polynomial of ``x`` by Horner's rule; coefficients are given lowest power first."""
        *lower, highest = coefficients
        total = self.number(highest)
        for coefficient in reversed(lower):
            total = self.fma(total, x, self.number(coefficient))
        return total

    def less(self, x: Value, y: Value) -> Value:
        """Emit ``x < y``, which is false for NaN."""
        return arith.CmpFOp(arith.CmpFPredicate.OLT, x, y).result

    def equal(self, x: Value, y: Value) -> Value:
        """Emit ``x == y``, which is false for NaN."""
        return arith.CmpFOp(arith.CmpFPredicate.OEQ, x, y).result

    def not_less_equal(self, x: Value, y: Value) -> Value:
        """Emit ``not x <= y``, which is true for NaN."""
        return arith.CmpFOp(arith.CmpFPredicate.UGT, x, y).result

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        """Emit ``x`` where the condition holds, else ``y``."""
        return arith.SelectOp(condition, x, y).result

    def add_bits(self, x: Value, y: Value) -> Value:
        """Emit a sum of integers, which wraps around."""
        return arith.AddIOp(x, y).result

    def subtract_bits(self, x: Value, y: Value) -> Value:
        """Emit a difference of integers, which wraps around."""
        return arith.SubIOp(x, y).result

    def and_bits(self, x: Value, y: Value) -> Value:
        """Emit the bits that both integers have."""
        return arith.AndIOp(x, y).result

    def or_bits(self, x: Value, y: Value) -> Value:
        """Emit the bits that either integer has."""
        return arith.OrIOp(x, y).result

    def shift_left(self, x: Value, places: int) -> Value:
        """Emit an integer with its bits moved up; those that leave at the top are dropped."""
        return arith.ShLIOp(x, self.integer(places)).result

    def shift_right(self, x: Value, places: int) -> Value:
        """Emit an integer with its bits moved down; zeros enter at the top."""
        return arith.ShRUIOp(x, self.integer(places)).result
