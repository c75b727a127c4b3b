"""SegmentReduce: empty segments, ids out of range, accumulators, ties, and rejections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import edge_values, findings, run_both, run_vjp

import mind_mlir
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.registry import by_opcode

SEGMENTS = by_opcode()["SegmentReduce"]
IDS = np.array([3, 1, 1, 0, 3, 3], np.int64)


def form(kind: str, count: int, dtype: DType, **flags: bool) -> dict[str, Any]:
    given = {"indices_are_sorted": False, "unique": False} | flags
    return {"kind": kind, "num_segments": count, "accum_dtype": dtype, **given}


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.SI32, DType.SI64, DType.UI8, DType.BF16])
def test_rows_of_a_segment_become_one(dtype: DType) -> None:
    x = np.arange(12).reshape(6, 2).astype(dtype.numpy)
    total = run_both(SEGMENTS, [x, IDS], form("Sum", 5, dtype))
    np.testing.assert_array_equal(total.astype(float), [[6, 7], [6, 8], [0, 0], [18, 21], [0, 0]])
    most = run_both(SEGMENTS, [x, IDS], form("Max", 5, dtype))
    np.testing.assert_array_equal(most.astype(float)[[0, 1, 3]], [[6, 7], [4, 5], [10, 11]])
    least = -np.inf if dtype.is_float else np.iinfo(dtype.numpy).min
    np.testing.assert_array_equal(most[[2, 4]].astype(float), np.full((2, 2), float(least)))


@pytest.mark.parametrize(
    ("dtype", "least"), [(DType.SI4, -8), (DType.UI4, 0), (DType.FP8_E4M3, -448), (DType.FP8_E5M2, -np.inf)]
)
def test_an_empty_segment_is_the_least_number_that_a_narrow_accumulator_holds(
    dtype: DType, least: float
) -> None:
    x = np.ones((6, 2)).astype(dtype.numpy)
    most = run_both(SEGMENTS, [x, IDS], form("Max", 5, dtype)).astype(float)
    np.testing.assert_array_equal(most, np.array([1, 1, least, 1, least])[:, None] * np.ones(2))


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.SI32])
def test_the_greatest_of_awkward_values(dtype: DType) -> None:
    rng = np.random.default_rng(1)
    x = rng.choice(edge_values(dtype), (40, 9))
    ids = rng.integers(0, 7, 40).astype(np.int32)
    found = run_both(SEGMENTS, [x, ids], form("Max", 7, dtype))
    for segment in range(7):
        np.testing.assert_array_equal(found[segment], x[ids == segment].max(0))


def test_what_the_flags_say_is_not_relied_upon() -> None:
    x = np.arange(6.0)
    plain = run_both(SEGMENTS, [x, IDS], form("Sum", 4, DType.F64))
    said = run_both(SEGMENTS, [x, IDS], form("Sum", 4, DType.F64, indices_are_sorted=True, unique=True))
    np.testing.assert_array_equal(plain, said)


def test_sums_are_those_of_the_accumulator() -> None:
    x = np.array([2**31 - 1, 1, -1], np.int32)
    ids = np.zeros(3, np.int64)
    assert run_both(SEGMENTS, [x, ids], form("Sum", 1, DType.SI32))[0] == 2**31 - 1
    assert run_both(SEGMENTS, [x[:2], ids[:2]], form("Sum", 1, DType.SI32))[0] == -(2**31)
    assert run_both(SEGMENTS, [x[:2], ids[:2]], form("Sum", 1, DType.SI64))[0] == 2**31 - 1


def test_gradients() -> None:
    x, seed = np.array([3.0, 5.0, 5.0, 1.0, 7.0, 3.0]), np.array([1.0, 10.0, 100.0, 1000.0])
    (of_sum, none) = run_vjp(SEGMENTS, [x, IDS], seed, form("Sum", 4, DType.F64))
    np.testing.assert_array_equal(of_sum, seed[IDS])
    assert none is None
    (of_max, _) = run_vjp(SEGMENTS, [x, IDS], seed, form("Max", 4, DType.F64))
    np.testing.assert_array_equal(of_max, [0, 5, 5, 1, 1000, 0])


@pytest.mark.parametrize("wrong", [-1, 4, 2**40])
def test_an_id_out_of_range_is_an_error_when_it_runs(wrong: int) -> None:
    text = """\
%0 = Input {name="x"} : tensor<f32[6, 2]>
%1 = Input {name="i"} : tensor<i64[6]>
%2 = SegmentReduce (%0, %1) {kind=Sum, num_segments=4, accum_dtype=f32} : tensor<f32[4, 2]>
outputs: %2
"""
    module = mind_mlir.parse(text)
    ids = IDS.copy()
    ids[2] = wrong
    arguments = {"x": np.ones((6, 2), np.float32), "i": ids}
    for run in (
        lambda: mind_mlir.interpret(module, arguments),
        lambda: mind_mlir.compile(module)(**arguments),
    ):
        with pytest.raises(mind_mlir.ExecutionError) as error:
            run()
        assert error.value.diagnostics[0].code == "E6001"
        assert error.value.diagnostics[0].context["index"] == wrong


@pytest.mark.parametrize(
    ("values", "ids", "count", "code"),
    [
        ((), (1,), 2, "E3002"),
        ((3, 2), (3, 2), 2, "E3002"),
        ((3, 2), (2,), 2, "E3003"),
        ((3, 2), (3,), -1, "E3006"),
    ],
)
def test_rejections(values: tuple[int, ...], ids: tuple[int, ...], count: int, code: str) -> None:
    types = [TensorType(DType.F32, values), TensorType(DType.SI64, ids)]
    (finding,) = findings(SEGMENTS, types, form("Sum", count, DType.F32))
    assert finding.code == code
    assert finding.help
