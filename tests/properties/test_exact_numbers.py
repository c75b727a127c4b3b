"""Integers, orders and places of every dtype against Python's: compiled for all processors, interpreted."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import guarded
import numpy as np
from budget import examples
from exact_numbers import INTEGERS, REAL, integers, mapped, numbers, program, sample, saturated, wrapped
from hypothesis import given
from hypothesis import strategies as st

import mind_mlir
from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType
from mind_mlir.target import NATIVE, TARGETS, named_target, runs_here

if TYPE_CHECKING:
    from mind_mlir import Module
    from mind_mlir.ir.attributes import Array

SEEDS = st.integers(0, 2**32)
PROCESSORS = st.sampled_from([NATIVE, *(name for name in TARGETS if runs_here(named_target(name)))])
EXTENTS = (1, 2, 3, 5, 8, 17, 33, 64, 67)


def check(made: tuple[Module, dict[str, Array]], expected: Array, target: str) -> None:
    """Compare what a program gives, compiled and interpreted, with what it is to give, bit for bit."""
    module, arguments = made
    (interpreted,) = mind_mlir.interpret(module, arguments)
    (compiled,) = guarded.call_executable(mind_mlir.compile(module, target=target), arguments)
    for found in (interpreted, compiled):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def pick(rng: np.random.Generator, options: Any) -> Any:
    return options[rng.integers(len(options))]


def extents(rng: np.random.Generator, low: int, high: int) -> tuple[int, ...]:
    """Return a shape of at most 3,000 elements."""
    while True:
        shape = tuple(int(pick(rng, EXTENTS)) for _ in range(rng.integers(low, high, endpoint=True)))
        if math.prod(shape) <= 3000:
            return shape


@examples(40)
@given(SEEDS, PROCESSORS)
def test_totals(seed: int, target: str) -> None:
    """PTIR: what is reduced is cast to the accumulator, which wraps, and the total to the result."""
    rng = np.random.default_rng(seed)
    source, accumulator, out = pick(rng, REAL), pick(rng, INTEGERS), pick(rng, INTEGERS)
    x = sample(rng, source, extents(rng, 0, 3))
    axes = tuple(axis for axis in range(x.ndim) if rng.random() < 0.5)
    kind = pick(rng, ("Sum", "Max", "Min"))
    form: dict[str, Any] = {
        "kind": kind,
        "axes": axes,
        "keepdims": True,
        "accum_dtype": accumulator,
        "out_dtype": out,
    }
    kept = tuple(1 if axis in axes else extent for axis, extent in enumerate(x.shape))
    terms = mapped(lambda number: saturated(number, accumulator), numbers(x))
    totals = np.empty(kept, object)
    for place in np.ndindex(*kept):
        along = tuple(slice(None) if axis in axes else each for axis, each in enumerate(place))
        row = np.asarray(terms[along], object).reshape(-1).tolist()
        total = sum(row) if kind == "Sum" else max(row) if kind == "Max" else min(row)
        totals[place] = saturated(wrapped(total, accumulator), out)
    made = program({"x": x}, lambda builder, values: builder.emit("Reduce", *values, **form))
    check(made, integers(totals, out), target)


@examples(30)
@given(SEEDS, PROCESSORS)
def test_products(seed: int, target: str) -> None:
    rng = np.random.default_rng(seed)
    source, accumulator, out = (pick(rng, INTEGERS) for _ in range(3))
    rows, depth, columns = (int(pick(rng, EXTENTS[:-1])) for _ in range(3))
    x, y = sample(rng, source, (rows, depth)), sample(rng, source, (depth, columns))
    left, right = (mapped(lambda number: saturated(number, accumulator), numbers(each)) for each in (x, y))
    total = mapped(lambda number: saturated(wrapped(number, accumulator), out), left @ right)
    form: dict[str, Any] = {
        "contract_lhs": (1,),
        "contract_rhs": (0,),
        "accum_dtype": accumulator,
        "out_dtype": out,
    }
    made = program({"x": x, "y": y}, lambda builder, values: builder.emit("DotGeneral", *values, **form))
    check(made, integers(total, out), target)


@examples(30)
@given(SEEDS, PROCESSORS)
def test_orders_of_several_keys(seed: int, target: str) -> None:
    rng = np.random.default_rng(seed)
    shape = extents(rng, 1, 2) if rng.random() < 0.7 else (int(rng.integers(65, 900)),)
    axis = int(rng.integers(len(shape)))
    keys = []
    for _ in range(rng.integers(1, 4)):
        dtype = pick(rng, REAL)
        few = sample(rng, dtype, (6,))
        if dtype.is_float:
            few[:3] = 0.0, -0.0, math.nan
        keys.append(few[rng.integers(len(few), size=shape)])
    descending, total = bool(rng.random() < 0.5), bool(rng.random() < 0.5)
    ranks = [np.moveaxis(_ranks(key, total=total), axis, -1).reshape(-1, shape[axis]) for key in keys]
    rows = []
    for row in range(ranks[0].shape[0]):
        order = list(range(shape[axis]))
        for each in reversed(ranks):  # Python's sort is stable, downwards as well
            order.sort(key=each[row].__getitem__, reverse=descending)
        rows.append(order)
    moved = (*shape[:axis], *shape[axis + 1 :], shape[axis])
    expected = np.moveaxis(np.array(rows, np.int32).reshape(moved), -1, axis)
    form: dict[str, Any] = {
        "axis": axis,
        "descending": descending,
        "total_order": total,
        "indices_dtype": DType.SI32,
    }
    named = {f"x{number}": key for number, key in enumerate(keys)}
    made = program(named, lambda builder, values: builder.emit("ArgSort", *values, **form))
    check(made, expected, target)


def _ranks(key: Array, *, total: bool) -> Array:
    """Return Python's numbers or pairs in the order of the elements: of their bits, or NaN the greatest."""
    dtype = DType.from_numpy(key.dtype)
    assert dtype is not None
    found = np.empty(key.size, object)
    if dtype.is_float and total:
        sign = 1 << (dtype.bits - 1)
        bits = key.reshape(-1).view(f"u{dtype.itemsize}").tolist()
        found[:] = [each if each < sign else sign - each - 1 for each in bits]
    else:
        found[:] = [(math.isnan(each), 0 if math.isnan(each) else each) for each in numbers(key).reshape(-1)]
    return found.reshape(key.shape)


