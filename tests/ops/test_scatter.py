"""ScatterAdd in all of XLA's forms and ScatterReduce: where updates go, what is refused, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import findings, run_both, run_compiled, run_vjp
from linear_harness import check_adjoint, f32, integers, ramp, run

from mind_mlir import DType, ExecutionError, TensorType, UnsupportedError
from mind_mlir.ops.registry import by_opcode
from mind_mlir.ops.windows import row_form

ADD, REDUCE = by_opcode()["ScatterAdd"], by_opcode()["ScatterReduce"]


def form(
    windows: tuple[int, ...], inserted: tuple[int, ...], indexed: tuple[int, ...], vector: int
) -> dict[str, Any]:
    return {
        "update_window_dims": windows,
        "inserted_window_dims": inserted,
        "scatter_dims_to_operand_dims": indexed,
        "index_vector_dim": vector,
        "from_end": False,
    }


def as_xla_says(operand: Any, indices: Any, updates: Any, dims: dict[str, Any]) -> Any:
    """Return what the documents of XLA's scatter give, update by update."""
    result, vector = operand.copy(), dims["index_vector_dim"]
    scattered = [d for d in range(updates.ndim) if d not in dims["update_window_dims"]]
    windowed = [d for d in range(operand.ndim) if d not in dims["inserted_window_dims"]]
    for place in np.ndindex(*updates.shape):
        at: list[Any] = [place[d] for d in scattered]
        begin = (
            indices[tuple(at)]
            if vector == indices.ndim
            else indices[(*at[:vector], slice(None), *at[vector:])]
        )
        target = [0] * operand.ndim
        for number, d in zip(np.atleast_1d(begin), dims["scatter_dims_to_operand_dims"], strict=True):
            target[d] = int(number)
        for d, source in zip(windowed, dims["update_window_dims"], strict=True):
            target[d] += place[source]
        result[tuple(target)] += updates[place]
    return result


#: Shapes of operand, indices and updates, and dimension numbers; the greatest index that fits everywhere.
FORMS: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], dict[str, Any], int]] = [
    ((5, 3), (4,), (4, 3), form((1,), (0,), (0,), 1), 4),
    ((5, 3), (4, 1), (4, 3), form((1,), (0,), (0,), 1), 4),
    ((5, 3), (1, 4), (4, 3), form((1,), (0,), (0,), 0), 4),
    ((5, 3), (4,), (3, 4), form((0,), (0,), (0,), 1), 4),
    ((3, 5), (4,), (3, 4), form((0,), (1,), (1,), 1), 4),
    ((5, 5), (6, 2), (6,), form((), (0, 1), (0, 1), 1), 4),
    ((5, 5), (2, 6), (6,), form((), (0, 1), (1, 0), 0), 4),
    ((5, 6), (3, 2), (3, 2, 4), form((1, 2), (), (0, 1), 1), 2),
    ((5, 6), (3, 2), (2, 3, 4), form((0, 2), (), (1, 0), 1), 2),
    ((5, 6), (2,), (2, 4), form((0, 1), (), (0, 1), 0), 2),
    ((4, 3, 2, 5), (2, 3, 2), (2, 2, 3, 5), form((1, 3), (1, 2), (1, 2), 2), 1),
    ((4, 3, 5), (7,), (7, 2, 3, 5), form((1, 2, 3), (), (0,), 1), 2),
    ((3, 4), (2, 0), (2, 2, 4), form((1, 2), (), (), 1), 0),
    ((), (4, 0), (4,), form((), (), (), 1), 0),
    ((5,), (0, 1), (0,), form((), (0,), (0,), 1), 4),
]


def operands_of(case: Any, dtype: Any = np.float64) -> tuple[Any, Any, Any]:
    shape, at, updates, _, greatest = case
    rng = np.random.default_rng(7)
    return integers(rng, shape, dtype), rng.integers(0, greatest + 1, at), integers(rng, updates, dtype)


@pytest.mark.parametrize("case", FORMS)
def test_updates_are_added_where_xla_says(case: Any) -> None:
    operand, indices, updates = operands_of(case)
    result = run_both(ADD, [operand, indices, updates], case[3])
    np.testing.assert_array_equal(result, as_xla_says(operand, indices, updates, case[3]))


