"""Temporaries of which each chunk of a loop has some elements to itself, as memory of the chunk.

While loops are merged, such memory is a buffer of the chunk on the stack. In the end it is one buffer of the
arena in front of the loop, for the thread that calls; the other threads bring their own
(`lowering/threads.py`). None of it is on a stack: that of a caller may be small.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.buffers.footprint import Touch, first_operand
from mind_mlir.lowering.buffers.spans import hull
from mind_mlir.lowering.emission.emitter import PARALLEL_ATTRIBUTE, PRIVATE_ATTRIBUTE
from mind_mlir.mlir.bindings import arith, ir, memref
from mind_mlir.mlir.memory import METADATA, VIEWS, byte_size, is_contiguous, reinterpreted, views_of
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.values import is_result_of
from mind_mlir.target.abi import ALIGNMENT, OWN_BYTES

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mind_mlir.mlir.bindings import Module, Operation, Type, Value


def make_private(loop: Operation, parts: Sequence[tuple[dict[Value, Touch], int]]) -> None:
    """Replace temporaries of which each chunk of ``loop``, their only user, has a part by buffers of a chunk.

    Args:
        loop: A parallel loop over chunks, whose body is one loop after the other.
        parts: What an iteration of each of these touches, and how many of them belong to a chunk.
    """
    left = OWN_BYTES
    roots = dict.fromkeys(root for touches, _ in parts for root in touches)
    for root in roots:
        window = _window(root, parts)
        if window is None or root.owner.operation.block != loop.block:
            continue
        views = views_of(root)
        users = dict.fromkeys(user for touches, _ in parts if root in touches for user in touches[root].users)
        if not all(_is_cut(view, root, window, users) for view in views):
            continue
        type_ = ir.MemRefType.get([window], root.type.element_type)
        if own_size(type_) <= left:
            left -= own_size(type_)
            chunk = _Chunk(loop, root, window)
            for view in views:
                chunk.take_over(view)
            _erase(root)


def own_size(type_: Type) -> int:
    """Return how many of the `OWN_BYTES` of a thread a buffer takes."""
    return -(-byte_size(type_) // ALIGNMENT) * ALIGNMENT


def leave_stack(module: Module) -> None:
    """Put what `make_private` has made in front of its loop: a buffer for one chunk after the other.

    So it is with what a chunk allocates itself, as a row program does for what it keeps of a row. What would
    be too much for a thread has a place for each chunk instead.
    """
    left: dict[Operation, int] = {}
    for own in (*find_all(module, memref.AllocaOp), *find_all(module, memref.AllocOp)):
        is_made = PRIVATE_ATTRIBUTE in own.attributes
        loop = _outermost_loop(own) if is_made or own.operation.name == "memref.alloc" else None
        if loop is None:
            continue
        left[loop] = left.get(loop, OWN_BYTES) - own_size(own.result.type)
        is_shared = left[loop] < 0
        with ir.InsertionPoint(own if is_shared else loop), own.location:
            attributes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}
            if not is_shared:
                attributes[PRIVATE_ATTRIBUTE] = ir.UnitAttr.get()
            buffer = ir.Operation.create("memref.alloc", [own.result.type], [], attributes)
        own.result.replace_all_uses_with(buffer.result)
        own.erase()


def _outermost_loop(op: Operation) -> Operation | None:
    """Return the outermost parallel loop around ``op``, if there is one."""
    found, around = None, op.parent.operation
    while around.name != "func.func":
        if PARALLEL_ATTRIBUTE in around.attributes:
            found = around
        around = around.parent.operation
    return found


def _window(root: Value, parts: Sequence[tuple[dict[Value, Touch], int]]) -> int | None:
    """Return how many elements of ``root`` each chunk has to itself; None if it is no such buffer."""
    if not is_result_of(root, "memref.alloc"):
        return None
    spans = []
    for touches, count in parts:
        if root not in touches:
            continue
        span = touches[root].span
        if span is None or span.pitch <= 0:
            return None
        spans.append(span.of_several(count))
    window = hull(spans)
    if window is None or window.low < 0 or window.high >= window.pitch:
        return None
    return window.pitch


def _is_cut(view: Value, root: Value, window: int, users: Collection[Operation]) -> bool:
    """Return whether ``users`` alone use ``view`` of ``root``, and ``window`` elements are rows of it."""
    type_ = view.type
    if not is_contiguous(type_) or type_.element_type != root.type.element_type:
        return False
    accessed = False
    for use in view.uses:
        user = use.owner.operation
        if user.name == METADATA:
            base, *numbers = user.results
            if any(list(number.uses) for number in numbers):
                return False
            if any(each.owner.operation not in users for each in base.uses):
                return False
        elif user.name not in VIEWS:
            if user not in users:
                return False
            accessed = True
    return not accessed or (bool(type_.shape) and window % math.prod(type_.shape[1:]) == 0)


class _Chunk:
    """Memory of a chunk in the place of a temporary.

    Args:
        loop: The loop over chunks.
        root: The temporary.
        window: How many elements of it a chunk has to itself.
    """

    def __init__(self, loop: Operation, root: Value, window: int) -> None:
        self._root = root
        self._window = window
        self._number = loop.regions[0].blocks[0].arguments[0]
        self._point = ir.InsertionPoint.at_block_begin(loop.regions[0].blocks[0])
        self._location = loop.location
        with self._point, self._location:
            segments = {
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
                "alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ALIGNMENT),
                PRIVATE_ATTRIBUTE: ir.UnitAttr.get(),
            }
            self._type = self._form(root.type)
            self._own = ir.Operation.create("memref.alloca", [self._type], [], segments).result

    def take_over(self, view: Value) -> None:
        """Let those who use ``view``, the temporary or a view of it, use this memory instead."""
        uses = [(use.owner.operation, use.operand_number) for use in view.uses]
        accesses = [use for use in uses if use[0].name not in (*VIEWS, METADATA)]
        if accesses:
            with self._point, self._location:
                type_ = self._form(view.type)
                own = self._own if type_ == self._type else reinterpreted(self._own, type_)
                first = self._first(type_.shape[0])
            for user, number in accesses:
                user.operands[number] = own
                _subtract(user, number + 1, first)
        for described in (user for user, _ in uses if user.name == METADATA):
            for use in list(described.results[0].uses):
                self._take_over_call(use.owner.operation, use.operand_number)

    def _take_over_call(self, call: Operation, number: int) -> None:
        """Let operand ``number`` of ``call``, the address of the temporary, be that of this memory."""
        with self._point, self._location:
            base = ir.MemRefType.get([], self._type.element_type)
            numbers = [ir.IndexType.get()] * (1 + 2 * len(self._type.shape))
            found = ir.Operation.create(METADATA, [base, *numbers], [self._own]).results[0]
            first = self._first(self._window)
        call.operands[number] = found
        _subtract(call, first_operand(number), first)

    def _form(self, type_: Type) -> Type:
        """Return the type of this memory where the temporary is seen as ``type_``."""
        rest = list(type_.shape[1:])
        if self._window % math.prod(rest):
            return ir.MemRefType.get([self._window], type_.element_type)
        return ir.MemRefType.get([self._window // math.prod(rest), *rest], type_.element_type)

    def _first(self, size: int) -> Value:
        """Emit the number of the first of ``size`` rows or elements that the chunk has."""
        return arith.MulIOp(self._number, arith.ConstantOp(ir.IndexType.get(), size).result).result


def _subtract(user: Operation, number: int, value: Value) -> None:
    """Subtract ``value`` from operand ``number`` of ``user``."""
    with ir.InsertionPoint(user), user.location:
        user.operands[number] = arith.SubIOp(user.operands[number], value).result


def _erase(root: Value) -> None:
    """Erase ``root`` and its views, which nothing uses any more."""
    for view in reversed(views_of(root)):
        for use in list(view.uses):
            use.owner.operation.erase()
    root.owner.operation.erase()
