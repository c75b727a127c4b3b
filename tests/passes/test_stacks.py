"""What is joined and read in parts is computed in parts: the same bits, and which programs have any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    from collections.abc import Callable

STATE = np.random.default_rng(3).standard_normal((3, 128))


def check(function: Callable[..., Any], *arguments: Any, joins: int) -> None:
    """Results are the same bits without the pass; with it, the program joins so many times."""
    divided, whole = (mind_mlir.jit(function, disabled_passes=off) for off in ((), ("stacks",)))
    np.testing.assert_array_equal(divided(*arguments), whole(*arguments))
    assert divided.lower(*arguments).as_text("optimized").count("= Concat") == joins


def slope(p: Any) -> Any:
    x, y, z = p
    return mnp.stack([10 * (y - x), x * (28 - z) - y, x * y - (8 / 3) * z])


def midpoint(p: Any) -> Any:
    return p + 0.01 * slope(p + 0.005 * slope(p))


def test_the_steps_of_a_state_join_it_once() -> None:
    check(midpoint, STATE, joins=1)
    check(lambda p: mind_mlir.fori_loop(0, 3, lambda _, now: midpoint(now), p), STATE, joins=1)


def test_parts_of_several_rows_and_operands_that_broadcast() -> None:
    def walls(u: Any, row: Any, column: Any) -> Any:
        inside = u[1:-1] * 0.5
        joined = mnp.concatenate([mnp.abs(u[:1]), inside, u[-1:]]) * row + column
        return mnp.where(joined[:1] > 0, joined[2:6], 0.0)

    u = np.random.default_rng(4).standard_normal((8, 64))
    check(walls, u, u[0], u[:, :1], joins=0)


@pytest.mark.parametrize("extent", [63, 64])
def test_short_parts_stay_together(extent: int) -> None:
    check(lambda p: (slope(p) * 2)[1], STATE[:, :extent], joins=int(extent < 64))


def test_what_is_read_whole_stays_whole() -> None:
    check(lambda p: (slope(p) * 2, slope(p).sum(axis=0))[0] + slope(p)[::-1], STATE, joins=1)
    check(lambda p: mnp.concatenate([p * 2, p], axis=1) + 1, STATE, joins=1)


@pytest.mark.parametrize("rows", [63, 64])
def test_columns_are_parts_where_they_are_long(rows: int) -> None:
    """Points that quaternions turn: a column each of two products, of which one is read by the other."""
    random = np.random.default_rng(5)

    def turned(q: Any, p: Any) -> Any:
        across = 2 * mnp.cross(q[:, 1:], p)
        return p + q[:, :1] * across + mnp.cross(q[:, 1:], across)

    check(turned, random.random((rows, 4)), random.random((rows, 3)), joins=1 if rows >= 64 else 2)
    check(lambda a, b: mnp.concatenate([a * 2, b], axis=1) + 1, STATE[:, :64], STATE[:, 64:], joins=1)
