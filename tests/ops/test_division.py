"""Division, maximum and minimum: what their numpy rules say of the awkward numbers, and derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from harness import Use as Used
from harness import compile_uses, run_numpy, run_vjp, type_of

from mind_mlir import Builder, DType, ExecutionError, TensorType, compile
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

OPS = by_opcode()
INTEGERS = [np.int32, np.int64]


def result(opcode: str, left: Any, right: Any, dtype: Any = np.float64) -> Array:
    return run_numpy(OPS[opcode], [np.asarray(left, dtype), np.asarray(right, dtype)], {})


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    ("left", "right", "quotient"),
    [
        (7, 2, 3),
        (-7, 2, -3),
        (7, -2, -3),
        (-7, -2, 3),
        (6, 3, 2),
        (-6, 3, -2),
        (0, -5, 0),
        (1, 9, 0),
        (-1, 9, 0),
    ],
)
def test_quotients_of_integers_are_truncated(dtype: Any, left: int, right: int, quotient: int) -> None:
    assert result("Div", left, right, dtype) == quotient


@pytest.mark.parametrize("dtype", INTEGERS)
def test_the_least_integer_divided_by_minus_one_wraps_around(dtype: Any) -> None:
    least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
    assert result("Div", [least, least, greatest], [-1, 1, -1], dtype).tolist() == [least, least, -greatest]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    ("left", "right"),
    [(np.ones(3), np.array([1, 0, 2])), (np.ones((2, 3)), np.array(0)), (np.zeros(1), np.zeros(5))],
)
def test_division_of_integers_by_zero_is_reported_by_both_in_the_same_words(
    dtype: Any, left: Array, right: Array
) -> None:
    operands = [left.astype(dtype), right.astype(dtype)]
    with pytest.raises(ExecutionError, match="Div %0: division of an integer by zero") as interpreted:
        run_numpy(OPS["Div"], operands, {})
    use = Used(OPS["Div"], tuple(map(type_of, operands)), {})
    with pytest.raises(ExecutionError, match=r"Div %\d: division of an integer by zero") as compiled:
        compile_uses([use])([operands])
    assert interpreted.value.code == compiled.value.code == "E6009"


def test_where_nothing_is_divided_zero_divides() -> None:
    assert result("Div", np.zeros((0, 3)), np.zeros(3), np.int64).shape == (0, 3)


def test_floats_divide_as_ieee_has_it() -> None:
    with np.errstate(all="ignore"):
        found = result("Div", [1.0, -1.0, 0.0, 1.0, np.inf, 1.0], [0.0, 0.0, 0.0, -0.0, np.inf, 3.0])
    assert found[[0, 1, 3]].tolist() == [np.inf, -np.inf, -np.inf]
    assert np.isnan(found[[2, 4]]).all()
    assert found[5] == 1 / 3


def test_the_gradient_of_division_does_not_overflow_where_it_need_not() -> None:
    left, right, seed = (np.array(value) for value in (1e200, 1e160, 1e-10))
    dleft, dright = run_vjp(OPS["Div"], [left, right], seed, {})
    assert dleft is not None
    assert dright is not None
    assert dleft == pytest.approx(1e-170)
    assert dright == pytest.approx(-1e-130)


@pytest.mark.parametrize(("opcode", "greater"), [("Maximum", True), ("Minimum", False)])
def test_of_two_zeros_the_negative_one_is_less(opcode: str, greater: bool) -> None:
    zeros = np.array([0.0, 0.0, -0.0, -0.0]), np.array([0.0, -0.0, 0.0, -0.0])
    for dtype in (np.float32, np.float64):
        negative = np.signbit(result(opcode, *zeros, dtype)).tolist()
        assert negative == ([False, False, False, True] if greater else [False, True, True, True])


@pytest.mark.parametrize("opcode", ["Maximum", "Minimum"])
def test_nan_spreads(opcode: str) -> None:
    nan = np.nan
    assert np.isnan(result(opcode, [nan, 1, nan, 0.0, nan], [1, nan, nan, nan, -np.inf])).all()


@pytest.mark.parametrize(("opcode", "first", "second"), [("Maximum", 5, 1), ("Minimum", 1, 5)])
def test_the_gradient_goes_to_the_one_that_is_chosen_and_half_to_each_of_equal_ones(
    opcode: str, first: float, second: float
) -> None:
    left, right = np.array([first, second, 3.0]), np.array([second, first, 3.0])
    seed = np.array([1.0, 10.0, 100.0])
    dleft, dright = run_vjp(OPS[opcode], [left, right], seed, {})
    assert dleft is not None
    assert dright is not None
    assert dleft.tolist() == [1, 0, 50]
    assert dright.tolist() == [0, 10, 50]


@pytest.mark.parametrize("divisor", [np.array(3), np.array([1, -2, 3])])
def test_a_constant_divisor_without_zeros_is_not_checked(divisor: Array) -> None:
    builder = Builder()
    x = builder.parameter(TensorType(DType.SI64, (3,)), "x")
    quotient = builder.emit("Div", x, builder.constant(divisor, DType.SI64))
    module = Module(Functions((builder.function("main", quotient),)), "core-functions")
    text = compile(module).as_text("linalg")
    assert "divsi" in text
    assert "9223372036854775807" not in text
    assert (
        compile(module)(x=np.array([7, -7, 9]))[0].tolist()
        == (np.array([7, -7, 9]) / divisor).astype(int).tolist()
    )


def test_a_constant_divisor_with_a_zero_is_reported() -> None:
    builder = Builder()
    x = builder.parameter(TensorType(DType.SI64, (2,)), "x")
    quotient = builder.emit("Div", x, builder.constant([1, 0], DType.SI64))
    module = Module(Functions((builder.function("main", quotient),)), "core-functions")
    with pytest.raises(ExecutionError, match="division of an integer by zero"):
        compile(module)(x=np.array([7, -7]))