@pytest.mark.parametrize("case", FORMS)
def test_derivatives_of_all_forms(case: Any) -> None:
    operand, indices, updates = operands_of(case)
    for from_end in (False, True):
        attributes = {**case[3], "from_end": from_end}
        check_adjoint("ScatterAdd", operand, indices, updates, wrt=(0, 2), **attributes)


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_dimensions_may_count_from_the_end(dtype: Any) -> None:
    case = FORMS[8]
    operand, indices, updates = operands_of(case, dtype)
    expected = run_both(ADD, [operand, indices, updates], case[3])
    negative = form((-3, -1), (), (-1, -2), -1)
    np.testing.assert_array_equal(run_both(ADD, [operand, indices, updates], negative), expected)


def test_negative_indices_count_from_the_end_of_single_positions_only() -> None:
    x, u = np.zeros((3, 4), np.float32), np.ones((1, 2), np.float32)
    at = np.array([[-1, 1]])
    dims = {**form((1,), (0,), (0, 1), 1), "from_end": True}
    result = run_both(ADD, [x, at, u], dims)
    np.testing.assert_array_equal(np.argwhere(result == 1), [[2, 1], [2, 2]])
    with pytest.raises(ExecutionError, match="index -1 of a window of 2 is out of bounds for axis 1"):
        run("ScatterAdd", x, np.array([[-1, -1]]), u, **dims)
    with pytest.raises(ExecutionError, match="index -1 is out of bounds for axis 0") as caught:
        run("ScatterAdd", x, at, u, **{**dims, "from_end": False})
    assert caught.value.code == "E6001"


@pytest.mark.parametrize(("start", "axis"), [((4, 0), 0), ((0, 3), 1), ((-1, 0), 0), ((9, 9), 0)])
def test_windows_that_do_not_fit_are_violations(start: tuple[int, int], axis: int) -> None:
    x, u = np.zeros((5, 6), np.float32), np.ones((1, 2, 4), np.float32)
    with pytest.raises(ExecutionError, match=f"out of bounds for axis {axis}"):
        run("ScatterAdd", x, np.array([start]), u, **form((1, 2), (), (0, 1), 1))


def test_dimension_numbers_that_are_refused() -> None:
    x, at, u = f32(5, 6), TensorType(DType.SI64, (3, 2)), f32(3, 2, 4)
    for dims, code in (
        (form((1,), (), (0, 1), 1), "E3002"),
        (form((1, 2), (0,), (0, 1), 1), "E3002"),
        (form((1, 2), (), (0, 1), 2), "E3002"),
        (form((1, 2), (), (0, 1), 3), "E3004"),
        (form((1, 2), (), (0, 1), -3), "E3004"),
        (form((1, 3), (), (0, 1), 1), "E3004"),
        (form((1, 2), (), (0, 2), 1), "E3004"),
        (form((1, -2), (), (0, 1), 1), "E3005"),
        (form((1, 2), (), (1, -1), 1), "E3005"),
        (form((2, 1), (), (0, 1), 1), "E1103"),
        (form((1, 2), (), (0,), 1), "E3003"),
        (form((0, 1), (), (0, 1), 1), "E3003"),
    ):
        codes = [finding.code for finding in findings(ADD, [x, at, u], dims)]
        assert codes == [code], dims
    large = findings(ADD, [x, at, f32(3, 6, 7)], form((1, 2), (), (0, 1), 1))
    assert [finding.code for finding in large] == ["E4123", "E4123"]


def test_ptir_has_no_indices_that_count_from_the_end() -> None:
    contract = ADD.contract
    assert contract is not None
    assert contract.read is not None
    assert contract.write is not None
    dims = row_form(2, 1, from_end=False)
    fields = contract.write(dims, ())
    assert set(fields) == {field.name for field in contract.fields}
    assert contract.read(fields, ()) == dims
    with pytest.raises(UnsupportedError, match="from_end"):
        contract.write(row_form(2, 1), ())


# ScatterReduce


def reduced(operand: Any, indices: Any, updates: Any, axis: int, reduce: str) -> Any:
    """Return what the contract says, update by update."""
    kinds: dict[str, Any] = {"Add": lambda a, b: a + b, "Max": max, "Min": min, "Replace": lambda _, b: b}
    combine = kinds[reduce]
    result = operand.copy()
    for place in np.ndindex(*updates.shape):
        target = list(place)
        target[axis] = indices[place]
        result[tuple(target)] = combine(result[tuple(target)], updates[place])
    return result


