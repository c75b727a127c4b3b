"""Sums at positions known at run time: tables, rows, parts of rows, and what is computed in the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import guarded
import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    from collections.abc import Callable

lib: Any = mnp
_RANDOM = np.random.default_rng(5)


def added(operand: Any, at: Any, updates: Any) -> Any:
    return operand.at[at].add(updates)


def expected(operand: Any, at: Any, updates: Any) -> Any:
    found = operand.copy()
    np.add.at(found, at, updates)
    return found


def called(f: Callable[..., Any], *arguments: Any, threads: int = 2, target: str | None = "avx2") -> Any:
    """Return what ``f`` gives, having checked that it keeps to its memory."""
    made = mind_mlir.jit(f, threads=threads, target=target).lower(*arguments).compile()
    names = [each.name for each in made.parameters]
    (found,) = guarded.call_executable(made, dict(zip(names, arguments, strict=True)))
    return found


def listed(f: Callable[..., Any], *arguments: Any) -> str:
    return str(mind_mlir.jit(f, target="avx2").lower(*arguments).as_text("schedule"))


@pytest.mark.parametrize(
    ("dtype", "size", "count", "target"),
    [
        (np.int8, 1, 1999, "sse"),
        (np.float16, 7, 2048, "sse"),
        (np.float32, 601, 5003, "sse"),
        (np.int32, 1, 2048, "avx2"),
        (np.float64, 601, 5003, "avx2"),
        (np.uint64, 3001, 13_003, None),
        (np.float32, 7, 1999, None),
    ],
)
def test_tables_hold_what_is_added(dtype: Any, size: int, count: int, target: str | None) -> None:
    operand, updates = (_RANDOM.integers(0, 2, n).astype(dtype) for n in (size, count))
    at = _RANDOM.integers(-size, size, count)
    found = called(added, operand, at, updates, target=target)
    np.testing.assert_array_equal(found, expected(operand, at, updates))
    assert "tables" in listed(added, operand, at, updates)


@pytest.mark.parametrize("size", [5, 1501])
def test_bits_of_sums_do_not_depend_on_threads(size: int) -> None:
    at, updates = _RANDOM.integers(0, size, 20_011, dtype=np.int32), _RANDOM.standard_normal(20_011)
    operand = _RANDOM.standard_normal(size)
    one, two = (called(added, operand, at, updates, threads=threads) for threads in (1, 2))
    assert one.tobytes() == two.tobytes()
    np.testing.assert_allclose(one, expected(operand, at, updates), rtol=0, atol=1e-11)


def test_integers_wrap_around_and_zeros_keep_their_sign() -> None:
    at = np.arange(4096) % 2
    ends = np.iinfo(np.int32)
    numbers = np.where(at == 0, ends.max, ends.min).astype(np.int32)
    with np.errstate(over="ignore"):
        wanted = expected(np.array([1, -1], np.int32), at, numbers)
    np.testing.assert_array_equal(called(added, np.array([1, -1], np.int32), at, numbers), wanted)
    zeros = np.full(4096, -0.0, np.float32)
    found = called(added, np.array([-0.0, 0.0, -0.0], np.float32), at, zeros)
    np.testing.assert_array_equal(np.signbit(found), [True, False, True])


def test_what_is_no_number_stays_in_its_place() -> None:
    at, updates = np.arange(3000) % 5, np.ones(3000, np.float32)
    updates[[1000, 2001, 2992]] = [np.nan, np.inf, -np.inf]
    found = called(added, np.zeros(6, np.float32), at, updates)
    np.testing.assert_array_equal(found, [np.nan, np.inf, -np.inf, 600, 600, 0])


def test_a_histogram_reads_nothing_but_what_it_counts() -> None:
    image = _RANDOM.integers(0, 200, (61, 67)).astype(np.uint8)

    def counts(image: Any) -> Any:
        return lib.zeros(256, dtype=np.int32).at[image.ravel()].add(1)

    np.testing.assert_array_equal(called(counts, image), np.bincount(image.ravel(), minlength=256))
    assert "BroadcastTo" not in listed(counts, image)  # the ones are a number in the loop


def test_updates_that_are_looked_up_and_computed() -> None:
    source, target = _RANDOM.integers(-50, 50, (2, 3001), dtype=np.int32)
    values, weight = _RANDOM.integers(0, 9, 50).astype(np.float32), np.float32(2)
    bits = _RANDOM.integers(0, 2, 3001).astype(np.bool_)

    def sums(source: Any, target: Any, values: Any, weight: Any, bits: Any) -> Any:
        sent = mnp.where(bits, values[source] * weight + 1, 0)
        return lib.zeros(50, dtype=np.float32).at[target].add(sent)

    wanted = np.zeros(50, np.float32)
    np.add.at(wanted, target, np.where(bits, values[source] * weight + 1, 0))
    np.testing.assert_array_equal(called(sums, source, target, values, weight, bits), wanted)


def test_updates_that_others_read_and_loops_around() -> None:
    at, updates = _RANDOM.integers(0, 40, 2003), _RANDOM.integers(0, 9, 2003).astype(np.int32)

    def twice(at: Any, updates: Any) -> Any:
        found = updates * 3
        place = at * 1 % 40
        sums = mind_mlir.fori_loop(0, 3, lambda _, c: c.at[place].add(found), lib.zeros(40, dtype=np.int32))
        return sums + mnp.sum(found)

    wanted = np.zeros(40, np.int32)
    for _ in range(3):
        np.add.at(wanted, at, updates * 3)
    np.testing.assert_array_equal(called(twice, at, updates), wanted + (updates * 3).sum())


def test_pairs_of_numbers_are_not_joined_before() -> None:
    rows, columns = _RANDOM.integers(-10, 10, (2, 2003), dtype=np.int32)

    def votes(rows: Any, columns: Any) -> Any:
        return lib.zeros((10, 10), dtype=np.int32).at[rows, columns].add(1)

    wanted = np.zeros((10, 10), np.int32)
    np.add.at(wanted, (rows, columns), 1)
    np.testing.assert_array_equal(called(votes, rows, columns), wanted)
    assert "Concat" not in listed(votes, rows, columns)


def test_positions_that_a_loop_does_not_change_are_checked_before() -> None:
    at = _RANDOM.integers(-7, 7, 99)

    def often(at: Any, count: Any) -> Any:
        return mind_mlir.fori_loop(0, count, lambda _, x: x.at[at].add(x[0]), lib.ones(7, dtype=np.int32))

    for count in (0, 3):
        wanted = np.ones(7, np.int32)
        for _ in range(count):
            np.add.at(wanted, at, wanted[0])
        np.testing.assert_array_equal(called(often, at, np.int64(count)), wanted)
    outside = np.where(np.arange(99) == 50, 8, at)
    run = mind_mlir.jit(often)
    np.testing.assert_array_equal(run(outside, np.int64(0)), np.ones(7))
    with pytest.raises(mind_mlir.ExecutionError, match="out of bounds"):
        run(outside, np.int64(1))


@pytest.mark.parametrize("how", ["set", "max", "multiply"])
def test_what_has_no_tables_is_done_in_order(how: str) -> None:
    at, updates = _RANDOM.integers(0, 7, 2003), _RANDOM.integers(-3, 4, 2003).astype(np.float32)
    wanted = np.ones(9, np.float32)
    for place, update in zip(at, updates, strict=True):
        old = wanted[place]
        wanted[place] = {"set": update, "max": max(old, update), "multiply": old * update}[how]
    found = called(lambda at, u: getattr(lib.ones(9, dtype=np.float32).at[at], how)(u), at, updates)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("width", [33, 64, 131])
def test_threads_share_the_columns_of_a_small_result(width: int) -> None:
    at, updates = _RANDOM.integers(0, 300, 2003), _RANDOM.standard_normal((2003, width))
    operand = np.ones((300, width))
    found = called(added, operand, at, updates)
    assert found.tobytes() == expected(operand, at, updates).tobytes()
    assert "of the columns" in listed(added, operand, at, updates)


@pytest.mark.parametrize("count", [255, 256, 1031])
@pytest.mark.parametrize("width", [37, 64])
def test_threads_share_the_rows_of_a_large_result(width: int, count: int) -> None:
    at, updates = _RANDOM.integers(-2003, 2003, count), _RANDOM.standard_normal((count, width))
    operand = np.ones((2003, width))
    found = called(added, operand, at, updates)
    assert found.tobytes() == expected(operand, at, updates).tobytes()
    assert "of the result's rows" in listed(added, operand, at, updates)


@pytest.mark.parametrize("width", [1, 40])
def test_updates_that_go_nowhere(width: int) -> None:
    """StableHLO leaves out what does not lie within the operand."""
    at = _RANDOM.integers(-5, 45, 3001)
    updates = _RANDOM.integers(0, 9, (3001, width)).astype(np.float32)
    form = {"update_window_dims": [1], "inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0]}

    def sums(operand: Any, at: Any, updates: Any) -> Any:
        return lib.scatter_windows(operand, at, updates, **form, index_vector_dim=1, reduce="Add")

    inside = (at >= 0) & (at < 40)
    operand = np.zeros((40, width), np.float32)
    found = called(sums, operand, at, updates)
    np.testing.assert_array_equal(found, expected(operand, at[inside], updates[inside]))


@pytest.mark.parametrize("width", [7, 40])
def test_rows_are_computed_where_they_are_added(width: int) -> None:
    """Of tensors, and of a tensor of one number, which has no places."""
    x, rows = (_RANDOM.standard_normal((count, width), np.float32) for count in (5, 9))
    at, number = _RANDOM.integers(0, 5, 9), np.array(3, np.float32)
    found = called(lambda x, at, rows, number: x.at[at].add(rows * number + 1), x, at, rows, number)
    np.testing.assert_allclose(found, expected(x, at, rows * number + 1), rtol=1e-5)
    found = called(lambda x, at, number: x.at[at].add(number), x, at, number)
    np.testing.assert_allclose(found, expected(x, at, number), rtol=1e-5)
