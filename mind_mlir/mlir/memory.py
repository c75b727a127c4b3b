"""The layout of memory by memref types, and the buffers that memrefs are views of."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.mlir.bindings import Type, Value

#: Operations that compute a view of their first operand, and access no memory.
VIEWS = (
    "memref.assume_alignment",
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.reinterpret_cast",
    "memref.subview",
    "memref.transpose",
    "memref.view",
)
#: What says where a view lies, for calls of kernels.
METADATA = "memref.extract_strided_metadata"


def reinterpreted(buffer: Value, type_: Type) -> Value:
    """Emit ``buffer`` seen as a memref ``type_`` of static shape, strides and offset."""
    memref = ir.MemRefType(type_)
    strides, offset = memref.get_strides_and_offset()
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
        "static_offsets": ir.DenseI64ArrayAttr.get([offset]),
        "static_sizes": ir.DenseI64ArrayAttr.get(memref.shape),
        "static_strides": ir.DenseI64ArrayAttr.get(strides),
    }
    return ir.Operation.create("memref.reinterpret_cast", [type_], [buffer], attributes).result


def reshaped_type(type_: Type, shape: Sequence[int]) -> Type | None:
    """Return the memref type of the memory of ``type_`` in another ``shape``; None if gaps leave none."""
    strides, offset = type_.get_strides_and_offset()
    if ir.ShapedType.get_dynamic_stride_or_offset() in (offset, *strides) or 0 in type_.shape:
        return None
    pieces: list[tuple[int, int]] = []  # equal steps and their stride, from the inside out
    for extent, stride in zip(reversed(type_.shape), reversed(strides), strict=True):
        if pieces and stride == math.prod(pieces[-1]):
            pieces[-1] = pieces[-1][0] * extent, pieces[-1][1]
        elif extent != 1:
            pieces.append((extent, stride))
    found: list[int] = []
    left, step = 1, 1
    for extent in reversed(shape):
        if left == 1 and extent != 1:
            left, step = pieces.pop(0)
        if left % extent:
            return None
        found.append(step)
        left, step = left // extent, step * extent
    layout = ir.StridedLayoutAttr.get(offset, found[::-1])
    new = ir.MemRefType.get(list(shape), type_.element_type, layout, type_.memory_space)
    is_identity = is_row_major(new) and not offset
    return ir.MemRefType.get(new.shape, new.element_type, None, new.memory_space) if is_identity else new


def metadata_of(value: Value) -> tuple[Value, Value | int, list[Value | int]]:
    """Emit where the buffer ``value`` lies, as kernels are told.

    Returns:
        The pointer to its elements, a memref of rank 0; where it starts there, in elements; its strides in
        elements. What is known is an integer.
    """
    type_ = ir.MemRefType(value.type)
    strides, offset = type_.get_strides_and_offset()
    numbers = [ir.IndexType.get()] * (1 + 2 * len(strides))
    base = ir.MemRefType.get([], type_.element_type, memory_space=type_.memory_space)
    parts = ir.Operation.create(METADATA, [base, *numbers], [value]).results
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    found, *steps = (
        part if known == dynamic else known
        for part, known in zip([parts[1], *list(parts)[2 + len(strides) :]], [offset, *strides], strict=True)
    )
    return parts[0], found, steps


def is_contiguous(type_: Type) -> bool:
    """Return whether memref type ``type_`` is of static shape, row-major, without gaps and offset."""
    return bool(type_.has_static_shape) and isinstance(type_.layout, ir.AffineMapAttr)


def is_row_major(type_: Type) -> bool:
    """Return whether memref type ``type_`` is of static shape, row-major and without gaps, at any offset."""
    return bool(type_.has_static_shape) and outer_rank(type_) == 0


def outer_rank(type_: Type) -> int:
    """Return how many first dimensions of a memref type of static shape step over gaps.

    What the other dimensions span lies together in memory, row-major.
    """
    strides, _ = type_.get_strides_and_offset()
    expected = 1
    for axis in reversed(range(type_.rank)):
        if type_.shape[axis] != 1 and strides[axis] != expected:
            return axis + 1
        expected *= type_.shape[axis]
    return 0


def byte_size(type_: Type) -> int:
    """Return the size in bytes of a memref type without gaps.

    Raises:
        ValueError: An extent is dynamic.
    """
    if not type_.has_static_shape:
        raise ValueError(f"a temporary buffer needs static extents: {type_}")
    return int(math.prod(type_.shape)) * element_bytes(type_.element_type)


def element_bytes(type_: Type) -> int:
    """Return the bytes that an element occupies in memory: i1 takes one, like numpy's bool."""
    if isinstance(type_, ir.IndexType):
        return 8
    if isinstance(type_, ir.ComplexType):
        return 2 * element_bytes(type_.element_type)
    if isinstance(type_, ir.VectorType):
        return int(math.prod(type_.shape)) * element_bytes(type_.element_type)
    return (int(type_.width) + 7) // 8


def bytes_of(value: Value) -> int:
    """Return the bytes that a tensor takes; none for any other value."""
    type_ = value.type
    if not isinstance(type_, ir.RankedTensorType):
        return 0
    return int(math.prod(type_.shape)) * element_bytes(type_.element_type)


def root_of(value: Value) -> Value | None:
    """Return the buffer that ``value`` is a view of, or None if that is not known.

    A buffer is an allocation, a global or an argument of a function.
    """
    while not isinstance(value, ir.BlockArgument):
        owner = value.owner.operation
        if owner.name in ("memref.alloc", "memref.get_global"):
            return value
        if owner.name not in VIEWS:
            return None
        value = owner.operands[0]
    return value if value.owner.owner.operation.name == "func.func" else None


def views_of(root: Value) -> list[Value]:
    """Return ``root`` and all views of it, each before those that are made of it."""
    found = [root]
    for value in found:
        found += [use.owner.results[0] for use in value.uses if use.owner.operation.name in VIEWS]
    return found


def erase_unread(value: Value) -> bool:
    """Erase what makes the memref ``value``, with its views; return False, and leave it, if it is read."""
    op = value.owner.operation
    for user in [use.owner.operation for use in value.uses]:
        if user.name not in (*VIEWS, METADATA) or not erase_unread(user.results[0]):
            return False
    if any(True for result in op.results for _ in result.uses):
        return False
    op.erase()
    return True
