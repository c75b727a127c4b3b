"""Copies between buffers, and buffers filled with one value, as vectors.

Large ones are cut in chunks that threads share. The margins of padded tensors are filled. Short copies are a
`memcpy`. Long ones are not: that of glibc takes an instruction for them that on many processors moves 3 GB/s
where buffers lie some pages and a few bytes apart, and that nowhere is faster than vectors.
"""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.booleans import as_bytes
from mind_mlir.lowering.emission.emitter import BRIEF_ATTRIBUTE, PARALLEL_ATTRIBUTE
from mind_mlir.lowering.emission.indices import zero
from mind_mlir.lowering.emission.split import split
from mind_mlir.mlir.bindings import arith, ir, memref, scf, vector
from mind_mlir.mlir.memory import byte_size, element_bytes, is_contiguous, is_row_major, outer_rank
from mind_mlir.mlir.structured import structured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mind_mlir.lowering.emission.split import Split
    from mind_mlir.mlir.bindings import Operation, Value
    from mind_mlir.target import Target

#: Elements of a flat copy that chunks start at multiples of: no two of them write to one cache line.
LINE = 64
#: Bytes that lie together which are worth a loop around them.
_RUN_BYTES = 128
#: Bytes that `memcpy` copies in vectors itself.
_SHORT_BYTES = 2048


def expand_copies(copies: Iterable[Operation], machine: Target) -> None:
    """Let ``copies``, each `memref.copy` of a bufferized module, be loops over vectors, large ones in chunks.

    The others are a `memcpy` to the LLVM dialect.
    """
    for op in copies:
        source, target = op.operands
        with ir.InsertionPoint(op), op.location:
            if is_row_major(source.type) and is_row_major(target.type):
                if byte_size(source.type) <= _SHORT_BYTES:
                    continue
                _flat(source, target, machine)
            else:
                _strided(source, target, machine)
        op.erase()


def _flat(source: Value, target: Value, machine: Target) -> None:
    """Emit a copy of buffers without gaps, in chunks if that pays."""
    elements = math.prod(source.type.shape)
    chosen = split(max(elements, 1), 2 * byte_size(source.type) * machine.rates.byte_ns, multiple=LINE)
    one, other = flattened(source), flattened(target)
    if chosen.count == 1:
        _move_run(one, other, machine)
    else:
        emit_chunks(chosen, [one, other], lambda here, there: _move_run(here, there, machine))


def _move_run(source: Value, target: Value, machine: Target) -> None:
    """Emit a copy of buffers of rank 1 without gaps."""
    element = source.type.element_type
    if isinstance(element, ir.ComplexType) or byte_size(source.type) <= _SHORT_BYTES:
        memref.copy(source, target)
        return
    source, target = as_bytes(source), as_bytes(target)
    type_ = ir.VectorType.get([machine.vector_bytes // element_bytes(element)], source.type.element_type)

    def move(place: Value) -> None:
        vector.StoreOp(vector.LoadOp(type_, source, [place]).result, target, [place])

    _in_vectors(source.type.shape[0], type_.shape[0], move)


def _strided(source: Value, target: Value, machine: Target) -> None:
    """Emit a copy as loops."""
    shape = source.type.shape
    nanoseconds = 2 * math.prod(shape) * element_bytes(source.type.element_type) * machine.rates.byte_ns
    chosen = split(max(shape[0], 1), nanoseconds) if shape else None
    if chosen is None or chosen.count == 1:
        _emit_loops(source, target, machine)
    else:
        emit_chunks(chosen, [source, target], lambda here, there: _emit_loops(here, there, machine))


def _emit_loops(source: Value, target: Value, machine: Target) -> None:
    """Emit loops around what lies together in both buffers.

    Where that is little, they are around vectors that are a row each; around elements where no rows are.
    """
    shape = list(source.type.shape)
    outer = max(outer_rank(source.type), outer_rank(target.type))
    element = source.type.element_type
    if math.prod(shape[outer:]) * element_bytes(element) >= _RUN_BYTES:
        _loops(shape[:outer], lambda places: _move_part(source, target, places, machine))
    elif outer < len(shape) and shape[-1] > 1 and not isinstance(element, ir.ComplexType):
        _loops(shape[:-1], lambda places: _move_row(source, target, places))
    else:
        structured("copy", [source], target)


def _loops(extents: list[int], body: Callable[[list[Value]], None]) -> None:
    """Emit loops around ``body``, which is given the numbers of their iterations."""
    places: list[Value] = []
    index = ir.IndexType.get()
    with contextlib.ExitStack() as inside:
        for extent in extents:
            zero, one, end = (arith.ConstantOp(index, value).result for value in (0, 1, extent))
            loop = scf.ForOp(zero, end, one)
            with ir.InsertionPoint(loop.body):
                end_of_loop = scf.YieldOp([])
            inside.enter_context(ir.InsertionPoint(end_of_loop))
            places.append(loop.induction_variable)
        body(places)


def _move_part(source: Value, target: Value, places: list[Value], machine: Target) -> None:
    sizes = [1] * len(places)
    _move_run(flattened(_part(source, places, sizes)), flattened(_part(target, places, sizes)), machine)


def _move_row(source: Value, target: Value, places: list[Value]) -> None:
    type_ = source.type
    places = [*places, arith.ConstantOp(ir.IndexType.get(), 0).result]
    nothing = arith.ConstantOp(type_.element_type, zero(type_.element_type)).result
    rows = ir.AffineMap.get_minor_identity(type_.rank, 1)
    lanes = ir.VectorType.get([type_.shape[-1]], type_.element_type)
    row = vector.TransferReadOp(lanes, source, places, rows, nothing, [True]).result
    vector.TransferWriteOp(None, row, target, places, rows, [True])


def emit_chunks(chosen: Split, buffers: list[Value], emit: Callable[..., object]) -> None:
    """Emit what ``emit`` does to ``buffers`` for some rows at a time as a parallel loop; then the rest."""
    index = ir.IndexType.get()
    step = chosen.step
    rows = buffers[0].type.shape[0]
    full = rows // step
    zero, one, count, length = (arith.ConstantOp(index, value).result for value in (0, 1, full, step))
    loop = scf.ForOp(zero, count, one)
    loop.attributes[PARALLEL_ATTRIBUTE] = ir.UnitAttr.get()
    if chosen.brief:
        loop.attributes[BRIEF_ATTRIBUTE] = ir.UnitAttr.get()
    with ir.InsertionPoint(loop.body):
        first = arith.MulIOp(loop.induction_variable, length).result
        emit(*(_part(buffer, [first], [step]) for buffer in buffers))
        scf.YieldOp([])
    if rows % step:
        first = arith.ConstantOp(index, full * step).result
        emit(*(_part(buffer, [first], [rows % step]) for buffer in buffers))


def flattened(buffer: Value) -> Value:
    """Return a ``buffer`` without gaps as one of rank 1."""
    type_ = buffer.type
    _, offset = type_.get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(offset, [1]) if offset else None
    flat = ir.MemRefType.get([math.prod(type_.shape)], type_.element_type, layout)
    if type_.rank == 1:
        return buffer
    i64 = ir.IntegerType.get_signless(64)
    group = ir.ArrayAttr.get([ir.IntegerAttr.get(i64, axis) for axis in range(type_.rank)])
    groups = ir.ArrayAttr.get([group])
    return ir.Operation.create("memref.collapse_shape", [flat], [buffer], {"reassociation": groups}).result


def _part(buffer: Value, places: list[Value], sizes: list[int]) -> Value:
    """Return ``sizes`` of the first dimensions of ``buffer`` from ``places`` on, and all of the others."""
    type_ = buffer.type
    strides, _ = type_.get_strides_and_offset()
    anywhere = ir.ShapedType.get_dynamic_stride_or_offset()
    layout = ir.StridedLayoutAttr.get(anywhere, list(strides))
    inner = list(type_.shape)[len(sizes) :]
    part = ir.MemRefType.get([*sizes, *inner], type_.element_type, layout)
    attributes = {
        "static_offsets": ir.DenseI64ArrayAttr.get([*(anywhere for _ in sizes), *(0 for _ in inner)]),
        "static_sizes": ir.DenseI64ArrayAttr.get([*sizes, *inner]),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * type_.rank),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(places), 0, 0]),
    }
    return ir.Operation.create("memref.subview", [part], [buffer, *places], attributes).result


