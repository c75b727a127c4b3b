"""Prepares for bufferization tensors that are read many times, or put together from many parts.

One-shot bufferization looks at all uses of a tensor for each of its uses. A tensor with many uses is given a
name of its own for each of them, where this hides nothing from the analysis because nothing writes its buffer
after it is complete.

The time that one-shot bufferization takes for a chain of in-place updates grows with the cube of its length.
A long chain of insertions, each into the result of the one before, which nothing else sees, is bufferized
here: its parts are materialized in one buffer.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from mind_mlir.lowering.buffers.aliases import input_count
from mind_mlir.lowering.buffers.destination import (
    buffer_type,
    create_alloc,
    has_many_uses,
    is_tensor,
    read_buffer,
    to_tensor,
)
from mind_mlir.mlir.bindings import func, ir
from mind_mlir.mlir.values import is_result_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.mlir.bindings import Module, Operation, Type, Value


def split_fan_out(module: Module, constants: Iterable[Operation]) -> None:
    """Let no input, none of the ``constants`` and no complete linalg result have many uses, in place.

    The functions of ``module`` are on tensors in destination-passing form.
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
    return _is_linalg(user) and use.operand_number < input_count(user)


def _has_own_buffer(op: Operation) -> bool:
    """Return whether the result of linalg ``op`` is in a `tensor.empty` that nothing else uses."""
    while _is_linalg(op) and len(op.operands) == input_count(op) + 1:
        destination = op.operands[input_count(op)]
        if isinstance(destination, ir.BlockArgument) or len(list(islice(destination.uses, 2))) > 1:
            return False
        op = destination.owner.operation
    return bool(op.name == "tensor.empty")


_LONG = 16


def bufferize_insert_chains(insertions: Iterable[Operation]) -> None:
    """Bufferize the long chains of ``insertions``, each a `tensor.insert_slice`, in place."""
    chains: dict[Value, list[Operation]] = {}  # by their result so far
    for op in insertions:
        part, whole = op.operands[0], op.operands[1]
        if not (part.type.rank == whole.type.rank and whole.type.has_static_shape):
            continue
        chain = chains.pop(whole) if whole in chains and _is_link(chains[whole][-1], op) else []
        chain.append(op)
        chains[op.result] = chain
    for chain in chains.values():
        if len(chain) >= _LONG:
            _bufferize(chain)


def _is_link(previous: Operation, op: Operation) -> bool:
    """Return whether only ``op`` sees the result of ``previous``."""
    return previous.block == op.block and len(list(islice(previous.result.uses, 2))) == 1


def _bufferize(chain: list[Operation]) -> None:
    first, last = chain[0], chain[-1]
    whole = first.operands[1]
    with first.location, ir.InsertionPoint(first):
        buffer = create_alloc(buffer_type(whole.type))
        if not is_result_of(whole, "tensor.empty"):
            _materialize(whole, buffer)
    for op in chain:
        with op.location, ir.InsertionPoint(op):
            _materialize(op.operands[0], _part(buffer, op))
    with last.location, ir.InsertionPoint(last):
        last.result.replace_all_uses_with(to_tensor(buffer, whole.type, writable=True))
    for op in reversed(chain):
        op.erase()


def _materialize(value: Value, buffer: Value) -> None:
    attributes = {"writable": ir.UnitAttr.get()}
    ir.Operation.create("bufferization.materialize_in_destination", [], [value, buffer], attributes)


def _part(buffer: Value, insertion: Operation) -> Value:
    """Return the part of ``buffer`` that ``insertion`` writes."""
    given = insertion.attributes
    segments = list(ir.DenseI32ArrayAttr(given["operandSegmentSizes"]))
    attributes = {name: given[name] for name in ("static_offsets", "static_sizes", "static_strides")}
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, *segments[2:]])
    offsets, steps = (list(ir.DenseI64ArrayAttr(given[f"static_{name}"])) for name in ("offsets", "strides"))
    type_ = _part_type(insertion.operands[0].type, buffer.type, offsets, steps)
    operands = [buffer, *list(insertion.operands)[2:]]
    return ir.Operation.create("memref.subview", [type_], operands, attributes).result


def _part_type(part: Type, whole: Type, offsets: list[int], steps: list[int]) -> Type:
    """Return the type of the view of ``whole`` at ``offsets``, in ``steps``, with the shape of ``part``."""
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    row_major, _ = whole.get_strides_and_offset()
    start = 0
    strides = []
    for offset, step, stride in zip(offsets, steps, row_major, strict=True):
        start = dynamic if dynamic in (start, offset) else start + offset * stride
        strides.append(dynamic if step == dynamic else step * stride)
    layout = ir.StridedLayoutAttr.get(start, strides)
    return ir.MemRefType.get(part.shape, part.element_type, layout=layout)