@pytest.mark.parametrize("reduce", ["Add", "Max", "Min", "Replace"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_scatter_reduce(axis: int, reduce: str) -> None:
    rng = np.random.default_rng(3)
    x, shape = integers(rng, (3, 4, 5)), [3, 4, 5]
    shape[axis] = 7
    at, updates = rng.integers(0, x.shape[axis], shape), integers(rng, tuple(shape))
    attributes = {"axis": axis, "reduce": reduce}
    result = run_both(REDUCE, [x, at, updates], attributes)
    np.testing.assert_array_equal(result, reduced(x, at, updates, axis, reduce))


@pytest.mark.parametrize(("shape", "axis"), [((7, 1031), 0), ((97, 31), 1), ((2, 3, 1511), 1), ((4099,), 0)])
@pytest.mark.parametrize("reduce", ["Add", "Replace"])
def test_scatter_reduce_of_many(shape: tuple[int, ...], axis: int, reduce: str) -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal([5 if dim == axis else extent for dim, extent in enumerate(shape)])
    at, updates = rng.integers(0, 5, shape), rng.standard_normal(shape)
    found = run_compiled(REDUCE, [x, at, updates], {"axis": axis, "reduce": reduce})
    expected = reduced(x, at, updates, axis, reduce)
    if len(shape) == 1 and reduce == "Add":  # in partial sums
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    else:
        # In row-major order, however it is shared: so the bits are the same.
        np.testing.assert_array_equal(found, expected)


def test_the_last_of_several_replaces() -> None:
    at = np.array([0, 2, 0, 0])
    result = run_both(REDUCE, [ramp(3), at, 10 + ramp(4)], {"axis": 0, "reduce": "Replace"})
    np.testing.assert_array_equal(result, [13, 1, 11])


@pytest.mark.parametrize("reduce", ["Max", "Min"])
def test_extremes_of_zeros_and_of_what_is_no_number(reduce: str) -> None:
    x = np.array([0.0, -0.0, -0.0, 1.0, np.nan])
    updates = np.array([-0.0, 0.0, -0.0, np.nan, 2.0])
    result = run_both(REDUCE, [x, np.arange(5), updates], {"axis": 0, "reduce": reduce})
    signs = [False, False, True] if reduce == "Max" else [True, True, True]
    np.testing.assert_array_equal(np.signbit(result[:3]), signs)
    assert np.isnan(result[3:]).all()


@pytest.mark.parametrize("reduce", ["Add", "Replace"])
def test_derivatives_of_what_is_linear(reduce: str) -> None:
    rng = np.random.default_rng(4)
    x, at, updates = integers(rng, (3, 4)), rng.integers(0, 3, (6, 4)), integers(rng, (6, 4))
    check_adjoint("ScatterReduce", x, at, updates, wrt=(0, 2), axis=0, reduce=reduce)


def test_the_gradient_of_replace_goes_to_who_stays() -> None:
    at, seed = np.array([0, 2, 0, 0]), np.array([3.0, 5.0, 7.0])
    attributes = {"axis": 0, "reduce": "Replace"}
    dx, none, du = run_vjp(REDUCE, [np.zeros(3), at, np.ones(4)], seed, attributes)
    np.testing.assert_array_equal(dx, [0, 5, 0])
    np.testing.assert_array_equal(du, [0, 7, 0, 3])
    assert none is None


@pytest.mark.parametrize(("reduce", "sign"), [("Max", 1), ("Min", -1)])
def test_ties_share_the_gradient_evenly(reduce: str, sign: int) -> None:
    x = sign * np.array([2.0, 1.0, 5.0, np.nan, 4.0])
    at = np.array([0, 0, 0, 1, 1, 2, 3])
    updates = sign * np.array([2.0, 1.0, 2.0, 3.0, 3.0, 4.0, 1.0])
    seed = np.array([6.0, 8.0, 1.0, 1.0, 2.0])
    dx, _, du = run_vjp(REDUCE, [x, at, updates], seed, {"axis": 0, "reduce": reduce})
    np.testing.assert_array_equal(dx, [2, 0, 1, 0, 2])
    np.testing.assert_array_equal(du, [2, 0, 2, 4, 4, 0, 0])


def test_scatter_reduce_of_what_does_not_fit() -> None:
    x, at, u = f32(5, 3), TensorType(DType.SI64, (4, 3)), f32(4, 3)
    for types, axis, code in (
        ([x, f32(4, 3), u], 0, "E4011"),
        ([x, at, TensorType(DType.F64, (4, 3))], 0, "E2004"),
        ([x, at, f32(5, 3)], 0, "E3003"),
        ([x, at, u], 1, "E3003"),
        ([f32(5), at, u], 0, "E3002"),
    ):
        (finding,) = findings(REDUCE, types, {"axis": axis, "reduce": "Add"})
        assert finding.code == code
