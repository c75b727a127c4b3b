"""The picture of a graph: boxes that do not touch, edges that lead down, work that grows with the graph."""

from __future__ import annotations

from itertools import pairwise

import pytest
from explorations import chain, small
from hypothesis import given
from hypothesis import strategies as st

from mind_mlir.tools.explorer.drawing import BOX_HEIGHT, LAYER_HEIGHT, drawn, shortened
from mind_mlir.tools.explorer.exploration import SourceOperation
from mind_mlir.tools.explorer.layering import LONGEST_BENT, connected, layered


def _graph(inputs: list[list[int]]) -> list[SourceOperation]:
    return [
        SourceOperation("Add", f"%{box}", "f32[4]", "", 0, tuple(reads)) for box, reads in enumerate(inputs)
    ]


GRAPHS = st.integers(1, 30).flatmap(
    lambda count: st.lists(st.lists(st.integers(-1, count), max_size=3), min_size=count, max_size=count)
)


@given(GRAPHS)
def test_boxes_do_not_touch_and_edges_lead_down(inputs: list[list[int]]) -> None:
    drawing = drawn(_graph(inputs))
    rows: dict[int, list[tuple[int, int]]] = {}
    for middle, top, width in drawing.boxes:
        assert middle - width // 2 >= 0
        assert middle + width // 2 <= drawing.width + 1
        assert top + BOX_HEIGHT <= drawing.height
        rows.setdefault(top, []).append((middle - width // 2, middle + width // 2))
    for row in rows.values():
        assert all(left[1] < right[0] for left, right in pairwise(sorted(row)))
    for source, target, *points in drawing.edges:
        heights = [drawing.boxes[source][1], *points[1::2], drawing.boxes[target][1]]
        assert heights == sorted(heights)


@given(GRAPHS)
def test_every_edge_is_drawn_once(inputs: list[list[int]]) -> None:
    drawing = drawn(_graph(inputs))
    wanted = {
        (min(read, box), max(read, box))
        for box, reads in enumerate(inputs)
        for read in reads
        if 0 <= read < len(inputs) and read != box
    }
    assert sorted(edge[:2] for edge in drawing.edges) == sorted(wanted)


def test_a_box_stands_below_what_it_reads() -> None:
    boxes = drawn(small().operations).boxes
    assert [top for _, top, _ in boxes] == [0, 0, LAYER_HEIGHT, 2 * LAYER_HEIGHT]


def test_what_is_read_late_stands_near_its_reader() -> None:
    late = _graph([[], [0], [1], [2], [], [3, 4]])
    assert drawn(late).boxes[4][1] == drawn(late).boxes[3][1]


def test_what_is_made_for_one_reader_alone_goes_along_with_it() -> None:
    # The product at 5 of two inputs is read by the last box, which a chain leads to.
    depths = [
        top // LAYER_HEIGHT for _, top, _ in drawn(_graph([[], [0], [1], [], [], [3, 4], [2, 5]])).boxes
    ]
    assert depths == [0, 1, 2, 1, 1, 2, 3]


def test_two_chains_side_by_side_do_not_cross() -> None:
    # Written so that the order of the program crosses them in each layer.
    found = layered([[], [], [1], [0], [3], [2]])
    sides = [[box in (0, 3, 4) for box in layer] for layer in found.layers]
    assert sides in ([[True, False]] * 3, [[False, True]] * 3)


def test_parts_that_nothing_connects_stand_in_rows() -> None:
    pairs = [[] if box % 2 == 0 else [box - 1] for box in range(200)]
    drawing = drawn(_graph(pairs))
    assert connected(pairs)[3] == [6, 7]
    assert 1 < drawing.width / drawing.height < 2
    assert all(drawing.boxes[box + 1][1] == drawing.boxes[box][1] + LAYER_HEIGHT for box in range(0, 200, 2))


def test_a_chain_is_straight() -> None:
    boxes = drawn(_graph([[], [0], [1], [2]])).boxes
    assert len({middle for middle, _, _ in boxes}) == 1


def test_bends_grow_with_the_graph_and_not_with_the_length_of_edges() -> None:
    everywhere = [[], *[[0, box] for box in range(400)]]
    found = layered(everywhere)
    assert sum(len(layer) for layer in found.layers) <= len(everywhere) + LONGEST_BENT
    assert len(found.edges) == 799


def test_thousands_of_operations_are_drawn() -> None:
    drawing = drawn(chain(4_000, 1).operations)
    assert drawing.height == 3_999 * LAYER_HEIGHT + BOX_HEIGHT


def test_nothing_is_drawn_of_nothing() -> None:
    assert drawn([]).boxes == ()
    assert drawn([]).height == 0


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("tensor<f32[2, 3]>", "f32[2, 3]"),
        ("(tensor<f32[2]>, tensor<f32[2]>)", "(tensor<f32[2]>, tensor<f32[2]>)"),
        ("f32", "f32"),
        ("x" * 40, "x" * 33 + "…"),
    ],
)
def test_types_on_edges_are_short(written: str, shown: str) -> None:
    assert shortened(written) == shown
