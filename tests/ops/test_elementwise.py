"""Elementwise operations: values written out by hand, all pairs of awkward values, and rejections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from harness import edge_values, findings, run_both, run_vjp, type_of

from mind_mlir.builders.builder import Builder
from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType, SymbolicDim, TensorType
from mind_mlir.ops.example_types import parse_type
from mind_mlir.ops.opdef import ALL_INTEGERS, ANY, FLOATS, INTEGERS, NUMERIC, NotDifferentiable
from mind_mlir.ops.registry import by_opcode
from mind_mlir.ops.vjp import VjpContext

if TYPE_CHECKING:
    from collections.abc import Callable

OPS = by_opcode()
NAN, INF = float("nan"), float("inf")


def run(opcode: str, *operands: Any, **attributes: Any) -> Any:
    """Run one operation interpreted and compiled, check that the two agree, and return the result."""
    return run_both(OPS[opcode], operands, attributes)


def same_bits(actual: Any, expected: Any) -> None:
    """Compare floats with signed zeros and NaN positions."""
    np.testing.assert_array_equal(actual, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual)[numbers], np.signbit(expected)[numbers])


def pairs(dtype: DType) -> tuple[Any, Any]:
    """Return every pair of awkward values, as two vectors."""
    values = edge_values(dtype)
    return np.repeat(values, len(values)), np.tile(values, len(values))


# Arithmetic


@pytest.mark.parametrize("dtype", NUMERIC)
@pytest.mark.parametrize(
    ("opcode", "formula"),
    [("Add", lambda a, b: a + b), ("Sub", lambda a, b: a - b), ("Mul", lambda a, b: a * b)],
)
def test_arithmetic_of_every_pair_of_edge_values(
    opcode: str, formula: Callable[[Any, Any], Any], dtype: DType
) -> None:
    left, right = pairs(dtype)
    with np.errstate(all="ignore"):
        expected = formula(left, right)
    result = run(opcode, left, right)
    same_bits(result, expected) if dtype.is_float else np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_around(dtype: DType) -> None:
    info = np.iinfo(dtype.numpy)
    least, most, one = (np.array([value], dtype.numpy) for value in (info.min, info.max, 1))
    assert run("Add", most, one) == least
    assert run("Sub", least, one) == most
    assert run("Mul", most, most) == one
    assert run("Neg", least) == least


def test_operands_keep_their_order() -> None:
    np.testing.assert_array_equal(run("Sub", np.array([5, 1]), np.array([3, 4])), [2, -3])


def test_neg_flips_the_sign_of_zero() -> None:
    same_bits(run("Neg", np.array([0.0, -0.0, 2.0, -INF])), np.array([-0.0, 0.0, -2.0, INF]))


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ((2, 3), (2, 3), (2, 3)),
        ((2, 1), (2, 3), (2, 3)),
        ((3,), (2, 3), (2, 3)),
        ((2, 3), (), (2, 3)),
        ((4, 1, 3), (2, 1), (4, 2, 3)),
        ((1,), (1, 1), (1, 1)),
        ((1, 1), (5,), (1, 5)),
        ((), (), ()),
        ((0, 3), (1, 3), (0, 3)),
        ((1,), (0,), (0,)),
        ((0, 2), (), (0, 2)),
    ],
)
def test_broadcasting(left: tuple[int, ...], right: tuple[int, ...], result: tuple[int, ...]) -> None:
    a = np.arange(np.prod(left, dtype=int)).reshape(left) + 1
    b = np.arange(np.prod(right, dtype=int)).reshape(right) * 10
    for opcode, expected in (("Add", a + b), ("Sub", a - b), ("Mul", a * b)):
        value = run(opcode, a, b)
        assert value.shape == result
        np.testing.assert_array_equal(value, expected)


def test_unbroadcastable_shapes_are_E3001() -> None:  # noqa: N802 -- the code as it is spelled
    for opcode in ("Add", "Sub", "Mul"):
        types = [TensorType(DType.F32, (4, 2, 3)), TensorType(DType.F32, (2, 4))]
        (finding,) = findings(OPS[opcode], types, {})
        assert finding.code == "E3001"
        assert "Broadcasting failed" in finding.message
        assert finding.context["left"] == (4, 2, 3)
        assert finding.context["right"] == (2, 4)
        assert finding.context["dimension"] == 2
        assert finding.context["extents"] == (3, 4)


def test_symbolic_extents_broadcast_by_name() -> None:
    rows, columns = SymbolicDim("B"), SymbolicDim("C")
    same = [TensorType(DType.F32, (rows, 3)), TensorType(DType.F32, (1, 3))]
    assert findings(OPS["Add"], same, {}) == []
    other = [TensorType(DType.F32, (rows,)), TensorType(DType.F32, (columns,))]
    assert [finding.code for finding in findings(OPS["Add"], other, {})] == ["E3001"]


# Functions of one operand


def test_relu_is_zero_for_everything_not_above_zero() -> None:
    x = np.array([1.5, 0.0, -0.0, -2.0, NAN, INF, -INF, 5e-324, -5e-324])
    same_bits(run("Relu", x), np.array([1.5, 0.0, 0.0, 0.0, 0.0, INF, 0.0, 5e-324, 0.0]))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_relu_of_integers(dtype: DType) -> None:
    info = np.iinfo(dtype.numpy)
    x = np.array([info.min, -1, 0, 1, info.max], dtype.numpy)
    np.testing.assert_array_equal(run("Relu", x), np.array([0, 0, 0, 1, info.max], dtype.numpy))


@pytest.mark.parametrize("dtype", FLOATS)
def test_exp_over_its_whole_range(dtype: DType) -> None:
    low, high = (-110.0, 95.0) if dtype is DType.F32 else (-750.0, 720.0)
    x = np.linspace(low, high, 4099).astype(dtype.numpy)
    result = run("Exp", x)
    assert result[0] == 0
    assert result[-1] == INF
    assert run("Exp", np.array([0.0, -0.0, -INF, INF], dtype.numpy)).tolist() == [1.0, 1.0, 0.0, INF]
    assert np.isnan(run("Exp", np.array([NAN], dtype.numpy))).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_log_over_its_whole_range(dtype: DType) -> None:
    limits = np.finfo(dtype.numpy)
    bits = np.linspace(1, int(np.array(limits.max).view(f"u{dtype.itemsize}")), 4099)
    x = bits.astype(f"u{dtype.itemsize}").view(dtype.numpy)
    run("Log", x)
    near_one = (1 + np.linspace(-1e-3, 1e-3, 999)).astype(dtype.numpy)
    run("Log", near_one)


def test_log_outside_its_domain() -> None:
    result = run("Log", np.array([1.0, 0.0, -0.0, -1.0, -INF, INF, NAN]))
    np.testing.assert_array_equal(result, [0.0, -INF, -INF, NAN, NAN, INF, NAN])


@pytest.mark.parametrize("dtype", FLOATS)
def test_reciprocal_is_a_rounded_division(dtype: DType) -> None:
    x = np.concatenate([edge_values(dtype), np.linspace(-7, 7, 1001).astype(dtype.numpy)])
    with np.errstate(all="ignore"):
        same_bits(run("Reciprocal", x), dtype.numpy.type(1) / x)


@pytest.mark.parametrize("opcode", ["Exp", "Log", "Reciprocal"])
@pytest.mark.parametrize("dtype", [*INTEGERS, DType.I1])
def test_functions_of_integers_are_E2005(opcode: str, dtype: DType) -> None:  # noqa: N802 -- the code
    (finding,) = findings(OPS[opcode], [TensorType(dtype, (2,))], {})
    assert finding.code == "E2005"
    assert finding.context["found"] == dtype.core_name
    assert finding.context["allowed"] == "fp8_e4m3, fp8_e5m2, bf16, f16, f32, f64, cf32, cf64"


# Comparison and selection

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Less": lambda a, b: a < b,
    "LessEqual": lambda a, b: a <= b,
    "Equal": lambda a, b: a == b,
    "GreaterEqual": lambda a, b: a >= b,
    "Greater": lambda a, b: a > b,
    "NotEqual": lambda a, b: a != b,
}


@pytest.mark.parametrize("dtype", ANY)
@pytest.mark.parametrize("op", COMPARISONS)
def test_compare_every_pair_of_edge_values(op: str, dtype: DType) -> None:
    left, right = pairs(dtype)
    result = run("Compare", left, right, op=op)
    # Python's own numbers are the reference: exact integers, IEEE floats, False < True.
    expected = [COMPARISONS[op](a, b) for a, b in zip(left.tolist(), right.tolist(), strict=True)]
    assert result.tolist() == expected


def test_compare_with_nan() -> None:
    x, y = np.array([NAN, NAN, 1.0]), np.array([NAN, 1.0, NAN])
    for op in COMPARISONS:
        assert run("Compare", x, y, op=op).tolist() == [op == "NotEqual"] * 3


def test_comparisons_are_constant_to_the_derivative() -> None:
    rule = OPS["Compare"].derivative
    assert isinstance(rule, NotDifferentiable)
    assert rule.constant


def test_unknown_comparison_is_rejected() -> None:
    (finding,) = findings(OPS["Compare"], [TensorType(DType.F32)] * 2, {"op": "<"})
    assert finding.code == "E1103"
    assert "Less" in finding.message


@pytest.mark.parametrize("dtype", ANY)
def test_select_takes_bits_unchanged(dtype: DType) -> None:
    on_true, on_false = pairs(dtype)
    pred = np.arange(on_true.size) % 3 == 0
    result = run("Select", pred, on_true, on_false)
    expected = [(a if p else b) for p, a, b in zip(pred, on_true, on_false, strict=True)]
    if dtype.is_float:
        same_bits(result, np.array(expected))
    else:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("opcode", "operands", "attributes", "code", "context"),
    [
        ("Compare", ("f32[2, 3]", "f32[3]"), {"op": "Less"}, "E3002", {"expected": 2, "found": 1}),
        ("Compare", ("f32[2, 3]", "f32[2, 1]"), {"op": "Less"}, "E3003", {"dimension": 1, "extents": (3, 1)}),
        ("Select", ("i1[]", "f32[3]", "f32[3]"), {}, "E3002", {"expected": 0, "found": 1}),
        ("Select", ("i1[3]", "f32[3]", "f32[4]"), {}, "E3003", {"dimension": 0, "extents": (3, 4)}),
        ("Select", ("i1[3]", "f32[3]", "i32[3]"), {}, "E2004", {"left": "f32", "right": "i32"}),
        ("Select", ("f32[3]", "f32[3]", "f32[3]"), {}, "E2005", {"found": "f32", "allowed": "i1"}),
    ],
)
def test_comparison_and_selection_rejections(
    opcode: str, operands: tuple[str, ...], attributes: dict[str, Any], code: str, context: dict[str, Any]
) -> None:
    types = [parse_type(spelled, None) for spelled in operands]
    found = findings(OPS[opcode], types, attributes)
    assert {finding.code for finding in found} == {code}
    assert context.items() <= found[0].context.items()
    assert found[0].help


# Derivatives: test_records compares all rules with differences; here are the points where those fail.


def vjp(opcode: str, *operands: Any, seed: Any, **attributes: Any) -> list[Any]:
    return run_vjp(OPS[opcode], operands, seed, attributes)


def test_relu_gradient_is_zero_at_and_below_zero() -> None:
    x = np.array([1.0, 0.0, -0.0, -1.0, NAN, INF])
    (gradient,) = vjp("Relu", x, seed=np.array([3.0, 3.0, 3.0, INF, NAN, NAN]))
    same_bits(gradient, np.array([3.0, 0.0, 0.0, 0.0, 0.0, NAN]))


def test_select_gradient_ignores_the_other_branch() -> None:
    pred = np.array([True, False])
    _, on_true, on_false = vjp("Select", pred, np.ones(2), np.ones(2), seed=np.array([NAN, 5.0]))
    same_bits(on_true, np.array([NAN, 0.0]))
    same_bits(on_false, np.array([0.0, 5.0]))


def test_reciprocal_gradient_does_not_overflow_on_the_way() -> None:
    (gradient,) = vjp("Reciprocal", np.array([1e-200]), seed=np.array([1e-300]))
    np.testing.assert_allclose(gradient, [-1e100], rtol=1e-14)


def test_exp_gradient_reuses_the_result() -> None:
    (gradient,) = vjp("Exp", np.array([-INF, 0.0, 1.0]), seed=np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(gradient, [0.0, 2.0, 3 * np.e], rtol=1e-15)


def test_gradients_that_nobody_needs_are_not_built() -> None:
    array = np.ones(3)
    for opcode in ("Sub", "Mul"):
        builder = Builder()
        left, right = builder.input("x", type_of(array)), builder.input("y", type_of(array))
        result = builder.emit(opcode, left, right)
        before = len(builder.operations)
        rule = OPS[opcode].derivative
        assert not isinstance(rule, NotDifferentiable)
        cotangents = rule(VjpContext(builder, (left, right), result, result, {}, (True, False)))
        assert cotangents[1] is None
        assert len(builder.operations) - before == (opcode == "Mul")


@pytest.mark.parametrize("dtype", [each for each in ALL_INTEGERS if each.bits > 4])
def test_powers_of_integers_wrap_around(dtype: DType) -> None:
    least, greatest = limits(dtype)
    rng = np.random.default_rng(7)
    some = [int(each) for each in rng.integers(least, greatest, 60, dtype=np.int64 if least else np.uint64)]
    edges = [least, least + 1, greatest, greatest - 1, -1, *range(9), 15, 16, 31, 32, 33, 63, 64, 65, 96]
    values = [each for each in (*edges, *some) if least <= each <= greatest]
    pairs_ = [(x, y) for x in values for y in values]
    found = run("Power", *(np.array(each, dtype.numpy) for each in zip(*pairs_, strict=True)))
    wanted = [(pow(x, y, 2**dtype.bits) if y >= 0 else _reciprocal(x, y)) % 2**64 for x, y in pairs_]
    np.testing.assert_array_equal(found, np.array(wanted, np.uint64).astype(dtype.numpy))


def _reciprocal(x: int, exponent: int) -> int:
    return {1: 1, -1: 1 - exponent % 2 * 2}.get(x, 0)
