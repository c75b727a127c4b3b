"""Tensors of rank 0 and their elements: what a loop carries in a register and what its rules see.

Where control flow is about, rules compute with the elements themselves, so that neither a condition nor a
counter passes through memory. The tensors around them, `tensor.from_elements`, cancel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import arith, ir, tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.mlir.bindings import Operation, Value


def is_element_tensor(value: Value) -> bool:
    """Return whether ``value`` is a tensor of rank 0."""
    type_ = value.type
    return isinstance(type_, ir.RankedTensorType) and type_.rank == 0


def element_of(value: Value) -> Value:
    """Return the element of ``value``, a tensor of rank 0; anything else is returned as it is."""
    if not is_element_tensor(value):
        return value
    if not isinstance(value, ir.BlockArgument):
        owner = value.owner.operation
        if owner.name == "tensor.from_elements":
            return owner.operands[0]
        if owner.name == "arith.constant":
            element = value.type.element_type
            splat = ir.DenseElementsAttr(owner.attributes["value"]).get_splat_value()
            return arith.ConstantOp(element, splat).result
        if owner.name in ("tensor.extract_slice", "tensor.collapse_shape") and len(owner.operands) == 1:
            return _element_at(owner)
    return tensor.ExtractOp(value, []).result


def _element_at(view: Operation) -> Value:
    """Return the one element of ``view``, a part of a tensor at a known place or a tensor of one element."""
    source = view.operands[0]
    offsets = [0] * source.type.rank
    if "static_offsets" in view.attributes:
        offsets = list(ir.DenseI64ArrayAttr(view.attributes["static_offsets"]))
    index = ir.IndexType.get()
    return tensor.ExtractOp(source, [arith.ConstantOp(index, offset).result for offset in offsets]).result


def tensor_of(element: Value) -> Value:
    """Return a tensor of rank 0 that holds ``element``."""
    return tensor.FromElementsOp(ir.RankedTensorType.get([], element.type), [element]).result


def inline(operation: Operation, elements: Sequence[Value]) -> Value:
    """Return the tensor of what linalg ``operation`` without loops yields for ``elements``, and erase it."""
    body = operation.regions[0].blocks[0]
    inside = dict(zip(body.arguments, elements, strict=False))
    for each in body.operations:
        op = each.operation
        operands = [inside.get(operand, operand) for operand in op.operands]
        if op.name == "linalg.yield":
            (result,) = operands
            break
        clone = op.clone().operation
        for number, operand in enumerate(operands):
            clone.operands[number] = operand
        inside |= zip(op.results, clone.results, strict=True)
    operation.erase()
    return tensor_of(result)
