"""States of loops in buffers: how many fit, and how they are written and read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType, TensorType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import Appends

INDEX = TensorType(DType.SI64)

#: What the buffers of one loop may take: as much as a second-level cache holds. A loop inside of another one
#: is given less, since its buffers are made anew in each iteration of that one.
_BYTES = 2**20
_INNER_BYTES = 2**14
#: More states make no loop faster; fewer would make long loops slow, however large a state is.
_MOST = 1024
_FEWEST_KEPT, _FEWEST_RECORDED = 8, 4


@dataclass(frozen=True, slots=True)
class Room:
    """How many states there is room for.

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
    budget = max(_BYTES >> 4 * depth, _INNER_BYTES)
    count = min(budget // 2 // max(state_bytes(types), 1), _MOST)
    return Room(max(count, _FEWEST_KEPT), max(count, _FEWEST_RECORDED))


def put(builder: Appends, buffer: Value, value: Value, index: Value) -> Value:
    """Append ``buffer`` with ``value`` at place ``index``."""
    row = builder.emit("Reshape", value, new_shape=(1, *value.shape))
    return builder.emit("DynamicUpdateSlice", buffer, row, *_starts(builder, index, value.type.rank))


def take(
    builder: Appends, buffer: Value, index: Value, type_: TensorType, defines: Value | None = None
) -> Value:
    """Append what stands in ``buffer`` at place ``index``; ``defines`` is the value to be, if there is one."""
    starts = _starts(builder, index, type_.rank)
    row = builder.emit("DynamicSlice", buffer, *starts, sizes=(1, *type_.extents))
    defined = () if defines is None else (defines,)
    return builder.emit_all("Reshape", row, new_shape=type_.extents, defines=defined)[0]


def is_not_negative(builder: Appends, index: Value) -> Value:
    """Append whether ``index`` is 0 or more."""
    return builder.emit("Compare", index, builder.constant(0, DType.SI64), op="GreaterEqual")


def _starts(builder: Appends, index: Value, rank: int) -> list[Value]:
    zero = [builder.constant(0, DType.SI64)] if rank else []
    return [index, *zero * rank]
