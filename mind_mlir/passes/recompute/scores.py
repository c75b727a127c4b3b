"""Weights of attention that a gradient reads: computed again from their factors rather than kept.

Scores of all queries and keys are larger than both, and what a softmax makes of them as large again. In tiles
(`lowering/schedule/attention`) none of them reaches memory, unless something reads them that is not computed
in the same tiles: a gradient is not where layers are functions, since it is in another one. So what comes
later reads a copy of the whole chain, product included, which becomes part of its own tiles.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.ir.types import TensorType
from mind_mlir.passes.recompute.levels import OperationCopies

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.passes.recompute.levels import Levels

#: Rows and columns of scores that there are at least, and products that each is a sum of at most: others are
#: computed one operation after the other, and a copy would be computed so, too.
_FEWEST, _DEEPEST = 16, 512
_PRODUCTS = frozenset(("DotGeneral", "MatMul"))


class Chain(NamedTuple):
    """A chain of operations that are computed again.

    Attributes:
        operations: The numbers of the operations that are copied.
        readers: Those of the operations that read the copies.
    """

    operations: frozenset[int]
    readers: frozenset[int]


def chains_of(levels: Levels) -> Iterator[Chain]:
    """Yield the chains of a block: from products, through reductions of rows, to what later levels read."""
    owners = _owners(levels)
    members: dict[int, list[int]] = {}
    for number, owner in owners.items():
        members.setdefault(owner, []).append(number)
    for each in members.values():
        chain = _chain(levels, set(each))
        if chain is not None:
            yield chain


def with_copies(levels: Levels, chains: Iterable[Chain], fresh: Iterator[ValueId]) -> Iterator[CoreOperation]:
    """Yield the operations of a block, with copies of chains in front of the operations that read them.

    Args:
        levels: The block.
        chains: The chains.
        fresh: Numbers for values.
    """
    of_reader: dict[int, list[OperationCopies]] = {}
    for chain in chains:
        copies = OperationCopies(levels, chain.operations, fresh)
        for reader in chain.readers:
            of_reader.setdefault(reader, []).append(copies)
    for number, operation in enumerate(levels.operations):
        changed = operation
        for copies in of_reader.get(number, ()):
            *made, changed = copies.reading(changed, changed.operands)
            yield from made
        yield changed


def _owners(levels: Levels) -> dict[int, int]:
    """Return what scores of the same level are read by, themselves included: the first scores of each."""
    owners: dict[int, int] = {}
    for number, operation in enumerate(levels.operations):
        if _is_score(levels, operation):
            owners[number] = number
            continue
        if levels.is_border(number):
            continue
        makers = {levels.made_by[value] for value in levels.reads[number] if value in levels.made_by}
        found = {owners[each] for each in makers if each in owners and levels.of[each] == levels.of[number]}
        if not found:
            continue
        first = min(found)
        owners[number] = first
        if len(found) > 1:
            owners.update((each, first) for each, owner in owners.items() if owner in found)
    return owners


def _is_score(levels: Levels, operation: CoreOperation) -> bool:
    """Return whether an operation is a product that is no smaller than its factors together."""
    if operation.opcode not in _PRODUCTS:
        return False
    shapes = [
        type_.extents
        for type_ in map(levels.types.get, (*operation.operands, operation.value_id))
        if isinstance(type_, TensorType) and type_.dtype.is_float
    ]
    if len(shapes) != 3 or len(shapes[2]) < 2:
        return False
    *batch, rows, columns = shapes[2]
    left, right, scores = map(math.prod, shapes)
    if scores < left + right or min(rows, columns) < _FEWEST:
        return False
    return left * right <= _DEEPEST * _DEEPEST * scores * math.prod(batch)


def _chain(levels: Levels, members: set[int]) -> Chain | None:
    """Return what of ``members`` later levels read; None where it has to be in memory anyway."""
    operations = levels.operations
    made = {value for number in members for value in operations[number].result_ids}
    if not made.isdisjoint(levels.returned):
        return None
    users = {user for value in made for user in levels.users.get(value, ())} - members
    first = min((levels.of[user] for user in users), default=0)
    now = {user for user in users if levels.of[user] == first}
    later = users - now
    if not later or not all(operations[user].opcode in _PRODUCTS for user in now):
        return None
    needed = _needed(levels, members, later)
    if any(operations[number].others for number in needed) or any(operations[user].regions for user in later):
        return None
    if not any(levels.is_other(number) for number in needed):
        return None
    return Chain(frozenset(needed), frozenset(later))


def _needed(levels: Levels, members: set[int], readers: Iterable[int]) -> set[int]:
    """Return which of ``members`` what ``readers`` read is made of."""
    found: set[int] = set()
    pending = list(readers)
    while pending:
        for value in levels.reads[pending.pop()]:
            maker = levels.made_by.get(value)
            if maker in members and maker not in found:
                found.add(maker)
                pending.append(maker)
    return found
