"""Convolution: findings, what it means by way of explicit sums, phases, and gradients through layers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir import Builder, DType, TensorType, VerificationError, interpret
from mind_mlir.ops.convolution_lowering import phases_of
from mind_mlir.ops.sliding import Sliding

if TYPE_CHECKING:
    from mind_mlir import Module

Shape = tuple[int, ...]


def convolution(image: Shape, filter_: Shape, dtype: DType = DType.F64, **attributes: Any) -> Module:
    b = Builder()
    x, w = b.input("x", TensorType(dtype, image)), b.input("w", TensorType(dtype, filter_))
    given = {"accum_dtype": dtype, "out_dtype": dtype, **attributes}
    return b.build([b.emit("Convolution", x, w, **given)])


@pytest.mark.parametrize(
    ("image", "filter_", "attributes", "codes"),
    [
        ((5, 3), (3, 3, 4), {}, ["E3002"]),
        ((5,), (3,), {}, ["E3002"]),
        ((1, 5, 3), (3, 2, 4), {}, ["E4009"]),
        ((1, 5, 4), (3, 2, 4), {"groups": 0}, ["E4009"]),
        ((1, 5, 4), (3, 2, 3), {"groups": 2}, ["E4009"]),
        ((1, 5, 4), (3, 4, 4), {"strides": (1, 1)}, ["E1103"]),
        ((1, 5, 4), (3, 4, 4), {"strides": (0,)}, ["E3006"]),
        ((1, 5, 4), (3, 4, 4), {"base_dilation": (0,)}, ["E3006"]),
        ((1, 5, 4), (0, 4, 4), {}, ["E3006"]),
        ((1, 5, 4), (3, 4, 4), {"padding_low": (-3,)}, ["E4123"]),
        ((1, 5, 4), (3, 4, 4), {"window_dilation": (3,)}, ["E4123"]),
        ((1, 5, 4), (3, 4, 4), {"accum_dtype": DType.CF32}, ["E2005"]),
        ((2**40, 2**22, 4), (1, 4, 4), {"padding_low": (2**30,)}, ["E4104"]),
    ],
)
def test_findings(image: Shape, filter_: Shape, attributes: dict[str, Any], codes: list[str]) -> None:
    with pytest.raises(VerificationError) as caught:
        convolution(image, filter_, **attributes)
    assert [d.code for d in caught.value.diagnostics] == codes


def test_empty_lists_are_ones_and_zeros() -> None:
    shapes = (2, 6, 5, 4), (3, 2, 2, 6)
    ones, none = (1, 1), (0, 0)
    lists: dict[str, Any] = {"strides": ones, "base_dilation": ones, "window_dilation": ones}
    spelled = convolution(*shapes, groups=2, **lists, padding_low=none, padding_high=none)
    rng = np.random.default_rng(0)
    arguments = {"x": rng.standard_normal(shapes[0]), "w": rng.standard_normal(shapes[1])}
    (short,), (long,) = (interpret(m, arguments) for m in (convolution(*shapes, groups=2), spelled))
    np.testing.assert_array_equal(short, long)


@pytest.mark.parametrize("window", range(1, 5))
@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize("base", [1, 2, 3, 6])
@pytest.mark.parametrize("spacing", [1, 2, 3])
def test_phases_read_each_element_that_windows_have(
    window: int, stride: int, base: int, spacing: int
) -> None:
    for low, high in itertools.product((-2, 0, 3), (-1, 4)):
        axis = Sliding(5, window, stride, low, high, base, spacing)
        if axis.padded < axis.span:
            continue
        found: dict[int, list[tuple[int, int]]] = {}
        for first, phase in enumerate(phases_of(axis)):
            for place, result in enumerate(range(first, axis.count, phase.period)):
                starts = place * phase.axis.stride - phase.axis.low
                found[result] = [
                    (tap, starts + at * phase.axis.spacing) for at, tap in enumerate(phase.places)
                ]
        for result in range(axis.count):
            wanted = []
            for tap in range(window):
                element, gap = divmod(result * stride + tap * spacing - low, base)
                if not gap:
                    wanted.append((tap, element))
            assert found[result] == wanted


def test_gaps_are_no_terms() -> None:
    """An infinite weight meets gaps, which are none of its terms, and padding, which is zero times it."""
    module = convolution((1, 3, 1), (2, 1, 1), base_dilation=(2,), padding_low=(2,))
    x, w = np.array([[[1.0], [2.0], [3.0]]]), np.array([[[np.inf]], [[1.0]]])
    expected = [np.nan, 1.0, np.inf, 2.0, np.inf, 3.0]
    for (found,) in (interpret(module, {"x": x, "w": w}), mind_mlir.compile(module)(x, w)):
        np.testing.assert_array_equal(np.ravel(found), expected)


def test_many_phases_are_one_convolution() -> None:
    module = convolution((1, 4, 5, 3), (11, 9, 3, 2), base_dilation=(9, 8), padding_low=(10, 3))
    rng = np.random.default_rng(5)
    x, w = (rng.integers(-3, 4, shape).astype(np.float64) for shape in ((1, 4, 5, 3), (11, 9, 3, 2)))
    (found,) = mind_mlir.compile(module)(x, w)
    np.testing.assert_array_equal(found, interpret(module, {"x": x, "w": w})[0])


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_second_derivatives_of_strided_groups(groups: int) -> None:
    """The gradient of a gradient's square, against differences along one direction."""

    def network(x: Any, w: Any) -> Any:
        y = mnp.convolution(
            x, w, strides=(2,), padding_low=(1,), padding_high=(2,), window_dilation=(2,), groups=groups
        )
        return mnp.sum(mnp.tanh(y))

    def steepness(x: Any, w: Any) -> Any:
        of_x, of_w = mind_mlir.grad(network, argnums=(0, 1))(x, w)
        return mnp.sum(of_x * of_x) + mnp.sum(of_w * of_w)

    rng = np.random.default_rng(2)
    shapes = (2, 9, 4), (3, 4 // groups, 8)
    x, w, to_x, to_w = (0.3 * rng.standard_normal(shape) for shape in (*shapes, *shapes))
    value = mind_mlir.jit(steepness)
    of_x, of_w = mind_mlir.jit(mind_mlir.grad(steepness, argnums=(0, 1)))(x, w)
    step = 1e-5
    slope = (value(x + step * to_x, w + step * to_w) - value(x - step * to_x, w - step * to_w)) / (2 * step)
    assert np.isclose(np.vdot(of_x, to_x) + np.vdot(of_w, to_w), slope, rtol=1e-6)


@pytest.mark.parametrize("activation", [mnp.relu, mnp.tanh], ids=["relu", "tanh"])
def test_a_network_with_max_pooling_is_trained(activation: Any) -> None:
    """Values that lie between poolings and convolutions are computed again, behind what they are made of."""

    def pooled(x: Any) -> Any:
        ones, none, two = (1,) * 4, (0,) * 4, (1, 2, 2, 1)
        lists: dict[str, Any] = {
            "padding_low": none,
            "padding_high": none,
            "base_dilation": ones,
            "window_dilation": ones,
        }
        return mnp.reduce_window(x, window_dims=two, strides=two, reduce="Max", **lists)

    def loss(w: Any, v: Any, u: Any, x: Any) -> Any:
        same: dict[str, Any] = {"padding_low": (1, 1), "padding_high": (1, 1)}
        x = pooled(activation(mnp.convolution(x, w, **same)))
        x = pooled(activation(mnp.convolution(x, v, **same)))
        x = activation(mnp.convolution(x, u, **same))
        return mnp.sum(x * x)

    rng = np.random.default_rng(4)
    shapes = (3, 3, 3, 16), (3, 3, 16, 16), (3, 3, 16, 8), (2, 16, 16, 3)
    *weights, x = (0.3 * rng.standard_normal(shape) for shape in shapes)
    ways = [rng.standard_normal(each.shape) for each in weights]
    value: Any = mind_mlir.jit(loss)
    step = 1e-6
    ends = [value(*(w + sign * step * d for w, d in zip(weights, ways, strict=True)), x) for sign in (1, -1)]
    slopes: Any = mind_mlir.jit(mind_mlir.grad(loss, argnums=(0, 1, 2)))
    gradients = slopes(*weights, x)
    slope = sum(np.vdot(g, d) for g, d in zip(gradients, ways, strict=True))
    assert np.isclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-5)
