"""States of loops in buffers, and sums of cotangents that go round a loop.

A slice that an iteration reads of a tensor around its loop has a cotangent of the whole tensor's shape, zero
elsewhere. Adding all of it in each iteration would take time that grows with the square of a scan's length:
what is not zero is added where it belongs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ir.value import Value
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.ops.vjp import Appends, VjpContext

INDEX = TensorType(DType.SI64)

#: What records take: half of a first-level cache, since each state is written and read again soon.
_RECORD_BYTES = 2**14
#: What the states that are kept take: a part of a second-level cache.
_KEPT_BYTES = 2**18
#: A loop inside of others is given less, down to this, since its buffers are made anew in each iteration.
_INNER_BYTES = 2**13
#: More states make no loop faster.
_MOST = 1024
#: Of large states, whose iterations take long, so many are kept and recorded that loops of thousands of
#: iterations are replayed at most twice, while these buffers take no more bytes than that ...
_MANY_KEPT, _MANY_RECORDED, _LARGE_BYTES = 32, 16, 2**25
#: ... and so many of the largest ones.
_FEWEST_KEPT, _FEWEST_RECORDED = 8, 4


@dataclass(frozen=True, slots=True)
class Room:
    """The numbers of states that there is room for.

    Attributes:
        kept: States from which the loop can be replayed.
        records: States in a row.
    """

    kept: int
    records: int


def state_bytes(types: Iterable[TensorType]) -> int:
    """Return the bytes of one state with parts of ``types``."""
    return sum(type_.element_count * type_.dtype.itemsize for type_ in types)


def room_for(types: Iterable[TensorType], depth: int) -> Room:
    """Return how many states of a loop ``depth`` regions deep are kept."""
    size = max(state_bytes(types), 1)
    kept = max(_KEPT_BYTES >> 4 * depth, _INNER_BYTES)
    records = max(_RECORD_BYTES >> depth, _INNER_BYTES)
    fewest = (_FEWEST_KEPT, _FEWEST_RECORDED)
    if (_MANY_KEPT + _MANY_RECORDED) * size <= _LARGE_BYTES:
        fewest = (_MANY_KEPT, _MANY_RECORDED) if depth == 0 else (_MANY_KEPT // 2, _MANY_RECORDED // 2)
    return Room(
        max(min(kept // size, _MOST), fewest[0]),
        max(min(records // size, _MOST), fewest[1]),
    )


def buffer_type(type_: TensorType, count: int) -> TensorType:
    """Return the type of a buffer for ``count`` tensors of ``type_``, one after the other."""
    return TensorType(type_.dtype, (count * type_.element_count,))


def put(builder: Appends, buffer: Value, value: Value, index: Value) -> Value:
    """Append ``buffer`` with ``value`` at place ``index``."""
    size = value.type.element_count
    row = value if value.type.rank == 1 else builder.emit("Reshape", value, new_shape=(size,))
    return builder.emit("DynamicUpdateSlice", buffer, row, _start(builder, index, size))


def take(
    builder: Appends, buffer: Value, index: Value, type_: TensorType, defines: Value | None = None
) -> Value:
    """Append what stands in ``buffer`` at place ``index``, as the value ``defines`` if given."""
    size = type_.element_count
    row = builder.emit("DynamicSlice", buffer, _start(builder, index, size), sizes=(size,))
    defined = () if defines is None else (defines,)
    return builder.emit_all("Reshape", row, new_shape=type_.extents, defines=defined)[0]


def is_not_negative(builder: Appends, index: Value) -> Value:
    """Append whether ``index`` is 0 or more."""
    return builder.emit("Compare", index, builder.constant(0, DType.SI64), op="GreaterEqual")


def _start(builder: Appends, index: Value, size: int) -> Value:
    first = builder.emit("Mul", index, builder.constant(size, DType.SI64)) if size != 1 else index
    return builder.emit("Reshape", first, new_shape=(1,))


# Sums


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
