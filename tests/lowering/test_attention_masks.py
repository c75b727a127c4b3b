"""Attention whose masks are reduced, as torch decomposes it: rows in which nothing is seen become zeros."""

from __future__ import annotations

import guarded
import numpy as np
import pytest

import mind_mlir

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
    arguments = {
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