def expand_fills(fills: Iterable[Operation], machine: Target) -> None:
    """Turn those of ``fills`` that fill a contiguous buffer into stores of vectors.

    ``fills`` are each `linalg.map` and `linalg.fill` of a bufferized module. Loops over scalars take LLVM's
    passes to become these, and one thread.
    """
    for op in fills:
        value = _value(op)
        buffer = op.operands[-1]
        type_ = buffer.type
        if value is None or not is_contiguous(type_) or isinstance(type_.element_type, ir.ComplexType):
            continue
        with ir.InsertionPoint(op), op.location:
            flat = as_bytes(flattened(buffer))
            if value.type != flat.type.element_type:
                value = arith.ExtUIOp(flat.type.element_type, value).result
            _fill(flat, value, machine)
        op.erase()


def _value(op: Operation) -> Value | None:
    """Return what ``op`` fills its buffer with; None if it does anything else."""
    if op.name == "linalg.fill":
        found = op.operands[0]
        return None if isinstance(found.type, ir.MemRefType) else found
    block = op.regions[0].blocks[0]
    first = block.operations[0].operation
    if len(op.operands) > 1 or first.name != "linalg.yield":
        return None
    return None if first.operands[0] in list(block.arguments) else first.operands[0]


def _fill(buffer: Value, value: Value, machine: Target) -> None:
    """Fill a ``buffer`` of rank 1."""
    extent = math.prod(buffer.type.shape)
    lanes = machine.vector_bytes // element_bytes(buffer.type.element_type)
    nanoseconds = byte_size(buffer.type) * machine.rates.byte_ns
    chosen = split(max(extent, 1), nanoseconds, multiple=LINE)

    if chosen.count == 1:
        _store(buffer, value, lanes)
    else:
        emit_chunks(chosen, [buffer], lambda part: _store(part, value, lanes))


def _store(buffer: Value, value: Value, lanes: int) -> None:
    index = ir.IndexType.get()
    (extent,) = buffer.type.shape
    if extent < lanes:
        for place in range(extent):
            memref.StoreOp(value, buffer, [arith.ConstantOp(index, place).result])
        return
    full = vector.BroadcastOp(ir.VectorType.get([lanes], value.type), value).result
    _in_vectors(extent, lanes, lambda place: vector.StoreOp(full, buffer, [place]))


def _in_vectors(extent: int, lanes: int, emit: Callable[[Value], object]) -> None:
    """Emit ``emit`` at each vector of ``extent`` elements, and at one more that ends where these do."""
    index = ir.IndexType.get()
    zero, end, step = (
        arith.ConstantOp(index, number).result for number in (0, extent // lanes * lanes, lanes)
    )
    loop = scf.ForOp(zero, end, step)
    with ir.InsertionPoint(loop.body):
        emit(loop.induction_variable)
        scf.YieldOp([])
    if extent % lanes:
        emit(arith.ConstantOp(index, extent - lanes).result)
