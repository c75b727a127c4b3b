"""Programs of the surface language as Python handles them: reading, containers, dimensions, `@jit`."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import mind_mlir

if TYPE_CHECKING:
    from pathlib import Path

Array = npt.NDArray[Any]

TEXT = """\
struct Layer { w: Tensor<f32, [m, k]>, b: Tensor<f32, [k]> }
struct Model { first: Layer, scale: f32 }
fn apply(x: Tensor<f32, [n, m]>, model: Model) -> Tensor<f32, [n, k]> {
    (matmul(x, model.first.w) + model.first.b) * model.scale
}
export fn loss(model: Model, x: Tensor<f32, [n, m]>) -> f32 { sum(apply(x, model)) }
export fn step(model: Model, x: Tensor<f32, [n, m]>) -> (f32, Model) {
    let (value, g) = value_and_grad(loss)(model, x);
    let first = Layer { w: model.first.w - 0.5 * g.first.w, b: model.first.b - 0.5 * g.first.b };
    (value, Model { first, scale: model.scale - 0.5 * g.scale })
}
fn count(n: i64) -> i64 {
    let total = 0;
    for i in range(n) { total = total + i; }
    total
}
fn half(x: f64) -> f64 { x * 0.5 }
"""

X: Array = np.arange(6, dtype=np.float32).reshape(3, 2)
W: Array = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)
B: Array = np.ones(4, np.float32)


class Layer(NamedTuple):
    """Fields in another order than the program declares."""

    b: Array
    w: Array


@dataclass(frozen=True)
class Model:
    """A struct of a struct."""

    scale: float | Array
    first: Layer | dict[str, Array]


@pytest.fixture(scope="module", name="program")
def _program() -> mind_mlir.SurfaceProgram:
    program = mind_mlir.parse(TEXT, "model.mind", format="mind")
    assert isinstance(program, mind_mlir.SurfaceProgram)
    return program


def expected() -> tuple[float, Array, Array, float]:
    """Return what `step` gives for the arrays above and a scale of 2."""
    z = X @ W + B
    ones = np.ones_like(z)
    return float((z * 2).sum()), W - X.T @ ones, B - ones.sum(0), float(2 - 0.5 * z.sum())


def test_a_program_is_data(program: mind_mlir.SurfaceProgram) -> None:
    assert program.functions == ("apply", "loss", "step", "count", "half")
    assert program.entries == ("loss", "step")
    again = pickle.loads(pickle.dumps(program))  # noqa: S301 -- what this test has pickled
    assert again == program
    assert hash(again) == hash(program)
    assert str(program) == TEXT
    assert program != mind_mlir.parse(TEXT + "\n", format="mind")


@pytest.mark.parametrize(
    "text", ["fn f(x: f32) -> f32 { x }", "// a\n/* b */ struct A { x: f32 }", "import diff::grad;"]
)
def test_the_text_tells_the_language(text: str) -> None:
    assert isinstance(mind_mlir.parse(text), mind_mlir.SurfaceProgram)


def test_the_ending_tells_the_language(tmp_path: Path) -> None:
    path = tmp_path / "empty.mind"
    path.write_text("// nothing yet\n")
    assert isinstance(mind_mlir.load(path), mind_mlir.SurfaceProgram)


@pytest.mark.parametrize(
    "model",
    [
        {"first": {"w": W, "b": B}, "scale": 2.0},
        {"scale": np.float32(2), "first": Layer(B, W)},
        Model(2.0, Layer(B, W)),
        Model(np.array(2, np.float32), {"b": B, "w": W}),
    ],
    ids=["dicts", "named tuple in a dict", "dataclass of a named tuple", "dataclass of a dict"],
)
def test_structs_come_back_as_they_came(program: mind_mlir.SurfaceProgram, model: Any) -> None:
    step = mind_mlir.compile(program, function="step")
    value, after = step(model, X)
    wanted = expected()
    assert type(after) is type(model)
    first, scale = (after["first"], after["scale"]) if isinstance(after, dict) else (after.first, after.scale)
    w, b = (first["w"], first["b"]) if isinstance(first, dict) else (first.w, first.b)
    np.testing.assert_allclose(value, wanted[0])
    np.testing.assert_allclose(w, wanted[1])
    np.testing.assert_allclose(b, wanted[2])
    np.testing.assert_allclose(scale, wanted[3])


def test_a_function_is_compiled_for_each_shape(program: mind_mlir.SurfaceProgram) -> None:
    loss = mind_mlir.compile(program, function="loss", bindings={"m": 2})
    model = {"first": {"w": W, "b": B}, "scale": 1.0}
    for rows in (1, 3):
        np.testing.assert_allclose(loss(model, X[:rows]), (X[:rows] @ W + B).sum())
    wrong = {"first": {"w": np.ones((3, 4), np.float32), "b": B}, "scale": 1.0}
    with pytest.raises(mind_mlir.ArgumentError) as caught:
        loss(wrong, X)
    assert [finding.code for finding in caught.value.diagnostics] == ["E6107"]
    assert "m is 2" in caught.value.diagnostics[0].notes[0]


@pytest.mark.parametrize(
    ("model", "x", "code", "path"),
    [
        ({"first": {"w": W}, "scale": 1.0}, X, "E6101", "model.first.b"),
        ({"first": {"w": W, "b": B, "c": B}, "scale": 1.0}, X, "E6105", "model.first.c"),
        ({"first": {"w": W, "b": B}, "scale": B}, X, "E6104", "model.scale"),
        ({"first": {"w": W, "b": B.astype(np.float64)}, "scale": 1.0}, X, "E6103", "model.first.b"),
        ({"first": W, "scale": 1.0}, X, "E6105", "model.first"),
        ({"first": {"w": W, "b": B[:3]}, "scale": 1.0}, X, "E6107", "model.first.b"),
        ({"first": {"w": W, "b": B}, "scale": 1.0}, X[0], "E6104", "x"),
        ({"first": {"w": W, "b": B}, "scale": 1.0}, {"x": X}, "E6105", "x"),
    ],
)
def test_wrong_arguments_are_named(
    program: mind_mlir.SurfaceProgram, model: Any, x: Any, code: str, path: str
) -> None:
    loss = mind_mlir.compile(program, function="loss")
    with pytest.raises(mind_mlir.ArgumentError) as caught:
        loss(model, x)
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.context["input"]) == (code, path)


def test_numbers_take_the_declared_dtype(program: mind_mlir.SurfaceProgram) -> None:
    assert mind_mlir.compile(program, function="half")(3) == 1.5
    assert mind_mlir.compile(program, function="count")(5) == 10


def test_it_is_lowered_and_differentiated_as_other_programs(program: mind_mlir.SurfaceProgram) -> None:
    flat = program.lower("apply", {"n": 3, "m": 2, "k": 4})
    assert flat.is_flat
    assert list(flat.inputs_by_name) == ["x", "model.first.w", "model.first.b", "model.scale"]
    both = program.lower(bindings={"n": 3, "m": 2, "k": 4})
    assert [function.name for function in both.functions if function.public] == ["loss", "step"]
    mind_mlir.verify(both)
    gradient = mind_mlir.differentiate(
        program, "loss", wrt=["model.first.b"], bindings={"n": 3, "m": 2, "k": 4}
    )
    arguments = {"model.first.w": W, "model.first.b": B, "model.scale": np.float32(2), "x": X}
    _, found = mind_mlir.interpret(gradient.module, arguments)
    np.testing.assert_allclose(found, np.full(4, 6.0))
    assert mind_mlir.interpret(program, {"x": np.array(3.0)}, "half") == (1.5,)
    assert "stablehlo" in mind_mlir.to_stablehlo(program, bindings={"n": 3, "m": 2, "k": 4})
    assert mind_mlir.verify(program) is program


def test_what_is_open_or_missing_is_said(program: mind_mlir.SurfaceProgram) -> None:
    with pytest.raises(mind_mlir.VerificationError, match="dimension m of apply is not bound"):
        program.lower("apply", {"n": 3})
    with pytest.raises(mind_mlir.VerificationError, match="did you mean apply"):
        program.lower("aply")
    with pytest.raises(mind_mlir.VerificationError) as caught:
        mind_mlir.compile(program)
    assert caught.value.code == "E2102"
    with pytest.raises(ValueError, match="bindings must name dimensions of the program"):
        program.lower("apply", {"rows": 3})


def test_jit_functions_and_programs_call_each_other(program: mind_mlir.SurfaceProgram) -> None:
    half = mind_mlir.compile(program, function="half")

    @mind_mlir.jit
    def twice_half(x: Any) -> Any:
        return half(x) * 4.0

    assert twice_half(np.float64(3)) == 6
    assert twice_half.grad()(np.float64(3)) == 2
    caller = mind_mlir.parse(
        "struct P { a: f64, b: f64 }\n"
        "fn f(x: f64) -> f64 { grad(|y| scaled(P { a: y, b: x }).a)(x) + scaled(P { a: x, b: x }).b }\n",
        functions={"scaled": mind_mlir.jit(lambda p: {"b": p["b"] * 3.0, "a": p["a"] * p["b"]})},
    )
    assert mind_mlir.compile(caller)(2.0) == 2 + 6


def test_only_this_language_calls_functions_of_python() -> None:
    with pytest.raises(ValueError, match="functions must be left out"):
        mind_mlir.parse(
            '%0 = Input {name="x"} : tensor<f32[]>\noutputs: %0\n', functions={"f": mind_mlir.jit(abs)}
        )
    with pytest.raises(TypeError, match="a function that mind_mlir"):
        mind_mlir.parse("fn f(x: f32) -> f32 { x }", functions={"g": abs})
