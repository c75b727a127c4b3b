"""Cast: every pair of dtypes, at the limits (ptir-v0.4.md, "DTypes and casting"); and logic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import findings, run_both, run_vjp

from mind_mlir.ir.profiles import CORE_V1
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.registry import by_opcode

OPS = by_opcode()
MIN32, MAX32, MIN64, MAX64 = -(2**31), 2**31 - 1, -(2**63), 2**63 - 1
INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("source", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("target", "least", "greatest"), [(DType.SI32, MIN32, MAX32), (DType.SI64, MIN64, MAX64)]
)
def test_floats_are_truncated_and_kept_within_the_integers(
    source: Any, target: DType, least: int, greatest: int
) -> None:
    numbers = [1.9, -1.9, 0.5, -0.5, -0.0, NAN, INF, -INF, float(least), -float(least), 2 * float(least)]
    found = run_both(OPS["Cast"], [np.array(numbers, source)], {"dtype": target})
    assert found.tolist() == [1, -1, 0, 0, 0, 0, greatest, least, least, greatest, least]


def test_floats_next_to_the_limits_of_i32_are_exact() -> None:
    numbers = [MAX32 + 0.5, MAX32 + 1.0, MIN32 - 0.5, MIN32 - 1.0, MAX32 - 0.5]
    found = run_both(OPS["Cast"], [np.array(numbers)], {"dtype": DType.SI32})
    assert found.tolist() == [MAX32, MAX32, MIN32, MIN32, MAX32 - 1]


def test_integers_are_kept_within_smaller_ones() -> None:
    numbers = np.array([0, -1, MAX32, MIN32, MAX32 + 1, MIN32 - 1, MAX64, MIN64])
    found = run_both(OPS["Cast"], [numbers], {"dtype": DType.SI32})
    assert found.tolist() == [0, -1, MAX32, MIN32, MAX32, MIN32, MAX32, MIN32]


def test_integers_round_to_the_nearest_float_ties_to_even() -> None:
    numbers = np.array([2**24 + 1, 2**24 + 3, -(2**24) - 1, MAX64, MIN64])
    found = run_both(OPS["Cast"], [numbers], {"dtype": DType.F32})
    assert found.tolist() == [2**24, 2**24 + 4, -(2**24), 2.0**63, -(2.0**63)]


def test_floats_round_to_the_nearest_shorter_one() -> None:
    numbers = np.array([1 + 2**-24, 1 + 3 * 2**-24, 1e39, -1e39, 1e-46, NAN])
    found = run_both(OPS["Cast"], [numbers], {"dtype": DType.F32})
    assert found[:-1].tolist() == [1, 1 + 2**-22, INF, -INF, 0]
    assert np.isnan(found[-1])


def test_truth_is_what_is_not_zero() -> None:
    found = run_both(OPS["Cast"], [np.array([0, -0.0, 0.5, -1, NAN, 5e-324])], {"dtype": DType.I1})
    assert found.tolist() == [False, False, True, True, True, True]
    for dtype in (DType.SI32, DType.SI64, DType.F32, DType.F64):
        assert run_both(OPS["Cast"], [np.array([True, False])], {"dtype": dtype}).tolist() == [1, 0]


def test_a_dtype_that_the_profile_does_not_have() -> None:
    (finding,) = findings(OPS["Cast"], [TensorType(DType.F32)], {"dtype": DType.F16}, CORE_V1)
    assert (finding.code, finding.message) == ("E2005", "Cast does not give f16")


def test_a_gradient_is_cast_back_and_ends_at_integers() -> None:
    (back,) = run_vjp(OPS["Cast"], [np.ones(2)], np.ones(2, np.float32), {"dtype": DType.F32})
    assert back is not None
    assert back.dtype == np.float64
    (none,) = run_vjp(OPS["Cast"], [np.ones(2)], np.ones(2, np.int64), {"dtype": DType.SI64})
    assert none is None


@pytest.mark.parametrize(
    ("opcode", "table"),
    [
        ("And", [False, False, False, True]),
        ("Or", [False, True, True, True]),
        ("Xor", [False, True, True, False]),
    ],
)
def test_tables_of_truth(opcode: str, table: list[bool]) -> None:
    left, right = np.array([[False], [True]]), np.array([False, True])
    assert run_both(OPS[opcode], [left, right], {}).reshape(-1).tolist() == table


def test_negation() -> None:
    assert run_both(OPS["Not"], [np.array([True, False])], {}).tolist() == [False, True]
