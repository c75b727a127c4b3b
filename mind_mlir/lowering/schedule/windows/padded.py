"""Slices of padded tensors become padded slices, which elementwise operations read without a copy.

A tensor that is padded is a copy of it with margins. Where nothing but slices of that is read, element by
element, each of them is made a slice of the tensor itself with a margin of its own, and the copy is gone:
the nest that reads such a slice reads the tensor, and makes up what lies beyond it (`fusion/nests/elements`).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.groups.group import is_identity, vector_dims
from mind_mlir.lowering.schedule.linalg_view.layout import slice_of, static_numbers
from mind_mlir.lowering.schedule.linalg_view.values import filler, used
from mind_mlir.mlir.bindings import Operation, Value, ir, tensor
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.linalg_view.view import Views

_REMOVABLE = ("tensor.insert_slice", "tensor.extract_slice", "tensor.pad", "linalg.copy", "linalg.fill")


@dataclasses.dataclass(frozen=True)
class Padded:
    """A tensor within margins.

    Attributes:
        value: The tensor with its margins.
        source: The tensor.
        low: How much lies before it in each dimension.
        margin: What the margins are filled with.
    """

    value: Value
    source: Value
    low: tuple[int, ...]
    margin: Value


def read_through_margins(function: Operation, views: Views) -> None:
    """Let slices of padded tensors be padded slices where elementwise operations read them."""
    for insertion in find_all(function, tensor.InsertSliceOp):
        padded = padded_tensor(insertion.operation)
        if padded is None or not all(
            _reads_slice(use.owner.operation, padded, views) for use in padded.value.uses
        ):
            continue
        for op in dict.fromkeys(use.owner.operation for use in padded.value.uses):
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(_slice(op, padded))
            op.erase()
        erase_unused(insertion.operation)


def padded_tensor(insertion: Operation) -> Padded | None:
    """Return what an `insert_slice` into a filled tensor pads; its last dimension has no margin."""
    if len(insertion.operands) > 2 or not used(insertion.results[0]):
        return None
    number, low = filler(insertion.operands[1]), static_numbers(insertion, "static_offsets")
    strides = static_numbers(insertion, "static_strides")
    copy = definition(insertion.operands[0])
    if number is None or low is None or strides is None or {*strides} != {1}:
        return None
    source = insertion.operands[0]
    if copy is not None and copy.name == "linalg.copy":
        source = copy.operands[0]
    shape, whole = list(source.type.shape), list(insertion.results[0].type.shape)
    if len(shape) != len(whole) or shape[-1] != whole[-1] or shape == whole:
        return None
    return Padded(insertion.results[0], source, low, number)


def _reads_slice(op: Operation, padded: Padded, views: Views) -> bool:
    """Return whether ``op`` is a slice of whole rows, read by elementwise operations and nothing else."""
    offsets = slice_of(op) if op.name == "tensor.extract_slice" else None
    if offsets is None or not used(op.results[0]):
        return False
    shape = op.results[0].type.shape
    if shape[-1] != padded.value.type.shape[-1]:
        return False
    inside = zip(offsets, shape, padded.low, padded.source.type.shape, strict=True)
    if any(min(first + size, low + extent) <= max(first, low) for first, size, low, extent in inside):
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


def _slice(op: Operation, padded: Padded) -> Value:
    """Return what ``op`` slices out of the padded tensor, as a slice of the tensor within margins."""
    offsets = slice_of(op)
    assert offsets is not None, "looked at before"
    type_ = ir.RankedTensorType(op.results[0].type)
    extents = padded.source.type.shape
    spans = [
        (first - low, first - low + size)
        for first, low, size in zip(offsets, padded.low, type_.shape, strict=True)
    ]
    firsts = [max(first, 0) for first, _ in spans]
    ends = [min(end, extent) for (_, end), extent in zip(spans, extents, strict=True)]
    sizes = [end - first for first, end in zip(firsts, ends, strict=True)]
    ones = [1] * len(sizes)
    part = padded.source
    if sizes != list(extents):
        inner = ir.RankedTensorType.get(sizes, type_.element_type)
        part = tensor.ExtractSliceOp(inner, part, [], [], [], firsts, sizes, ones).result
    lows = [first - span[0] for first, span in zip(firsts, spans, strict=True)]
    highs = [span[1] - end for end, span in zip(ends, spans, strict=True)]
    if not any((*lows, *highs)):
        return part
    pad = tensor.PadOp(type_, part, [], [], lows, highs)
    index = ir.IndexType.get()
    block = ir.Block.create_at_start(pad.regions[0], [index] * type_.rank, [op.location] * type_.rank)
    with ir.InsertionPoint(block):
        tensor.YieldOp(padded.margin)
    return pad.results[0]


def erase_unused(op: Operation) -> None:
    """Erase ``op``, and what nothing else needs of what it reads."""
    waiting = [op]
    while waiting:
        op = waiting.pop()
        removable = op.name in _REMOVABLE
        if not removable or any(used(result) for result in op.results):
            continue
        sources = [definition(value) for value in dict.fromkeys(op.operands)]
        op.erase()
        waiting += [source for source in sources if source is not None]
