"""Elements at positions that are known when the program runs: in vectors, wherever their tensor lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import guarded
import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    from collections.abc import Callable

RANDOM = np.random.default_rng(3)
X = RANDOM.integers(0, 100, (7, 9, 5))
ROWS, COLUMNS, PLANES = (RANDOM.integers(-extent, extent, 13) for extent in (7, 4, 3))
PLACES = (ROWS, COLUMNS, PLANES)
DTYPES = (np.float64, np.float32, np.float16, np.int64, np.int8, np.bool_)


def compiled(function: Callable[..., Any], *arguments: Any, target: str | None = None) -> Any:
    executable = mind_mlir.jit(function, target=target).lower(*arguments).compile()
    names = [each.name for each in executable.parameters]
    (found,) = guarded.call_executable(executable, dict(zip(names, arguments, strict=True)))
    return found


@pytest.mark.parametrize("target", ["sse", "avx2", None])
@pytest.mark.parametrize(
    "take",
    [
        lambda x, i, j, k: x[i, j, k],
        lambda x, i, j, k: x[:, k],
        lambda x, i, j, k: x[:, 1:, 1:][i, j, k],
        lambda x, i, j, k: x[:, 1:, 1][i, j],
        lambda x, i, j, k: x[::2, 1:, ::2][i % 4, j, k],
        lambda x, i, j, k: x[[[0], [-7]], [1, 8], 2],
    ],
    ids=["whole", "rows", "part", "column", "steps", "constants"],
)
def test_elements_are_those_of_numpy(take: Callable[..., Any], target: str | None) -> None:
    for dtype in DTYPES:
        x = X.astype(dtype)
        np.testing.assert_array_equal(compiled(take, x, *PLACES, target=target), take(x, *PLACES))


def test_places_in_a_part_that_a_loop_moves() -> None:
    def columns(x: Any, i: Any, j: Any) -> Any:
        start = mnp.zeros(13, np.float64)
        return mind_mlir.fori_loop(0, 5, lambda n, s: s + mnp.take(x, n, axis=2)[i, j], start)

    x = X.astype(np.float64)
    np.testing.assert_array_equal(compiled(columns, x, ROWS, COLUMNS), x[ROWS, COLUMNS].sum(-1))


def test_indices_in_pairs_are_one_nest() -> None:
    """What widens the indices, checks them, reads elements and computes with them goes over them once."""
    pair = mind_mlir.jit(lambda x, i, j: x[i, j] * 2 + 1)
    lowered = pair.lower(np.zeros((30, 40), np.float32), *[np.zeros(1000, np.int32)] * 2)
    text = lowered.compile().as_text("schedule")
    assert "1. fused" in text
    assert "2. " not in text


def test_broadcast_indices_are_brought_within_bounds_before_that() -> None:
    """Each once, and not for each pair of them again: in the loops over the pairs nothing is compared."""
    pixels = mind_mlir.jit(lambda x, i, j: x[i[:, None], j])
    x, i, j = RANDOM.random((6, 9, 3), np.float32), np.array([-6, 5, 0, -1, 2]), np.array([8, -9, 3, -1])
    np.testing.assert_array_equal(compiled(lambda x, i, j: x[i[:, None], j], x, i, j), x[i[:, None], j])
    for low, high in ((-7, 5), (0, 9)):
        with pytest.raises(mind_mlir.MindError, match="index -7 " if low < -6 else "index 9 "):
            pixels(x, np.array([low, 1]), np.array([high, 2]))
    text = str(pixels.lower(x, i, j).compile().as_text("linalg"))
    (pairs,) = [part for part in text.split("linalg.generic") if "tensor.extract %arg" in part]
    assert "arith.cmpi" not in pairs.split("linalg.yield")[0]


def test_a_number_that_all_read_at() -> None:
    def column(x: Any, j: Any) -> Any:
        return mind_mlir.fori_loop(0, 4, lambda n, s: s + x[mnp.arange(7), mnp.minimum(j, n)], mnp.zeros(7))

    x = X[:, :, 0].astype(np.float64)
    np.testing.assert_array_equal(compiled(column, x, np.int64(2)), x[:, [0, 1, 2, 2]].sum(1))


def test_constant_indices_within_bounds_are_not_checked() -> None:
    rows, columns = np.arange(6)[:, None], np.arange(8)

    def lowered(extent: int) -> str:
        taken = mind_mlir.jit(lambda x: x[rows, columns]).lower(np.zeros((extent, 9)))
        return str(taken.compile().as_text("linalg"))

    assert "tensor<4xi64>" not in lowered(6)
    assert "arith.minsi" in lowered(5)
    with pytest.raises(mind_mlir.MindError, match="index 5 "):
        mind_mlir.jit(lambda x: x[rows, columns])(np.zeros((5, 9)))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("step", [1, -1, 4])
def test_elements_that_move_around_are_read_where_they_lie(axis: int, step: int) -> None:
    x = RANDOM.standard_normal((6, 5, 17))

    def moved(x: Any) -> Any:
        lib = np if isinstance(x, np.ndarray) else mnp
        return x - 2 * lib.roll(x[:, 1:] * 2, step, axis)[:, :1]

    np.testing.assert_array_equal(compiled(moved, x), moved(x))


def test_edges_that_are_repeated() -> None:
    x = RANDOM.standard_normal((6, 17))

    def padded(x: Any) -> Any:
        lib = np if isinstance(x, np.ndarray) else mnp
        return lib.concatenate([x[:1], x, x[-1:]]) * lib.concatenate([x[-2:], x[1:], x[:1]])

    np.testing.assert_array_equal(compiled(padded, x), padded(x))
    text = mind_mlir.jit(padded).lower(x).compile().as_text("schedule")
    assert "2. " not in text


@pytest.mark.parametrize("axis", [0, 1])
def test_the_indices_of_a_sort_are_not_checked_where_they_fit(axis: int) -> None:
    x = RANDOM.standard_normal((70, 80))
    sort = mind_mlir.jit(lambda x: mnp.sort(x, axis=axis)).lower(x).compile()
    np.testing.assert_array_equal(sort(x)[0], np.sort(x, axis))
    taken = mind_mlir.jit(lambda x, y: mnp.take_along_axis(y, mnp.argsort(x, axis=1), axis=1))
    short = taken.lower(x, x[:, :50])
    assert "-> tensor<70x80xf64> {" in sort.as_text("linalg")  # and nothing that is checked
    assert "arith.maxsi" in short.compile().as_text("linalg")
    with pytest.raises(mind_mlir.MindError, match="index 79 "):
        short.compile()(x, x[:, :50])


@pytest.mark.parametrize("positive", [False, True])
def test_elements_of_what_a_branch_returns(positive: bool) -> None:
    """Where they lie is known when the program runs: in a row, or in a column."""
    x = np.arange(12.0).reshape(4, 3) * (1 if positive else -1)
    i = np.array([0, 2, 1, 2])
    found = compiled(lambda x, i: mind_mlir.cond(x.sum() > 0, lambda: x[1], lambda: x[:3, 1])[i], x, i)
    np.testing.assert_array_equal(found, (x[1] if positive else x[:3, 1])[i])
