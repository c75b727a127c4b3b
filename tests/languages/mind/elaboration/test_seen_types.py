"""Types of expressions with the names of dimensions, and what a second look at a program leaves out."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mind_mlir.diagnostics import SourceText
from mind_mlir.languages.mind.elaboration import check
from mind_mlir.languages.mind.elaboration.seen import Memory, seen
from mind_mlir.languages.mind.program import SurfaceProgram

ROOT = Path(__file__).parents[4]
PROGRAMS = [
    *(ROOT / "examples" / f"{name}.mind" for name in ("heat", "mlp", "newton")),
    *sorted((ROOT / "tests/languages/mind/mistakes").glob("*.mind")),
]


def types_in(text: str) -> dict[str, str]:
    """Return the types of the expressions of a text by how these are written; the last of several."""
    found = seen(program(text), {})
    return {text[start:end]: type_ for (start, end), type_ in found.types.items()}


def program(text: str) -> SurfaceProgram:
    return SurfaceProgram(SourceText("seen.mind", text))


def test_extents_are_said_by_dimensions() -> None:
    found = types_in(
        "struct P { w: Tensor<f32, [n, 784]> }\n"
        "fn f(p: P, x: Tensor<f32, [n, m]>, y: Tensor<f32, [n, m]>) -> f32 {\n"
        "    let both = concat(x, y, axis=0);\n"
        "    let edge = x[1:, :-2];\n"
        "    let flat = reshape(x, new_shape=[n * m]);\n"
        "    let side = concat(x, p.w, axis=1);\n"
        "    let pairs = (x, p, 1);\n"
        "    let half = x[::2];\n"
        "    let close = |a| a + sum(both) + sum(edge) + sum(flat) + sum(side) + sum(half);\n"
        "    close(2.0)\n"
        "}\n"
    )
    assert found["both"] == "Tensor<f32, [2 * n, m]>"
    assert found["edge"] == "Tensor<f32, [n - 1, m - 2]>"
    assert found["flat"] == "Tensor<f32, [n * m]>"
    assert found["side"] == "Tensor<f32, [n, _]>"
    assert found["p.w"] == "Tensor<f32, [n, 784]>"
    assert found["pairs"] == "(Tensor<f32, [n, m]>, P, i64)"
    assert found["half"] == "Tensor<f32, [_, m]>"
    assert found["a"] == "f32"


def test_what_is_wrong_has_no_type() -> None:
    text = "fn f(x: Tensor<f32, [n]>) -> f32 {\n    let a = x + y;\n    let b = x * 2.0;\n    sum(b)\n}\n"
    found = types_in(text)
    assert "a" not in found
    assert found["b"] == "Tensor<f32, [n]>"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_a_second_look_sees_what_a_first_one_sees(path: Path) -> None:
    draw = random.Random(path.name)  # noqa: S311 -- the same edits in every run
    lines = path.read_text(encoding="utf-8").split("\n")
    memory: Memory = {}
    for _ in range(6):
        text = "\n".join(lines)
        again, first = seen(program(text), memory), seen(program(text), {})
        assert again.types == first.types
        assert again.findings == first.findings == check(program(text))
        place = draw.randrange(len(lines))
        if draw.random() < 0.5:
            del lines[place]
        else:
            lines.insert(place, draw.choice(lines))


def test_only_what_has_changed_is_looked_at_again() -> None:
    text = (
        "fn low(x: f32) -> f32 {\n    x * 2.0\n}\n\n"
        "fn high(x: f32) -> f32 {\n    low(x)\n}\n\n"
        "fn other(x: f32) -> f32 {\n    x\n}\n"
    )
    memory: Memory = {}
    seen(program(text), memory)
    before = dict(memory)
    seen(program(text.replace("2.0", "3.0 + 1.0")), memory)
    assert [name for name in before if memory[name] is before[name]] == ["other"]
    seen(program(text.replace("2.0", "y")), memory)
    assert "low" not in memory, "what is wrong is looked at each time"
