"""Operations of a program that became part of others, or of nothing."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mind_mlir.tools.explorer.exploration import SourceOperation


def absorbed(operations: Sequence[SourceOperation], present: Collection[int]) -> Mapping[int, frozenset[int]]:
    """Return what each operation that a form still has stands for besides: what it reads that is gone.

    A pass that writes two operations as one leaves the place of the last of them. What nothing that is left
    has read was of no use, and became part of nothing.

    Args:
        operations: All operations, by their numbers; each reads some before it.
        present: The numbers of those that are left.
    """
    found: dict[int, set[int]] = defaultdict(set)
    into: dict[int, set[int]] = defaultdict(set)  # of what is gone, what is left and reads it
    for number in reversed(range(len(operations))):
        mine = {number} if number in present else into[number]
        for read in operations[number].inputs:
            if read not in present and read < number:
                into[read] |= mine
    for number, others in into.items():
        for other in others:
            found[other].add(number)
    return {number: frozenset(others) for number, others in found.items()}
