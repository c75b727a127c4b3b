"""Cumulate: long axes in every way, at any thread count, gradients with zeros and equal elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Use, build, run_both, type_of

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.ops.registry import by_opcode

CUMULATE = by_opcode()["Cumulate"]

#: In one pass, in several levels, in blocks that threads share, in rows, and across an axis.
SHAPES = [((3, 70), 1), ((70001,), 0), ((2, 9000), 1), ((40, 300), 1), ((3000, 5), 0), ((2, 50, 300), 1)]


def form(kind: str, axis: int, *, exclusive: bool = False, reverse: bool = False) -> dict[str, Any]:
    return {"kind": kind, "axis": axis, "exclusive": exclusive, "reverse": reverse}


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_integers_are_exact_along_long_axes(
    shape: tuple[int, ...], axis: int, exclusive: bool, reverse: bool
) -> None:
    x = np.random.default_rng(0).integers(-9, 10, shape)
    wanted = np.flip(x, axis) if reverse else x
    wanted = np.cumsum(wanted, axis) - (wanted if exclusive else 0)
    wanted = np.flip(wanted, axis) if reverse else wanted
    how = form("Sum", axis, exclusive=exclusive, reverse=reverse)
    assert np.array_equal(run_both(CUMULATE, (x,), how), wanted)


@pytest.mark.parametrize(
    ("shape", "axis"), [((70001,), 0), ((2, 90000), 1), ((30000, 5), 0), ((8, 3000, 9), 1)]
)
def test_bits_do_not_depend_on_threads(shape: tuple[int, ...], axis: int) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    module = build([Use(CUMULATE, (type_of(x),), form("Sum", axis))])
    one, four = (mind_mlir.compile(module, threads=threads)(x)[0] for threads in (1, 4))
    assert one.tobytes() == four.tobytes()
    exact = np.cumsum(x.astype(np.float64), axis)
    most = np.cumsum(np.abs(x).astype(np.float64), axis)
    assert (np.abs(one - exact) <= 300 * np.finfo(np.float32).eps * most).all()


def test_extremes_see_zeros_and_nans() -> None:
    x = np.array([-0.0, 0.0, -0.0, 1.0, np.nan, 2.0], np.float32)
    found = run_both(CUMULATE, (x,), form("Max", 0))
    assert np.array_equal(found, [-0.0, 0.0, 0.0, 1.0, np.nan, np.nan], equal_nan=True)
    assert np.signbit(found[:3]).tolist() == [True, False, False]
    least = run_both(CUMULATE, (x,), form("Min", 0, exclusive=True))
    assert least[0] == np.inf
    assert np.signbit(least[1:4]).tolist() == [True, True, True]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
def test_the_gradient_of_products_is_right_at_zeros(reverse: bool, exclusive: bool) -> None:
    x = np.array([2.0, 0.0, 3.0, -1.0, 0.0, 4.0])
    weights = np.arange(1.0, 7.0)

    def weighted(x: Any) -> Any:
        found = mnp.cumulate(x, kind="Prod", axis=0, exclusive=exclusive, reverse=reverse)
        return (found * weights).sum()

    gradient = mind_mlir.grad(weighted)(x)
    step = 0.5  # products are linear in each factor
    for place in range(6):
        moved = np.zeros(6)
        moved[place] = step
        slope = (mind_mlir.jit(weighted)(x + moved) - mind_mlir.jit(weighted)(x - moved)) / (2 * step)
        assert np.isclose(gradient[place], slope)


@pytest.mark.parametrize(
    ("reverse", "exclusive", "wanted"),
    [
        (False, False, [1, 2 + 3, 0, 4 + 5]),
        (False, True, [2, 3 + 4, 0, 5]),
        (True, False, [0, 0, 0, 1 + 2 + 3 + 4, 5]),
    ],
)
def test_the_gradient_of_extremes_goes_to_the_first_of_equals(
    reverse: bool, exclusive: bool, wanted: list[int]
) -> None:
    x = np.array([1.0, 3.0, 3.0, 5.0, 4.0]) if not reverse else np.array([5.0, 3.0, 3.0, 5.0, 4.0])
    weights = np.arange(1.0, 6.0)

    def weighted(x: Any) -> Any:
        return (
            mnp.cumulate(x, kind="Max", axis=0, exclusive=exclusive, reverse=reverse)[1 if exclusive else 0 :]
            * weights[1 if exclusive else 0 :]
        ).sum()

    assert mind_mlir.grad(weighted)(x)[: len(wanted)].tolist() == wanted
