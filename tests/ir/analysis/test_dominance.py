"""Dominators against their definition, on all kinds of graphs; and on large ones in linear time."""

from __future__ import annotations

import random

import pytest

from mind_mlir.ir.analysis.dominance import DominatorTree, predecessors, reverse_postorder, successors
from mind_mlir.ir.module import Block, Branch, CondBranch, Return, Target

Graph = list[tuple[int, ...]]

LARGE = 100_000


def reachable(graph: Graph, without: int | None = None) -> set[int]:
    found = {0} - {without}
    stack = list(found)
    while stack:
        for target in graph[stack.pop()]:
            if target != without and target not in found:
                found.add(target)
                stack.append(target)
    return found


def dominators(graph: Graph) -> dict[int, set[int]]:
    """Return what dominates each block, by the definition: without it, the block cannot be reached."""
    reached = reachable(graph)
    lost = {block: reached - reachable(graph, without=block) for block in reached}
    return {block: {above for above in reached if block in lost[above]} for block in reached}


def random_graph(seed: int) -> Graph:
    rng = random.Random(seed)  # noqa: S311 -- no secret
    size = rng.randint(1, 12)
    return [tuple(rng.randrange(size) for _ in range(rng.choice((0, 1, 1, 2, 2)))) for _ in range(size)]


@pytest.mark.parametrize("seed", range(400))
def test_dominators_are_those_of_the_definition(seed: int) -> None:
    graph = random_graph(seed)
    tree, expected = DominatorTree.of(graph), dominators(graph)
    assert set(tree.order) == set(expected) == {b for b in range(len(graph)) if tree.is_reachable(b)}
    for block, above in expected.items():
        assert {other for other in expected if tree.dominates(other, block)} == above
        # The immediate dominator is dominated by all others.
        strict = above - {block}
        nearest = next((one for one in strict if expected[one] == strict), -1)
        assert tree.immediate[block] == nearest
    assert sorted(block for below in tree.children() for block in below) == sorted(set(expected) - {0})
    assert all(tree.immediate[block] == -1 for block in set(range(len(graph))) - set(expected))


@pytest.mark.parametrize("seed", range(50))
def test_a_block_stands_before_those_it_dominates(seed: int) -> None:
    graph = random_graph(seed)
    tree = DominatorTree.of(graph)
    place = {block: index for index, block in enumerate(tree.order)}
    assert all(place[tree.immediate[block]] < place[block] for block in tree.order[1:])


def test_reverse_postorder_follows_the_first_target_first() -> None:
    #  head -> body -> head; head -> done
    assert reverse_postorder([(1,), (2, 3), (1,), ()]) == [0, 1, 2, 3]
    assert reverse_postorder([(1, 2), (3,), (3,), ()]) == [0, 1, 2, 3]
    assert reverse_postorder([(2, 1), (3,), (3,), ()]) == [0, 2, 1, 3]


def test_predecessors_stand_once_for_each_way() -> None:
    assert predecessors([(1, 1), (0, 2), ()]) == [[1], [0, 0], [1]]


def test_successors_of_blocks() -> None:
    blocks = [
        Block((), CondBranch(0, Target("b"), Target("nowhere")), label="a"),
        Block((), Branch(Target("a")), label="b"),
        Block((), Return(()), label="b"),
    ]
    assert successors(blocks) == [(1,), (0,), ()]


def ladder(size: int) -> Graph:
    """Each block of a chain may leave for the same exit."""
    return [(place + 1, size - 1) for place in range(size - 2)] + [(size - 1,), ()]


def irreducible(size: int) -> Graph:
    """Each block goes on to the next one, and back and forth between neighbours."""
    return [(min(place + 1, size - 1), max(place - 1, 1)) for place in range(size)]


def nested(size: int) -> Graph:
    """Loops in loops: each block of the second half goes back to one of the first half."""
    half = size // 2
    return [(place + 1,) for place in range(half)] + [
        (min(place + 1, size - 1), size - 1 - place) for place in range(half, size)
    ]


@pytest.mark.parametrize("make", [ladder, irreducible, nested], ids=lambda make: make.__name__)
def test_large_graphs(make: object) -> None:
    assert callable(make)
    graph: Graph = make(LARGE)
    tree = DominatorTree.of(graph)
    assert len(tree.order) == LARGE
    assert tree.dominates(0, LARGE - 1)
    if make is ladder:
        assert tree.immediate[LARGE - 1] == 0
        assert not tree.dominates(1, LARGE - 1)
