"""Emits arithmetic on the bits of scalars and vectors, which constants are given the shape of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.mlir.bindings import arith, ir

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Type, Value


def element_of(type_: Type) -> Type:
    """Return the type of the elements of a vector, or a scalar type as it is."""
    return type_.element_type if isinstance(type_, ir.VectorType) else type_


def like(type_: Any, element: Type) -> Type:
    """Return the scalar or vector type of ``element`` that has the shape of ``type_``."""
    if not isinstance(type_, ir.VectorType):
        return element
    return ir.VectorType.get(type_.shape, element, scalable=type_.scalable_dims if type_.scalable else None)


def integer(bits: int) -> Type:
    """Return the type of integers of so many bits."""
    return ir.IntegerType.get_signless(bits)


def word(type_: Any, value: int) -> Value:
    """Emit a constant of 32 bits."""
    attribute = ir.IntegerAttr.get(element_of(type_), value - (1 << 32) if value >= 1 << 31 else value)
    return splat(type_, attribute)


def number_of(type_: Any, value: float) -> Value:
    """Emit a constant float."""
    return splat(type_, ir.FloatAttr.get(element_of(type_), value))


def splat(type_: Any, attribute: Any) -> Value:
    """Emit a constant, the same in all lanes."""
    if isinstance(type_, ir.VectorType):
        attribute = ir.DenseElementsAttr.get_splat(type_, attribute)
    return arith.ConstantOp(type_, attribute).result


def bitcast(type_: Type, value: Value) -> Value:
    """Emit the bits of ``value`` as a ``type_``."""
    return arith.BitcastOp(type_, value).result


def plus(value: Value, number: int) -> Value:
    """Emit the sum with a number, modulo 2**32."""
    return arith.AddIOp(value, word(value.type, number)).result


def masked(value: Value, mask: int) -> Value:
    """Emit the bits of ``value`` that ``mask`` has, too."""
    return arith.AndIOp(value, word(value.type, mask)).result


def joined(value: Value, other: Value | int) -> Value:
    """Emit the bits that either has."""
    return arith.OrIOp(value, word(value.type, other) if isinstance(other, int) else other).result


def shift_left(value: Value, count: int) -> Value:
    """Emit the bits moved up."""
    return arith.ShLIOp(value, word(value.type, count)).result


def shift_right(value: Value, count: int) -> Value:
    """Emit the bits moved down, with zeros above."""
    return arith.ShRUIOp(value, word(value.type, count)).result


def select(predicate: str, value: Value, limit: int, chosen: Value, other: Value) -> Value:
    """Emit ``chosen`` where ``value``, as a signed number, compares so with ``limit``, else ``other``."""
    compared = arith.CmpIOp(getattr(arith.CmpIPredicate, predicate), value, word(value.type, limit)).result
    return arith.SelectOp(compared, chosen, other).result


def magnitude_of(value: Value) -> Value:
    """Emit the magnitude of an f64."""
    bits = like(value.type, integer(64))
    mask = splat(bits, ir.IntegerAttr.get(integer(64), (1 << 63) - 1))
    return bitcast(value.type, arith.AndIOp(bitcast(bits, value), mask).result)


def rounded_up(bits: Value, shift: int) -> Value:
    """Emit what makes a shift to the right round to nearest even: half, less one if the last bit is even.

    The opposite of that is subtracted: AVX-512 makes it of the bits moved down in one instruction.
    """
    odd = masked(shift_right(bits, shift), 1)
    less = arith.XOrIOp(odd, word(bits.type, (1 << 32) + 1 - (1 << (shift - 1)))).result
    return arith.SubIOp(bits, less).result
