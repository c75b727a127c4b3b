"""The accesses of a buffer in the order of a block, while operations are erased and moved."""

from __future__ import annotations

import bisect
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any, NamedTuple

from mind_mlir.lowering.buffers.aliases import Use, buffer_uses
from mind_mlir.mlir.memory import VIEWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mind_mlir.mlir.bindings import Block, Operation, Value


class Access(NamedTuple):
    """An access of a buffer, as an operation of some block sees it.

    Attributes:
        op: The operation of the block that is or contains the user.
        use: The access itself.
    """

    op: Operation
    use: Use


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

    def add(self, uses: Iterable[Use]) -> None:
        """Enter the accesses among ``uses``, which are not known yet."""
        for use in _real(uses):
            for block, access in _levels(use):
                bisect.insort(self._blocks.setdefault(block, []), access, key=_position)

    def remove(self, user: Operation) -> None:
        """Forget the accesses by ``user``, which has no regions."""
        for block, access in _levels(Use(user, 0)):
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


def _real(uses: Iterable[Use]) -> Iterator[Use]:
    return (use for use in uses if use.user.name not in VIEWS)


def _levels(use: Use) -> Iterator[tuple[Block, Access]]:
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
