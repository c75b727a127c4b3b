"""The graph of a program as a picture: boxes with their places, and edges with the points they go through."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.tools.explorer.layering import Layers, layered

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
    """Return the graph of ``operations``, from what is given at the top to what is computed at the bottom."""
    graph = layered([each.inputs for each in operations])
    labels = tuple(shortened(each.type) for each in operations)
    widths = [
        max(
            _NARROWEST,
            round(max(map(len, (each.opcode, each.name[:LONGEST_LABEL], label))) * _CHARACTER) + _PADDING,
        )
        for each, label in zip(operations, labels, strict=True)
    ]
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
    return Drawing(
        boxes=tuple((middles[box], tops[box], widths[box]) for box in range(len(operations))),
        labels=labels,
        edges=tuple(edges),
        width=max((middle + width // 2 for middle, width in zip(middles, widths, strict=True)), default=0),
        height=max(0, len(graph.layers) * LAYER_HEIGHT - LAYER_HEIGHT + BOX_HEIGHT),
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
