"""Sums of cotangents that go round a loop, where each iteration adds to a small part of a large one.

A slice that an iteration reads of a tensor around its loop has a cotangent of the whole tensor's shape, zero
elsewhere. Adding all of it in each iteration would take time that grows with the square of a scan's length:
what is not zero is added where it belongs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.ops.vjp import VjpContext


def add_into(
    context: VjpContext, total: Value, value: Value, sources: Mapping[ValueId, CoreOperation]
) -> Value:
    """Append ``total + value``, and return it.

    Args:
        context: The loop whose derivative is taken.
        total: The sum so far.
        value: What is added.
        sources: The operations that computed it, by the values that they define.
    """
    parts = [value]
    while parts:
        part = parts.pop()
        source = sources.get(part.id)
        if source is not None and source.opcode == "Add" and _are_of(source, total, sources):
            parts += [Value(each, total.type, context.builder) for each in reversed(source.operands)]
        else:
            window = None if source is None else _window(context, source, sources)
            total = context.emit("Add", total, part) if window is None else _added(context, total, *window)
    return total


def _are_of(addition: CoreOperation, total: Value, sources: Mapping[ValueId, CoreOperation]) -> bool:
    """Return whether what is added is made here, and of the sum's type: nothing is broadcast."""
    found = [sources.get(operand) for operand in addition.operands]
    return all(source is not None and source.result_type == total.type for source in found)


def _window(
    context: VjpContext, source: CoreOperation, sources: Mapping[ValueId, CoreOperation]
) -> tuple[Value, Value] | None:
    """Return the update and the start of a window that is put into zeros, or None where that is not plain."""
    if source.opcode != "DynamicUpdateSlice" or not _is_zero(source.operands[0], sources):
        return None
    found = [(value, sources.get(value)) for value in source.operands[1:]]
    update, start = (
        None if made is None or made.others else Value(value, made.tensor_type, context.builder)
        for value, made in found
    )
    return None if update is None or start is None else (update, start)


def _is_zero(value: ValueId, sources: Mapping[ValueId, CoreOperation]) -> bool:
    """Return whether a value is zero everywhere, as far as that is plain."""
    source = sources.get(value)
    if source is not None and source.opcode == "BroadcastTo":
        source = sources.get(source.operands[0])
    literal = None if source is None or source.operands else source.attributes.get("value")
    return isinstance(literal, TensorLiteral) and not literal.array.any()


def _added(context: VjpContext, total: Value, update: Value, start: Value) -> Value:
    """Append ``total`` with ``update`` added to the window that begins at ``start``."""
    old = context.emit("DynamicSlice", total, start, sizes=update.type.extents)
    return context.emit("DynamicUpdateSlice", total, context.emit("Add", old, update), start)
