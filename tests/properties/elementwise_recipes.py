"""Recipes of elementwise operations (`recipes`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from growth import Growth, InputDomain

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.opdef import ANY, FLOATS, INTEGERS, NUMERIC, Domain

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.value import Value
    from mind_mlir.ops.opdef import DTypeSet


def binary(opcode: str, dtypes: DTypeSet = NUMERIC) -> Callable[[Growth], Value]:
    def recipe(g: Growth) -> Value:
        left = g.operand(dtypes)
        operands = [left, g.broadcastable(left)]
        if g.flag():
            operands.reverse()
        value = g.emit(opcode, *operands)
        if opcode != "Sub" and all(operand.id in g.positive for operand in operands):
            g.positive.add(value.id)
        return value

    return recipe


def unary(opcode: str) -> Callable[[Growth], Value]:
    return lambda g: g.emit(opcode, g.operand(NUMERIC))


def exp(g: Growth) -> Value:
    value = g.emit("Exp", g.operand(FLOATS))
    g.positive.add(value.id)
    g.inexact.add(value.id)
    return value


def _positive(g: Growth) -> Value:
    """Return a float that is positive, unless the program is wild."""
    if g.wild:
        return g.operand(FLOATS)
    found = g.existing(lambda value: value.id in g.positive and value.type.dtype in FLOATS)
    return found or g.fresh(TensorType(g.dtype(FLOATS), g.shape()), InputDomain(Domain.POSITIVE))


def log(g: Growth) -> Value:
    value = g.emit("Log", _positive(g))
    g.inexact.add(value.id)
    return value


def reciprocal(g: Growth) -> Value:
    operand = _positive(g)
    value = g.emit("Reciprocal", operand)
    if operand.id in g.positive:
        g.positive.add(value.id)
    return value


def root(opcode: str) -> Callable[[Growth], Value]:
    def grow(g: Growth) -> Value:
        operand = _positive(g)
        value = g.emit(opcode, operand)
        if operand.id in g.positive:
            g.positive.add(value.id)
        if opcode != "Sqrt" or operand.id in g.inexact:
            g.inexact.add(value.id)
        return value

    return grow


def inexact(opcode: str) -> Callable[[Growth], Value]:
    def grow(g: Growth) -> Value:
        value = g.emit(opcode, g.operand(FLOATS))
        g.inexact.add(value.id)
        return value

    return grow


def stepped(opcode: str, dtypes: DTypeSet = FLOATS) -> Callable[[Growth], Value]:
    """Return a recipe of a function that jumps: an operand whose last bits are open makes its result open."""

    def grow(g: Growth) -> Value:
        return g.emit(opcode, _exact(g, dtypes))

    return grow


def _exact(g: Growth, dtypes: DTypeSet) -> Value:
    return g.operand(dtypes, wanted=lambda value: value.id not in g.inexact)


def atan2(g: Growth) -> Value:
    # It jumps where the first operand changes its sign.
    left = _exact(g, FLOATS)
    value = g.emit("Atan2", left, g.of_type(left.type, lambda value: value.id not in g.inexact))
    g.inexact.add(value.id)
    return value


def power(g: Growth) -> Value:
    # Of a negative base, whether the exponent is an integer matters.
    left = _exact(g, NUMERIC)
    value = g.emit("Power", left, g.of_type(left.type, lambda value: value.id not in g.inexact))
    if left.type.dtype in FLOATS:
        g.inexact.add(value.id)
    return value


def remainder(g: Growth) -> Value:
    left = _exact(g, FLOATS)  # integers may be divided by zero
    return g.emit("Remainder", left, g.of_type(left.type, lambda value: value.id not in g.inexact))


def clamp(g: Growth) -> Value:
    x = g.operand(NUMERIC)
    return g.emit("Clamp", x, g.of_type(x.type), g.of_type(x.type))


def compare(g: Growth) -> Value:
    # A comparison of values whose last bits are open has an open result.
    left = g.operand(ANY, wanted=lambda value: value.id not in g.inexact)
    right = g.of_type(left.type, lambda value: value.id not in g.inexact)
    op = g.pick(["Less", "LessEqual", "Equal", "GreaterEqual", "Greater", "NotEqual"])
    return g.emit("Compare", left, right, op=op)


def bits(opcode: str, dtypes: DTypeSet) -> Callable[[Growth], Value]:
    def recipe(g: Growth) -> Value:
        left = g.operand(dtypes)
        return g.emit(opcode, left, g.broadcastable(left))

    return recipe


def bits_of_one(opcode: str, dtypes: DTypeSet) -> Callable[[Growth], Value]:
    return lambda g: g.emit(opcode, g.operand(dtypes))


def bitcast(g: Growth) -> Value:
    operand = g.operand(INTEGERS)
    return g.emit("Bitcast", operand, dtype=operand.type.dtype)


def cast(g: Growth) -> Value:
    dtype = g.dtype()
    # Whether the last bits of a float are open makes another integer of it.
    exact = not dtype.is_float
    operand = g.operand(ANY, wanted=lambda value: not (exact and value.id in g.inexact))
    return g.emit("Cast", operand, dtype=dtype)


def select(g: Growth) -> Value:
    pred = g.operand((DType.I1,))
    branch = TensorType(g.dtype(), pred.shape)
    return g.emit("Select", pred, g.of_type(branch), g.of_type(branch))


def dequantize(g: Growth) -> Value:
    x = g.operand((DType.SI32,))
    scale = g.of_type(TensorType(g.dtype(FLOATS)))
    zero = g.of_type(TensorType(DType.SI32))
    return g.accumulated(g.emit("Dequantize", x, scale, zero, output_dtype=g.dtype(FLOATS), axis=()))
