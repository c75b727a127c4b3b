"""Vectors of elements that lie apart in memory, between guard pages: dtypes, distances and ends of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import guarded
import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    from collections.abc import Callable

TARGETS = ("sse", "avx2", None)
DTYPES = (np.float64, np.float32, np.float16, np.int64, np.int16, np.uint8, np.bool_)


def array(dtype: Any, *shape: int) -> Any:
    return np.random.default_rng(5).integers(0, 100, shape).astype(dtype)


def column(place: int) -> Callable[[Any], Any]:
    return lambda x: x[:, place] + x[:, place]


def stepped(first: int, step: int) -> Callable[[Any], Any]:
    return lambda x: x[first::step] * 2


def check(function: Callable[..., Any], wanted: Any, *arguments: Any, target: str | None = None) -> None:
    lowered = mind_mlir.jit(function, target=target).lower(*arguments)
    executable = lowered.compile()
    names = [each.name for each in executable.parameters]
    (found,) = guarded.call_executable(executable, dict(zip(names, arguments, strict=True)))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("apart", [2, 3, 4, 8, 9])
def test_each_place_of_a_short_row(dtype: Any, apart: int) -> None:
    for rows in (1, 7, 67):
        x = array(dtype, rows, apart)
        for place in (0, apart // 2, apart - 1):
            check(column(place), column(place)(x), x)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("apart", [2, 3, 5, 11])
def test_steps_that_do_not_end_with_a_row(apart: int, target: str | None) -> None:
    for length in (apart + 1, 97, 1009):
        x = array(np.float32, length)
        for first in (0, 1, apart - 1):
            check(stepped(first, apart), stepped(first, apart)(x), x, target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_that_are_cut_on_both_axes(target: str | None) -> None:
    x = array(np.float32, 19, 23)
    check(lambda x: x[1::2, 1:20:3] + 1, x[1::2, 1:20:3] + 1, x, target=target)
    check(lambda x: x[:, 22] + x[:, 0], x[:, 22] + x[:, 0], x, target=target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("apart", [2, 3, 9])
def test_what_is_written_apart(apart: int, target: str | None) -> None:
    x, y = array(np.float32, 65, apart), array(np.float32, 65)
    expected = x.copy()
    expected[:, 1] = y + 1
    check(lambda x, y: x.at[:, 1].set(y + 1), expected, x, y, target=target)
    wanted = np.stack([y * (each + 1) for each in range(apart)], axis=-1)
    check(lambda y: mnp.stack([y * (each + 1) for each in range(apart)], axis=-1), wanted, y, target=target)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [2, 3, 5, 8, 9])
def test_columns_that_are_computed_together(dtype: Any, count: int) -> None:
    for rows in (1, 7, 67):
        x, y = array(dtype, rows, 2 * count), array(dtype, rows)
        columns = [x[:, each] | y for each in range(count)] if dtype == np.bool_ else None
        columns = columns or [x[:, each] + y for each in range(count)]

        def joined(x: Any, y: Any) -> Any:
            parts = [x[:, each] for each in range(count)]
            return mnp.stack([one | y if dtype == np.bool_ else one + y for one in parts], axis=-1)

        check(joined, np.stack(columns, axis=-1), x, y)


def test_columns_are_written_as_rows() -> None:
    """All of a row with one store, and nothing is copied."""

    def text(function: Callable[..., Any], form: str) -> str:
        lowered = mind_mlir.jit(function, target="avx512").lower(*[np.zeros(5000, np.float32)] * 3)
        return str(lowered.compile().as_text(form))

    def crossed(a: Any, b: Any, c: Any) -> Any:
        return mnp.stack([a * b, b * c, c * a], axis=1)

    assert "memref.copy" not in text(crossed, "tiled")
    assert "memref.alloc" not in text(crossed, "tiled")
    assert "scatter" not in text(crossed, "llvm")


def test_columns_in_another_order_and_of_parts() -> None:
    x, y = array(np.float32, 67, 3), array(np.float32, 70)
    wanted = np.stack([x[:, 2] * 2, x[:, 0], y[3:] + x[:, 1]], axis=-1)
    check(lambda x, y: mnp.stack([x[:, 2] * 2, x[:, 0], y[3:] + x[:, 1]], axis=-1), wanted, x, y)
    turned = np.concatenate([x[:, 2:], x[:, :2] * 2], axis=1)
    check(lambda x: mnp.concatenate([x[:, 2:], x[:, :2] * 2], axis=1), turned, x)
    check(lambda x: x.at[:, 1:].set(x[:, :2] + 1), np.concatenate([x[:, :1], x[:, :2] + 1], 1), x)


def test_numbers_stay_what_they_are() -> None:
    x = np.array([[np.nan, -0.0], [np.inf, 0.0], [-np.inf, -0.0], [5e-324, 1.0]] * 5)
    found = mind_mlir.jit(lambda x: -x[:, 1])(x)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(-x[:, 1]))
    np.testing.assert_array_equal(mind_mlir.jit(lambda x: -x[:, 0])(x), -x[:, 0])
