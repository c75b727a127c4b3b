"""Buffers of which each chunk of a parallel loop needs no more than a window, as memory of the chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.abi import ALIGNMENT
from mind_mlir.bindings import arith, ir
from mind_mlir.lowering.buffers.footprint import Touch, hull
from mind_mlir.mlir.memory import byte_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.bindings import Operation, Type, Value

#: Bytes of such memory in all: it lies on the stack of the thread, and is to stay in the second-level cache.
MOST_BYTES = 256 << 10


def make_private(loop: Operation, parts: Sequence[tuple[dict[Value, Touch], int]]) -> None:
    """Replace temporaries that only ``loop`` uses, each chunk some rows of its own, by buffers of a chunk.

    Args:
        loop: A parallel loop over chunks, whose body is one loop after the other.
        parts: What an iteration of each of these touches, and how many of them belong to a chunk.
    """
    left = MOST_BYTES
    roots = dict.fromkeys(root for touches, _ in parts for root in touches)
    for root in roots:
        rows = _rows(root, loop, parts)
        if rows is None:
            continue
        type_ = ir.MemRefType.get([rows, *root.type.shape[1:]], root.type.element_type)
        if byte_size(type_) <= left:
            left -= byte_size(type_)
            users = [user for touches, _ in parts if root in touches for user in touches[root].users]
            _replace(root, loop, type_, users)


def _rows(root: Value, loop: Operation, parts: Sequence[tuple[dict[Value, Touch], int]]) -> int | None:
    """Return how many rows of ``root`` each chunk of ``loop`` has to itself; None if it is no such buffer."""
    if isinstance(root, ir.BlockArgument) or root.owner.operation.name != "memref.alloc":
        return None
    if not all(_is_inside(use.owner.operation, loop) for use in root.uses):
        return None
    spans = []
    for touches, count in parts:
        if root not in touches:
            continue
        span = touches[root].rows
        if span is None or span.pitch <= 0:
            return None
        high = span.high + span.pitch * (count - 1)
        spans.append(span._replace(pitch=span.pitch * count, high=high))
    window = hull(spans)
    if window is None or window.low < 0 or window.high >= window.pitch:
        return None
    return window.pitch


def _is_inside(user: Operation, loop: Operation) -> bool:
    """Return whether ``user`` is somewhere in ``loop``."""
    op = user
    while op.parent is not None:
        if op == loop:
            return True
        op = op.parent.operation
    return False


def _replace(root: Value, loop: Operation, type_: Type, users: list[Operation]) -> None:
    """Let ``users`` use a buffer of ``type_`` for ``root``, with rows counted from the start of a chunk."""
    body = loop.regions[0].blocks[0]
    with ir.InsertionPoint.at_block_begin(body), loop.location:
        segments = {
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
            "alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ALIGNMENT),
        }
        own = ir.Operation.create("memref.alloca", [type_], [], segments).result
        rows = arith.ConstantOp(ir.IndexType.get(), type_.shape[0]).result
        first = arith.MulIOp(body.arguments[0], rows).result
    for user in users:
        number = 1 if user.name.endswith(("store", "write")) else 0
        with ir.InsertionPoint(user), user.location:
            row = arith.SubIOp(user.operands[number + 1], first).result
        user.operands[number] = own
        user.operands[number + 1] = row
    root.owner.operation.erase()
