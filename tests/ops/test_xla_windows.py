"""GatherWindows and ScatterWindows in all forms: StableHLO's words, spelled out, and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import findings, run_both, run_compiled, run_numpy, run_vjp
from linear_harness import check_adjoint

from mind_mlir import ExecutionError
from mind_mlir.ops.example_types import parse_type
from mind_mlir.ops.registry import by_opcode

GATHER, SCATTER = by_opcode()["GatherWindows"], by_opcode()["ScatterWindows"]

#: Shapes of operand, indices and windows; window dimensions, thin ones, pairs of batching ones, the map, the
#: dimension of index vectors, and the sizes of a window.
FORMS: list[tuple[Any, ...]] = [
    ((5, 3), (4, 1), (4, 3), (1,), (0,), ((), ()), (0,), 1, (1, 3)),
    ((5, 3), (4,), (5, 4), (0,), (1,), ((), ()), (1,), 1, (5, 1)),
    ((5, 4), (2, 7), (7,), (), (0, 1), ((), ()), (1, 0), 0, (1, 1)),
    ((6, 5, 2), (3, 2), (2, 3, 3, 2), (0, 2, 3), (), ((), ()), (1, 0), 1, (2, 3, 2)),
    ((3, 5, 2), (4, 3, 1), (4, 3, 2), (2,), (1,), ((0,), (1,)), (1,), 2, (1, 1, 2)),
    ((5, 3, 2), (1, 3, 2), (3, 2), (), (0,), ((1, 2), (1, 2)), (0,), 0, (1, 1, 1)),
]


def gather_form(form: tuple[Any, ...]) -> dict[str, Any]:
    _, _, _, windows, thin, batching, indexed, vector_dim, sizes = form
    return {
        "offset_dims": windows,
        "collapsed_slice_dims": thin,
        "operand_batching_dims": batching[0],
        "start_indices_batching_dims": batching[1],
        "start_index_map": indexed,
        "index_vector_dim": vector_dim,
        "slice_sizes": sizes,
    }


def scatter_form(form: tuple[Any, ...], reduce: str) -> dict[str, Any]:
    _, _, _, windows, thin, batching, indexed, vector_dim, _ = form
    return {
        "update_window_dims": windows,
        "inserted_window_dims": thin,
        "input_batching_dims": batching[0],
        "scatter_indices_batching_dims": batching[1],
        "scatter_dims_to_operand_dims": indexed,
        "index_vector_dim": vector_dim,
        "reduce": reduce,
    }


def place_of(form: tuple[Any, ...], indices: Any, at: tuple[int, ...], *, clamps: bool) -> tuple[int, ...]:
    """Return where element ``at`` of the windows lies in the operand, by the words of the specification."""
    operand, _, shape, windows, thin, batching, indexed, vector_dim, sizes = form
    batch = [at[d] for d in range(len(shape)) if d not in windows]
    vector = (
        indices[tuple(batch)][None]
        if vector_dim == indices.ndim
        else indices[(*batch[:vector_dim], slice(None), *batch[vector_dim:])]
    )
    start = [0] * len(operand)
    for number, d in zip(vector, indexed, strict=True):
        start[d] = int(number)
        if clamps:
            start[d] = max(0, min(start[d], operand[d] - sizes[d]))
    for d, other in zip(*batching, strict=True):
        start[d] = batch[other - (1 if vector_dim < other else 0)]
    kept = [d for d in range(len(operand)) if d not in (*thin, *batching[0])]
    for d, source in zip(kept, windows, strict=True):
        start[d] += at[source]
    return tuple(start)


def arrays(form: tuple[Any, ...], dtype: Any = np.float32) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    operand, indices, shape = form[:3]
    numbers = rng.integers(-3, 9, indices)
    wide = rng.random(indices) < 0.1  # no sum of places may come back into the operand
    numbers = np.where(wide, rng.choice([2**63 - 1, -(2**63)], indices), numbers)
    values = [rng.integers(-3, 4, each).astype(dtype) for each in (operand, shape)]
    return values[0], numbers, values[1]


@pytest.mark.parametrize("form", FORMS)
def test_windows_lie_where_stablehlo_says(form: tuple[Any, ...]) -> None:
    operand, indices, updates = arrays(form)
    found = run_both(GATHER, (operand, indices), gather_form(form))
    for at in np.ndindex(*form[2]):
        assert found[at] == operand[place_of(form, indices, at, clamps=True)]
    combine: dict[str, Any] = {
        "Add": lambda a, b: a + b,
        "Mul": lambda a, b: a * b,
        "Max": max,
        "Min": min,
        "Replace": lambda _, b: b,
    }
    for reduce, function in combine.items():
        expected = operand.copy()
        for at in np.ndindex(*form[2]):
            place = place_of(form, indices, at, clamps=False)
            if all(0 <= p < e for p, e in zip(place, operand.shape, strict=True)):
                expected[place] = function(expected[place], updates[at])
        found = run_both(SCATTER, (operand, indices, updates), scatter_form(form, reduce))
        np.testing.assert_array_equal(found, expected, reduce)


@pytest.mark.parametrize("form", FORMS)
def test_gradients_that_are_linear(form: tuple[Any, ...]) -> None:
    operand, indices, updates = arrays(form, np.float64)
    check_adjoint("GatherWindows", operand, indices, **gather_form(form))
    for reduce in ("Add", "Replace"):
        check_adjoint("ScatterWindows", operand, indices, updates, wrt=(0, 2), **scatter_form(form, reduce))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reduce", ["Mul", "Max", "Min"])
def test_gradients_that_are_not(form: tuple[Any, ...], reduce: str) -> None:
    operand, indices, updates = arrays(form, np.float64)
    shape = [operand.shape, updates.shape]
    rng = np.random.default_rng(1)
    if reduce != "Mul":  # no two are equal
        values = rng.permutation(operand.size + updates.size) * 1.0
        operand, updates = (
            part.reshape(each) for part, each in zip(np.split(values, [operand.size]), shape, strict=True)
        )
    attributes = scatter_form(form, reduce)
    cotangent = rng.integers(-3, 4, operand.shape).astype(np.float64)
    gradients: list[Any] = run_vjp(SCATTER, (operand, indices, updates), cotangent, attributes)

    def value(operand: Any, updates: Any) -> Any:
        return np.sum(cotangent * result_of(operand, updates))

    def result_of(operand: Any, updates: Any) -> Any:
        result = operand.copy()
        for at in np.ndindex(*updates.shape):
            place = place_of(form, indices, at, clamps=False)
            if all(0 <= p < e for p, e in zip(place, operand.shape, strict=True)):
                old, new = result[place], updates[at]
                result[place] = old * new if reduce == "Mul" else (max if reduce == "Max" else min)(old, new)
        return result

    # A difference quotient is exact here: each element is linear in each number, zeros included.
    for which, given in ((0, operand), (2, updates)):
        for at in list(np.ndindex(*given.shape))[::5]:
            moved = given.copy()
            moved[at] += 0.25
            both = (moved, updates) if which == 0 else (operand, moved)
            quotient = (value(*both) - value(operand, updates)) / 0.25
            assert gradients[which][at] == pytest.approx(quotient, abs=1e-9), (which, at)


@pytest.mark.parametrize("form", FORMS)
def test_checked_windows_lie_where_numpy_has_them(form: tuple[Any, ...]) -> None:
    """Within the operand, negative numbers count from the end; and E6001, which both rules raise."""
    operand, indices, updates = arrays(form, np.float64)
    shape, _, _, _, _, _, indexed, vector_dim, sizes = form
    counted = [shape[d] - sizes[d] + 1 for d in indexed]
    spread = [-1 if d == vector_dim else 1 for d in range(indices.ndim)]
    ends = np.reshape(counted, spread if vector_dim < indices.ndim else ())
    from_end = np.reshape([shape[d] if sizes[d] == 1 else 0 for d in indexed], ends.shape)
    places = np.random.default_rng(5).integers(0, ends, indices.shape)
    written = np.where(places % 2 == 0, places, places - from_end)
    gather, scatter = {**gather_form(form), "checked": True}, {**scatter_form(form, "Add"), "checked": True}
    found = run_both(GATHER, (operand, written), gather)
    for at in np.ndindex(*form[2]):
        assert found[at] == operand[place_of(form, places, at, clamps=False)]
    for reduce in ("Add", "Mul", "Max", "Min", "Replace"):
        attributes = {**scatter, "reduce": reduce}
        unchecked = run_both(SCATTER, (operand, places, updates), scatter_form(form, reduce))
        np.testing.assert_array_equal(run_both(SCATTER, (operand, written, updates), attributes), unchecked)
    check_adjoint("GatherWindows", operand, written, **gather)
    check_adjoint("ScatterWindows", operand, written, updates, wrt=(0, 2), **scatter)
    for end in (ends, -1 - from_end):
        wrong = written.copy()
        wrong.flat[-1] = np.broadcast_to(end, wrong.shape).flat[-1]
        for run in (run_numpy, run_compiled):
            for record, given, attributes in (
                (GATHER, (operand, wrong), gather),
                (SCATTER, (operand, wrong, updates), scatter),
            ):
                with pytest.raises(ExecutionError) as caught:
                    run(record, given, attributes)
                assert caught.value.diagnostics[0].code == "E6001"


@pytest.mark.parametrize(
    ("reduce", "expected"), [("Add", 11), ("Mul", 0), ("Max", 5), ("Min", 0), ("Replace", 0)]
)
def test_a_scalar_takes_all_updates(reduce: str, expected: float) -> None:
    form: tuple[Any, ...] = ((), (4, 0), (4,), (), (), ((), ()), (), 1, ())
    updates = np.array([1, 5, 3, 0], np.float32)
    operands: list[Any] = [np.array(2, np.float32), np.zeros((4, 0), np.int64), updates]
    assert run_numpy(SCATTER, operands, scatter_form(form, reduce)) == expected


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"offset_dims": (2,)}, "E3004"),
        ({"index_vector_dim": 3}, "E3004"),
        ({"collapsed_slice_dims": (0, 0)}, "E3005"),
        ({"operand_batching_dims": (0,), "start_indices_batching_dims": (0,)}, "E3005"),
        ({"start_index_map": (0, 1)}, "E3003"),
        ({"slice_sizes": (1, 4)}, "E4123"),
        ({"slice_sizes": (2, 3)}, "E4123"),
        ({"slice_sizes": (1,)}, "E3002"),
        ({"offset_dims": (0, 1), "collapsed_slice_dims": ()}, ""),
        ({"offset_dims": (1, 0), "collapsed_slice_dims": ()}, "E1103"),
        ({"collapsed_slice_dims": ()}, "E3002"),
    ],
)
def test_what_is_refused(change: dict[str, Any], code: str) -> None:
    types = [parse_type(each, None) for each in ("f32[5, 3]", "i32[4, 1]")]
    found = findings(GATHER, types, {**gather_form(FORMS[0]), **change})
    assert [each.code for each in found] == ([code] if code else [])
