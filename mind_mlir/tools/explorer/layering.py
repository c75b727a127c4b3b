"""Which layer of a drawn graph each box stands in, and in which order: what reads stands below what is read.

The method is that of Sugiyama, Tagawa and Toda (1981): layers by longest paths, a bend in each layer that an
edge passes, and sweeps that put boxes near the mean of their neighbours. All of it takes time that grows with
boxes and bends, and bends are few: edges from one box share them, and very long edges have none.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

#: An edge over more layers has no bends: it is drawn as one line across the others.
LONGEST_BENT = 40
#: Boxes and bends up to which crossings are counted, so that the best of many sweeps is kept.
_COUNTED = 6_000


class DrawnEdge(NamedTuple):
    """An edge of the graph, and the points that it goes through."""

    source: int
    target: int
    #: The numbers of the points that it bends at, downwards; those of boxes are lower than all of these.
    bends: tuple[int, ...]


class Layers(NamedTuple):
    """Boxes and bends in layers.

    Attributes:
        layers: The numbers of boxes and bends in each layer, from the left.
        edges: The edges, each from the higher layer to the lower one.
        above: The neighbours of each box and bend in the layer above, by its number.
        below: Those in the layer below.
    """

    layers: list[list[int]]
    edges: list[DrawnEdge]
    above: list[list[int]]
    below: list[list[int]]


def layered(inputs: Sequence[Sequence[int]]) -> Layers:
    """Return the boxes of a graph in layers and in order, where ``inputs[box]`` is what box reads."""
    pairs = _pairs(inputs)
    depth = _depths(len(inputs), pairs)
    found = _with_bends(len(inputs), pairs, depth)
    _order(found)
    return found


def connected(inputs: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the boxes of each part of a graph that no edge connects with the rest, in their order."""
    lower = list(range(len(inputs)))

    def lowest(box: int) -> int:
        while lower[box] != box:
            lower[box] = lower[lower[box]]
            box = lower[box]
        return box

    for source, target in _pairs(inputs):
        one, other = sorted((lowest(source), lowest(target)))
        lower[other] = one
    parts: dict[int, list[int]] = defaultdict(list)
    for box in range(len(inputs)):
        parts[lowest(box)].append(box)
    return list(parts.values())


def _pairs(inputs: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return the edges, once each, from lower numbers to higher ones, so that loops hold none up."""
    count = len(inputs)
    return sorted(
        {
            (min(read, box), max(read, box))
            for box, reads in enumerate(inputs)
            for read in reads
            if read != box and 0 <= read < count
        }
    )


def _depths(count: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Return the layer of each box: below what it reads, and as low as can be where that shortens edges."""
    reads: list[list[int]] = [[] for _ in range(count)]
    readers: list[list[int]] = [[] for _ in range(count)]
    for source, target in pairs:
        reads[target].append(source)
        readers[source].append(target)
    depth = [0] * count
    for box in range(count):
        depth[box] = max((depth[read] + 1 for read in reads[box]), default=0)
    # What is read once, and reads only such boxes, goes along with its reader.
    along = [False] * count
    for box in range(count):
        along[box] = len(readers[box]) == 1 and all(along[read] for read in reads[box])
    for box in reversed(range(count)):
        if readers[box] and len(readers[box]) >= sum(not along[read] for read in reads[box]):
            depth[box] = min(depth[reader] for reader in readers[box]) - 1
    return depth


def _with_bends(count: int, pairs: Sequence[tuple[int, int]], depth: Sequence[int]) -> Layers:
    layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for box, layer in enumerate(depth):
        layers[layer].append(box)
    found = Layers(layers, [], [[] for _ in range(count)], [[] for _ in range(count)])
    bends: dict[int, list[int]] = defaultdict(list)
    for source, target in pairs:
        needed = depth[target] - depth[source] - 1
        if needed >= LONGEST_BENT:
            found.edges.append(DrawnEdge(source, target, ()))
            continue
        own = bends[source]
        while len(own) < needed:
            bend = len(found.above)
            _connect(found, own[-1] if own else source, bend)
            found.layers[depth[source] + 1 + len(own)].append(bend)
            own.append(bend)
        path = tuple(own[:needed])
        _connect(found, path[-1] if path else source, target)
        found.edges.append(DrawnEdge(source, target, path))
    return found


def _connect(found: Layers, upper: int, lower: int) -> None:
    if lower == len(found.above):
        found.above.append([])
        found.below.append([])
    found.above[lower].append(upper)
    found.below[upper].append(lower)


def _order(found: Layers) -> None:
    """Put each layer in an order with few crossings."""
    place = [0] * len(found.above)
    for layer in found.layers:
        _number(layer, place)
    counted = len(place) <= _COUNTED
    best = [list(layer) for layer in found.layers]
    fewest = _crossings(found, place) if counted else 0
    for sweep in range(12 if counted else 4):
        down = sweep % 2 == 0
        neighbours = found.above if down else found.below
        for layer in found.layers if down else reversed(found.layers):
            layer.sort(key=lambda each: _mean([place[other] for other in neighbours[each]], place[each]))
            _number(layer, place)
        crossings = _crossings(found, place) if counted else -1
        if crossings < fewest or not counted:
            fewest, best = crossings, [list(layer) for layer in found.layers]
        if fewest == 0:
            break
    found.layers[:] = best


def _number(layer: Sequence[int], place: list[int]) -> None:
    for position, each in enumerate(layer):
        place[each] = position


def _mean(places: Sequence[int], default: int) -> float:
    return sum(places) / len(places) if places else default


def _crossings(found: Layers, place: Sequence[int]) -> int:
    """Return how many edges between neighbouring layers cross: pairs that stand the other way round below."""
    crossings = 0
    for layer in found.layers:
        ends: list[int] = []
        for upper in layer:
            lower = sorted(place[each] for each in found.below[upper])
            crossings += sum(len(ends) - bisect_left(ends, end + 1) for end in lower)
            for end in lower:
                insort(ends, end)
    return crossings
