"""`compile(..., constants=...)`: parameters that become part of the code, and what is made of them alone."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import numpy as np
import pytest

import mind_mlir
from examples.gpt2.builder import Body, program
from mind_mlir import ArgumentError
from mind_mlir.ir.interface import interface_of
from mind_mlir.ir.types import DType
from mind_mlir.passes import verify as verifier
from mind_mlir.passes.verify import check

if TYPE_CHECKING:
    from pathlib import Path

    from mind_mlir import Module
    from mind_mlir.diagnostics import Diagnostic

N = 64
SQUARE = f"tensor<f32[{N}, {N}]>"
TEXT = f"""\
%x = Input {{name="x"}} : tensor<f32[8, {N}]>
%w = Input {{name="w"}} : {SQUARE}
%v = Input {{name="v"}} : {SQUARE}
%t = Transpose (%w) {{permutation=[1, 0]}} : {SQUARE}
%p = MatMul (%t, %v) : {SQUARE}
%y = MatMul (%x, %p) : tensor<f32[8, {N}]>
%e = Exp (%w) : {SQUARE}
outputs: %y, %e
"""
ROWS = f"tensor<f32[8, {N}]>"
FUNCTIONS = f"""func @main(%x: {ROWS}, %w: {SQUARE}, %n: tensor<i64[]>) -> ({ROWS}) {{
^entry:
  %zero = ConstI64 {{value=0}} : tensor<i64[]>
  br ^head(%x, %zero)
^head(%u: tensor<f32[8, {N}]>, %i: tensor<i64[]>):
  %more = Compare (%i, %n) {{op=Less}} : tensor<i1[]>
  cond_br %more, ^body, ^done
^body:
  %t = Transpose (%w) {{permutation=[1, 0]}} : {SQUARE}
  %s = MatMul (%t, %w) : {SQUARE}
  %v = MatMul (%u, %s) : tensor<f32[8, {N}]>
  %one = ConstI64 {{value=1}} : tensor<i64[]>
  %next = Add (%i, %one) : tensor<i64[]>
  br ^head(%v, %next)
^done:
  return %u
}}
"""


def arrays() -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    rng = np.random.default_rng(0)
    shapes = {"x": (8, N), "w": (N, N), "v": (N, N)}
    return {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}


def test_what_is_made_of_constants_is_there_when_it_is_compiled() -> None:
    module, given = mind_mlir.parse(TEXT), arrays()
    expected = mind_mlir.compile(module)(**given)
    weights = {"w": given["w"], "v": given["v"]}
    prepared = mind_mlir.compile(module, constants=weights)
    assert [parameter.name for parameter in prepared.parameters] == ["x"]
    text = prepared.as_text("optimized")
    assert [line.split()[2] for line in text.splitlines() if " = " in line] == [
        "ConstTensor",
        "ConstTensor",
        "MatMul",
    ]
    for compiled in (prepared, pickle.loads(pickle.dumps(prepared))):  # noqa: S301 -- made here
        for one, other in zip(compiled(given["x"]), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    plain = mind_mlir.compile(module, constants=weights, disabled_passes=["prepare"])
    assert plain.as_text("optimized").count("MatMul") == 2
    np.testing.assert_array_equal(plain(given["x"])[0], expected[0])


def test_a_function_with_a_loop() -> None:
    module, given = mind_mlir.parse(FUNCTIONS), arrays()
    x, w, n = given["x"], given["w"] / 8, np.array(3)
    prepared = mind_mlir.compile(module, function="main", constants={"w": w})
    assert "Transpose" not in prepared.as_text("optimized")
    np.testing.assert_array_equal(prepared(x, n)[0], mind_mlir.compile(module)(x, w, n)[0])


@pytest.mark.parametrize("cache", [False, True])
@pytest.mark.parametrize("text", [TEXT, FUNCTIONS])
def test_a_module_with_constants_is_verified_once(
    text: str, cache: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[list[str]] = []

    def counted(module: Module) -> list[Diagnostic]:
        names.append(
            [each.name for function in module.functions for each in interface_of(function).parameters]
        )
        return check(module)

    monkeypatch.setattr(verifier, "check", counted)
    kept = str(tmp_path) if cache else False
    mind_mlir.compile(mind_mlir.parse(text), function="main", constants={"w": arrays()["w"]}, cache=kept)
    # What is evaluated beforehand is a module without parameters, which is verified, too.
    assert [each for each in names if each] == [names[0]]
    assert "w" in names[0]


def test_a_program() -> None:
    body = Body([])
    x, w = body.parameter(DType.F32, 8, N), body.parameter(DType.F32, N, N)
    turned, scale = body.transpose(w, 1, 0), body.unary("Exp", body.transpose(w, 1, 0))
    made = program(body, [body.product(x, turned, 0, (1, 0)), scale])
    given = arrays()
    prepared = mind_mlir.compile(made, constants={"arg1": given["w"]})
    text = prepared.as_text("optimized")
    assert "Exp" not in text
    product, exponential = mind_mlir.compile(made)(given["x"], given["w"])
    found = prepared(given["x"])
    np.testing.assert_allclose(found[0], product, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(found[1], exponential)
    alone = program(body, [body.product(x, turned, 0, (1, 0))])
    expected = mind_mlir.compile(alone)(given["x"], given["w"])
    found = mind_mlir.compile(alone, constants={"arg1": given["w"]})(given["x"])
    np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=1e-5)  # panels, and columns of a factor


def test_a_constant_that_fits_no_parameter() -> None:
    module, given = mind_mlir.parse(TEXT), arrays()
    for constants, code in (
        ({"W": given["w"]}, "E6102"),
        ({"w": given["w"].astype(np.float64)}, "E6103"),
        ({"w": given["w"][:2]}, "E6104"),
        ({"w": "w"}, "E6105"),
    ):
        with pytest.raises(ArgumentError) as caught:
            mind_mlir.compile(module, constants=constants)
        assert caught.value.code == code
    with pytest.raises(TypeError, match="constants"):
        mind_mlir.compile(module, constants=[given["w"]])  # type: ignore[call-overload] # that is the mistake


def test_a_function_that_others_call_keeps_its_parameters() -> None:
    text = """func @main(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {
^entry:
  %y = call @scaled (%x, %x) : tensor<f32[2]>
  return %y
}

func @scaled(%a: tensor<f32[2]>, %b: tensor<f32[2]>) -> (tensor<f32[2]>) {
^entry:
  %c = Mul (%a, %b) : tensor<f32[2]>
  return %c
}
"""
    module, two = mind_mlir.parse(text), np.full(2, 2, np.float32)
    with pytest.raises(ArgumentError, match="'b' of @scaled cannot be a constant") as caught:
        mind_mlir.compile(module, constants={"b": two})
    assert caught.value.code == "E6102"
    alone = mind_mlir.compile(module, function="scaled", constants={"b": two})
    np.testing.assert_array_equal(alone(two)[0], two * 2)