@examples(40)
@given(SEEDS, PROCESSORS, st.sampled_from(["GatherWindows", "Add", "Max", "Min", "Replace"]))
def test_windows_anywhere(seed: int, target: str, kind: str) -> None:
    """Windows that begin at, partly or far outside of the edges, and where a sum of positions overflows."""
    rng = np.random.default_rng(seed)
    dtype, index = pick(rng, INTEGERS), pick(rng, (DType.SI32, DType.SI64))
    shape = tuple(min(extent, 9) for extent in extents(rng, 1, 3))
    sizes = tuple(int(rng.integers(1, extent, endpoint=True)) for extent in shape)
    indexed = tuple(int(axis) for axis in rng.permutation(len(shape))[: rng.integers(1, len(shape) + 1)])
    count = int(rng.integers(1, 6))
    least, greatest = limits(index)
    near = [*range(-3, 12), least, least + 1, greatest, greatest - 1, 2**31 - 2, -(2**31)]
    begins = np.array([[pick(rng, near) for _ in indexed] for _ in range(count)], index.numpy)
    x, windows = sample(rng, dtype, shape), tuple(range(1, len(shape) + 1))
    places = itertools.product(range(count), *map(range, sizes))
    starts = [
        [int(vector[indexed.index(axis)]) if axis in indexed else 0 for axis in range(len(shape))]
        for vector in begins
    ]
    if kind == "GatherWindows":
        expected = np.empty((count, *sizes), x.dtype)
        for number, *offset in places:
            limited = zip(starts[number], offset, shape, sizes, strict=True)
            at = tuple(min(max(start, 0), extent - size) + more for start, more, extent, size in limited)
            expected[(number, *offset)] = x[at]
        form: dict[str, Any] = {
            "offset_dims": windows,
            "collapsed_slice_dims": (),
            "start_index_map": indexed,
        }
        form |= {"index_vector_dim": 1, "slice_sizes": sizes}
        given_ = {"x": x, "i": begins}
        check(program(given_, lambda builder, values: builder.emit(kind, *values, **form)), expected, target)
        return
    updates = sample(rng, dtype, (count, *sizes))
    exact, added = numbers(x), numbers(updates)
    for number, *offset in places:
        at = tuple(start + more for start, more in zip(starts[number], offset, strict=True))
        if all(0 <= place < extent for place, extent in zip(at, shape, strict=True)):
            update = added[(number, *offset)]
            both = {"Add": exact[at] + update, "Max": max(exact[at], update), "Min": min(exact[at], update)}
            exact[at] = wrapped(both.get(kind, update), dtype)
    form = {"update_window_dims": windows, "inserted_window_dims": (), "index_vector_dim": 1, "reduce": kind}
    form["scatter_dims_to_operand_dims"] = indexed
    made = program(
        {"x": x, "i": begins, "u": updates},
        lambda builder, values: builder.emit("ScatterWindows", *values, **form),
    )
    check(made, integers(exact, dtype), target)
