"""``x[...]`` and ``x.at[...]`` of traced arrays are numpy's."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mind_mlir
from mind_mlir import ExecutionError, TracingError
from mind_mlir.languages.staging import Unit
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


@st.composite
def indices(draw: st.DrawFn) -> tuple[Any, ...]:
    """Return what numpy indexes `X` with: all but truth values, which are known later, in any order."""
    items: list[Any] = []
    axis = 0
    shape = draw(st.sampled_from([(), (1,), (2,), (2, 1), (2, 3), (0,)]))
    while axis < X.ndim and draw(st.integers(0, 5)):
        extent = X.shape[axis]
        kind = draw(st.sampled_from(["array", "array", "integer", "slice", "slice", "mask"]))
        if kind == "mask":
            rank = draw(st.integers(1, X.ndim - axis))
            # numpy has as many places as there are true: those of arrays beside them are of as many, or one.
            items.append(
                np.arange(np.prod(X.shape[axis : axis + rank])).reshape(X.shape[axis : axis + rank]) == 1
            )
            axis += rank - 1
            shape = (1,) if shape == () or 0 in shape else shape
        elif kind == "array":
            own = tuple(draw(st.sampled_from([each, 1])) for each in shape)[
                draw(st.integers(0, len(shape))) :
            ]
            numbers = st.integers(-extent, extent - 1)
            size = int(np.prod(own))
            listed = draw(st.lists(numbers, min_size=size, max_size=size))
            items.append(np.array(listed, draw(st.sampled_from([np.int64, np.int32, np.int8]))).reshape(own))
        else:
            items.append(draw(st.integers(-extent, extent - 1) if kind == "integer" else SLICES))
        axis += 1
    for extra in draw(st.lists(st.just(None), max_size=1)):
        items.insert(draw(st.integers(0, len(items))), extra)
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), Ellipsis)
    return tuple(items)


_CHANGES: dict[str, Any] = {
    "add": np.add.at,
    "multiply": np.multiply.at,
    "max": np.maximum.at,
    "min": np.minimum.at,
    "set": lambda x, index, y: x.__setitem__(index, y),
}


@settings(max_examples=40, deadline=None)
@given(indices(), st.data())
def test_all_that_numpy_indexes_with(index: tuple[Any, ...], data: st.DataObject) -> None:
    """Elements and changed arrays are numpy's; arrays of integers are arguments, or known, in turn."""
    wanted = X[index]
    extents = [extent if data.draw(st.booleans()) else 1 for extent in wanted.shape]
    values = np.random.default_rng(wanted.size).integers(-9, 9, extents).astype(np.float32)
    changed = {}
    for how, change in _CHANGES.items():
        changed[how] = X.copy()
        change(changed[how], index, values)
    is_argument = [
        isinstance(item, np.ndarray) and item.dtype.kind == "i" and data.draw(st.booleans()) for item in index
    ]
    arrays = [item for item, given in zip(index, is_argument, strict=True) if given]

    @mind_mlir.jit
    def program(x: Any, arrays: list[Any], values: Any) -> Any:
        left = list(arrays)
        where = tuple(left.pop(0) if given else item for item, given in zip(index, is_argument, strict=True))
        places = x.at[where]
        return x[where], {how: getattr(places, how)(values) for how in changed}

    got, made = program(X, arrays, values)
    assert got.shape == wanted.shape
    np.testing.assert_array_equal(got, wanted)
    for how, expected in changed.items():
        np.testing.assert_array_equal(made[how], expected, how)


@pytest.mark.parametrize(
    ("index", "values"),
    [
        (lambda m: m, 2.0),
        (lambda m: (m[:, 0, 0],), 2.0),
        (lambda m: (m[:, 0, 0],), np.arange(5.0)),
        (lambda m: (slice(None), m[0, :, 0]), np.arange(3.0).reshape(3, 1, 1)),
        (lambda m: (slice(None), m[0], None), 2.0),
        (lambda m: (..., m[0, 0]), 2.0),
        (lambda m: (0, slice(None), m[0, 0]), np.arange(4.0)),
        (lambda m: (slice(None, None, -2), 1, m[0, 0]), 2.0),
        (lambda m: (slice(1, None), m[0, :, 0], slice(0, 3)), np.arange(3.0)),
    ],
)
@pytest.mark.parametrize("how", _CHANGES)
def test_truth_values_choose_what_is_changed(index: Any, values: Any, how: str) -> None:
    mask, values = X % 3 == 1, np.asarray(values, np.float32)
    wanted = X.copy()
    if how == "set":
        wanted[index(mask)] = values
    else:
        made = {"add": np.add, "multiply": np.multiply, "max": np.maximum, "min": np.minimum}[how]
        wanted[index(mask)] = made(wanted[index(mask)], values)
    found = mind_mlir.jit(lambda x, m: getattr(x.at[index(m)], how)(values))(X, mask)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda x, m: x[m], "truth values choose"),
        (lambda x, m: x.at[m].set(np.arange(7.0)), "as many places as truth values"),
        (lambda x, m: x.at[m[0]].set(0.0), "of shape .4, 5. choose in dimensions of extents .3, 4."),
        (lambda x, m: x.at[m[:, 0, 0], m[0, :, 0]].set(0.0), "together with other truth values"),
        (lambda x, m: x.at[m[:, 0, 0], [0, 1]].set(0.0), "together with"),
    ],
)
def test_what_truth_values_do_not_choose(change: Any, text: str) -> None:
    with pytest.raises(TracingError, match=text) as caught:
        mind_mlir.jit(change)(X, X > 0)
    assert caught.value.code == "E2306"


def test_what_is_moved_is_what_is_asked_for() -> None:
    """Reading pairs takes one operation and memory for the pairs alone, and so does its gradient."""
    x, i = np.zeros((300, 400), np.float32), np.arange(50)

    def total(x: Any, i: Any, j: Any) -> Any:
        return (x[i, j] ** 2).sum()

    for function in (lambda x, i, j: x[i, j], lambda x, i, j: x.at[i, j].add(1.0), mind_mlir.grad(total)):
        jitted = function if hasattr(function, "lower") else mind_mlir.jit(function)
        lowered = jitted.lower(x, i, i)
        opcodes = [operation.opcode for operation in lowered.module.operations]
        assert opcodes.count("GatherWindows") + opcodes.count("ScatterWindows") <= 2
        assert not {"Gather", "GatherElements", "Transpose", "Iota"} & {*opcodes}
        arena = re.findall(r"memref<(\d+)xi8", lowered.as_text("bufferized"))
        assert max(map(int, arena), default=0) <= 4_000


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
        (([True, False],), "truth values of shape .2. choose in dimensions of extents .3."),
        ((True,), "a truth value is no index"),
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
