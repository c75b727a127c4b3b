"""Copies that need not happen, because their source can be computed in their destination.

A temporary that ends in a copy is replaced by the copy's destination when nothing touches the destination
between the temporary's first use and the copy. Results reach the caller's buffers this way, parts of a tensor
their place in the whole, and loop-carried values their home.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mind_mlir.lowering.buffers.aliases import Accesses, BufferUse, Uses, buffer_uses, input_count, within
from mind_mlir.mlir.bindings import ir, memref
from mind_mlir.mlir.memory import VIEWS, reinterpreted, reshaped_type, root_of
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.values import is_result_of

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Module, Operation, Value

#: Operations that take buffers of any layout.
_ANY_LAYOUT = (
    "memref.copy",
    "memref.load",
    "memref.store",
    "vector.load",
    "vector.store",
    "vector.transfer_read",
    "vector.transfer_write",
)
_RESHAPES = ("memref.collapse_shape", "memref.expand_shape")
_READERS = ("memref.load", "vector.load", "vector.transfer_read")


def coalesce_copies(module: Module) -> None:
    """Remove the copies in ``module`` whose source can be computed in their destination."""
    coalescer = _Coalescer()
    for copy in [_unshaped(copy) for copy in find_all(module, memref.CopyOp)]:
        source, target = copy.operands
        root = root_of(target)
        if _is_same(source, target):
            coalescer.erase(copy, root)
            continue
        if root is not None and root != source and _is_temporary_of(source, copy):
            coalescer.coalesce(copy, source, target, root)


def _is_same(source: Value, target: Value) -> bool:
    """Return whether both are the same memory: one value, or the same part of one."""
    if source == target:
        return True
    if not (is_result_of(source, "memref.subview") and is_result_of(target, "memref.subview")):
        return False
    one, other = source.owner, target.owner
    alike = source.type == target.type and list(one.operands)[1:] == list(other.operands)[1:]
    names = ("static_offsets", "static_sizes", "static_strides")
    alike = alike and all(one.attributes[name] == other.attributes[name] for name in names)
    return alike and _is_same(one.operands[0], other.operands[0])


def _are_apart(one: Value, other: Value) -> bool:
    """Return whether both are parts of one buffer that have no element in common, for all that is known."""
    one, other = _in_their_shape(one), _in_their_shape(other)
    if not (is_result_of(one, "memref.subview") and is_result_of(other, "memref.subview")):
        return False
    ops = one.owner.operation, other.owner.operation
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    spans = []
    for op in ops:
        names = ("static_offsets", "static_sizes", "static_strides")
        parts = zip(*(list(ir.DenseI64ArrayAttr(op.attributes[name])) for name in names), strict=True)
        spans.append([(at, dynamic if dynamic in (at, n, by) else at + (n - 1) * by) for at, n, by in parts])
    return ops[0].operands[0] == ops[1].operands[0] and any(
        dynamic not in (*left, *right) and (left[1] < right[0] or right[1] < left[0])
        for left, right in zip(*spans, strict=True)
    )


def _in_their_shape(value: Value) -> Value:
    """Return what ``value`` shows all elements of in another shape."""
    while is_result_of(value, "memref.reinterpret_cast", *_RESHAPES):
        source = value.owner.operands[0]
        if math.prod(source.type.shape) != math.prod(value.type.shape):
            break
        value = source
    return value


def _unshaped(copy: Operation) -> Operation:
    """Return ``copy``, or what takes its place, if its source is a whole temporary in another shape.

    That is a copy of the temporary itself, to the same memory in its shape.
    """
    source, target = copy.operands
    shaped = source
    while is_result_of(source, *_RESHAPES):
        source = source.owner.operands[0]
    type_ = reshaped_type(target.type, source.type.shape)
    if source == shaped or not _is_temporary_of(source, copy) or type_ is None:
        return copy
    with ir.InsertionPoint(copy), copy.location:
        target = reinterpreted(target, type_)
        new = ir.Operation.create("memref.copy", [], [source, target])
    copy.erase()
    while shaped != source and not list(shaped.uses):
        view = shaped.owner
        shaped = view.operands[0]
        view.erase()
    return new


def _is_temporary_of(source: Value, copy: Operation) -> bool:
    """Return whether ``source`` is allocated in the block of ``copy``."""
    return is_result_of(source, "memref.alloc") and bool(source.owner.operation.block == copy.block)


class _Coalescer:
    """Keeps what is known of buffers up to date while copies disappear."""

    def __init__(self) -> None:
        self._accesses: dict[Value, Accesses] = {}  # of destinations

    def erase(self, copy: Operation, root: Value | None) -> None:
        """Erase ``copy``, whose destination is a view of ``root``, or of any buffer if that is None."""
        known = list(self._accesses) if root is None else [root]
        for buffer in known:
            if buffer in self._accesses:
                self._accesses[buffer].remove(copy)
        copy.erase()

    def coalesce(self, copy: Operation, source: Value, target: Value, root: Value) -> None:
        """Replace ``source`` by ``target``, a view of ``root``, if nothing else happens there meanwhile."""
        uses = buffer_uses(source)
        if not (source.type == target.type or _takes_any_layout(uses)):
            return
        users = [within(copy.block, use.user) for use in uses.found if use.user.name not in VIEWS]
        if any(user is None for user in users):
            return  # used outside of the block: it leaves through the terminator
        if root not in self._accesses:
            self._accesses[root] = Accesses(root)
        if self._is_safe(copy, users, uses) and _hoist(target, source.owner.operation):
            self._accesses[root].add(use for use in uses.found if use.user != copy)
            self._accesses.pop(source, None)
            self.erase(copy, root)
            source.replace_all_uses_with(target)
            source.owner.operation.erase()

    def _is_safe(self, copy: Operation, users: list[Any], uses: Uses) -> bool:
        """Return whether source and destination of ``copy`` do not get into each other's way as one.

        From the source's first access up to ``copy`` only the first access itself may read the destination,
        element by element where it writes the source. Up to the source's last access both are only read then.
        """
        source, target = copy.operands
        first = last = copy
        for user in users:
            first = user if user.is_before_in_block(first) else first
            last = user if last.is_before_in_block(user) else last
        for op, access in self._accesses[root_of(target)].between(first, last):
            if op == copy or _are_apart(access.user.operands[access.operand], target):
                continue
            if copy.is_before_in_block(op):
                if not _reads(access):
                    return False
            elif access.user != first or not _is_in_place(first, source, target):
                return False
        accesses = [use for use in uses.found if use.user.name not in VIEWS]
        return all(
            _reads(use) or not copy.is_before_in_block(user)
            for use, user in zip(accesses, users, strict=True)
        )


def _hoist(value: Value, anchor: Operation) -> bool:
    """Move what computes ``value`` before ``anchor`` where needed, if that is possible."""
    late: list[Operation] = []
    if not _find_late(value, anchor, late):
        return False
    for op in late:
        op.move_before(anchor)
    return True


def _takes_any_layout(uses: Uses) -> bool:
    return len(uses.aliases) == 1 and all(
        user.name in _ANY_LAYOUT or user.name.startswith("linalg.") for user, _ in uses.found
    )


def _reads(use: BufferUse) -> bool:
    """Return whether the operand is only read."""
    name = use.user.name
    return name in _READERS or use.operand < (1 if name == "memref.copy" else input_count(use.user))


def _is_in_place(op: Operation, source: Value, target: Value) -> bool:
    """Return whether ``op`` reads ``target`` element by element, where it writes it to ``source``."""
    if op.block != source.owner.operation.block or op.name != "linalg.generic":
        return False
    if any(iterator != _parallel() for iterator in ir.ArrayAttr(op.attributes["iterator_types"])):
        return False
    root = root_of(target)
    maps = []
    for value, map_ in zip(op.operands, ir.ArrayAttr(op.attributes["indexing_maps"]), strict=True):
        if not isinstance(value.type, ir.MemRefType):
            continue
        if value in (source, target):
            maps.append(map_)
            continue
        other = root_of(value)
        if other is None or other in (root, source):
            return False
    return len(set(maps)) == 1 and bool(ir.AffineMapAttr(maps[0]).value.is_permutation)


def _parallel() -> object:
    return ir.Attribute.parse("#linalg.iterator_type<parallel>")


def _find_late(value: Value, anchor: Operation, late: list[Operation]) -> bool:
    """Enter in ``late`` what ``value`` needs from after ``anchor``; return whether all of it can be moved."""
    if isinstance(value, ir.BlockArgument) or value.owner.operation.block != anchor.block:
        return True
    op = value.owner.operation
    if op.is_before_in_block(anchor) or op in late:
        return True
    if op.name not in (*VIEWS, "affine.apply", "arith.constant", "memref.alloc"):
        return False
    if not all(_find_late(operand, anchor, late) for operand in op.operands):
        return False
    late.append(op)
    return True
