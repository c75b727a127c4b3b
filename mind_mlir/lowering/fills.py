"""Buffers filled with one value, as the margins of padded tensors are: as vectors, large ones in chunks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.copies import LINE, emit_chunks, flattened
from mind_mlir.lowering.schedule.emission.constants import BYTE_NS
from mind_mlir.lowering.schedule.emission.split import split
from mind_mlir.mlir.bindings import arith, ir, memref, scf, vector
from mind_mlir.mlir.memory import byte_size, element_bytes, is_contiguous

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.mlir.bindings import Operation, Type, Value
    from mind_mlir.target import Target


def expand_fills(fills: Iterable[Operation], target: Target) -> None:
    """Turn those of ``fills`` that fill a contiguous buffer into stores of vectors.

    Loops over scalars take LLVM's passes to become these, and one thread.

    Args:
        fills: Each `linalg.map` and `linalg.fill` of a bufferized module.
        target: Says how wide a vector is.
    """
    for op in fills:
        value = _value(op)
        buffer = op.operands[-1]
        type_ = buffer.type
        if value is None or not is_contiguous(type_) or not _in_vectors(type_.element_type):
            continue
        with ir.InsertionPoint(op), op.location:
            _fill(flattened(buffer), value, target.vector_bytes // element_bytes(type_.element_type))
        op.erase()


def _in_vectors(element: Type) -> bool:
    """Return whether vectors hold such elements as buffers do: i1 is packed in bits, complex not held."""
    return str(element) != "i1" and not isinstance(element, ir.ComplexType)


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


def _fill(buffer: Value, value: Value, lanes: int) -> None:
    """Fill a ``buffer`` of rank 1."""
    extent = math.prod(buffer.type.shape)
    nanoseconds = byte_size(buffer.type) * BYTE_NS
    chosen = split(max(extent, 1), nanoseconds, multiple=LINE)

    def emit(part: Value) -> None:
        _store(part, value, lanes)

    if chosen.count == 1:
        emit(buffer)
    else:
        emit_chunks(chosen, [buffer], emit)


def _store(buffer: Value, value: Value, lanes: int) -> None:
    index = ir.IndexType.get()
    (extent,) = buffer.type.shape
    if extent < lanes:
        for place in range(extent):
            memref.StoreOp(value, buffer, [arith.ConstantOp(index, place).result])
        return
    full = vector.BroadcastOp(ir.VectorType.get([lanes], value.type), value).result
    zero, end, step = (
        arith.ConstantOp(index, number).result for number in (0, extent // lanes * lanes, lanes)
    )
    loop = scf.ForOp(zero, end, step)
    with ir.InsertionPoint(loop.body):
        vector.StoreOp(full, buffer, [loop.induction_variable])
        scf.YieldOp([])
    if extent % lanes:  # one more vector that ends where the buffer does
        vector.StoreOp(full, buffer, [arith.ConstantOp(index, extent - lanes).result])
