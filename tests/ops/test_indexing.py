"""Index, Gather, ScatterAdd: numpy rules, rejections, run-time errors, derivatives, compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import type_of
from linear_harness import (
    DTYPES,
    Case,
    check_adjoint,
    check_compiled,
    f32,
    integers,
    ramp,
    rejection,
    run,
    shapes_of,
)

import mind_mlir
from mind_mlir import Builder, DType, ExecutionError, TensorType
from mind_mlir.ir.module import CoreOperation, Functions, Module
from mind_mlir.ir.profiles import CORE_FUNCTIONS
from mind_mlir.ops.contexts import TypeContext
from mind_mlir.ops.infer import infer_types
from mind_mlir.ops.registry import by_opcode
from mind_mlir.ops.vjp import VjpContext
from mind_mlir.ops.windows import row_form

I64, I32 = DType.SI64, DType.SI32


# Index


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("indices", [(0, 0), (2, 3), (-1, -4), (-3, 1)])
def test_index(dtype: Any, indices: tuple[int, ...]) -> None:
    x = ramp(3, 4, dtype=dtype)
    assert run("Index", x, indices=indices) == x[indices]


def test_index_of_a_scalar() -> None:
    assert run("Index", ramp(), indices=()) == 0


@pytest.mark.parametrize("indices", [(), (1,), (1, 2, 0)])
def test_index_length_is_checked(indices: tuple[int, ...]) -> None:
    (finding,) = rejection("Index", f32(3, 4), indices=indices)
    assert finding.code == "E4006"
    assert (finding.context["rank"], finding.context["length"]) == (2, len(indices))


def partly(shape: tuple[int, ...], indices: tuple[int, ...]) -> Module:
    """Return a module of profile core-functions that reads a row; a Builder's operations are of Core v1."""
    b = Builder()
    x = b.parameter(TensorType(DType.F64, shape), "x")
    y = b.fresh(x.type.with_shape(shape[len(indices) :]))
    b.operations.append(CoreOperation.create(y.id, "Index", [x.id], {"indices": indices}, y.type))
    return Module(Functions((b.function("main", y),)), "core-functions")


@pytest.mark.parametrize("indices", [(), (1,), (-2,), (0, -1), (2, 3, 1)])
def test_fewer_indices_give_a_row_where_the_profile_allows_it(indices: tuple[int, ...]) -> None:
    x = ramp(3, 4, 2, dtype=np.float64)
    (row,) = mind_mlir.interpret(partly(x.shape, indices), {"x": x})
    np.testing.assert_array_equal(row, x[indices])


def test_a_row_out_of_bounds_is_a_run_time_error() -> None:
    with pytest.raises(ExecutionError, match="index 3 is out of bounds for axis 0 with extent 3"):
        mind_mlir.interpret(partly((3, 4), (3,)), {"x": ramp(3, 4, dtype=np.float64)})


def test_no_profile_allows_more_indices_than_dimensions() -> None:
    context = TypeContext("Index", 0, (f32(3),), {"indices": (0, 0)}, profile=CORE_FUNCTIONS)
    assert infer_types(by_opcode()["Index"], context) is None
    (finding,) = context.diagnostics
    assert finding.message == "Index of a tensor of rank 1 takes at most 1 indices, found 2"


