"""Slices of padded tensors become padded slices, which elementwise operations read without a copy.

A tensor that is padded is a copy of it with margins. Where nothing but slices of that is read, element by
element, each of them is made a slice of the tensor itself with a margin of its own, and the copy is gone:
the nest that reads such a slice reads the tensor, and makes up what lies beyond it (`fusion/nests/elements`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.groups.group import is_identity, vector_dims
from mind_mlir.lowering.schedule.linalg_view.layout import Window, slice_of, static_numbers
from mind_mlir.lowering.schedule.linalg_view.values import erase_source, filler, used
from mind_mlir.mlir.bindings import Operation, Value, ir, tensor
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.values import definition, is_result_of

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.linalg_view.view import Views


def read_through_margins(function: Operation, views: Views) -> None:
    """Let slices of padded tensors be padded slices where elementwise operations read them."""
    for insertion in find_all(function, tensor.InsertSliceOp):
        value = insertion.operation.results[0]
        padded = padded_tensor(value)
        users = dict.fromkeys(use.owner.operation for use in value.uses)
        if padded is None or not all(_reads_slice(op, value, padded, views) for op in users):
            continue
        for op in users:
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(_slice(op, padded))
            op.erase()
        erase_source(value)


def padded_tensor(value: Value) -> Window | None:
    """Return what an `insert_slice` into a filled tensor pads; its last dimension has no margin."""
    op = definition(value)
    if op is None or op.name != "tensor.insert_slice" or len(op.operands) > 2 or not used(value):
        return None
    number, low = filler(op.operands[1]), static_numbers(op, "static_offsets")
    if number is None or low is None or {*(static_numbers(op, "static_strides") or (0,))} != {1}:
        return None
    source = op.operands[0]
    if is_result_of(source, "linalg.copy"):
        source = source.owner.operands[0]
    shape, whole = list(source.type.shape), list(value.type.shape)
    if len(shape) != len(whole) or shape[-1] != whole[-1] or shape == whole:
        return None
    return Window(source, tuple(-each for each in low), number)


def _span(op: Operation, padded: Window) -> list[tuple[int, int]] | None:
    """Return where in the tensor that is padded ``op``, a slice of that within margins, begins and ends."""
    offsets = slice_of(op)
    if offsets is None:
        return None
    dims = zip(offsets, padded.first, op.results[0].type.shape, strict=True)
    return [(offset + first, offset + first + size) for offset, first, size in dims]


def _reads_slice(op: Operation, value: Value, padded: Window, views: Views) -> bool:
    """Return whether ``op`` is a slice of whole rows, read by elementwise operations and nothing else."""
    span = _span(op, padded)
    if span is None or not used(op.results[0]) or op.results[0].type.shape[-1] != value.type.shape[-1]:
        return False
    for (first, end), extent in zip(span, padded.source.type.shape, strict=True):
        if min(end, extent) <= max(first, 0):
            return False  # a slice of a margin
    return all(_is_elementwise(use.owner.operation, op.results[0], views) for use in op.results[0].uses)


def _is_elementwise(op: Operation, value: Value, views: Views) -> bool:
    """Return whether ``op`` reads ``value`` element by element, in vectors along its last dimension."""
    view = views.of(op)
    if view is None or view.reductions or len(view.extents) - 1 not in vector_dims(view):
        return False
    reads = [number for number, operand in enumerate(view.operands) if operand == value]
    rank = len(view.extents)
    computes = len(view.body.operations) > 1  # what copies is a transposition, or moves elements itself
    return computes and all(
        number < len(view.inputs) and is_identity(view.accesses[number], rank) for number in reads
    )


def _slice(op: Operation, padded: Window) -> Value:
    """Return what ``op`` slices out of the padded tensor, as a slice of the tensor within margins."""
    span = _span(op, padded)
    assert span is not None, "looked at before"
    type_ = ir.RankedTensorType(op.results[0].type)
    part, extents = padded.source, padded.source.type.shape
    firsts = [max(first, 0) for first, _ in span]
    ends = [min(end, extent) for (_, end), extent in zip(span, extents, strict=True)]
    sizes = [end - first for first, end in zip(firsts, ends, strict=True)]
    if sizes != list(extents):
        inner = ir.RankedTensorType.get(sizes, type_.element_type)
        part = tensor.ExtractSliceOp(inner, part, [], [], [], firsts, sizes, [1] * len(sizes)).result
    lows = [first - begin for first, (begin, _) in zip(firsts, span, strict=True)]
    highs = [behind - end for end, (_, behind) in zip(ends, span, strict=True)]
    if not any((*lows, *highs)):
        return part
    pad = tensor.PadOp(type_, part, [], [], lows, highs)
    index = ir.IndexType.get()
    block = ir.Block.create_at_start(pad.regions[0], [index] * type_.rank, [op.location] * type_.rank)
    with ir.InsertionPoint(block):
        tensor.YieldOp(padded.margin)
    return pad.results[0]
