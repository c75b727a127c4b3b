"""Vectors of elements that lie some apart in memory: one of the coordinates of points, one colour of pixels.

MLIR would move their elements one at a time, each in a branch of its own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import arith, ir, vector
from mind_mlir.mlir.memory import VIEWS, is_contiguous, is_row_major, metadata_of, reinterpreted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mind_mlir.mlir.bindings import Operation, Type, Value

#: Elements so far apart, or less, are read together with what lies between them.
_NEAR = 8
#: Operations that may stand between writes of columns: on vectors alone, and those that read other buffers.
_PURE = ("vector.broadcast", "vector.extract_strided_slice", "vector.fma", "vector.shuffle", "vector.step")
_READS = ("vector.gather", "vector.transfer_read")


def move_strided_rows(transfers: Iterable[Operation]) -> list[Operation]:
    """Replace those of ``transfers``, on buffers, that are of vectors along an axis whose elements lie apart.

    Returns:
        The transfers that there are by then.
    """
    left: list[Operation] = []
    for op in _joined_columns(list(transfers), left):
        is_read = op.name == "vector.transfer_read"
        buffer = op.operands[0 if is_read else 1]
        if not _is_strided(op, buffer.type):
            left.append(op)
            continue
        with ir.InsertionPoint(op), op.location:
            if is_read:
                op.results[0].replace_all_uses_with(_read(op, buffer, left))
            else:
                _write(op, buffer)
        op.operation.erase()
    return left


def place_gathers(gathers: Iterable[Operation]) -> None:
    """Let ``gathers`` from buffers, which count elements in row-major order, count as these lie in memory."""
    for op in gathers:
        buffer, rank = op.operands[0], op.operands[0].type.rank
        if is_row_major(buffer.type):
            continue
        first, where, mask, off = op.operands[rank : rank + 4]
        with ir.InsertionPoint(op), op.location:
            base, offset, strides = metadata_of(buffer)
            dims = list(zip(buffer.type.shape, strides, strict=True))
            size = 1 + sum((n - 1) * each for n, each in dims if isinstance(each, int))
            flat = reinterpreted(base, ir.MemRefType.get([size], buffer.type.element_type))
            begin = arith.ConstantOp(ir.IndexType.get(), offset).result if isinstance(offset, int) else offset
            number = arith.AddIOp(vector.BroadcastOp(where.type, first).result, where).result
            place = _in_memory(number, dims)
            new = vector.GatherOp(op.results[0].type, flat, [begin], place, mask, off)
        op.results[0].replace_all_uses_with(new.result)
        op.operation.erase()


def _in_memory(number: Value, dims: list[tuple[int, Value | int]]) -> Value:
    """Emit how far elements of a ``number`` in row-major order are from the first one in memory."""
    runs: list[tuple[int, int | Value]] = []
    for extent, stride in dims:
        if runs and isinstance(stride, int) and runs[-1][1] == extent * stride:
            runs[-1] = runs[-1][0] * extent, stride
        elif extent > 1:
            runs.append((extent, stride))
    total = None
    for place, (extent, stride) in reversed(list(enumerate(runs))):
        extents, strides = (_splat(number.type, each) for each in (extent, stride))
        here = arith.RemUIOp(number, extents).result if place else number
        step = arith.MulIOp(here, strides).result
        total = step if total is None else arith.AddIOp(total, step).result
        number = arith.DivUIOp(number, extents).result if place else number
    return number if total is None else total


def _splat(type_: Type, number: int | Value) -> Value:
    if not isinstance(number, int):
        return vector.BroadcastOp(type_, number).result
    element = ir.IntegerAttr.get(ir.IndexType.get(), number)
    return arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, element)).result


def _is_strided(op: Operation, type_: Type) -> bool:
    """Return whether a transfer is of rank 1 along the last axis of a buffer, whose elements lie apart."""
    strides, offset = type_.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    if not type_.has_static_shape or dynamic in (offset, *strides) or not strides or strides[-1] < 2:
        return False
    map_ = ir.AffineMapAttr(op.attributes["permutation_map"]).value
    bounds = op.attributes["in_bounds"]
    return bool(map_ == ir.AffineMap.get_minor_identity(type_.rank, 1)) and all(each.value for each in bounds)


def _read(op: Operation, buffer: Value, made: list[Operation]) -> Value:
    """Emit the vector that a transfer reads; further transfers are ``made``."""
    rank = buffer.type.rank
    indices, padding, mask = op.operands[1 : 1 + rank], op.operands[1 + rank], list(op.operands[2 + rank :])
    strides, offset = buffer.type.get_strides_and_offset()
    apart, lanes = strides[-1], op.results[0].type.shape[0]
    if apart > _NEAR:
        off = vector.BroadcastOp(op.results[0].type, padding).result
        where = _where(lanes, apart)
        flat, place = _flat(buffer, _span(buffer.type)), _place(indices, strides, offset)
        return vector.GatherOp(op.results[0].type, flat, [place], where, _mask(mask, lanes), off).result
    before, size = _around(buffer)
    count = lanes * apart if size else (lanes - 1) * apart + 1
    flat, place = _flat(buffer, size or _span(buffer.type)), _place(indices, strides, offset - before)
    picked = [before + lane * apart for lane in range(lanes)]
    live = _spread(mask[0], picked, count) if mask else None
    type_ = ir.VectorType.get([count], buffer.type.element_type)
    rows = ir.AffineMap.get_minor_identity(1, 1)
    together = vector.TransferReadOp(type_, flat, [place], rows, padding, [True], mask=live)
    made.append(together.operation)
    return vector.ShuffleOp(together.result, together.result, picked).result


def _spread(mask: Value, places: Sequence[int], count: int) -> Value:
    """Emit a mask of ``count`` lanes that has those of ``mask`` at ``places``, and is off elsewhere."""
    lanes = len(places)
    off = arith.ConstantOp(mask.type, ir.DenseElementsAttr.get_splat(mask.type, ir.BoolAttr.get(False)))
    found = {place: lane for lane, place in enumerate(places)}
    return vector.ShuffleOp(mask, off.result, [found.get(each, lanes) for each in range(count)]).result


def _joined_columns(transfers: list[Operation], made: list[Operation]) -> list[Operation]:
    """Write columns that lie side by side, and are all there at once, together; return the other transfers.

    Single stores take several times as long. Further transfers are ``made``.
    """
    groups: dict[object, list[int]] = {}
    for number, op in enumerate(transfers):
        if op.name == "vector.transfer_write" and _is_strided(op, op.operands[1].type):
            strides, _ = op.operands[1].type.get_strides_and_offset()
            value, buffer, *others = op.operands
            key = op.operation.block, _whole(buffer), value.type, tuple(others), tuple(strides)
            groups.setdefault(key, []).append(number)
    left = set(range(len(transfers)))
    for numbers in groups.values():
        columns = [transfers[number].operation for number in numbers]
        if _are_all(columns) and _are_together(columns):
            made.append(_joined(columns))
            left.difference_update(numbers)
            for op in columns:
                op.erase()
    return [transfers[number] for number in sorted(left)]


def _places(columns: list[Operation]) -> tuple[list[int], int]:
    """Return where each of ``columns`` begins in its buffer, and how far its elements lie apart."""
    found = [op.operands[1].type.get_strides_and_offset() for op in columns]
    return [offset for _, offset in found], found[0][0][-1]


def _are_all(columns: list[Operation]) -> bool:
    """Return whether ``columns``, writes to the same rows of a buffer, leave nothing out between them."""
    places, apart = _places(columns)
    return apart <= _NEAR and sorted(places) == list(range(min(places), min(places) + apart))


def _joined(columns: list[Operation]) -> Operation:
    """Emit one write for all ``columns``, in the place of the last one."""
    places, apart = _places(columns)
    in_order = [columns[places.index(place)] for place in sorted(places)]
    buffer, *rest = list(in_order[0].operands)[1:]
    rank, lanes = buffer.type.rank, in_order[0].operands[0].type.shape[0]
    strides, first = buffer.type.get_strides_and_offset()
    repeated = [lane // apart for lane in range(lanes * apart)]
    with ir.InsertionPoint(columns[-1]), columns[-1].location:
        together = _interleaved([op.operands[0] for op in in_order])
        mask = next((vector.ShuffleOp(each, each, repeated).result for each in rest[rank:]), None)
        flat, place = _flat(buffer, _span(buffer.type) + apart - 1), _place(rest[:rank], strides, first)
        rows = ir.AffineMap.get_minor_identity(1, 1)
        return vector.TransferWriteOp(None, together, flat, [place], rows, [True], mask=mask).operation


def _are_together(columns: list[Operation]) -> bool:
    """Return whether nothing between ``columns``, in the order of their block, may see what they write."""
    whole, left = _whole(columns[0].operands[1]), len(columns)
    for each in columns[0].operation.block.operations:
        op = each.operation
        if op in columns:
            left -= 1
        elif left < len(columns) and not (
            op.name in (*VIEWS, *_PURE)
            or op.name.startswith(("arith.", "math."))
            or (op.name in _READS and _whole(op.operands[0]) != whole)
        ):
            return False
        if not left:
            return True
    return False


def _interleaved(values: list[Value]) -> Value:
    """Emit a vector of the first lanes of all ``values``, then the second ones, and so on."""
    lanes, count, parts = values[0].type.shape[0], len(values), list(values)
    while len(parts) > 2:
        parts += parts[-1:] * (len(parts) % 2)
        size = parts[0].type.shape[0]
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [vector.ShuffleOp(*pair, list(range(2 * size))).result for pair in pairs]
    order = [column * lanes + lane for lane in range(lanes) for column in range(count)]
    return vector.ShuffleOp(*parts, order).result


def _write(op: Operation, buffer: Value) -> None:
    rank = buffer.type.rank
    value, indices, mask = op.operands[0], op.operands[2 : 2 + rank], list(op.operands[2 + rank :])
    strides, offset = buffer.type.get_strides_and_offset()
    lanes = value.type.shape[0]
    flat, place = _flat(buffer, _span(buffer.type)), _place(indices, strides, offset)
    vector.ScatterOp(None, flat, [place], _where(lanes, strides[-1]), _mask(mask, lanes), value)


def _around(buffer: Value) -> tuple[int, int]:
    """Return how many elements before one of ``buffer`` may be read, and the size of what it is part of.

    So many elements as lie between two are a group that is read as a whole. Zeros where a group may be cut.
    """
    whole = _whole(buffer)
    strides, offset = buffer.type.get_strides_and_offset()
    apart = strides[-1]
    known = isinstance(whole.type, ir.MemRefType) and is_contiguous(whole.type)
    if not known or whole.type.element_type != buffer.type.element_type:
        return 0, 0
    size = math.prod(whole.type.shape)
    return (0, 0) if size % apart or any(each % apart for each in strides) else (offset % apart, size)


def _whole(buffer: Value) -> Value:
    """Return what ``buffer`` is a view of."""
    while not isinstance(buffer, ir.BlockArgument) and buffer.owner.name in VIEWS:
        buffer = buffer.owner.operands[0]
    return buffer


def _span(type_: Type) -> int:
    """Return how many elements there are from the begin of the memory to the last element of a buffer."""
    strides, offset = type_.get_strides_and_offset()
    last: int = sum((n - 1) * each for n, each in zip(type_.shape, strides, strict=True))
    return int(offset) + last + 1


def _flat(buffer: Value, size: int) -> Value:
    """Return the memory that ``buffer`` lies in, from its begin on."""
    return reinterpreted(buffer, ir.MemRefType.get([size], buffer.type.element_type))


def _place(indices: Sequence[Value], strides: Sequence[int], offset: int) -> Value:
    """Emit where in the memory the element at ``indices`` is."""
    index = ir.IndexType.get()
    total = arith.ConstantOp(index, offset).result
    for place, stride in zip(indices, strides, strict=True):
        step = arith.ConstantOp(index, stride).result
        total = arith.AddIOp(total, arith.MulIOp(place, step).result).result
    return total


def _where(lanes: int, apart: int) -> Value:
    """Emit how far each lane is from the first one."""
    type_ = ir.VectorType.get([lanes], ir.IndexType.get())
    step = arith.ConstantOp(ir.IndexType.get(), apart).result
    return arith.MulIOp(vector.StepOp(type_).result, vector.BroadcastOp(type_, step).result).result


def _mask(given: Sequence[Value], lanes: int) -> Value:
    if given:
        return given[0]
    type_ = ir.VectorType.get([lanes], ir.IntegerType.get_signless(1))
    return arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, ir.BoolAttr.get(True))).result
