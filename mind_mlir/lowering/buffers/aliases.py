"""Alias analysis of buffers: the values that may refer to one, and the operations that use any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.values import is_defined_inside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mind_mlir.mlir.bindings import Block, Operation, Value

LOOPS = ("scf.for", "scf.forall", "scf.parallel", "scf.while")
_TERMINATORS = ("scf.yield", "scf.condition", "memref.alloca_scope.return")


class EscapeError(Exception):
    """A buffer outlives the iteration that allocates it: one static slot cannot hold all its instances."""


class Use(NamedTuple):
    """An operation, and the number of its operand that may refer to the buffer."""

    user: Operation
    operand: int


class Uses(NamedTuple):
    """The uses of a buffer and its aliases.

    Attributes:
        found: Every use of it, in no particular order.
        aliases: Every value that may refer to it, itself included.
    """

    found: list[Use]
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
    found: list[Use] = []
    aliases = {root}
    pending = [root]
    while pending:
        value = pending.pop()
        for use in value.uses:
            user = use.owner.operation
            found.append(Use(user, use.operand_number))
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
        yield from _buffers(user.results)
        for region in user.regions:
            for block in region.blocks:
                yield from _buffers(block.arguments)
        return
    parent = user.parent.operation
    if name == "scf.yield" and parent.name == "scf.for":
        yield from _carried(parent, operand)
        return
    if name == "scf.yield" and parent.name == "scf.if":
        yield parent.results[operand]
        return
    yield from _buffers(parent.results)
    for region in parent.regions:
        for block in region.blocks:
            yield from _buffers(block.arguments)


def _carried(loop: Operation, index: int) -> tuple[Value, ...]:
    """Return the iteration argument and the result that carry initial value ``index`` of an `scf.for`."""
    return loop.regions[0].blocks[0].arguments[index + 1], loop.results[index]


def _buffers(values: Iterable[Value]) -> Iterator[Value]:
    return (value for value in values if isinstance(value.type, ir.MemRefType))


def within(block: Block, op: Operation) -> Operation | None:
    """Return the operation of ``block`` that is or contains ``op``, or None if it is elsewhere."""
    while op.block != block:
        parent = op.parent
        if parent is None or parent.operation.name == "builtin.module":
            return None
        op = parent.operation
    return op
