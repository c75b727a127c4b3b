"""The derivative of ScatterWindows: the gradient at the place of each update, and none for those without one.

What lies at the places of the updates is read with GatherWindows from a tensor that has a margin all around,
as wide as a window: so an update without a place reads what the margin is filled with.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType
from mind_mlir.ops.window_gather import stretched
from mind_mlir.ops.window_numbers import GATHER, SCATTER, WindowNumbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import VjpContext


def scatter_windows_vjp(context: VjpContext) -> Sequence[Value | None]:
    """Derivative rule."""
    if 0 in context.operands[2].shape or 0 in context.operands[0].shape:
        zeros = context.zeros(context.operands[2].type) if context.needs[2] else None
        return context.cotangent, None, zeros
    places = _Places(context)
    rules = {"Add": _add, "Mul": _mul, "Replace": _replace, "Max": _extreme, "Min": _extreme}
    operand, updates = rules[context.attributes["reduce"]](context, places)
    return operand, None, updates


class _Places:
    """Reads and writes at the places of the updates."""

    def __init__(self, context: VjpContext) -> None:
        self._c = context
        operand, _, updates = (value.type.extents for value in context.operands)
        self._windows = WindowNumbers.of(SCATTER, context.attributes, operand, updates)

    def read(self, value: Value, outside: float) -> Value:
        """Append the elements of ``value``, of the operand's shape; ``outside`` where there is no place."""
        context, windows = self._c, self._windows
        attributes, indices = context.attributes, context.operands[1]
        names = ("windows", "thin", "batched", "indices_batched", "indexed")
        form = {getattr(GATHER, name): attributes[getattr(SCATTER, name)] for name in names}
        margin = tuple(size if dim in windows.indexed else 0 for dim, size in enumerate(windows.sizes))
        checked: bool = attributes["checked"]
        if windows.indexed and not checked:
            fill = TensorLiteral.of(outside, value.type.dtype)
            between = (0,) * len(margin)
            value = context.emit("Pad", value, low=margin, high=margin, interior=between, pad_value=fill)
            indices = self._in_margin(indices)
        vector_dim = attributes["index_vector_dim"]
        more = {"index_vector_dim": vector_dim, "slice_sizes": windows.sizes, "checked": checked}
        return context.emit("GatherWindows", value, indices, **form, **more)

    def _in_margin(self, indices: Value) -> Value:
        """Append the index vectors in the tensor with the margin."""
        context, windows, dtype = self._c, self._windows, indices.type.dtype
        shape = [1] * indices.type.rank
        if windows.vector_dim < indices.type.rank:
            shape[windows.vector_dim] = len(windows.indexed)
        sizes = np.array([windows.sizes[dim] for dim in windows.indexed])
        extents = np.array([windows.operand[dim] for dim in windows.indexed])
        for opcode, numbers in (("Maximum", -sizes), ("Minimum", extents), ("Add", sizes)):
            constant = context.builder.constant(numbers.astype(dtype.numpy).reshape(shape), dtype)
            indices = context.emit(opcode, *stretched(context.emit, indices, constant))
        return indices

    def write(self, reduce: str, operand: Value, updates: Value) -> Value:
        """Append the same scatter of other values, of another kind."""
        attributes = {**self._c.attributes, "reduce": reduce}
        return self._c.emit("ScatterWindows", operand, self._c.operands[1], updates, **attributes)


def _add(context: VjpContext, places: _Places) -> tuple[Value | None, Value | None]:
    return context.cotangent, places.read(context.cotangent, 0) if context.needs[2] else None


def _replace(context: VjpContext, places: _Places) -> tuple[Value | None, Value | None]:
    operand, _, updates = context.operands
    zeros = context.zeros(updates.type)
    kept = places.write("Replace", context.cotangent, zeros) if context.needs[0] else None
    if not context.needs[2]:
        return kept, None
    # Which update each place has in the end, by its number.
    count, shape = math.prod(updates.type.extents), updates.type.extents
    numbers = context.emit("Iota", shape=(count,), dtype=DType.SI64, axis=0)
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
        """Append the cotangent times the product of all factors of an element but ``value``."""
        nothing = context.zeros(value.type)
        quotient = context.emit("Mul", product, context.emit("Reciprocal", value))
        if_zero = context.emit("Compare", zeros, ones[at], op="Equal")
        if_other = context.emit("Compare", zeros, nothing, op="Equal")
        found = context.emit(
            "Select",
            is_zero[at],
            context.emit("Select", if_zero, product, nothing),
            context.emit("Select", if_other, quotient, nothing),
        )
        return context.emit("Mul", cotangent, found)

    read = [places.read(each, 0) for each in (product, zeros, context.cotangent)] if context.needs[2] else []
    return (
        others(operand, 0, product, zeros, context.cotangent) if context.needs[0] else None,
        others(updates, 1, read[0], read[1], read[2]) if context.needs[2] else None,
    )
