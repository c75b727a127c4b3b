"""Padded tensors: their margins are written once before a loop, and slices of them are read without a copy.

A padded tensor is a fill, and an insertion into it. Where a loop pads, the insertion covers the same elements
every time, so what is around them is the same in each iteration: the loop carries the padded tensor, and the
next iteration inserts into that.

A tensor that is padded is a copy of it with margins. Where nothing but slices of that is read, element by
element, each of them is made a slice of the tensor itself with a margin of its own, and the copy is gone:
the nest that reads such a slice reads the tensor, and makes up what lies beyond it (`fusion/nests/elements`).
"""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.emission.constants import SHARED_BYTES
from mind_mlir.lowering.schedule.fusion.groups.group import is_identity, vector_dims
from mind_mlir.lowering.schedule.linalg_view.layout import Window, slice_of, static_numbers
from mind_mlir.lowering.schedule.linalg_view.values import RESHAPES, erase_source, filler, used
from mind_mlir.mlir.bindings import Operation, Value, ir, scf, tensor
from mind_mlir.mlir.memory import bytes_of, element_bytes
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.structured import structured
from mind_mlir.mlir.values import definition, end_with, is_result_of, terminator_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.linalg_view.view import Views

#: Bytes that are filled in the time that it takes to begin a row of a margin, and how many margins are nests.
_ROW, _MOST_MARGINS = 64, 6

#: The first element along each dimension of a tensor, which may be in its margins, and the end.
_Span: TypeAlias = "list[tuple[int, int]]"


def carry_margins(function: Operation) -> None:
    """Let the loops of ``function`` fill what they pad once, before they run.

    Args:
        function: A function of linalg operations on tensors of static shape; it is changed in place.
    """
    for loop in find_all(function, scf.ForOp, scf.WhileOp):
        for number, region in enumerate(loop.regions):
            ops = [operation.operation for operation in region.blocks[0].operations]
            pairs = [(op, _insertion(op)) for op in ops if op.name == "linalg.fill"]
            padded = [(fill, insertion) for fill, insertion in pairs if insertion is not None]
            if padded:
                _carry(loop, number, padded)
                break  # the loop is another one now; who pads in both regions does so in the longer one


def _insertion(fill: Operation) -> Operation | None:
    """Return the operation that inserts into ``fill``, if nothing else is done with it; or None."""
    number, empty = fill.operands
    if not is_result_of(empty, "tensor.empty") or not is_result_of(number, "arith.constant"):
        return None
    found = None
    for use in fill.results[0].uses:
        user = use.owner.operation
        if user.name == "tensor.insert_slice" and use.operand_number == 1 and found is None:
            found = user
        elif user.name != "tensor.extract_slice" or not _is_overwritten(user):
            return None
    if found is None or found.block != fill.block or len(found.operands) > 2:
        return None
    return found if _is_read(found.results[0]) else None


def _is_overwritten(window: Operation) -> bool:
    """Return whether ``window`` is where an operation puts what it moves, so that nothing reads it before."""
    uses = list(window.results[0].uses)
    return all(use.owner.operation.name == "linalg.copy" and use.operand_number == 1 for use in uses)


def _is_read(padded: Value) -> bool:
    """Return whether ``padded`` is read, and nothing else is done with it: nobody else wants to write it."""
    for use in padded.uses:
        user = use.owner.operation
        if user.name in RESHAPES:
            if not _is_read(user.results[0]):
                return False
        elif user.name.startswith("linalg."):
            if use.operand_number >= len(user.operands) - len(user.results):
                return False
        elif user.name != "tensor.extract_slice":
            return False
    return True


def _carry(loop: Operation, number: int, padded: Sequence[tuple[Operation, Operation]]) -> None:
    """Replace ``loop`` by one that carries what region ``number`` has ``padded``: fills, and what inserts."""
    types = [fill.results[0].type for fill, _ in padded]
    with ir.InsertionPoint(loop):
        filled = [_before(fill) for fill, _ in padded]
        new = ir.Operation.create(
            loop.name,
            [*(result.type for result in loop.results), *types],
            [*loop.operands, *filled],
            regions=len(loop.regions),
            loc=loop.location,
        )
    blocks = [region.blocks[0] for region in loop.regions]
    arguments = [[block.add_argument(type_, loop.location) for type_ in types] for block in blocks]
    for (fill, _), argument in zip(padded, arguments[number], strict=True):
        fill.results[0].replace_all_uses_with(argument)
        fill.erase()
    handed_on = {number: [insertion.results[0] for _, insertion in padded]}
    for position, block in enumerate(blocks):
        end_with(block, [*terminator_of(block).operands, *handed_on.get(position, arguments[position])])
    for block, region in zip(blocks, new.regions, strict=True):
        block.append_to(region)
    for result, other in zip(loop.results, new.results, strict=False):  # those that it had before
        result.replace_all_uses_with(other)
    loop.erase()


