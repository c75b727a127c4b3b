"""Attention with masks that are reduced, as torch decomposes it, and with a number for all scores."""

from __future__ import annotations

from typing import Any

import guarded
import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp

Array = np.ndarray[Any, np.dtype[Any]]
HEADS, ROWS, DEPTH = 2, 32, 8
SCORES, ROW, FACTOR = f"{HEADS}, {ROWS}, {ROWS}", f"{HEADS}, {ROWS}, 1", f"{HEADS}, {ROWS}, {DEPTH}"


def attention(seen: str | None) -> mind_mlir.Module:
    """Return attention with a mask, where rows of ``seen`` say whether there is anything, or %rows does."""
    dot = "accum_dtype=f32, out_dtype=f32, batch_lhs=[0], batch_rhs=[0], contract_lhs=[2]"
    row = "axes=[2], keepdims=true"
    wide, high, flags = f"tensor<f32[{SCORES}]>", f"tensor<f32[{FACTOR}]>", f"tensor<i1[{SCORES}]>"
    any_, more = f"Reduce ({seen}) {{accum_dtype=i1, {row}, kind=Max, out_dtype=i1}}", ""
    if seen is None:
        any_, more = f"Reshape (%rows) {{new_shape=[{ROW}]}}", f", %rows: tensor<i1[{HEADS}, {ROWS}]>"
    made = mind_mlir.parse(f"""\
func @main(%q: {high}, %k: {high}, %v: {high}, %mask: {flags}{more}) -> ({high}) {{
^entry:
  %z = DotGeneral (%q, %k) {{{dot}, contract_rhs=[2]}} : {wide}
  %least = ConstF32 {{value=-inf}} : tensor<f32[]>
  %hidden = BroadcastTo (%least) {{result_shape=[{SCORES}]}} : {wide}
  %s = Select (%mask, %z, %hidden) : {wide}
  %there = Compare (%s, %hidden) {{op=NotEqual}} : {flags}
  %any = {any_} : tensor<i1[{ROW}]>
  %m = Reduce (%s) {{accum_dtype=f32, {row}, kind=Max, out_dtype=f32}} : tensor<f32[{ROW}]>
  %d = Sub (%s, %m) : {wide}
  %e = Exp (%d) : {wide}
  %t = Reduce (%e) {{accum_dtype=f32, {row}, kind=Sum, out_dtype=f32}} : tensor<f32[{ROW}]>
  %w = Div (%e, %t) : {wide}
  %zero = ConstF32 {{value=0.0}} : tensor<f32[]>
  %nothing = BroadcastTo (%zero) {{result_shape=[{SCORES}]}} : {wide}
  %some = BroadcastTo (%any) {{result_shape=[{SCORES}]}} : {flags}
  %p = Select (%some, %w, %nothing) : {wide}
  %o = DotGeneral (%p, %v) {{{dot}, contract_rhs=[1]}} : {high}
  return %o
}}
""")
    assert isinstance(made, mind_mlir.Module)
    return made


@pytest.mark.parametrize("seen", ["%mask", "%there", None])
def test_rows_of_truth_values(seen: str) -> None:
    module, rng = attention(seen), np.random.default_rng(0)
    arguments: dict[str, Array] = {
        name: rng.standard_normal((HEADS, ROWS, DEPTH), dtype=np.float32) for name in ("q", "k", "v")
    }
    arguments["mask"] = rng.random((HEADS, ROWS, ROWS)) < 0.5
    arguments["mask"][0, 3] = False
    if seen is None:
        arguments["rows"] = arguments["mask"].any(axis=2)
    with np.errstate(invalid="ignore"):
        (expected,) = mind_mlir.interpret(module, arguments)
    (found,) = guarded.call_executable(mind_mlir.compile(module), arguments)
    assert not found[0, 3].any()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_number_for_all_scores() -> None:
    """A tensor of one element is chosen, and then summed to a number."""
    one, scores = "tensor<f32[1, 1]>", "tensor<f32[32, 64]>"
    dot = "accum_dtype=f32, out_dtype=f32, batch_lhs=[], batch_rhs=[]"
    module = mind_mlir.parse(f"""\
func @main(%x: tensor<f32[32, 32]>, %y: {scores}, %k: tensor<f32[64, 128]>, %c: tensor<i1[1, 1]>, %a: {one},
           %b: {one}) -> (tensor<f32[64, 32]>) {{
^entry:
  %chosen = Select (%c, %a, %b) : {one}
  %number = Sum (%chosen) {{axes=[0, 1], keepdims=false}} : tensor<f32[]>
  %again = Reshape (%number) {{new_shape=[1, 1]}} : {one}
  %all = BroadcastTo (%again) {{result_shape=[32, 64]}} : {scores}
  %half = ConstF32 {{value=0.5}} : tensor<f32[]>
  %q = BroadcastTo (%half) {{result_shape=[32, 128]}} : tensor<f32[32, 128]>
  %few = ConstTensor {{dtype=f32, shape=[3, 1], value=[[0.5], [1.0], [1.0]]}} : tensor<f32[3, 1]>
  %sum = Sum (%few) {{axes=[0, 1], keepdims=false}} : tensor<f32[]>
  %shaped = Reshape (%sum) {{new_shape=[1, 1]}} : {one}
  %more = BroadcastTo (%shaped) {{result_shape=[32, 64]}} : {scores}
  %z = DotGeneral (%q, %k) {{{dot}, contract_lhs=[1], contract_rhs=[1]}} : {scores}
  %s = Add (%more, %z) : {scores}
  %m = Mul (%y, %all) : {scores}
  %t = Add (%s, %m) : {scores}
  %o = DotGeneral (%t, %x) {{{dot}, contract_lhs=[0], contract_rhs=[0]}} : tensor<f32[64, 32]>
  return %o
}}
""")
    rng = np.random.default_rng(0)
    shapes = {"x": (32, 32), "y": (32, 64), "k": (64, 128), "a": (1, 1), "b": (1, 1)}
    arguments: dict[str, Array] = {
        name: rng.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()
    }
    arguments["c"] = np.full((1, 1), True)
    (expected,) = mind_mlir.interpret(module, arguments)
    (found,) = guarded.call_executable(mind_mlir.compile(module), arguments)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_truth_values_between_passes(dtype: type[np.floating[Any]]) -> None:
    """Which elements are the greatest of rows is counted, and chosen by: no array of scores holds that."""

    def total(x: Array, y: Array, w: Array, v: Array, u: Array) -> Any:
        scores = y + x @ w
        return mnp.sum(((scores - mnp.max(scores, axis=1, keepdims=True)) @ v) @ u)

    rng = np.random.default_rng(0)
    shapes = [(32, 16), (32, 16), (16, 16), (16, 16), (16, 16)]
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    lowered = mind_mlir.jit(mind_mlir.grad(total, argnums=(0, 1, 2))).lower(*arrays)
    executable = lowered.compile()
    names = [each.name for each in executable.parameters]
    arguments = dict(zip(names, arrays, strict=True))
    expected = mind_mlir.interpret(lowered.module, arguments)
    for one, other in zip(guarded.call_executable(executable, arguments), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
