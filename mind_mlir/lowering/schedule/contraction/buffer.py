"""Memory as kernels take it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.emitter import PRIVATE_ATTRIBUTE
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.memory import metadata_of
from mind_mlir.target.abi import ALIGNMENT

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.mlir.bindings import Attribute, Type, Value


@dataclasses.dataclass(frozen=True)
class Buffer:
    """A buffer as kernels take it.

    Attributes:
        value: The whole of it.
        base: The pointer to its elements, a memref of rank 0.
        first: Where it starts there, in elements.
        strides: Its strides in elements.
    """

    value: Value
    base: Value
    first: Index
    strides: tuple[int, ...]

    @staticmethod
    def of(value: Value) -> Buffer:
        """Emit what says where ``value`` lies."""
        base, first, strides = metadata_of(value)
        return Buffer(value, base, first, tuple(strides))


def memory_of_piece(type_: Type, *, is_shared: bool) -> Value:
    """Emit memory of ``type_`` for one piece of a product: of its thread, where threads share the pieces."""
    attributes: dict[str, Attribute] = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}
    if not is_shared:
        return ir.Operation.create("memref.alloc", [type_], [], attributes).result
    alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ALIGNMENT)
    attributes |= {"alignment": alignment, PRIVATE_ATTRIBUTE: ir.UnitAttr.get()}
    return ir.Operation.create("memref.alloca", [type_], [], attributes).result
