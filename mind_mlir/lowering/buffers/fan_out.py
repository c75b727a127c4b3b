"""Tensors that are read many times, prepared for bufferization.

One-shot bufferization looks at all uses of a tensor for each of its uses. A tensor with many uses is given a
name of its own for each of them, where this hides nothing from the analysis because nothing writes its buffer
after it is complete.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from mind_mlir.lowering.buffers.destination import has_many_uses, is_tensor, read_buffer, to_tensor
from mind_mlir.mlir.bindings import func, ir

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.mlir.bindings import Module, Operation


def split_fan_out(module: Module, constants: Iterable[Operation]) -> None:
    """Let no input, constant or complete linalg result have many uses, in place.

    Args:
        module: Functions on tensors in destination-passing form.
        constants: Each `arith.constant` in it.
    """
    for op in constants:
        if is_tensor(op.result.type) and has_many_uses(op.result):
            _repeat_for_each_use(op)
    for function in module.body.operations:
        if not isinstance(function, func.FuncOp):
            continue
        for block in function.regions[0].blocks:
            for op in list(block.operations):
                _split(op.operation)


def _split(op: Operation) -> None:
    if len(op.results) != 1 or not is_tensor(op.result.type) or not has_many_uses(op.result):
        return
    if op.name == "bufferization.to_tensor" and "writable" not in op.attributes:
        _repeat_for_each_use(op)
    elif _is_linalg(op) and _has_own_buffer(op) and all(_only_reads(use) for use in op.result.uses):
        users = [use.owner.operation for use in op.result.uses]
        with ir.InsertionPoint.after(op), op.location:
            buffer = read_buffer(op.result)
        for user in users:
            with ir.InsertionPoint(user), user.location:
                user.replace_uses_of_with(op.result, to_tensor(buffer, op.result.type))


def _repeat_for_each_use(op: Operation) -> None:
    """Give each user of ``op``, which has no effects, an operation of its own."""
    for user in [use.owner.operation for use in op.result.uses]:
        with ir.InsertionPoint(user):
            user.replace_uses_of_with(op.result, op.clone().operation.result)
    op.erase()


def _is_linalg(op: Operation) -> bool:
    return op.name.startswith("linalg.") and "operandSegmentSizes" in op.attributes


def _only_reads(use: Any) -> bool:
    """Return whether ``use`` is as an input of a linalg operation."""
    user = use.owner.operation
    return _is_linalg(user) and use.operand_number < _input_count(user)


def _input_count(op: Operation) -> int:
    return int(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0])


def _has_own_buffer(op: Operation) -> bool:
    """Return whether the result of linalg ``op`` is in a `tensor.empty` that nothing else uses."""
    while _is_linalg(op) and len(op.operands) == _input_count(op) + 1:
        destination = op.operands[_input_count(op)]
        if isinstance(destination, ir.BlockArgument) or len(list(islice(destination.uses, 2))) > 1:
            return False
        op = destination.owner.operation
    return bool(op.name == "tensor.empty")
