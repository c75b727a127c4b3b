"""Copies that need not happen, because their source can be computed in their destination.

A temporary that ends in a copy is replaced by the copy's destination when nothing touches the destination
between the temporary's first use and the copy. Results reach the caller's buffers this way, parts of a tensor
their place in the whole, and loop-carried values their home.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.bindings import ir, linalg, memref
from mind_mlir.lowering.aliases import VIEWS, Use, Uses, buffer_uses, root_of, within
from mind_mlir.lowering.passes import find_all

if TYPE_CHECKING:
    from mind_mlir.bindings import Block, Module, Operation, Value

#: Buffers with more uses than this stay as they are, to bound the time.
_MANY = 500
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
_READERS = ("memref.load", "vector.load", "vector.transfer_read")


def coalesce_copies(module: Module) -> None:
    """Remove the copies in ``module`` whose source can be computed in their destination."""
    for copy in find_all(module, memref.CopyOp):
        source, target = copy.operands
        if source == target:
            copy.erase()
            continue
        root = root_of(target)
        if root is not None and root != source and _is_temporary_of(source, copy):
            _coalesce(copy, source, target)


def _is_temporary_of(source: Value, copy: Operation) -> bool:
    """Return whether ``source`` is allocated in the block of ``copy``."""
    if isinstance(source, ir.BlockArgument):
        return False
    owner = source.owner.operation
    return bool(owner.name == "memref.alloc" and owner.block == copy.block)


def _coalesce(copy: Operation, source: Value, target: Value) -> None:
    """Replace ``source`` by ``target`` if nothing else happens to ``target`` while ``source`` lives."""
    uses = buffer_uses(source)
    destination = buffer_uses(root_of(target))
    if len(destination.found) > _MANY or not (source.type == target.type or _takes_any_layout(uses)):
        return
    accesses = _accesses(uses, copy.block)
    if len(accesses) < sum(use.user.name not in VIEWS for use in uses.found):
        return  # used outside of the block: it leaves through the terminator
    others = _accesses(destination, copy.block)
    if not (_is_untouched_before(copy, accesses, others) and _is_only_read_after(copy, accesses, others)):
        return
    if _hoist(target, source.owner.operation):
        copy.erase()
        source.replace_all_uses_with(target)
        source.owner.operation.erase()


class _Access(NamedTuple):
    """A use of a buffer's contents, and the operation of the block at hand that is or contains the user."""

    position: Operation
    use: Use


def _accesses(uses: Uses, block: Block) -> list[_Access]:
    """Return the uses of a buffer's contents inside of ``block``."""
    found = ((within(block, use.user), use) for use in uses.found if use.user.name not in VIEWS)
    return [_Access(position, use) for position, use in found if position is not None]


def _is_untouched_before(copy: Operation, accesses: list[_Access], others: list[_Access]) -> bool:
    """Return whether the destination is not accessed from the source's first access up to ``copy``.

    The first access may read the destination where it writes the source, element by element.
    """
    first = copy
    for position, _ in accesses:
        first = position if position.is_before_in_block(first) else first
    return all(
        position.is_before_in_block(first)
        or not position.is_before_in_block(copy)
        or (use.user == first and _is_in_place(use.user, *copy.operands))
        for position, use in others
    )


def _is_only_read_after(copy: Operation, accesses: list[_Access], others: list[_Access]) -> bool:
    """Return whether source and destination are only read from ``copy`` to the source's last access."""
    last = copy
    for position, _ in accesses:
        last = position if last.is_before_in_block(position) else last
    return all(
        not copy.is_before_in_block(position) or last.is_before_in_block(position) or _reads(use)
        for position, use in accesses + others
    )


def _takes_any_layout(uses: Uses) -> bool:
    return len(uses.aliases) == 1 and all(
        user.name in _ANY_LAYOUT or user.name.startswith("linalg.") for user, _ in uses.found
    )


def _reads(use: Use) -> bool:
    """Return whether the operand is only read."""
    name = use.user.name
    if name.startswith("linalg.") and "operandSegmentSizes" in use.user.attributes:
        return bool(use.operand < ir.DenseI32ArrayAttr(use.user.attributes["operandSegmentSizes"])[0])
    return name in _READERS or (name == "memref.copy" and use.operand == 0)


def _is_in_place(op: Operation, source: Value, target: Value) -> bool:
    """Return whether ``op`` reads ``target`` element by element, where it writes it to ``source``."""
    if op.block != source.owner.operation.block or not isinstance(op.opview, linalg.GenericOp):
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


def _hoist(value: Value, anchor: Operation) -> bool:
    """Move the views that compute ``value`` before ``anchor`` where needed, if that is possible."""
    late: list[Operation] = []
    if not _find_late(value, anchor, late):
        return False
    for op in late:
        op.move_before(anchor)
    return True


def _find_late(value: Value, anchor: Operation, late: list[Operation]) -> bool:
    """Enter in ``late`` what ``value`` needs from after ``anchor``; return whether all of it can be moved."""
    if isinstance(value, ir.BlockArgument) or value.owner.operation.block != anchor.block:
        return True
    op = value.owner.operation
    if op.is_before_in_block(anchor) or op in late:
        return True
    if op.name not in (*VIEWS, "arith.constant", "affine.apply"):
        return False
    if not all(_find_late(operand, anchor, late) for operand in op.operands):
        return False
    late.append(op)
    return True
