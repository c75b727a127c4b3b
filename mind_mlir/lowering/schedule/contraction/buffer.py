"""Memory as kernels take it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.abi import ALIGNMENT
from mind_mlir.bindings import ir

if TYPE_CHECKING:
    from mind_mlir.bindings import Attribute, Operation, Value
    from mind_mlir.lowering.schedule.emission.emitter import Index


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
        type_ = ir.MemRefType(value.type)
        strides, offset = type_.get_strides_and_offset()
        index = ir.IndexType.get()
        numbers = [index] * (1 + 2 * len(strides))
        base_type = ir.MemRefType.get([], type_.element_type, memory_space=type_.memory_space)
        parts = ir.Operation.create("memref.extract_strided_metadata", [base_type, *numbers], [value]).results
        dynamic = offset == ir.ShapedType.get_dynamic_stride_or_offset()
        return Buffer(value, parts[0], parts[1] if dynamic else offset, tuple(strides))


def alignment() -> Attribute:
    """Return the alignment of memory of our own as an attribute of its operation."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ALIGNMENT)


def is_defined_inside(value: Value, ancestor: Operation) -> bool:
    """Return whether ``value`` is defined in a region of ``ancestor``, at any depth."""
    block = value.owner if isinstance(value, ir.BlockArgument) else value.owner.operation.block
    op = block.owner.operation
    while op.name not in ("func.func", "builtin.module"):
        if op == ancestor:
            return True
        op = op.parent.operation
    return False
