"""TopK: order, ties, NaN, zeros, gradients, several results through all stages, and rejections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import edge_values, findings, run_both_all, run_vjp

import mind_mlir
from mind_mlir.builders.builder import Builder
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ir.profiles import PTIR
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.registry import by_opcode
from mind_mlir.ops.topk import LONGEST_LIST

TOPK = by_opcode()["TopK"]


def form(k: int, axis: int, *, largest: bool = True, dtype: DType = DType.SI32) -> dict[str, Any]:
    return {"k": k, "axis": axis, "largest": largest, "indices_dtype": dtype}


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.SI32, DType.SI64, DType.I1])
def test_awkward_values_with_ties(dtype: DType, axis: int, largest: bool) -> None:
    x = np.random.default_rng(6).choice(edge_values(dtype), (23, 3, 37))
    extent = x.shape[axis]
    values, indices = run_both_all(TOPK, [x], form(extent, axis, largest=largest))
    assert values.tobytes() == np.take_along_axis(x, indices, axis).tobytes()
    rows, places = (np.moveaxis(array, axis, -1).reshape(-1, extent) for array in (x, indices))
    for row, order in zip(rows, places, strict=True):
        # Python sorts by the definition: NaN above all, equal elements by index.
        def key(at: int, row: Any = row) -> tuple[bool, Any, int]:
            nan = bool(row[at] != row[at])
            number = 0 if nan else row[at].item()
            return (not nan, -number, at) if largest else (nan, number, at)

        assert list(order) == sorted(range(extent), key=key)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", [DType.F32, DType.F16, DType.SI32, DType.UI8, DType.I1])
@pytest.mark.parametrize(
    ("shape", "axis"), [((23, 3, 37), 2), ((23, 3, 37), 0), ((1, 40_003), 1), ((5, 1), 1)]
)
def test_the_best_one_is_the_first_of_the_order(
    dtype: DType, largest: bool, shape: tuple[int, ...], axis: int
) -> None:
    x = np.random.default_rng(8).choice(edge_values(dtype), shape)
    values, indices = run_both_all(TOPK, [x], form(1, axis, largest=largest))
    assert values.tobytes() == np.take_along_axis(x, indices, axis).tobytes()


@pytest.mark.parametrize("k", [1, 5, LONGEST_LIST, LONGEST_LIST + 1, 1501])
def test_long_rows(k: int) -> None:
    x = np.random.default_rng(7).integers(0, 1000, (3, 1501))
    x[1] = np.arange(1501)  # each better than all before
    x[2] = 7
    values, indices = run_both_all(TOPK, [x], form(k, 1, dtype=DType.SI64))
    expected = np.argsort(-x, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, 1))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(
    "dtype", [DType.F32, DType.F16, DType.F64, DType.UI8, DType.SI4, DType.UI32, DType.I1]
)
@pytest.mark.parametrize("k", [2, 7, 33])
def test_blocks_of_elements_hold_ties_and_awkward_values(dtype: DType, k: int, largest: bool) -> None:
    rng = np.random.default_rng(9)
    for length in (k + 63, k + 64, k + 131):
        x = rng.choice(edge_values(dtype), (3, length))
        x[1] = x[1, 0]
        values, indices = run_both_all(TOPK, [x], form(k, 1, largest=largest))
        assert values.tobytes() == np.take_along_axis(x, indices, 1).tobytes()


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_that_are_computed_before_and_used_after(axis: int) -> None:
    builder = Builder(profile=PTIR.name)
    x = builder.parameter(TensorType(DType.F32, (256, 192)), "x")
    values, indices = builder.emit_all("TopK", builder.emit("Neg", x), **form(4, axis))
    result = builder.function("main", [builder.emit("Neg", values), indices])
    executable = mind_mlir.compile(Module(Functions((result,)), PTIR.name))
    assert " of the rows" in executable.as_text("schedule")
    array = np.random.default_rng(8).standard_normal((256, 192), np.float32)
    least, where = executable(array)
    np.testing.assert_array_equal(where, np.take(np.argsort(array, axis), range(4), axis))
    np.testing.assert_array_equal(least, np.take(np.sort(array, axis), range(4), axis))


def test_the_gradient_of_the_values_goes_to_the_elements_they_are() -> None:
    x = np.array([[1.0, 5.0, 3.0, 5.0], [4.0, 2.0, 1.0, 3.0]])
    (gradient,) = run_vjp(TOPK, [x], np.array([[10.0, 20.0], [30.0, 40.0]]), form(2, 1))
    np.testing.assert_array_equal(gradient, [[0, 10, 0, 20], [30, 0, 0, 40]])


@pytest.mark.parametrize(
    ("shape", "attributes", "code"),
    [
        ((2, 3), form(4, 1), "E4123"),
        ((2, 3), form(-1, 1), "E4123"),
        ((2, 3), form(2, 2), "E3004"),
        ((), form(1, 0), "E3004"),
        ((2, 3), form(2, 1, dtype=DType.F32), "E2005"),
        ((2**31,), form(LONGEST_LIST + 1, 0, dtype=DType.SI64), "E3006"),
    ],
)
def test_rejections(shape: tuple[int, ...], attributes: dict[str, Any], code: str) -> None:
    (finding,) = findings(TOPK, [TensorType(DType.F32, shape)], attributes)
    assert finding.code == code
    assert finding.help


LOOP = """\
func @main(%x: tensor<f32[3, 8]>) -> (tensor<f32[3, 2]>, tensor<i32[3, 2]>, tensor<f32[]>) {
^entry:
  %v, %i = TopK (%x) {k=2, axis=1, largest=true, indices_dtype=i32} : (tensor<f32[3, 2]>, tensor<i32[3, 2]>)
  %s = Sum (%v) {axes=[], keepdims=false} : tensor<f32[]>
  %zero = ConstF32 {value=0.0} : tensor<f32[]>
  %p = Compare (%s, %zero) {op=Greater} : tensor<i1[]>
  cond_br %p, ^more(%v), ^end(%s)
^more(%w: tensor<f32[3, 2]>):
  %a, %b = TopK (%w) {k=1, axis=0, largest=false, indices_dtype=i64} : (tensor<f32[1, 2]>, tensor<i64[1, 2]>)
  %t = Sum (%a) {axes=[], keepdims=false} : tensor<f32[]>
  br ^end(%t)
^end(%r: tensor<f32[]>):
  return %v, %i, %r
}
"""


def test_both_results_pass_through_functions_and_branches() -> None:
    module = mind_mlir.parse(LOOP)
    x = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)
    expected = mind_mlir.interpret(module, {"x": x})
    found = mind_mlir.compile(module)(x=x)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6)
    assert mind_mlir.parse(str(module)) == module


def test_core_v1_has_one_result_an_instruction() -> None:
    builder = mind_mlir.Builder()
    x = builder.input("x", TensorType(DType.F32, (4,)))
    values, _ = builder.emit_all("TopK", x, **form(2, 0))
    with pytest.raises(mind_mlir.VerificationError) as error:
        mind_mlir.verify(builder.build([values]))
    assert error.value.diagnostics[0].code == "E4102"
