"""Stores that go past the cache: results that are larger than it, and that nothing reads again.

A plain store reads the cache line that it writes to first, and pushes others out. The scheduler marks the
loops whose stores may go past the cache; which buffer they write to, and whether anything else reads it, is
known here. Such a store must be aligned to a vector register, and numpy's arrays need not be: so the
address of the buffer decides, in each step of the loop, which stores run. A second loop for the other ones
would be no faster, and take as long to compile as the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.emitter import PARALLEL_ATTRIBUTE, STREAMING_ATTRIBUTE
from mind_mlir.mlir import llvm_operations
from mind_mlir.mlir.bindings import arith, ir, memref, scf, vector
from mind_mlir.mlir.memory import is_row_major
from mind_mlir.mlir.values import terminator_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.mlir.bindings import Operation, Value

_VIEWS = ("memref.cast", "memref.collapse_shape", "memref.expand_shape", "memref.reinterpret_cast")
_WRITES = ("vector.transfer_write", "memref.store")


def stream_stores(loops: Iterable[Operation]) -> None:
    """Let stores in marked loops of a bufferized module go past the cache where they may, in place.

    ``loops`` are each `scf.for` of it; its kernels are not in functions of their own yet.
    """
    fenced: dict[Operation, None] = {}
    for loop in loops:
        if STREAMING_ATTRIBUTE not in loop.attributes:
            continue
        lanes = ir.IntegerAttr(loop.attributes[STREAMING_ATTRIBUTE]).value
        del loop.attributes[STREAMING_ATTRIBUTE]
        stores = [op.operation for op in loop.regions[0].blocks[0].operations if op.operation.name in _WRITES]
        if stores and all(_may_stream(store) for store in stores):
            _choose(loop.operation, stores, lanes)
            fenced[_outermost(loop.operation)] = None
    for loop in fenced:
        _fence(loop)


def _may_stream(store: Operation) -> bool:
    """Return whether ``store`` writes a whole vector to a result of the function that nothing reads."""
    if store.name != "vector.transfer_write" or len(store.operands) != 2 + _rank(store.operands[1]):
        return False  # a scalar, or masked
    if ir.VectorType(store.operands[0].type).element_type == ir.IntegerType.get_signless(1):
        return False  # which becomes bytes first
    root = store.operands[1]
    while not isinstance(root, ir.BlockArgument):
        if root.owner.operation.name not in _VIEWS:
            return False
        root = root.owner.operands[0]
    if not is_row_major(store.operands[1].type) or root.owner.owner.operation.name != "func.func":
        return False
    return _only_written(root)


def _rank(buffer: Value) -> int:
    return len(ir.MemRefType(buffer.type).shape)


def _only_written(buffer: Value) -> bool:
    for use in buffer.uses:
        user = use.owner.operation
        if user.name in _VIEWS:
            if not _only_written(user.results[0]):
                return False
        elif user.name not in _WRITES or use.operand_number != 1:
            return False
    return True


def _choose(loop: Operation, stores: list[Operation], lanes: int) -> None:
    """Let the ``stores`` of ``loop`` go past the cache where the buffers are aligned."""
    with loop.location:
        with ir.InsertionPoint(loop):
            aligned = _all_aligned(stores, lanes)
        with ir.InsertionPoint(stores[-1]):
            choice = scf.IfOp(aligned, has_else=True)
        with ir.InsertionPoint(choice.then_block):
            for store in stores:
                value, buffer, *indices = store.operands
                vector.StoreOp(value, buffer, indices, nontemporal=True, alignment=_size(value, lanes))
            scf.YieldOp([])
        with ir.InsertionPoint(choice.else_block):
            end = scf.YieldOp([])
        for store in stores:
            store.move_before(end.operation)


def _size(value: Value, lanes: int) -> int:
    """Return the bytes of ``lanes`` elements of ``value``, which has at least as many."""
    return lanes * int(ir.VectorType(value.type).element_type.width) // 8


def _all_aligned(stores: list[Operation], lanes: int) -> Value:
    """Return whether the buffers that ``stores`` write to are aligned to the vectors that they write."""
    index = ir.IndexType.get()
    misplaced = None
    sizes = dict.fromkeys((store.operands[1], _size(store.operands[0], lanes)) for store in stores)
    for buffer, size in sizes:
        address = memref.ExtractAlignedPointerAsIndexOp(buffer).result
        mask = arith.ConstantOp(index, ir.IntegerAttr.get(index, size - 1)).result
        bits = arith.AndIOp(address, mask).result
        misplaced = bits if misplaced is None else arith.OrIOp(misplaced, bits).result
    zero = arith.ConstantOp(index, ir.IntegerAttr.get(index, 0)).result
    return arith.CmpIOp(arith.CmpIPredicate.eq, misplaced, zero).result


def _outermost(loop: Operation) -> Operation:
    """Return the parallel loop that ``loop`` is in, or else the outermost loop around it."""
    found = op = loop
    while op.name != "func.func":
        if op.name == "scf.for":
            found = op
            if PARALLEL_ATTRIBUTE in op.attributes:
                return op
        op = op.parent.operation
    return found


def _fence(loop: Operation) -> None:
    """Make what a chunk stored visible to other threads before it counts as done."""
    if PARALLEL_ATTRIBUTE in loop.attributes:
        point = ir.InsertionPoint(terminator_of(loop.regions[0].blocks[0]))
    else:
        point = ir.InsertionPoint.after(loop)
    with loop.location, point:
        llvm_operations.fence()
