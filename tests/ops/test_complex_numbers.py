"""Complex numbers: values written out by hand, all pairs of awkward parts, constants, rejections."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np
import pytest
from harness import edge_values, findings, run_both

import mind_mlir
from mind_mlir import differentiate, verify
from mind_mlir.builders.builder import Builder
from mind_mlir.diagnostics import AutodiffError
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.complex_numbers import joined
from mind_mlir.ops.example_types import parse_type
from mind_mlir.ops.registry import by_opcode

OPS = by_opcode()
NAN, INF = float("nan"), float("inf")
BOTH = pytest.mark.parametrize("dtype", [DType.CF32, DType.CF64])


def run(opcode: str, *operands: Any, **attributes: Any) -> Any:
    """Run one operation interpreted and compiled, check that the two agree, and return the result."""
    return run_both(OPS[opcode], operands, attributes)


def pairs(dtype: DType) -> tuple[Any, Any]:
    """Return many pairs of awkward numbers, as two vectors."""
    values = edge_values(dtype)[::3]
    return np.repeat(values, len(values)), np.tile(values, len(values))


def same_parts(actual: Any, expected: Any) -> None:
    for left, right in ((actual.real, expected.real), (actual.imag, expected.imag)):
        np.testing.assert_array_equal(left, right)
        numbers = ~np.isnan(right)
        np.testing.assert_array_equal(np.signbit(left)[numbers], np.signbit(right)[numbers])


@BOTH
@pytest.mark.parametrize("opcode", ["Add", "Sub", "Mul", "Div"])
def test_every_pair_of_edge_values(opcode: str, dtype: DType) -> None:
    left, right = pairs(dtype)
    result = run(opcode, left, right)
    with np.errstate(all="ignore"):
        if opcode in ("Add", "Sub"):
            same_parts(result, {"Add": np.add, "Sub": np.subtract}[opcode](left, right))
        elif opcode == "Div":
            np.testing.assert_array_equal(np.isnan(result), np.isnan(left / right))


@BOTH
def test_arithmetic_by_hand(dtype: DType) -> None:
    x, y = np.array([1 + 2j], dtype.numpy), np.array([3 - 4j], dtype.numpy)
    assert run("Add", x, y) == [4 - 2j]
    assert run("Sub", x, y) == [-2 + 6j]
    assert run("Mul", x, y) == [11 + 2j]
    assert run("Div", np.array([11 + 2j], dtype.numpy), y) == [1 + 2j]
    assert run("Reciprocal", np.array([0.5j], dtype.numpy)) == [-2j]
    same_parts(run("Neg", np.array([0 - 0j, 1 - 2j], dtype.numpy)), -np.array([0 - 0j, 1 - 2j], dtype.numpy))


@BOTH
def test_quotients_do_not_overflow_on_the_way(dtype: DType) -> None:
    greatest = np.finfo(dtype.numpy).max / 2
    x = np.array([greatest * (1 + 1j)], dtype.numpy)
    np.testing.assert_allclose(run("Div", x, x), [1], rtol=1e-6)
    assert np.isinf(run("Div", x, np.zeros_like(x)).real).all()


@BOTH
@pytest.mark.parametrize(
    ("opcode", "argument", "expected"),
    [
        ("Exp", 1 + 2j, cmath.exp(1 + 2j)),
        ("Exp", math.pi * 1j, -1),
        ("Exp", -INF + 0j, 0),
        ("Log", -1 + 0j, math.pi * 1j),
        ("Log", -1 - 0j, math.pi * 1j),
        ("Log", complex(-1, -0.0), -math.pi * 1j),
        ("Log", 3 + 4j, cmath.log(3 + 4j)),
        ("Log", 1e30 + 1e30j, cmath.log(1e30 + 1e30j)),
        ("Tanh", 0.5 + 0.25j, cmath.tanh(0.5 + 0.25j)),
        ("Tanh", 300 + 1j, 1),
        ("Rsqrt", 4 + 0j, 0.5),
        ("Rsqrt", -4 + 0j, -0.5j),
        ("Rsqrt", 3 + 4j, 1 / (2 + 1j)),
        ("Rsqrt", 1e-38 + 1e-38j, 1 / cmath.sqrt(1e-38 + 1e-38j)),
        ("Rsqrt", complex(INF, 1), 0),
    ],
)
def test_functions_by_hand(opcode: str, argument: complex, expected: complex, dtype: DType) -> None:
    result = run(opcode, np.array([argument], dtype.numpy))
    epsilon = np.finfo(dtype.numpy).eps
    np.testing.assert_allclose(result, [expected], rtol=4 * epsilon, atol=4 * epsilon)


@BOTH
@pytest.mark.parametrize("opcode", ["Exp", "Log", "Tanh", "Rsqrt"])
def test_errors_are_within_four_units_of_the_magnitude(opcode: str, dtype: DType) -> None:
    rng = np.random.default_rng(5)
    around = np.exp(1j * rng.uniform(-4, 4, 5000)) * (1 + 1e-5 * rng.standard_normal(5000))
    wide = joined(rng.standard_normal(5000) * 3, rng.standard_normal(5000) * 3)
    near = 1e-5 * (rng.standard_normal(5000) + 1j * rng.standard_normal(5000))
    x = np.concatenate([around, wide, near, near + 1, near + math.pi / 2 * 1j]).astype(dtype.numpy)
    function: Any = {"Exp": np.exp, "Log": np.log, "Tanh": np.tanh, "Rsqrt": lambda z: 1 / np.sqrt(z)}[opcode]
    exact = function(x.astype(np.complex128 if dtype is DType.CF32 else np.clongdouble))
    error = np.abs(run(opcode, x).astype(exact.dtype) - exact) / np.abs(exact)
    assert error.max() < 4 * np.finfo(dtype.numpy).eps


@BOTH
def test_comparison_and_selection(dtype: DType) -> None:
    left, right = pairs(dtype)
    expected = [a == b for a, b in zip(left.tolist(), right.tolist(), strict=True)]
    assert run("Compare", left, right, op="Equal").tolist() == expected
    assert run("Compare", left, right, op="NotEqual").tolist() == [not each for each in expected]
    pred = np.arange(left.size) % 3 == 0
    same_parts(run("Select", pred, left, right), np.where(pred, left, right))


def test_casts() -> None:
    assert run("Cast", np.array([2**24 + 1, -3], np.int32), dtype=DType.CF32).tolist() == [2**24, -3]
    result = run("Cast", np.array([-0.0, NAN, INF]), dtype=DType.CF32)
    same_parts(result, joined(np.array([-0.0, NAN, INF], np.float32), np.zeros(3, np.float32)))
    narrow = run("Cast", np.array([complex(1e300, 1 / 3)]), dtype=DType.CF32)
    same_parts(narrow, joined(np.array([INF], np.float32), np.array([1 / 3], np.float32)))
    assert run("Cast", np.array([True, False]), dtype=DType.CF64).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("opcode", "attributes", "count"),
    [
        ("Compare", {"op": "Less"}, 2),
        ("Compare", {"op": "GreaterEqual"}, 2),
        ("Cast", {"dtype": DType.F32}, 1),
        ("Cast", {"dtype": DType.I1}, 1),
        ("Abs", {}, 1),
        ("Erf", {}, 1),
        ("Maximum", {}, 2),
        ("Clamp", {}, 3),
        ("Relu", {}, 1),
    ],
)
def test_what_complex_numbers_do_not_have_is_E2005(  # noqa: N802 -- the code as it is spelled
    opcode: str, attributes: dict[str, Any], count: int
) -> None:
    found = findings(OPS[opcode], [TensorType(DType.CF32, (3,))] * count, attributes)
    assert {finding.code for finding in found} == {"E2005"}
    assert found[0].help


def test_constants() -> None:
    rng = np.random.default_rng(0)
    large = joined(rng.standard_normal((300, 300)), rng.standard_normal((300, 300)))
    awkward = edge_values(DType.CF32)
    b = Builder(profile="ptir-v0.4")
    x = b.parameter(TensorType(DType.CF32, (2, 3)), "x")
    scalar, same = b.constant(3 - 4j, DType.CF32), b.constant(np.full((2, 3), 1 + 2j), DType.CF32)
    results = [
        b.emit("Add", x, same),
        b.emit("BroadcastTo", scalar, result_shape=(2, 3)),
        scalar,
        b.constant(large, DType.CF64),
        b.constant(awkward, DType.CF32),
    ]
    module = verify(Module(Functions((b.function("main", results),)), "ptir-v0.4"))
    argument = np.arange(6).reshape(2, 3).astype(np.complex64)
    found = mind_mlir.compile(module)(argument)
    expected = [argument + (1 + 2j), np.full((2, 3), 3 - 4j), np.array(3 - 4j), large, awkward]
    for actual, interpreted, wanted in zip(
        found, mind_mlir.interpret(module, {"x": argument}), expected, strict=True
    ):
        same_parts(actual, np.asarray(wanted, actual.dtype))
        same_parts(interpreted, np.asarray(wanted, actual.dtype))


def test_scalars_choose_and_stretch() -> None:
    b = Builder(profile="ptir-v0.4")
    z = b.parameter(TensorType(DType.CF32), "z")
    w = b.parameter(TensorType(DType.CF32, (3,)), "w")
    same = b.emit("Compare", z, z, op="Equal")
    wide = b.emit("BroadcastTo", z, result_shape=(3,))
    all_same = b.emit("BroadcastTo", same, result_shape=(3,))
    result = b.emit("Select", all_same, b.emit("Mul", wide, w), w)
    module = Module(Functions((b.function("main", [result]),)), "ptir-v0.4")
    for number in (1j, complex(NAN, 1)):
        given = np.array(number, np.complex64)
        vector = np.array([1, 2j, 3], np.complex64)
        (found,) = mind_mlir.compile(module)(given, vector)
        np.testing.assert_array_equal(found, vector * 1j if number == 1j else vector)


@BOTH
def test_sums(dtype: DType) -> None:
    rng = np.random.default_rng(3)
    x = joined(rng.standard_normal((37, 300)), rng.standard_normal((37, 300))).astype(dtype.numpy)
    form = {"kind": "Sum", "axes": (1,), "keepdims": False, "accum_dtype": dtype, "out_dtype": dtype}
    np.testing.assert_allclose(run("Reduce", x, **form), x.sum(axis=1), rtol=1e-5)
    assert run("Reduce", np.zeros((3, 0), dtype.numpy), **form).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("kind", "accumulator", "out"),
    [
        ("Max", DType.CF32, DType.CF32),
        ("Sum", DType.F32, DType.CF32),
        ("Sum", DType.CF32, DType.F32),
    ],
)
def test_sums_of_complex_numbers_stay_complex(kind: str, accumulator: DType, out: DType) -> None:
    form = {"kind": kind, "axes": (0,), "keepdims": False, "accum_dtype": accumulator, "out_dtype": out}
    found = findings(OPS["Reduce"], [TensorType(DType.CF32, (3,))], form)
    assert [finding.code for finding in found] == ["E2005"]
    assert found[0].help


def test_large_tensors_of_one_number() -> None:
    x = np.array(1 - 2j, np.complex64)
    assert (run("BroadcastTo", x, result_shape=(300, 500)) == x).all()


def test_no_gradient_is_had_of_complex_numbers_and_none_is_lost() -> None:
    b = Builder(profile="ptir-v0.4")
    z = b.parameter(TensorType(DType.CF64, (3,)), "z")
    x = b.parameter(TensorType(DType.F64, (3,)), "x")
    turned = b.emit("Mul", z, b.emit("Cast", x, dtype=DType.CF64))
    chosen = b.emit("Compare", turned, z, op="Equal")
    loss = b.emit("Select", chosen, x, b.emit("Neg", x))
    module = Module(Functions((b.function("main", [loss, turned]),)), "ptir-v0.4")
    with pytest.raises(AutodiffError) as raised:
        differentiate(module, wrt=["z"])
    (finding,) = raised.value.diagnostics
    assert finding.code == "E5005"
    assert "none goes through the operations that make real numbers" in finding.notes[0]
    gradient = differentiate(module, wrt=["x"]).module
    arguments = {"z": np.array([1, 2j, 3]), "x": np.array([1.0, 2.0, 1.0])}
    results = mind_mlir.compile(gradient)(**arguments)
    np.testing.assert_array_equal(results[-1], [1, -1, 1])


def test_loops_carry_complex_numbers() -> None:
    b = Builder(profile="ptir-v0.4")
    types = [TensorType(DType.SI32), TensorType(DType.CF32), TensorType(DType.CF64, (3,))]
    values = [b.parameter(type_, name) for type_, name in zip(types, "kzw", strict=True)]
    with b.region(types) as condition:
        more = b.emit("Compare", condition.parameters[0], b.constant(0, DType.SI32), op="Greater")
        condition.yield_([more, *condition.parameters])
    with b.region(types) as body:
        k, z, w = body.parameters
        wide = b.emit("BroadcastTo", b.emit("Cast", z, dtype=DType.CF64), result_shape=(3,))
        step = b.emit("Add", b.emit("Mul", z, z), b.constant(0.125 - 0.25j, DType.CF32))
        body.yield_([b.emit("Sub", k, b.constant(1, DType.SI32)), step, b.emit("Mul", w, wide)])
    results = b.emit_all("While", *values, regions=(condition, body))
    module = Module(Functions((b.function("main", list(results)),)), "ptir-v0.4")
    given = {
        "k": np.array(5, np.int32),
        "z": np.array(0.5 + 0.25j, np.complex64),
        "w": np.array([1, 2j, 3 - 1j]),
    }
    found = mind_mlir.compile(module)(**given)
    for actual, expected in zip(found, mind_mlir.interpret(module, given), strict=True):
        np.testing.assert_array_equal(actual, expected)
    number, vector = given["z"], given["w"]
    for _ in range(5):
        number, vector = number * number + np.complex64(0.125 - 0.25j), vector * number
    np.testing.assert_allclose(found[1], number, rtol=1e-5)
    np.testing.assert_allclose(found[2], vector, rtol=1e-5)


@BOTH
def test_products_of_matrices(dtype: DType) -> None:
    rng = np.random.default_rng(4)
    left, right = (
        joined(rng.standard_normal(shape), rng.standard_normal(shape)).astype(dtype.numpy)
        for shape in ((3, 17, 1000), (3, 1000, 5))
    )
    lists = {"batch_lhs": (0,), "batch_rhs": (0,), "contract_lhs": (2,), "contract_rhs": (1,)}
    result = run("DotGeneral", left, right, **lists, accum_dtype=dtype, out_dtype=dtype)
    np.testing.assert_allclose(result, left @ right, rtol=1e-4, atol=1e-4)


def test_products_of_what_is_not_finite() -> None:
    left = np.array([[complex(INF, 0), 1], [complex(NAN, 1), 2], [complex(0, INF), 1j]])
    right = np.array([[1 + 1j, 1], [0, 0]])
    lists = {"contract_lhs": (1,), "contract_rhs": (0,)}
    result = run("DotGeneral", left, right, **lists, accum_dtype=DType.CF64, out_dtype=DType.CF64)
    same_parts(result, joined([[INF, INF], [NAN, NAN], [-INF, NAN]], [[INF, NAN], [NAN, NAN], [INF, INF]]))


@BOTH
def test_layer_norm_is_by_magnitude(dtype: DType) -> None:
    x = np.array([[1 + 1j, 1 - 1j, -1 + 1j, -1 - 1j], [5, 5j, -5, -5j]], dtype.numpy) + (3 - 2j)
    gamma, beta = np.array([1, 1j, 2, 1 + 1j], dtype.numpy), np.array([0, 0, 1j, 1], dtype.numpy)
    result = run("LayerNorm", x.astype(dtype.numpy), gamma, beta, epsilon=0.0, feature_axis=1)
    root = math.sqrt(0.5)
    expected = [[root * (1 + 1j), root * (1 + 1j), 1j + 2 * root * (-1 + 1j), 1 - 2j * root]]
    np.testing.assert_allclose(result, [*expected, [1, -1, -2 + 1j, 2 - 1j]], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("opcode", "types", "attributes"),
    [
        ("SegmentReduce", ("cf32[3]", "i32[3]"), {"kind": "Max", "num_segments": 3, "accum_dtype": "cf32"}),
        ("SegmentReduce", ("cf32[3]", "i32[3]"), {"kind": "Sum", "num_segments": 3, "accum_dtype": "f32"}),
        ("SegmentReduce", ("i1[3]", "i32[3]"), {"kind": "Sum", "num_segments": 3, "accum_dtype": "i1"}),
        ("ScatterReduce", ("cf32[3]", "i32[3]", "cf32[3]"), {"axis": 0, "reduce": "Min"}),
        ("ScatterReduce", ("i1[3]", "i32[3]", "i1[3]"), {"axis": 0, "reduce": "Add"}),
        ("DotGeneral", ("cf32[3]", "cf32[3]"), {"accum_dtype": "f32", "out_dtype": "cf32"}),
        ("DotGeneral", ("f32[3]", "f32[3]"), {"accum_dtype": "cf32", "out_dtype": "f32"}),
    ],
)
def test_what_does_not_go_together_is_E2005(  # noqa: N802 -- the code as it is spelled
    opcode: str, types: tuple[str, ...], attributes: dict[str, Any]
) -> None:
    operands = [parse_type(type_, None) for type_ in types]
    given = {name: DType.from_name(v) if "dtype" in name else v for name, v in attributes.items()}
    found = findings(OPS[opcode], operands, given)
    assert [finding.code for finding in found] == ["E2005"]
    assert found[0].help
