"""The derivative of all scatters: the gradient at the place of each update, none for those without one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.ir.types import DType
from mind_mlir.ops.products import product_of_others
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.rules import DerivativeRule
    from mind_mlir.ops.vjp import VjpContext

#: Appends, of a scatter, the elements of a value of the operand's shape at the places of the updates, and the
#: number where there is no place.
Read: TypeAlias = "Callable[[VjpContext, Value, float], Value]"


def scatter_vjp(opcode: str, read: Read) -> DerivativeRule:
    """Return the derivative rule of a scatter.

    Args:
        opcode: The scatter itself, which combines other values at the same places.
        read: The gather that reads from these places.
    """

    def rule(context: VjpContext) -> Sequence[Value | None]:
        if 0 in context.operands[2].shape or 0 in context.operands[0].shape:
            zeros = context.zeros(context.operands[2].type) if context.needs[2] else None
            return context.cotangent if context.needs[0] else None, None, zeros
        rules = {"Add": _add, "Mul": _mul, "Replace": _replace, "Max": _extreme, "Min": _extreme}
        places = _Places(context, opcode, read)
        operand, updates = rules[context.attributes.get("reduce", "Add")](context, places)
        return operand, None, updates

    return rule


@dataclass(frozen=True, slots=True)
class _Places:
    """The places of the updates, to read and to write."""

    context: VjpContext
    opcode: str
    reads: Read

    def read(self, value: Value, outside: float) -> Value:
        """Append the elements of ``value``, of the operand's shape; ``outside`` where there is no place."""
        return self.reads(self.context, value, outside)

    def write(self, reduce: str, operand: Value, updates: Value) -> Value:
        """Append the same scatter of other values, of another kind."""
        attributes = {**self.context.attributes, "reduce": reduce}
        return self.context.emit(self.opcode, operand, self.context.operands[1], updates, **attributes)


def _add(context: VjpContext, places: _Places) -> tuple[Value | None, Value | None]:
    return (
        context.cotangent if context.needs[0] else None,
        places.read(context.cotangent, 0) if context.needs[2] else None,
    )


def _replace(context: VjpContext, places: _Places) -> tuple[Value | None, Value | None]:
    operand, _, updates = context.operands
    zeros = context.zeros(updates.type)
    kept = places.write("Replace", context.cotangent, zeros) if context.needs[0] else None
    if not context.needs[2]:
        return kept, None
    # Which update each place has in the end, by its number; along an axis, those of one place differ in it.
    shape, axis = updates.type.extents, context.attributes.get("axis")
    counted = (math.prod(shape),) if axis is None else shape
    numbers = context.emit("Iota", shape=counted, dtype=DType.SI64, axis=axis or 0)
    if axis is None:
        numbers = context.emit("Reshape", numbers, new_shape=shape)
    last = places.write("Replace", context.zeros(operand.type.with_dtype(DType.SI64)), numbers)
    won = context.emit("Compare", places.read(last, -1), numbers, op="Equal")
    return kept, context.emit("Select", won, places.read(context.cotangent, 0), zeros)


def _extreme(context: VjpContext, places: _Places) -> tuple[Value | None, Value | None]:
    operand, _, updates = context.operands
    dtype = operand.type.dtype
    is_kept = context.emit("Compare", operand, context.result, op="Equal")
    is_taken = context.emit("Compare", updates, places.read(context.result, math.nan), op="Equal")
    count = places.write("Add", context.cast(is_kept, dtype), context.cast(is_taken, dtype))
    # Where the result is NaN it equals nothing, and the share of none is no number.
    share = context.emit("Mul", context.cotangent, context.emit("Reciprocal", count))
    return (
        context.emit("Select", is_kept, share, context.zeros(operand.type)) if context.needs[0] else None,
        context.emit("Select", is_taken, places.read(share, 0), context.zeros(updates.type))
        if context.needs[2]
        else None,
    )


def _mul(context: VjpContext, places: _Places) -> tuple[Value | None, Value | None]:
    operand, _, updates = context.operands
    dtype = operand.type.dtype
    is_zero = [
        context.emit("Compare", value, context.zeros(value.type), op="Equal") for value in (operand, updates)
    ]
    one = context.scalar(1.0)
    ones = [
        context.emit("BroadcastTo", one, result_shape=value.shape) if value.type.rank else one
        for value in (operand, updates)
    ]
    zeros = places.write("Add", *(context.cast(each, dtype) for each in is_zero))
    factors = (
        context.emit("Select", zero, factor, value)
        for zero, factor, value in zip(is_zero, ones, (operand, updates), strict=True)
    )
    product = places.write("Mul", *factors)

    def others(value: Value, at: int, product: Value, zeros: Value, cotangent: Value) -> Value:
        numbers = (ones[at], context.zeros(value.type))
        found = product_of_others(context, (value, is_zero[at]), (product, zeros), numbers)
        return context.emit("Mul", cotangent, found)

    read = [places.read(each, 0) for each in (product, zeros, context.cotangent)] if context.needs[2] else []
    return (
        others(operand, 0, product, zeros, context.cotangent) if context.needs[0] else None,
        others(updates, 1, read[0], read[1], read[2]) if context.needs[2] else None,
    )
