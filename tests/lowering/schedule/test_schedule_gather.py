"""Reads at computed places, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from schedule_harness import (
    DTYPES,
    Array,
    empty,
    function,
    generic,
    random,
    run,
    scheduled,
    tensor_type,
)

from mind_mlir.target import named_target


@pytest.mark.parametrize("dtype", ["f32", "i1"])
@pytest.mark.parametrize(("rows", "columns", "picks"), [(9, 70, (5,)), (3, 4, (2, 3)), (5, 1, (4,))], ids=str)
def test_gather_of_rows(rows: int, columns: int, picks: tuple[int, ...], dtype: str) -> None:
    table, chosen = tensor_type((rows, columns), dtype), tensor_type(picks, "i64")
    out = tensor_type((*picks, columns), dtype)
    dims = ", ".join(f"d{i}" for i in range(len(picks)))
    last = f"d{len(picks)}"
    body = empty("r", out) + generic(
        "r",
        [("%a1", chosen, dims)],
        (out, f"{dims}, {last}"),
        ["parallel"] * (len(picks) + 1),
        f"""%i = arith.index_cast %x0 : i64 to index
        %j = linalg.index {len(picks)} : index
        %v = tensor.extract %a0[%i, %j] : {table}
        linalg.yield %v : {dtype}""",
    )
    x = random((rows, columns), dtype, 1)
    where = np.random.default_rng(2).integers(0, rows, picks)
    result: Array = np.zeros((*picks, columns), DTYPES[dtype])
    text = function([table, chosen], [out], body, ["%r"])
    assert "linalg." not in scheduled(text)
    run(text, [x, where], [result])
    np.testing.assert_array_equal(result, x[where])


@pytest.mark.parametrize(("dtype", "lanes"), [("f32", 16), ("i1", 64), ("i8", 64)])
def test_vectors_are_as_wide_as_what_they_hold(dtype: str, lanes: int) -> None:
    """The numbers of rows are the same in all lanes, and where the lanes are is only read at."""
    table, chosen, out = tensor_type((9, 200), dtype), tensor_type((5,), "i64"), tensor_type((5, 200), dtype)
    body = empty("r", out) + generic(
        "r",
        [("%a1", chosen, "d0")],
        (out, "d0, d1"),
        ["parallel"] * 2,
        f"""%i = arith.index_cast %x0 : i64 to index
        %j = linalg.index 1 : index
        %v = tensor.extract %a0[%i, %j] : {table}
        linalg.yield %v : {dtype}""",
    )
    text = scheduled(function([table, chosen], [out], body, ["%r"]), named_target("avx512"))
    assert f"vector<{lanes}x{dtype}>" in text


def test_positions_that_are_computed_with_are_in_vectors() -> None:
    out = tensor_type((5, 200), "f32")
    body = empty("r", out) + generic(
        "r",
        [],
        (out, "d0, d1"),
        ["parallel"] * 2,
        """%j = linalg.index 1 : index
        %n = arith.index_cast %j : index to i64
        %v = arith.sitofp %n : i64 to f32
        linalg.yield %v : f32""",
    )
    text = scheduled(function([], [out], body, ["%r"]), named_target("avx512"))
    assert "vector<8xf32>" in text


def test_gather_from_a_fused_result_and_by_columns() -> None:
    shape = (6, 20)
    t, i = tensor_type(shape, "f32"), tensor_type((20,), "i64")
    body = empty("s", t) + f"\n    %s = linalg.add ins(%a0, %a0 : {t}, {t}) outs(%s_init : {t}) -> {t}"
    body += empty("r", t) + generic(
        "r",
        [("%a1", i, "d1")],
        (t, "d0, d1"),
        ["parallel"] * 2,
        f"""%j = arith.index_cast %x0 : i64 to index
        %i = linalg.index 0 : index
        %v = tensor.extract %s[%i, %j] : {t}
        linalg.yield %v : f32""",
    )
    x, where = random(shape, "f32", 1), np.random.default_rng(2).integers(0, 20, 20)
    out = np.zeros(shape, np.float32)
    run(function([t, i], [t], body, ["%r"]), [x, where], [out])
    np.testing.assert_array_equal(out, (x + x)[:, where])


def test_gather_from_a_result_that_its_own_reader_also_takes() -> None:
    """The gather needs all of the result before its first element: not in one nest with what reads both."""
    t, i = tensor_type((6, 20), "f32"), tensor_type((6,), "i64")
    body = empty("s", t) + f"\n    %s = linalg.abs ins(%a0 : {t}) outs(%s_init : {t}) -> {t}"
    body += empty("g", t) + generic(
        "g",
        [("%a1", i, "d0")],
        (t, "d0, d1"),
        ["parallel"] * 2,
        f"""%i = arith.index_cast %x0 : i64 to index
        %j = linalg.index 1 : index
        %v = tensor.extract %s[%i, %j] : {t}
        linalg.yield %v : f32""",
    )
    body += empty("r", t) + f"\n    %r = linalg.add ins(%s, %g : {t}, {t}) outs(%r_init : {t}) -> {t}"
    x, where = random((6, 20), "f32", 1), np.array([5, 0, 3, 3, 1, 2])
    out = np.zeros((6, 20), np.float32)
    run(function([t, i], [t], body, ["%r"]), [x, where], [out])
    np.testing.assert_array_equal(out, abs(x) + abs(x)[where])


@pytest.mark.parametrize("place", ["%i, %j", "%i, %i", "%k, %i"])
def test_places_that_differ_from_lane_to_lane(place: str) -> None:
    t, i = tensor_type((20, 20), "f32"), tensor_type((20, 20), "i64")
    body = empty("r", t) + generic(
        "r",
        [("%a1", i, "d0, d1")],
        (t, "d0, d1"),
        ["parallel"] * 2,
        f"""%i = arith.index_cast %x0 : i64 to index
        %k = linalg.index 0 : index
        %j = linalg.index 1 : index
        %v = tensor.extract %a0[{place}] : {t}
        linalg.yield %v : f32""",
    )
    x, where = random((20, 20), "f32", 1), np.random.default_rng(2).integers(0, 20, (20, 20))
    out = np.zeros((20, 20), np.float32)
    run(function([t, i], [t], body, ["%r"]), [x, where], [out])
    k, j = np.indices((20, 20))
    values = {"%i": where, "%j": j, "%k": k}
    rows, columns = (values[name] for name in place.split(", "))
    np.testing.assert_array_equal(out, x[rows, columns])


def test_gather_of_rows_of_a_larger_table() -> None:
    table, chosen, out = tensor_type((4, 5, 40), "f32"), tensor_type((6,), "i64"), tensor_type((6, 40), "f32")
    body = empty("r", out) + generic(
        "r",
        [("%a1", chosen, "d0"), ("%a2", chosen, "d0")],
        (out, "d0, d1"),
        ["parallel"] * 2,
        f"""%i = arith.index_cast %x0 : i64 to index
        %j = arith.index_cast %x1 : i64 to index
        %k = linalg.index 1 : index
        %v = tensor.extract %a0[%i, %j, %k] : {table}
        linalg.yield %v : f32""",
    )
    text = function([table, chosen, chosen], [out], body, ["%r"])
    assert "linalg." not in scheduled(text)
    x, result = random((4, 5, 40), "f32", 1), np.zeros((6, 40), np.float32)
    first, second = np.array([3, 0, 1, 1, 2, 0]), np.array([4, 4, 0, 2, 1, 3])
    run(text, [x, first, second], [result])
    np.testing.assert_array_equal(result, x[first, second])
