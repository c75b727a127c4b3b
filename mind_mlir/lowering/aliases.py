"""Which values may refer to a buffer, and which operations use it through any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.bindings import ir

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mind_mlir.bindings import Operation, Value

LOOPS = ("scf.for", "scf.forall", "scf.parallel", "scf.while")
_TERMINATORS = ("scf.yield", "scf.condition", "memref.alloca_scope.return")


class EscapeError(Exception):
    """A buffer outlives the iteration that allocates it: one static slot cannot hold all its instances."""


def buffer_users(root: Value) -> list[Operation]:
    """Return every operation that uses ``root``, directly or through a value that may alias it.

    Aliases arise from view-like operations, loop-carried values, and results of structured control flow. What
    is not known precisely is over-approximated: all memref results and block arguments of the user.

    Raises:
        EscapeError: ``root`` is allocated in a loop that hands it to its next iteration.
    """
    allocation = root.owner
    users: list[Operation] = []
    seen = {root}
    pending = [root]
    while pending:
        value = pending.pop()
        for use in value.uses:
            user = use.owner.operation
            users.append(user)
            for alias in _aliases(user, use.operand_number, allocation):
                if alias not in seen:
                    seen.add(alias)
                    pending.append(alias)
    return users


def _aliases(user: Operation, operand: int, allocation: Operation) -> Iterator[Value]:
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
    if name == "scf.yield" and parent.name in LOOPS and is_inside(allocation, parent):
        raise EscapeError(f"a buffer allocated in {parent.name} is carried to the next iteration")
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


def is_inside(op: Operation, ancestor: Operation) -> bool:
    """Return whether ``op`` is nested in a region of ``ancestor``, at any depth."""
    parent = op.operation.parent
    while parent is not None:
        if parent == ancestor:
            return True
        parent = parent.operation.parent
    return False