@pytest.mark.parametrize(("shape", "indices"), [((3, 4), (1,)), ((3, 4, 2), (-1,)), ((3, 4, 2), (2, 0))])
def test_the_gradient_of_a_row_is_zero_elsewhere(shape: tuple[int, ...], indices: tuple[int, ...]) -> None:
    b = Builder()
    x = b.input("x", TensorType(DType.F64, shape))
    cotangent = b.input("c", x.type.with_shape(shape[len(indices) :]))
    rule = by_opcode()["Index"].derivative
    assert callable(rule)
    (gradient,) = rule(VjpContext(b, (x,), cotangent, cotangent, {"indices": indices}, (True,)))
    c = ramp(*cotangent.shape, dtype=np.float64)
    (found,) = mind_mlir.interpret(b.build(gradient), {"x": np.zeros(shape), "c": c})
    expected = np.zeros(shape)
    expected[indices] = c
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("indices", "bad", "axis"),
    [((3, 0), 3, 0), ((0, 4), 4, 1), ((0, -5), -5, 1), ((9, 9), 9, 0), ((2**62, 0), 2**62, 0)],
)
def test_index_out_of_bounds_is_a_run_time_error(indices: tuple[int, ...], bad: int, axis: int) -> None:
    with pytest.raises(ExecutionError, match=rf"index {bad} is out of bounds for axis {axis}") as caught:
        run("Index", ramp(3, 4), indices=indices)
    assert caught.value.code == "E6001"
    assert caught.value.diagnostics[0].context["index"] == bad
    assert caught.value.diagnostics[0].context["shape"] == (3, 4)


def test_gradient_of_an_index_out_of_bounds_fails_too() -> None:
    with pytest.raises(ExecutionError, match="index 7 is out of bounds"):
        check_adjoint("Index", ramp(3, dtype=np.float64), indices=(7,))


# Gather


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [(5,), (5, 3), (5, 2, 3), (5, 0)])
@pytest.mark.parametrize("indices", [3, -5, [], [4, 0, 0, -1], [[1, 2], [-2, 4]]])
def test_gather(dtype: Any, index_dtype: Any, shape: tuple[int, ...], indices: Any) -> None:
    x, at = ramp(*shape, dtype=dtype), np.array(indices, index_dtype)
    result = run("Gather", x, at)
    assert result.shape == at.shape + shape[1:]
    np.testing.assert_array_equal(result, x[at])


def test_gather_rejects() -> None:
    (finding,) = rejection("Gather", f32(), TensorType(I64, (2,)))
    assert finding.code == "E3002"
    for dtype in (DType.F32, DType.F64, DType.I1, DType.SI8, DType.UI32):
        (finding,) = rejection("Gather", f32(3), TensorType(dtype, (2,)))
        assert finding.code == "E4011"
        assert finding.context["dtype"] == dtype.core_name


@pytest.mark.parametrize("opcode", ["Gather", "ScatterAdd"])
@pytest.mark.parametrize(
    ("rows", "indices", "bad"),
    [(3, [0, 3], 3), (3, [-4, 1], -4), (3, [-4, 3], -4), (0, [0], 0), (0, [-1], -1), (3, 2**62, 2**62)],
)
def test_run_time_indices_are_checked(opcode: str, rows: int, indices: Any, bad: int) -> None:
    x, at = ramp(rows, 2), np.array(indices, np.int64)
    operands = [x, at] if opcode == "Gather" else [x, at, np.ones((*at.shape, 2), np.float32)]
    attributes = {} if opcode == "Gather" else row_form(2, at.ndim)
    with pytest.raises(ExecutionError, match=rf"index {bad} is out of bounds for axis 0") as caught:
        run(opcode, *operands, **attributes)
    assert caught.value.code == "E6001"


def test_no_index_is_never_out_of_bounds() -> None:
    assert run("Gather", ramp(0, 2), np.zeros((0, 4), np.int64)).shape == (0, 4, 2)
    assert run("ScatterAdd", ramp(0), np.zeros(0, np.int64), ramp(0), **row_form(1, 1)).shape == (0,)


# ScatterAdd


