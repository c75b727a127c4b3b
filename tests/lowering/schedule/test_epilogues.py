"""Elementwise work on a product is done piece by piece, and computes what it does elsewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import mind_mlir
from examples.gpt2.builder import Body, program
from mind_mlir import Builder, DType, TensorType
from mind_mlir.interpreter import interpret

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.value import Value

_SHAPE = (127, 96, 509)


def _biased(b: Builder, product: Value, bias: Value, _: Value) -> list[Value]:
    return [b.emit("Relu", b.emit("Add", product, bias))]


def _kept(b: Builder, product: Value, bias: Value, residual: Value) -> list[Value]:
    before = b.emit("Add", product, bias)
    return [before, b.emit("Add", residual, b.emit("Tanh", before))]


def _updated(b: Builder, product: Value, _: Value, weights: Value) -> list[Value]:
    return [b.emit("Sub", weights, b.emit("Mul", product, b.constant(0.125, DType.F32)))]


_ENDS = {"bias": _biased, "kept": _kept, "update": _updated}


def _compiled(end: Callable[..., list[Value]], *, whole: bool) -> mind_mlir.Executable:
    """Return ``end`` of a product or, for comparison, of an input."""
    m, k, n = _SHAPE
    b = Builder()
    if whole:
        factors = [
            b.input(name, TensorType(DType.F32, shape)) for name, shape in (("x", (m, k)), ("w", (k, n)))
        ]
        product = b.emit("MatMul", *factors)
    else:
        product = b.input("p", TensorType(DType.F32, (m, n)))
    bias = b.input("bias", TensorType(DType.F32, (n,)))
    other = b.input("other", TensorType(DType.F32, (m, n)))
    return mind_mlir.compile(b.build(end(b, product, bias, other)))


def _several(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple | list) else [found]


@pytest.mark.parametrize("name", _ENDS)
def test_what_ends_the_pieces_has_the_bits_that_it_has_elsewhere(name: str) -> None:
    m, k, n = _SHAPE
    rng = np.random.default_rng(0)
    x, w, bias, other = (
        rng.normal(size=shape).astype(np.float32) / 4 for shape in ((m, k), (k, n), (n,), (m, n))
    )
    b = Builder()
    factors = [b.input(name, TensorType(DType.F32, each.shape)) for name, each in (("x", x), ("w", w))]
    (product,) = _several(mind_mlir.compile(b.build([b.emit("MatMul", *factors)]))(x, w))
    one = _compiled(_ENDS[name], whole=True)
    assert not re.search(rf"memref.view .* to memref<{m}x{n}xf32>", one.as_text("bufferized"))
    assert "the pieces of the product" in one.as_text("schedule")
    for found, expected in zip(
        _several(one(x, w, bias, other)),
        _several(_compiled(_ENDS[name], whole=False)(product, bias, other)),
        strict=True,
    ):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_a_product_in_bf16_has_no_array_in_f32() -> None:
    m, k, n = _SHAPE
    rng = np.random.default_rng(1)
    x, w, bias = (rng.normal(size=shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (k, n), (n,)))
    body = Body([])
    left, right, offset = (body.parameter(DType.BF16, *each.shape) for each in (x, w, bias))
    product = body.product(left, right, 0, (1, 0))
    compiled = mind_mlir.compile(program(body, [product, body.binary("Add", product, offset)]))
    assert f"{m}x{n}xf32" not in compiled.as_text("bufferized")
    alone, found = compiled(x, w, bias)
    np.testing.assert_array_equal(found, alone + bias)


_LOOP = """
func @main(%x: tensor<f32[64, 127]>, %y: tensor<f32[64, 509]>, %s: W) -> (W) {
^entry:
  %zero = ConstI64 {value=0} : tensor<i64[]>
  %one = ConstI64 {value=1} : tensor<i64[]>
  %steps = ConstI64 {value=3} : tensor<i64[]>
  %rate = ConstF32 {value=0.01} : tensor<f32[]>
  %momentum = ConstF32 {value=0.5} : tensor<f32[]>
  %nothing = ConstF32 {value=0.0} : tensor<f32[]>
  %rest = BroadcastTo (%nothing) {result_shape=[127, 509]} : W
  br ^head(%s, %rest, %zero)
^head(%w: W, %v: W, %i: tensor<i64[]>):
  %more = Compare (%i, %steps) {op=Less} : tensor<i1[]>
  cond_br %more, ^step, ^done
^step:
  %p = MatMul (%x, %w) : tensor<f32[64, 509]>
  %e = Sub (%p, %y) : tensor<f32[64, 509]>
  %t = Transpose (%x) {permutation=[1, 0]} : tensor<f32[127, 64]>
  %g = MatMul (%t, %e) : W
  %kept = Mul (%v, %momentum) : W
  %v2 = Add (%kept, %g) : W
  %pull = Mul (%v2, %rate) : W
  %w2 = Sub (%w, %pull) : W
  %i2 = Add (%i, %one) : tensor<i64[]>
  br ^head(%w2, %v2, %i2)
^done:
  return %w
}
"""


def test_a_training_loop_updates_weights_and_momentum_in_place() -> None:
    rng = np.random.default_rng(2)
    x, y, w = (rng.normal(size=each).astype(np.float32) for each in ((64, 127), (64, 509), (127, 509)))
    compiled = mind_mlir.compile(mind_mlir.parse(_LOOP.replace("W", "tensor<f32[127, 509]>")))
    text = compiled.as_text("bufferized")
    assert text.count("memref.copy") == 1  # the weights to start with, into the result
    # Memory is needed for the momentum, and none for the gradient, which is as large.
    assert len(re.findall(r"memref.view .* to memref<(?:127x509|64643)xf32>", text)) == 1
    v, expected = np.zeros_like(w), w
    for _ in range(3):
        v = v * np.float32(0.5) + x.T @ (x @ expected - y)
        expected = expected - v * np.float32(0.01)
    (found,) = compiled(x, y, w)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_a_product_that_is_transposed_at_once_is_computed_so() -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.normal(size=shape).astype(np.float32) for shape in ((64, 67), (64, 509)))
    b = Builder()
    left, right = (b.input(name, TensorType(DType.F32, each.shape)) for name, each in (("x", x), ("y", y)))
    product = b.emit("MatMul", b.emit("Transpose", left, permutation=(1, 0)), right)
    turned = b.emit("Transpose", product, permutation=(1, 0))
    compiled = mind_mlir.compile(b.build([b.emit("Add", turned, turned)]))
    assert ". transposition" not in compiled.as_text("schedule")
    assert not re.search(r"memref.view .* to memref<(509x67|67x509)xf32>", compiled.as_text("bufferized"))
    np.testing.assert_allclose(_several(compiled(x, y))[0], 2 * (y.T @ x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("last", ["%t", "%c"], ids=["ended", "plain"])
def test_products_of_one_factor_whose_ends_are_apart(last: str) -> None:
    """What ends %b waits for what is computed from what ends %a: so %b is not computed beside %a and %c."""
    wide = "tensor<f32[256, 256]>"
    lines = [f'%{name} = Input {{name="{name}"}} : {wide}' for name in "xuvwz"]
    lines += [f"%{name} = MatMul (%x, %{right}) : {wide}" for name, right in zip("abc", "uvw", strict=True)]
    lines += [
        f"%s = Tanh (%a) : {wide}",
        f"%t = Tanh (%c) : {wide}",
        f"%y = MatMul (%s, %z) : {wide}",
        "%n = Sum (%y) {axes=[0], keepdims=false} : tensor<f32[256]>",
        f"%r = Add (%b, %n) : {wide}",
        f"outputs: %r, {last}",
    ]
    module = mind_mlir.parse("\n".join([*lines, ""]))
    rng = np.random.default_rng(0)
    arguments = {name: rng.normal(size=(256, 256)).astype(np.float32) / 16 for name in "xuvwz"}
    found = mind_mlir.compile(module)(**arguments)
    for one, other in zip(found, interpret(module, arguments), strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-5, atol=1e-4)
