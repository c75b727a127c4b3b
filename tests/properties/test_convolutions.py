"""Convolutions over their whole configuration space: compiled, interpreted, and by their definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import guarded
import numpy as np
from budget import examples
from convolution_cases import Convolution, convolutions
from hypothesis import given
from hypothesis import strategies as st
from window_cases import Axis

import mind_mlir
from mind_mlir import differentiate, from_stablehlo, interpret
from mind_mlir.mlir import passes

if TYPE_CHECKING:
    import pytest

    from mind_mlir import Module
    from mind_mlir.ir.attributes import Array


def outcomes(module: Module, arguments: dict[str, Array]) -> list[list[Array]]:
    """Return the results, interpreted and compiled."""
    with np.errstate(all="ignore"):
        interpreted = interpret(module, arguments)
    return [list(interpreted), guarded.call_executable(mind_mlir.compile(module), arguments)]


@examples(24)
@given(convolutions(), st.sampled_from((np.float32, np.float64, np.int32)), st.integers(0, 99))
def test_convolutions_give_what_their_definition_does(
    convolution: Convolution, dtype: type[np.generic], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    element = {np.float32: "f32", np.float64: "f64", np.int32: "i32"}[dtype]
    x, w = (rng.integers(-3, 4, shape).astype(dtype) for shape in convolution.shapes[:2])
    expected = convolution.apply(x, w)
    for (found,) in outcomes(from_stablehlo(convolution.text(element)), {"arg0": x, "arg1": w}):
        np.testing.assert_array_equal(found, expected)


def test_one_window_that_reads_less_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product for it is an operation that MLIR's verifier takes: it reads a part of the padded image."""
    monkeypatch.setattr(passes, "always_verified", True)
    axis = Axis(extent=1, window=2, stride=2, low=0, high=2, base=1, spacing=1)
    orders = (("b", "0", "f"), ("0", "i", "o"), ("b", "0", "f"))
    convolution = Convolution((axis,), (False,), 1, 1, 2, 1, 1, orders)
    x, w = np.ones((1, 1, 1), np.float32), np.ones((2, 1, 2), np.float32)
    arguments = {"arg0": x, "arg1": w}
    for (found,) in outcomes(from_stablehlo(convolution.text("f32")), arguments):
        np.testing.assert_array_equal(found, convolution.apply(x, w))


@examples(16)
@given(convolutions(), st.integers(0, 99))
def test_gradients_of_convolutions_are_the_transposed_maps(convolution: Convolution, seed: int) -> None:
    """<g, A x> == <A' g, x> for each factor, exactly: all numbers are small integers."""
    rng = np.random.default_rng(seed)
    x, w, g = (rng.integers(-3, 4, shape).astype(np.float64) for shape in convolution.shapes)
    module = differentiate(from_stablehlo(convolution.text("f64")), cotangents="given").module
    inner = np.sum(g * convolution.apply(x, w))
    moved = [rng.integers(-3, 4, shape).astype(np.float64) for shape in (x.shape, w.shape)]
    left = [np.sum(g * convolution.apply(moved[0], w)), np.sum(g * convolution.apply(x, moved[1]))]
    for found, of_x, of_w in outcomes(module, {"arg0": x, "arg1": w, "cotangent_0": g}):
        assert np.sum(g * found) == inner
        assert np.sum(of_x * x) == np.sum(of_w * w) == inner
        assert [np.sum(of_x * moved[0]), np.sum(of_w * moved[1])] == left
