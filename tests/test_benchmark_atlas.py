"""The atlas: its points, and the page that is made of what they give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mind_mlir
from benchmarks.atlas.__main__ import main
from benchmarks.atlas.measuring import Found, measured, work_of
from benchmarks.atlas.page import page
from benchmarks.atlas.points import CLASSES, ODD, SIZES, pairs, points
from mind_mlir.ops.registry import all_ops

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_most_operations_have_points_of_each_size() -> None:
    found: dict[str, set[str]] = {}
    for point in points(every_dtype=False, sizes=("L2", ODD)):
        if not point.is_pair:
            found.setdefault(point.name.partition(" ")[0], set()).add(point.size)
    assert sum(sizes == {"L2", ODD} for sizes in found.values()) > 0.8 * len(all_ops())


def test_extents_that_are_equal_grow_together() -> None:
    matmuls = [*points(every_dtype=False, sizes=tuple(SIZES), only=("MatMul",))]
    matmuls = [point for point in matmuls if point.name == "MatMul"]
    assert {point.size for point in matmuls} == set(SIZES)
    for point in matmuls:
        left, right = (shape.split(" x ") for shape in point.shapes.split(", "))
        assert left[1] == right[0]


def test_each_class_stands_behind_each() -> None:
    names = [point.name for point in pairs()]
    assert names == [f"{one}, {other}" for one in CLASSES for other in CLASSES]


def test_a_part_of_a_tensor_is_read_where_it_lies() -> None:
    for point in pairs():
        if point.name.startswith("slice, ") and not point.name.endswith(("product", "sort of rows", "slice")):
            assert "memref.copy" not in mind_mlir.compile(point.module).as_text("bufferized"), point.name


def test_a_point_is_measured() -> None:
    point = next(points(every_dtype=False, sizes=("L2",), only=("Neg",)))
    found = measured(point, 0.01)
    assert found.microseconds > 0
    assert found.limit > 0
    assert found.bound == "memory"
    assert found.compile_ms > 0
    assert 0 <= found.scratch < 1
    assert found.fraction > 0


def test_loops_of_marked_operations_are_no_more_work_than_they_do() -> None:
    for opcode in ("Cumulate", "QuantizedDot"):
        point = next(points(every_dtype=False, sizes=("L2",), only=(opcode,)))
        work, by_value = work_of(point)
        assert not by_value
        assert 10**4 < work.operations < 10**7


def test_the_page() -> None:
    found = [
        Found("Exp", "f32", "L2", "8 x 8", is_pair=False, microseconds=10.5, limit=5, compile_ms=1000),
        *(
            Found("Neg", "f32", "L2", "8 x 8", is_pair=False, microseconds=5.5, limit=5, compile_ms=10)
            for _ in range(3)
        ),
        Found("Sort", "f32", "L2", "8 x 8", is_pair=False, refused="error[E7001]: no"),
    ]
    text = page(found, "some command")
    assert "| Exp | f32 | L2 | 8 x 8 | 0.500 | 10.5 us | 5.0 us |" in text
    assert "| Exp | f32 | L2 | 8 x 8 | 1000 | 10 |" in text
    assert "4 points, 1 refused" in text
    assert "error[E7001]" in text


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "atlas.json"
    options = ["--quick", "--only=Neg", "--seconds=0.001", "--json", str(path)]
    assert main(options) == 0
    assert "| Neg |" in capsys.readouterr().out
    assert path.read_text(encoding="utf-8").startswith("[")