def _before(fill: Operation) -> Value:
    """Emit what ``fill`` is, here."""
    with fill.location:
        number, empty = (definition(operand).clone() for operand in fill.operands)  # type: ignore[union-attr]  # both are results
        new = fill.clone()
        new.operands[0], new.operands[1] = number.operation.result, empty.operation.result
    return new.operation.result


def margin_fills(fill: Operation) -> list[Operation]:
    """Return what fills what an insertion into ``fill`` leaves of that, in its place; itself if nothing pays.

    Nothing else sees what was filled, and margins are few.
    """
    number, empty = fill.operands
    uses = list(islice(fill.results[0].uses, 2))
    op = uses[0].owner.operation if len(uses) == 1 and uses[0].operand_number == 1 else None
    if op is None or op.name != "tensor.insert_slice" or len(op.operands) > 2:
        return [fill]
    names = ("static_offsets", "static_sizes", "static_strides")
    firsts, sizes, steps = (static_numbers(op, name) for name in names)
    if firsts is None or sizes is None or {*(steps or (0,))} != {1}:
        return [fill]
    shape, element = list(empty.type.shape), empty.type.element_type
    boxes: list[tuple[list[int], list[int]]] = []
    taken = 0
    for axis, (first, size, extent) in enumerate(zip(firsts, sizes, shape, strict=True)):
        for begin, end in ((0, first), (first + size, extent)):
            if end > begin:
                extents = [*sizes[:axis], end - begin, *shape[axis + 1 :]]
                boxes.append(([*firsts[:axis], begin, *[0] * (len(shape) - axis - 1)], extents))
                taken += math.prod(extents) * element_bytes(element) + math.prod(sizes[:axis]) * _ROW
    if bytes_of(empty) < SHARED_BYTES or 2 * taken > bytes_of(empty) or len(boxes) > _MOST_MARGINS:
        return [fill]
    made = []
    with ir.InsertionPoint(fill), fill.location:
        whole = empty
        for offsets, extents in boxes:
            part = tensor.EmptyOp(extents, element).result
            made.append(structured("fill", [number], part))
            static = offsets, extents, [1] * len(shape)
            whole = tensor.InsertSliceOp(made[-1].results[0], whole, [], [], [], *static).result
    fill.results[0].replace_all_uses_with(whole)
    fill.erase()
    return made


def read_through_margins(function: Operation, views: Views) -> None:
    """Let slices of padded tensors be padded slices where elementwise operations read them."""
    for insertion in find_all(function, tensor.InsertSliceOp):
        value = insertion.operation.results[0]
        padded = padded_tensor(value)
        if padded is None:
            continue
        users = dict.fromkeys(use.owner.operation for use in value.uses)
        spans = {op: span for op in users if (span := _span(op, value, padded, views)) is not None}
        if len(spans) < len(users):
            continue
        for op, span in spans.items():
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(_slice(op, padded, span))
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


def _span(op: Operation, value: Value, padded: Window, views: Views) -> _Span | None:
    """Return where in the tensor that is padded ``op``, a slice of that within margins, begins and ends.

    None if it is no slice of whole rows, read by elementwise operations and nothing else.
    """
    offsets = slice_of(op)
    if offsets is None:
        return None
    result = op.results[0]
    if not used(result) or result.type.shape[-1] != value.type.shape[-1]:
        return None
    dims = zip(offsets, padded.first, result.type.shape, strict=True)
    span = [(offset + first, offset + first + size) for offset, first, size in dims]
    for (first, end), extent in zip(span, padded.source.type.shape, strict=True):
        if min(end, extent) <= max(first, 0):
            return None  # a slice of a margin
    return span if all(_is_elementwise(use.owner.operation, result, views) for use in result.uses) else None


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


def _slice(op: Operation, padded: Window, span: _Span) -> Value:
    """Return what ``op`` slices out of the padded tensor, as a slice of the tensor within margins."""
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
