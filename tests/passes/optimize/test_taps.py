"""Filters that are constants lose what only ever meets padding."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.ops.accumulation import roundings
from mind_mlir.ops.sliding import Sliding
from mind_mlir.passes.optimize.taps import used_of

RANDOM = np.random.default_rng(5)

#: Of images `[space...]` and windows: padding, what else is asked for, and the window that is left.
CASES: list[tuple[Any, Any, Any, dict[str, Any], Any]] = [
    ((1, 1), (3, 3), [(1, 1), (1, 1)], {}, (1, 1)),
    ((1, 4), (3, 3), [(1, 1), (1, 1)], {}, (1, 3)),
    ((2, 2), (3, 3), [(1, 1), (1, 1)], {"strides": (2, 2)}, (2, 2)),
    ((2, 2), (3, 3), [(1, 1), (1, 1)], {}, (3, 3)),
    ((5, 9), (3, 3), [(6, 6), (6, 6)], {"window_dilation": (6, 6)}, (1, 3)),
    ((1, 1), (2, 2), [(1, 2), (0, 1)], {"base_dilation": (2, 2)}, (2, 1)),
    ((3,), (7,), [(1, 5)], {"groups": 2}, (4,)),
    ((1, 2, 1), (3, 3, 3), [(1, 1), (2, 0), (0, 2)], {}, (1, 2, 1)),
]


@pytest.mark.parametrize(("space", "window", "padding", "asked", "left"), CASES)
def test_filters_are_cut(space: Any, window: Any, padding: Any, asked: Any, left: Any) -> None:
    types: list[Any] = [np.float32, np.float64, np.int32]
    for dtype in types:
        x = (RANDOM.standard_normal((2, *space, 4)) * 8).astype(dtype)
        w = (RANDOM.standard_normal((*window, 4 // asked.get("groups", 1), 6)) * 8).astype(dtype)
        found, expected, text = _both(x, w, padding, asked)
        assert f"[{', '.join(map(str, (*left, *w.shape[-2:])))}]" in text.split(" = Convolution ")[0]
        if dtype is np.int32:
            assert (found == expected).all()
        else:
            (sizes, _, _), unit = _both(abs(x), abs(w), padding, asked), np.finfo(dtype).eps / 2
            assert (abs(found - expected) <= 2 * roundings(4 * int(np.prod(window))) * unit * sizes).all()


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_filters_with_special_numbers_are_left(special: float) -> None:
    x, w = np.ones((1, 1, 1, 2), np.float32), np.ones((3, 3, 2, 2), np.float32)
    w[0, 0, 0, 0] = special
    found, expected, text = _both(x, w, [(1, 1), (1, 1)], {})
    assert "[3, 3, 2, 2]" in text
    np.testing.assert_array_equal(found, expected)
    assert np.isnan(found[..., 0]).all()


def _both(x: Any, w: Any, padding: Any, asked: Any) -> tuple[Any, Any, str]:
    """Return what a constant filter gives, what one that is passed gives, and the program of the former."""
    transposed = np.ascontiguousarray(np.moveaxis(w, (-1, -2), (0, 1)))
    low, high = zip(*padding, strict=True)

    def function(x: Any, w: Any) -> Any:
        filter_ = w.transpose(*range(2, w.ndim), 1, 0)
        return mnp.convolution(x, filter_, padding_low=low, padding_high=high, **asked)

    module = mind_mlir.jit(function).lower(x, transposed).module
    constant = mind_mlir.compile(module, constants={"w": transposed})
    return constant(x)[0], mind_mlir.compile(module)(x, transposed)[0], constant.as_text("optimized")


def test_elements_that_are_kept_are_those_that_meet_the_image() -> None:
    draw = Random(1)  # noqa: S311 -- windows, the same each time
    for _ in range(2000):
        numbers = [
            draw.randint(*bounds) for bounds in ((1, 7), (1, 6), (1, 5), (-3, 8), (-3, 8), (1, 4), (1, 5))
        ]
        axis = Sliding(*numbers)
        if axis.padded < axis.span:
            continue
        met = np.flatnonzero(axis.places()[1].any(axis=0))
        assert [*used_of(axis)] == ([*range(met[0], met[-1] + 1)] if met.size else [])


def test_long_axes_take_no_memory() -> None:
    assert used_of(Sliding(10**12, 400, 1, 500, 499)) == range(400)
