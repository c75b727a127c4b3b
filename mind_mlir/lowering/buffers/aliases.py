"""Alias analysis of buffers: the values that may refer to one, and the operations that use any of them.

`Accesses` holds those of one buffer in the order of a block, while operations are erased and moved.
"""

from __future__ import annotations

import bisect
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any, NamedTuple

from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.memory import VIEWS
from mind_mlir.mlir.values import is_defined_inside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mind_mlir.mlir.bindings import Block, Operation, Value

LOOPS = ("scf.for", "scf.forall", "scf.parallel", "scf.while")
_TERMINATORS = ("scf.yield", "scf.condition", "memref.alloca_scope.return")


class EscapeError(Exception):
    """A buffer outlives the iteration that allocates it: one static slot cannot hold all its instances."""


class BufferUse(NamedTuple):
    """An operation, and the number of its operand that may refer to the buffer."""

    user: Operation
    operand: int


class Uses(NamedTuple):
    """The uses of a buffer and its aliases.

    Attributes:
        found: Every use of it, in no particular order.
        aliases: Every value that may refer to it, itself included.
    """

    found: list[BufferUse]
    aliases: set[Value]


def buffer_uses(root: Value, *, escapes: bool = False) -> Uses:
    """Find the uses of ``root``, directly or through a value that may alias it.

    Aliases arise from view-like operations, loop-carried values, and results of structured control flow. What
    is not known precisely is over-approximated: all memref results and block arguments of the user.

    Args:
        root: A buffer, or one of the values that refer to it: then only uses that derive from it are found.
        escapes: Whether ``root`` may be allocated in a loop that hands it to its next iteration.

    Raises:
        EscapeError: It is, and may not.
    """
    found: list[BufferUse] = []
    aliases = {root}
    pending = [root]
    while pending:
        value = pending.pop()
        for use in value.uses:
            user = use.owner.operation
            found.append(BufferUse(user, use.operand_number))
            if not escapes:
                _check_escape(user, root)
            for alias in _aliases(user, use.operand_number):
                if alias not in aliases:
                    aliases.add(alias)
                    pending.append(alias)
    return Uses(found, aliases)


def _check_escape(user: Operation, root: Value) -> None:
    if user.name != "scf.yield":
        return
    parent = user.parent.operation
    if parent.name in LOOPS and is_defined_inside(root, parent):
        raise EscapeError(f"a buffer allocated in {parent.name} is carried to the next iteration")


def _aliases(user: Operation, operand: int) -> Iterator[Value]:
    name = user.name
    if name == "scf.for":
        yield from _carried(user, operand - 3)
        return
    if name not in _TERMINATORS:
        yield from _all_buffers(user)
        return
    parent = user.parent.operation
    if name == "scf.yield" and parent.name == "scf.for":
        yield from _carried(parent, operand)
        return
    if name == "scf.yield" and parent.name == "scf.if":
        yield parent.results[operand]
        return
    yield from _all_buffers(parent)


def _carried(loop: Operation, index: int) -> tuple[Value, ...]:
    """Return the iteration argument and the result that carry initial value ``index`` of an `scf.for`."""
    return loop.regions[0].blocks[0].arguments[index + 1], loop.results[index]


def _all_buffers(op: Operation) -> Iterator[Value]:
    """Iterate over the buffers among the results of ``op`` and the arguments of its blocks."""
    arguments = (each for region in op.regions for block in region.blocks for each in block.arguments)
    return (value for value in (*op.results, *arguments) if isinstance(value.type, ir.MemRefType))


def input_count(op: Operation) -> int:
    """Return how many operands a linalg operation only reads, its first ones; 0 for other operations."""
    if not op.name.startswith("linalg.") or "operandSegmentSizes" not in op.attributes:
        return 0
    return int(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0])


def within(block: Block, op: Operation) -> Operation | None:
    """Return the operation of ``block`` that is or contains ``op``, or None if it is elsewhere."""
    while op.block != block:
        parent = op.parent
        if parent is None or parent.operation.name == "builtin.module":
            return None
        op = parent.operation
    return op


class Access(NamedTuple):
    """An access of a buffer, as an operation of some block sees it.

    Attributes:
        op: The operation of the block that is or contains the user.
        use: The access itself.
    """

    op: Operation
    use: BufferUse


class Accesses:
    """The accesses of one buffer through any alias, by block and in order.

    Views access nothing: they may be moved as one likes. Whatever else moves must stay in its place among the
    accesses, and what is to be erased must be removed first. Finding accesses takes the logarithm of how many
    there are, and does not depend on how many other operations lie between them.
    """

    def __init__(self, buffer: Value) -> None:
        self._blocks: dict[Block, list[Access]] = {}
        for use in _real(buffer_uses(buffer).found):
            for block, access in _levels(use):
                self._blocks.setdefault(block, []).append(access)
        for accesses in self._blocks.values():
            accesses.sort(key=_position)

    def add(self, uses: Iterable[BufferUse]) -> None:
        """Enter the accesses among ``uses``, which are not known yet."""
        for use in _real(uses):
            for block, access in _levels(use):
                bisect.insort(self._blocks.setdefault(block, []), access, key=_position)

    def remove(self, user: Operation) -> None:
        """Forget the accesses by ``user``, which has no regions."""
        for block, access in _levels(BufferUse(user, 0)):
            accesses = self._blocks.get(block, [])
            first = bisect.bisect_left(accesses, _position(access), key=_position)
            last = bisect.bisect_right(accesses, _position(access), key=_position)
            accesses[first:last] = [each for each in accesses[first:last] if each.use.user != user]

    def between(self, first: Operation, last: Operation) -> Iterator[Access]:
        """Iterate over the accesses by the operations ``first`` to ``last`` of a block, both included."""
        accesses = self._blocks.get(first.block, [])
        start = bisect.bisect_left(accesses, _OF_OP(first), key=_position)
        for index in range(start, len(accesses)):
            if last.is_before_in_block(accesses[index].op):
                return
            yield accesses[index]


def _real(uses: Iterable[BufferUse]) -> Iterator[BufferUse]:
    return (use for use in uses if use.user.name not in VIEWS)


def _levels(use: BufferUse) -> Iterator[tuple[Block, Access]]:
    """Iterate over the blocks around ``use``, up to that of the function, and how it looks from there."""
    op = use.user
    while op.parent is not None and op.name != "func.func":
        yield op.block, Access(op, use)
        op = op.parent.operation


def _compare(one: Operation, other: Operation) -> int:
    if one == other:
        return 0
    return -1 if one.is_before_in_block(other) else 1


_OF_OP = cmp_to_key(_compare)


def _position(access: Access) -> Any:
    return _OF_OP(access.op)
