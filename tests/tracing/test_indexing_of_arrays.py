"""``x[...]`` and ``x.at[...]`` of traced arrays are numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mind_mlir
from mind_mlir import ExecutionError, TracingError
from mind_mlir.staging.unit import Unit
from mind_mlir.tracing import indexing
from mind_mlir.tracing.array import TracedArray
from mind_mlir.tracing.trace import Trace

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5) - 7
ROWS = np.array([2, 0, -1, 1])
COLUMNS = np.array([[-4], [3], [0]])

SLICES = st.builds(
    slice,
    st.none() | st.integers(-7, 7),
    st.none() | st.integers(-7, 7),
    st.none() | st.sampled_from([-3, -2, -1, 1, 2, 3]),
)


@st.composite
def basic_indices(draw: st.DrawFn) -> tuple[Any, ...]:
    """Return integers, slices, None and an ellipsis for `X`, in any order that fits."""
    count = draw(st.integers(0, 3))
    items: list[Any] = [draw(SLICES | st.integers(-3, 2)) for _ in range(count)]
    for extra in draw(st.lists(st.just(None), max_size=2)):
        items.insert(draw(st.integers(0, len(items))), extra)
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), Ellipsis)
    return tuple(items)


@settings(max_examples=150)
@given(basic_indices())
def test_basic_indices_have_numpys_shapes(index: tuple[Any, ...]) -> None:
    """What is recorded has the shape, and the plan of a slice the elements, that numpy gives."""
    trace = Trace(Unit(), TracedArray)
    with trace.running():
        array = trace.wrap(trace.builder.constant(X, mind_mlir.DType.F32))
        assert array[index].shape == X[index].shape
    plan = indexing.plan(X.shape, index)
    cut = tuple(map(slice, plan.starts, [e if e > -6 else None for e in plan.ends], plan.steps))
    np.testing.assert_array_equal(X[cut].reshape(plan.shape), X[index])


@pytest.mark.parametrize(
    "index",
    [
        (1,),
        (..., None, -1),
        (slice(None, None, -1), slice(1, None), slice(None, None, 2)),
        (slice(2, None, -2), None, 3, slice(-1, None, -3)),
        (slice(0, 0), 1),
        (),
    ],
    ids=str,
)
def test_basic_indices_run(index: tuple[Any, ...]) -> None:
    np.testing.assert_array_equal(mind_mlir.jit(lambda x: x[index])(X), X[index])


@pytest.mark.parametrize(
    "take",
    [
        lambda x, i, j: x[i],
        lambda x, i, j: x[:, i],
        lambda x, i, j: x[..., i],
        lambda x, i, j: x[i, j],
        lambda x, i, j: x[:, j, i],
        lambda x, i, j: x[i, :, j],
        lambda x, i, j: x[None, i, 1:3],
        lambda x, i, j: x[0, :, i],
        lambda x, i, j: x[0, i],
        lambda x, i, j: x[i[0], i[1], i[2]],
        lambda x, i, j: x[i[0], 1:, i[1]],
        lambda x, i, j: x[i[0], :, j],
        lambda x, i, j: x[[2, 0]],
        lambda x, i, j: x[:, np.array([0, -1]), 1],
    ],
)
def test_integer_arrays(take: Any) -> None:
    np.testing.assert_array_equal(mind_mlir.jit(take)(X, ROWS, COLUMNS), take(X, ROWS, COLUMNS))


@pytest.mark.parametrize(
    "place",
    [
        lambda i: (slice(None), 1),
        lambda i: (slice(None, None, -2),),
        lambda i: (i[0], 1),
        lambda i: (i[2], slice(1, 3), i[3]),
        lambda i: (i[:2],),
        lambda i: (slice(None), [0, 2]),
    ],
)
@pytest.mark.parametrize("how", ["set", "add", "multiply", "max", "min"])
def test_updates(place: Any, how: str) -> None:
    wanted = X.copy()
    where = place(ROWS)
    change: dict[str, Any] = {"set": lambda _: 2.0, "add": lambda y: y + 2, "multiply": lambda y: y * 2}
    change |= {"max": lambda y: np.maximum(y, 2), "min": lambda y: np.minimum(y, 2)}
    wanted[where] = change[how](wanted[where])
    found = mind_mlir.jit(lambda x, i: getattr(x.at[place(i)], how)(2.0))(X, ROWS)
    np.testing.assert_array_equal(found, wanted)


def test_places_that_are_named_twice_are_added_to_twice() -> None:
    found = mind_mlir.jit(lambda x, i: x.at[i].add(1.0))(np.zeros(4, np.float32), np.array([1, 1, 3]))
    np.testing.assert_array_equal(found, [0, 2, 0, 1])


def test_indices_are_checked_when_the_program_runs() -> None:
    take = mind_mlir.jit(lambda x, i: x[i])
    with pytest.raises(ExecutionError, match="E6001") as caught:
        take(X, np.array([0, 3]))
    (found,) = caught.value.diagnostics
    assert found.code == "E6001"
    assert found.location is not None
    assert found.location.text == "x[i]"
    both = mind_mlir.jit(lambda x, i, j: x[i, j])
    with pytest.raises(ExecutionError):
        both(X, np.array([0]), np.array([4]))


@pytest.mark.parametrize(
    ("index", "text"),
    [
        ((0, 0, 0, 0), "4 indices of an array of rank 3"),
        ((3,), "index 3 is out of bounds for an axis of extent 3"),
        ((..., ...), "two ellipses"),
        (("a",), "the str 'a' is no index"),
        ((1.0,), "the float 1.0 is no index"),
        (([True, False, True],), "truth values"),
        ((slice(None, None, 0),), "step of a slice is 0"),
        ((slice("a"),), "no bound of a slice"),
    ],
)
def test_what_is_no_index(index: Any, text: str) -> None:
    with pytest.raises(TracingError, match=text) as caught:
        mind_mlir.jit(lambda x: x[index])(X)
    assert caught.value.code == "E2306"


def test_rows_are_gone_through() -> None:
    def total(x: Any) -> Any:
        first, *others = x
        return sum(others, first) * len(x)

    np.testing.assert_array_equal(mind_mlir.jit(total)(X), total(X))
