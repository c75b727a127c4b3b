"""Programs call functions of Python, and these call functions of programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.diagnostics import ArgumentError, VerificationError

W = np.array([[1, -2], [3, 4], [-5, 6]], np.float32)
B = np.array([0.5, -0.5], np.float32)
X = np.array([[1, 2, -3], [0.5, -1, 2]], np.float32)

TEXT = """\
import diff::grad;
struct Params { w: Tensor<f32, [n, m]>, b: Tensor<f32, [m]> }
struct Speed { w: Tensor<f32, [n, m]>, b: Tensor<f32, [m]> }
export fn layer(x: Tensor<f32, [k, n]>, params: Params) -> Tensor<f32, [k, m]> {
    let p: Params = twice(params);
    curve(matmul(x, p.w) + p.b)
}
export fn loss(x: Tensor<f32, [k, n]>, params: Params) -> f32 { sum(layer(x, params)) }
export fn slope(x: Tensor<f32, [k, n]>, params: Params) -> Params { grad(|p| loss(x, p))(params) }
export fn speed(params: Params) -> Speed { moving(params) }
"""


@mind_mlir.jit
def curve(x: Any) -> Any:
    return x * x * 0.5


@mind_mlir.jit
def twice(params: Any) -> Any:
    return {name: part * 2 for name, part in params.items()}


class Speed(NamedTuple):
    w: Any
    b: Any


@mind_mlir.jit
def moving(params: Any) -> Any:
    return Speed(w=params["w"] + 1, b=params["b"] - 1)


def function(name: str) -> mind_mlir.SurfaceFunction:
    program = mind_mlir.parse(
        TEXT, "calls.mind", format="mind", functions={"curve": curve, "twice": twice, "moving": moving}
    )
    return mind_mlir.compile(mind_mlir.verify(program), function=name)


def slopes() -> tuple[np.ndarray, np.ndarray]:
    inner = X @ (2 * W) + 2 * B
    return 2 * X.T @ inner, 2 * inner.sum(axis=0)


def test_programs_call_functions_of_python() -> None:
    params = {"w": W, "b": B}
    np.testing.assert_allclose(function("layer")(X, params), (X @ (2 * W) + 2 * B) ** 2 / 2, rtol=1e-6)
    found = function("slope")(X, params)
    for each, expected in zip((found["w"], found["b"]), slopes(), strict=True):
        np.testing.assert_allclose(each, expected, rtol=1e-5)
    moved = function("speed")(params)  # of the struct that the class is called as
    np.testing.assert_array_equal(moved["w"], W + 1)
    np.testing.assert_array_equal(moved["b"], B - 1)


def test_functions_of_python_call_programs() -> None:
    layer, loss = function("layer"), function("loss")

    @mind_mlir.jit
    def both(x: Any, params: Any) -> Any:
        return mnp.sum(layer(x, params)) + 2 * loss(x, params)

    slope = both.grad("params")(X, Params(B, W))
    assert isinstance(slope, Params)
    for each, expected in zip((slope.w, slope.b), slopes(), strict=True):
        np.testing.assert_allclose(each, 3 * expected, rtol=1e-5)
    with pytest.raises(ArgumentError, match=r"E6101.*'params.b' is missing"):
        both(X, {"w": W})


@dataclass
class Params:
    b: Any
    w: Any


def test_numbers_take_the_dtype_that_is_declared() -> None:
    scaled = mind_mlir.compile(mind_mlir.parse("fn f(x: f32, k: i32) -> f32 { x * cast(k, dtype=f32) }"))

    @mind_mlir.jit
    def traced(x: Any, k: Any) -> Any:
        return scaled(x, k) + scaled(1, k=2)

    assert traced(3, 4) == 14
    assert traced(np.float32(1.5), np.int32(4)) == 8
    for wrong in (2.5, 2**40):
        with pytest.raises(ArgumentError, match=r"E6103.*'k'"):
            scaled(1.0, wrong)


@pytest.mark.parametrize(
    ("w", "words"),
    [
        (None, "is None, where a Tensor<f32, [n, m]> is wanted"),
        ([[1.0, 2.0]], "is a list, where a Tensor<f32, [n, m]> is wanted"),
        ({"w": W}, "is a dict, where a Tensor<f32, [n, m]> is wanted"),
    ],
)
def test_what_is_no_array_is_called_by_its_class(w: Any, words: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        function("layer")(X, Params(B, w))
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("E6105", f"argument 'params.w' {words}")


def test_calls_that_python_does_not_take_are_findings() -> None:
    text = "fn f(x: f32) -> f32 {\n    curve(x, x)\n}\n"
    program = mind_mlir.parse(text, "calls.mind", format="mind", functions={"curve": curve})
    with pytest.raises(VerificationError) as caught:
        mind_mlir.verify(program)
    (found,) = caught.value.diagnostics
    assert found.location is not None
    assert (found.code, found.location.line, found.location.column) == ("E2007", 2, 5)


def test_derivatives_of_what_is_wrong_are_no_further_findings() -> None:
    text = """\
import diff::grad;
fn loss(x: f32, y: f32) -> f32 { let p: f32 = true; p + x }
fn g(x: f32, y: f32) -> f32 { grad(|p| loss(p, y))(x) }
fn h(x: f32, y: f32) -> f32 { grad(|p| grad(|q| loss(q, p))(y))(x) }
"""
    found = mind_mlir.parse(text, format="mind").check()
    assert [(each.code, each.location.line) for each in found if each.location] == [("E2001", 2)]


def test_arguments_of_the_interpreter_bind_dimensions() -> None:
    program = mind_mlir.parse(
        TEXT, "calls.mind", format="mind", functions={"curve": curve, "twice": twice, "moving": moving}
    )
    given = {"x": X, "params.w": W, "params.b": B}
    (found,) = mind_mlir.interpret(program, given, "layer")
    np.testing.assert_array_equal(found, (X @ (2 * W) + 2 * B) ** 2 / 2)
    slope = dict(zip(("w", "b"), mind_mlir.interpret(program, given, "slope"), strict=True))
    compiled = function("slope")(X, {"w": W, "b": B})
    for name, each in slope.items():
        np.testing.assert_allclose(each, compiled[name], rtol=1e-6)
    with pytest.raises(ArgumentError, match=r"E6104.*'params.b'"):
        mind_mlir.interpret(program, {**given, "params.b": X[0]}, "layer")