@pytest.mark.parametrize("dtype", DTYPES[1:])
@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("row", [(), (3,), (2, 3), (0,)])
@pytest.mark.parametrize("indices", [3, -4, [], [3, 0, 0, -1], [[1, 2], [-2, 1]]])
def test_scatter_add(dtype: Any, index_dtype: Any, row: tuple[int, ...], indices: Any) -> None:
    x, at = ramp(4, *row, dtype=dtype), np.array(indices, index_dtype)
    updates = 100 + ramp(*at.shape, *row, dtype=dtype)
    expected = x.copy()
    for position in np.ndindex(*at.shape):
        expected[at[position]] += updates[position]
    result = run("ScatterAdd", x, at, updates, **row_form(x.ndim, at.ndim))
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("order", ["C", "F"])
def test_scatter_adds_in_the_order_of_the_indices(order: Any) -> None:
    rng = np.random.default_rng(3)
    at = np.asarray(rng.integers(0, 3, (40, 50)), order=order)
    updates = np.asarray(rng.standard_normal((40, 50)) * 10.0 ** rng.integers(-6, 6, (40, 50)), np.float32)
    expected = np.zeros(3, np.float32)
    for position in np.ndindex(*at.shape):
        expected[at[position]] += updates[position]
    result = run("ScatterAdd", np.zeros(3, np.float32), at, updates, **row_form(1, 2))
    assert result.tobytes() == expected.tobytes()


def test_scatter_add_rejects() -> None:
    indices, form = TensorType(I32, (4,)), row_form(2, 1)
    for types, code in (
        ((f32(5, 3), TensorType(DType.F32, (4,)), f32(4, 3)), "E4011"),
        ((f32(5, 3), indices, TensorType(DType.F64, (4, 3))), "E2004"),
        ((f32(5, 3), indices, f32(3, 3)), "E3003"),
        ((f32(5, 3), indices, f32(4, 4)), "E4123"),
        ((f32(5, 3), indices, f32(4)), "E3002"),
        ((f32(), indices, f32(4)), "E3002"),
        ((TensorType(DType.I1, (5, 3)), indices, f32(4, 3)), "E2005"),
    ):
        (finding,) = rejection("ScatterAdd", *types, **form)
        assert finding.code == code


# Derivatives


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("indices", [(2, 1), (-1, -4)])
def test_derivative_of_index(dtype: Any, indices: tuple[int, ...]) -> None:
    check_adjoint("Index", integers(np.random.default_rng(1), (3, 4), dtype), indices=indices)


def test_derivative_of_index_of_a_scalar() -> None:
    check_adjoint("Index", integers(np.random.default_rng(1), ()), indices=())


@pytest.mark.parametrize("shape", [(5,), (5, 3), (5, 2, 3)])
@pytest.mark.parametrize("indices", [3, -5, [], [4, 0, 0, -1], [[1, 2], [-2, 4]]])
def test_derivatives_of_gather_and_scatter_add(shape: tuple[int, ...], indices: Any) -> None:
    rng = np.random.default_rng(1)
    x, at = integers(rng, shape), np.array(indices, np.int64)
    check_adjoint("Gather", x, at)
    updates = integers(rng, at.shape + shape[1:])
    form = row_form(x.ndim, at.ndim)
    check_adjoint("ScatterAdd", x, at, updates, wrt=(0, 2), **form)
    check_adjoint("ScatterAdd", x, at, np.zeros_like(updates), wrt=(0,), **form)
    check_adjoint("ScatterAdd", np.zeros_like(x), at, updates, wrt=(2,), **form)


# Compiled code


@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_gathers_and_scatters(dtype: Any) -> None:
    rng = np.random.default_rng(6)
    cases: list[Case] = []
    for _ in range(20):
        rows = int(rng.integers(1, 6))
        x = ramp(rows, *shapes_of(rng), dtype=dtype)
        at = np.asarray(rng.integers(-rows, rows, shapes_of(rng)), rng.choice(["int32", "int64"]))
        cases.append(("Gather", [x, at], {}))
        if dtype is not np.bool_:
            updates = np.asarray(rng.standard_normal(at.shape + x.shape[1:]) * 100, dtype)
            cases.append(("ScatterAdd", [x, at, updates], row_form(x.ndim, at.ndim)))
    check_compiled(cases)


