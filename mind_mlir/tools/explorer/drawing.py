"""The graph of a program as a picture: boxes with their places, and edges with the points they go through."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.tools.explorer.layering import Layers, connected, layered

if TYPE_CHECKING:
    from mind_mlir.tools.explorer.exploration import SourceOperation

BOX_HEIGHT = 38
LAYER_HEIGHT = 92
_NARROWEST = 64
_BEND = 10
_GAP = 22
#: What a character of a label takes, about.
_CHARACTER = 7.0
_PADDING = 22
LONGEST_LABEL = 34
_SWEEPS = 10
#: What lies between parts that nothing connects, and how much wider than tall all of them are.
_APART = 70
_ASPECT = 1.4
#: How much more than a box a bend keeps to its place.
_STRAIGHT = 12.0


class Drawing(NamedTuple):
    """A graph with places.

    Attributes:
        boxes: The middle, the upper edge and the width of each operation's box.
        labels: What is written on the edges that leave it.
        edges: Source, target, and x and y of each point between them.
        width: That of the picture.
        height: Likewise.
    """

    boxes: tuple[tuple[int, int, int], ...]
    labels: tuple[str, ...]
    edges: tuple[tuple[int, ...], ...]
    width: int
    height: int


def drawn(operations: Sequence[SourceOperation]) -> Drawing:
    """Return the graph of ``operations``, from what is given at the top to what is computed at the bottom.

    Parts that nothing connects stand beside one another, in rows, so that the picture is no long line.
    """
    labels = tuple(shortened(each.type) for each in operations)
    widths = [
        max(_NARROWEST, round(max(map(len, names)) * _CHARACTER) + _PADDING)
        for each, label in zip(operations, labels, strict=True)
        for names in [(each.opcode, each.name[:LONGEST_LABEL], label)]
    ]
    inputs = [each.inputs for each in operations]
    parts = [_part(numbers, inputs, widths) for numbers in connected(inputs)]
    area = sum((part.width + _APART) * (part.height + _APART) for part in parts)
    room = max([_ASPECT * sqrt(area), *(part.width for part in parts)])
    boxes = [(0, 0, 0)] * len(operations)
    edges: list[tuple[int, ...]] = []
    x = y = wide = tall = 0
    for part in parts:
        if x + part.width > room:
            x, y, tall = 0, y + tall + _APART, 0
        for number, (middle, top, width) in zip(part.numbers, part.boxes, strict=True):
            boxes[number] = middle + x, top + y, width
        for source, target, *points in part.edges:
            moved = (point + (y if place % 2 else x) for place, point in enumerate(points))
            edges.append((part.numbers[source], part.numbers[target], *moved))
        wide, tall = max(wide, x + part.width), max(tall, part.height)
        x += part.width + _APART
    return Drawing(tuple(boxes), labels, tuple(edges), wide, y + tall)


class _Part(NamedTuple):
    """A connected part of a graph: the numbers of its operations, and their picture, as in `Drawing`."""

    numbers: Sequence[int]
    boxes: Sequence[tuple[int, int, int]]
    edges: Sequence[tuple[int, ...]]
    width: int
    height: int


def _part(numbers: Sequence[int], inputs: Sequence[Sequence[int]], box_widths: Sequence[int]) -> _Part:
    own = {number: place for place, number in enumerate(numbers)}
    graph = layered([[own[read] for read in inputs[number] if read in own] for number in numbers])
    widths = [box_widths[number] for number in numbers]
    widths += [_BEND] * (len(graph.above) - len(widths))
    middles = _placed(graph, widths)
    tops = [0] * len(graph.above)
    for row, layer in enumerate(graph.layers):
        for each in layer:
            tops[each] = row * LAYER_HEIGHT
    edges = []
    for edge in graph.edges:
        points = [number for bend in edge.bends for number in (middles[bend], tops[bend] + BOX_HEIGHT // 2)]
        edges.append((edge.source, edge.target, *points))
    return _Part(
        numbers,
        [(middles[box], tops[box], widths[box]) for box in range(len(numbers))],
        edges,
        max(middle + width // 2 for middle, width in zip(middles, widths, strict=True)),
        (len(graph.layers) - 1) * LAYER_HEIGHT + BOX_HEIGHT,
    )


def shortened(type_: str) -> str:
    """Return a type as it is written on an edge, without the words that all types have."""
    text = type_
    if text.startswith("tensor<") and text.endswith(">") and text.count("tensor<") == 1:
        text = text.removeprefix("tensor<").removesuffix(">")
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"


def _placed(graph: Layers, widths: Sequence[int]) -> list[int]:
    """Return the middle of each box and bend: near the median of its neighbours, and beside the next."""
    middles = [0.0] * len(widths)
    for layer in graph.layers:
        at = -sum(widths[each] + _GAP for each in layer) / 2
        for each in layer:
            middles[each] = at + widths[each] / 2
            at += widths[each] + _GAP
    for sweep in range(_SWEEPS):
        sides = (
            ((graph.above,), (graph.below,))[sweep % 2] if sweep < _SWEEPS - 2 else (graph.above, graph.below)
        )
        for layer in reversed(graph.layers) if sweep % 2 else graph.layers:
            wanted = []
            for each in layer:
                near = [other for side in sides for other in side[each]]
                if widths[each] == _BEND:  # an edge is straight from bend to bend
                    near = [other for other in near if widths[other] == _BEND] or near
                wanted.append(_median([middles[other] for other in near], middles[each]))
            pull = [_STRAIGHT if widths[each] == _BEND else 1.0 for each in layer]
            for each, middle in zip(
                layer, _separated(wanted, pull, [widths[each] for each in layer]), strict=True
            ):
                middles[each] = middle
    left = min((middle - width / 2 for middle, width in zip(middles, widths, strict=True)), default=0.0)
    return [round(middle - left) for middle in middles]


def _median(values: list[float], default: float) -> float:
    if not values:
        return default
    values.sort()
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def _separated(wanted: Sequence[float], pull: Sequence[float], widths: Sequence[int]) -> list[float]:
    """Return the places nearest to ``wanted`` at which no two boxes touch, in the given order.

    Nearest is the least sum of squares, which is isotonic regression of what remains without the boxes' own
    widths: neighbours that would overlap become a block at their mean (pool adjacent violators).
    """
    offsets = [0.0]
    for left, right in pairwise(widths):
        offsets.append(offsets[-1] + (left + right) / 2 + _GAP)
    blocks: list[tuple[float, float, int]] = []
    for middle, weight, offset in zip(wanted, pull, offsets, strict=False):
        block = (weight * (middle - offset), weight, 1)
        while blocks and blocks[-1][0] * block[1] > block[0] * blocks[-1][1]:
            total, weights, count = blocks.pop()
            block = (total + block[0], weights + block[1], count + block[2])
        blocks.append(block)
    means = [total / weights for total, weights, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]
