"""The graph of a function's blocks, and which of them dominate which.

Block ``a`` dominates block ``b`` when every path from the entry to ``b`` leads through ``a``; each block
dominates itself. Blocks are known by their places in the function; the entry is 0. Dominators are found with
the algorithm of Lengauer and Tarjan ("A fast algorithm for finding dominators in a flowgraph", 1979) with
path compression: O(edges * log(blocks)) for any graph, irreducible ones included, without recursion. Simpler
algorithms walk up the tree for each edge, which takes quadratic time where each block of a long chain may
leave for the same exit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.support.interrupts import deliver
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.module import Block

#: For each block the blocks that may follow.
Successors: TypeAlias = "Sequence[Sequence[int]]"

_NONE = -1


def successors(blocks: Sequence[Block]) -> list[tuple[int, ...]]:
    """Return for each block the places of its targets, in order; targets that do not exist are left out.

    Of several blocks with one label, which no verified function has, the first is meant.
    """
    places: dict[str, int] = {}
    for place, block in enumerate(blocks):
        places.setdefault(block.label, place)
    return [
        tuple(places[target.label] for target in block.terminator.targets if target.label in places)
        for block in blocks
    ]


def predecessors(following: Successors) -> list[list[int]]:
    """Return for each block those that it may follow, in order; one that has two ways to it stands twice."""
    found: list[list[int]] = [[] for _ in following]
    for place, targets in enumerate(following):
        for target in targets:
            found[target].append(place)
    return found


def reverse_postorder(following: Successors, entry: int = 0) -> list[int]:
    """Return the blocks that can be reached from the entry, each before those that follow it (loops aside).

    The first target of a branch, with what follows it alone, stands before the second one.
    """
    reached = {entry}
    postorder: list[int] = []
    stack = [(entry, len(following[entry]))]
    while stack:
        place, left = stack.pop()
        targets = following[place]
        while left:
            left -= 1
            target = targets[left]
            if target not in reached:
                reached.add(target)
                stack += [(place, left), (target, len(following[target]))]
                break
        else:
            postorder.append(place)
    postorder.reverse()
    return postorder


@dataclass(frozen=True, slots=True)
class DominatorTree:
    """The dominator tree of a function's blocks.

    Attributes:
        order: The blocks that can be reached, in reverse postorder.
        immediate: For each block its immediate dominator: the last of its dominators before itself; -1 for
            the entry and for blocks that cannot be reached.
        first, last: For each block the numbers of itself and of the last block below it, in a preorder of the
            tree; -1 where it cannot be reached.
    """

    order: tuple[int, ...]
    immediate: tuple[int, ...]
    first: tuple[int, ...]
    last: tuple[int, ...]

    @classmethod
    def of(cls, following: Successors) -> DominatorTree:
        """Find the dominators of a graph of at least one block."""
        order = reverse_postorder(following)
        immediate = _immediate(following)
        children = _children(order, immediate)
        first, last = [_NONE] * len(following), [_NONE] * len(following)
        number = 0
        stack = [(0, False)]
        while stack:
            place, is_done = stack.pop()
            if is_done:
                last[place] = number - 1
                continue
            first[place] = number
            number += 1
            stack.append((place, True))
            stack.extend((child, False) for child in reversed(children[place]))
        return cls(tuple(order), tuple(immediate), tuple(first), tuple(last))

    def is_reachable(self, block: int) -> bool:
        """Return whether any path leads from the entry to ``block``."""
        return self.first[block] != _NONE

    def dominates(self, block: int, other: int) -> bool:
        """Return whether each path from the entry to ``other`` leads through ``block``.

        Both can be reached; the answer takes constant time.
        """
        return self.first[block] <= self.first[other] <= self.last[block]

    def children(self) -> list[list[int]]:
        """Return for each block those that it immediately dominates, in reverse postorder."""
        return _children(self.order, self.immediate)


def _children(order: Sequence[int], immediate: Sequence[int]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in immediate]
    for place in order[1:]:
        found[immediate[place]].append(place)
    return found


def _immediate(following: Successors) -> list[int]:
    """Return the immediate dominator of each block, or -1."""
    size = len(following)
    # A depth-first tree: blocks in preorder, their numbers in it, and their parents.
    number, parent, preorder = [_NONE] * size, [_NONE] * size, [0]
    number[0] = 0
    stack = [(0, iter(following[0]))]
    while stack:
        place, targets = stack[-1]
        for target in targets:
            if number[target] == _NONE:
                number[target], parent[target] = len(preorder), place
                preorder.append(target)
                stack.append((target, iter(following[target])))
                break
        else:
            stack.pop()

    semi = number.copy()  # the number of each block's semidominator
    label = list(range(size))  # of the compressed path above: the block of the least semidominator
    ancestor = [_NONE] * size
    immediate = [_NONE] * size
    waiting: list[list[int]] = [[] for _ in range(size)]  # blocks by their semidominator
    before = predecessors(following)
    for place in reversed(preorder[1:]):
        deliver()
        for source in before[place]:
            if number[source] != _NONE:
                semi[place] = min(semi[place], semi[_evaluate(source, ancestor, label, semi)])
        waiting[preorder[semi[place]]].append(place)
        above = parent[place]
        ancestor[place] = above
        for block in waiting[above]:
            best = _evaluate(block, ancestor, label, semi)
            immediate[block] = best if semi[best] < semi[block] else above
        waiting[above].clear()
    for place in preorder[1:]:
        if immediate[place] != preorder[semi[place]]:
            immediate[place] = immediate[immediate[place]]
    return immediate


def _evaluate(place: int, ancestor: list[int], label: list[int], semi: list[int]) -> int:
    """Return the block of the least semidominator above ``place`` in the forest; shortens the path."""
    if ancestor[place] == _NONE:
        return label[place]
    path = []
    while ancestor[ancestor[place]] != _NONE:
        path.append(place)
        place = ancestor[place]
    root = ancestor[place]
    best = label[place]
    for block in reversed(path):
        if semi[best] < semi[label[block]]:
            label[block] = best
        best = label[block]
        ancestor[block] = root
    return best