@pytest.mark.parametrize(
    ("opcode", "arrays", "attributes"),
    [
        ("Index", [ramp(3, 4)], {"indices": (-4, 2)}),
        ("Index", [ramp(3, 4)], {"indices": (2, 4)}),
        ("Gather", [ramp(3, 4), np.array([0, 3, 1])], {}),
        ("Gather", [ramp(3, 4), np.array([[0, -4], [3, 1]], np.int32)], {}),
        ("Gather", [ramp(3, 4), np.array(-(2**63))], {}),
        ("Gather", [ramp(3, 4), np.array([2**31 - 1], np.int32)], {}),
        ("ScatterAdd", [ramp(3), np.array([0, 2**63 - 1]), ramp(2)], row_form(1, 1)),
        ("ScatterAdd", [ramp(3), np.array([0, -1]), ramp(2)], row_form(1, 1, from_end=False)),
        ("Take", [ramp(3, 4), np.array([0, 3, 1])], {}),
        ("Take", [ramp(3, 4), np.array([[0, -1], [2, 1]], np.int32)], {}),
        ("GatherElements", [ramp(3, 4), np.array([[0, 2, 4]] * 3)], {"axis": 1}),
        ("GatherElements", [ramp(3, 4), np.array([[0, 2, -1, 3]])], {"axis": 0}),
        ("ScatterReduce", [ramp(3), np.array([3]), ramp(1)], {"axis": 0, "reduce": "Max"}),
        ("ScatterReduce", [ramp(3), np.array([0, -3]), ramp(2)], {"axis": -1, "reduce": "Replace"}),
    ],
)
def test_compiled_code_reports_out_of_bounds_as_the_interpreter_does(
    opcode: str, arrays: list[Any], attributes: dict[str, Any]
) -> None:
    builder = Builder()
    operands = [builder.input(f"a{i}", type_of(array)) for i, array in enumerate(arrays)]
    module = builder.build([builder.emit(opcode, *operands, **attributes)])
    given = {f"a{i}": array for i, array in enumerate(arrays)}
    with pytest.raises(ExecutionError) as expected:
        mind_mlir.interpret(module, given)
    with pytest.raises(ExecutionError) as found:
        mind_mlir.compile(module)(**given)
    assert found.value.diagnostics == expected.value.diagnostics


def test_indexing_an_empty_axis_is_out_of_bounds() -> None:
    builder = Builder()
    x, at = builder.input("x", f32(3)), builder.input("at", TensorType(I64, (1,)))
    nothing = builder.emit("Slice", x, starts=(0,), ends=(0,), steps=(1,))
    compiled = mind_mlir.compile(builder.build([builder.emit("Gather", nothing, at)]))
    with pytest.raises(ExecutionError, match="index 0 is out of bounds for axis 0 with extent 0") as caught:
        compiled(x=ramp(3), at=np.array([0]))
    assert caught.value.code == "E6001"


@pytest.mark.parametrize("prior", ["Neg", "BroadcastTo"])
def test_scatter_add_leaves_its_operand_as_it_was(prior: str) -> None:
    builder = Builder()
    x, at = builder.input("x", f32(3)), builder.input("at", TensorType(I32, (4,)))
    if prior == "Neg":
        operand = builder.emit("Neg", x)
    else:
        operand = builder.emit("BroadcastTo", builder.constant(2.0, DType.F32), result_shape=(3,))
    added = builder.emit("ScatterAdd", operand, at, builder.emit("Gather", operand, at), **row_form(1, 1))
    module = builder.build([builder.emit("ExpandDims", added, axes=(0,)), operand])
    arguments = {"x": ramp(3), "at": np.array([0, 1, 1, -1], np.int32)}
    expected = mind_mlir.interpret(module, arguments)
    for found, wanted in zip(mind_mlir.compile(module)(**arguments), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
