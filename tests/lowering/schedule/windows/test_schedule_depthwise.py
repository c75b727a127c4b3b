"""Depthwise convolutions: their nests compute what the numpy rule does, margins included, on any target."""

from __future__ import annotations

from typing import Any

import guarded
import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir import Builder, DType, Module, TensorType, interpret

Shape = tuple[int, ...]


def depthwise(image: Shape, window: Shape, features: int = 1, **lists: Any) -> Module:
    """Return a convolution whose groups have one channel, and so many features."""
    b, channels = Builder(), image[-1]
    x = b.input("x", TensorType(DType.F32, image))
    w = b.input("w", TensorType(DType.F32, (*window, 1, channels * features)))
    dtypes: dict[str, Any] = {"accum_dtype": DType.F32, "out_dtype": DType.F32}
    return b.build([b.emit("Convolution", x, w, groups=channels, **dtypes, **lists)])


def schedule(module: Module, target: str = "avx2") -> str:
    return mind_mlir.compile(module, target=target).as_text("schedule")


_PADDED: dict[str, Any] = {"padding_low": (1, 1), "padding_high": (1, 1)}


@pytest.mark.parametrize(
    ("image", "window", "lists"),
    [
        ((2, 9, 11, 37), (3, 3), _PADDED),
        ((1, 5, 30, 16), (3, 3), {}),
        ((1, 7, 7, 33), (7, 7), {"padding_low": (3, 3), "padding_high": (3, 3)}),
        ((1, 12, 13, 8), (5, 3), {"strides": (2, 3), "padding_low": (2, 0), "padding_high": (1, 4)}),
        ((2, 10, 29, 17), (3, 3), {"window_dilation": (2, 3), "padding_low": (2, 3), "padding_high": (2, 3)}),
        ((1, 3, 4, 20), (2, 2), {"padding_low": (4, 0), "padding_high": (0, 5)}),
        ((3, 40, 19), (4,), {"strides": (2,), "padding_low": (3,)}),
        ((1, 4, 5, 18, 16), (3, 2, 3), {"padding_low": (1, 0, 1), "padding_high": (1, 1, 1)}),
        ((1, 6, 6, 24), (3, 3), {"padding_low": (-1, 2), "padding_high": (1, -2)}),
        ((1, 4, 50, 16), (1, 9), {"strides": (1, 2), "window_dilation": (1, 4)}),
        ((1, 3, 9, 16), (2, 3), {"padding_low": (0, 60), "padding_high": (0, 41)}),
        ((1, 3, 9, 16), (2, 3), {"strides": (1, 3), "padding_low": (0, 7), "padding_high": (0, 5)}),
    ],
)
@pytest.mark.parametrize("target", [None, "avx2"])
def test_values(image: Shape, window: Shape, lists: dict[str, Any], target: str | None) -> None:
    module = depthwise(image, window, **lists)
    assert ". depthwise" in schedule(module)
    rng = np.random.default_rng(sum(image))
    x, w = (rng.integers(-4, 5, each).astype(np.float32) for each in (image, (*window, 1, image[-1])))
    compiled = mind_mlir.compile(module, target=target)
    (found,) = guarded.call_executable(compiled, {"x": x, "w": w})
    np.testing.assert_array_equal(found, interpret(module, {"x": x, "w": w})[0])


@pytest.mark.parametrize(
    ("channels", "features", "groups"), [(1, 2, 11), (1, 8, 3), (2, 2, 9), (2, 4, 5), (4, 4, 7)]
)
@pytest.mark.parametrize("target", [None, "avx2"])
def test_groups_of_few_channels(channels: int, features: int, groups: int, target: str | None) -> None:
    b = Builder()
    shapes = (2, 9, 13, channels * groups), (3, 3, channels, features * groups)
    x, w = (b.input(name, TensorType(DType.F32, each)) for name, each in zip("xw", shapes, strict=True))
    form: dict[str, Any] = {"accum_dtype": DType.F32, "out_dtype": DType.F32, "strides": (1, 2), **_PADDED}
    module = b.build([b.emit("Convolution", x, w, groups=groups, **form)])
    assert ". depthwise" in schedule(module, "avx512")
    rng = np.random.default_rng(channels)
    given = {
        name: rng.integers(-4, 5, each).astype(np.float32) for name, each in zip("xw", shapes, strict=True)
    }
    (found,) = guarded.call_executable(mind_mlir.compile(module, target=target), given)
    np.testing.assert_array_equal(found, interpret(module, given)[0])


def test_code_is_no_longer_for_long_lines_and_wide_margins() -> None:
    sizes = [
        len(mind_mlir.compile(depthwise((1, 4, n, 16), (3, 3), padding_low=(1, pad))).as_text("tiled"))
        for n, pad in ((60, 1), (6000, 1), (60, 5000))
    ]
    assert max(sizes) < 1.2 * sizes[0]


def test_padding_is_zeros_that_are_multiplied() -> None:
    module = depthwise((1, 5, 6, 16), (3, 3), **_PADDED)
    x, w = np.ones((1, 5, 6, 16), np.float32), np.ones((3, 3, 1, 16), np.float32)
    w[0, :, 0, 2], w[1, 2, 0, 5] = np.inf, -np.inf
    (found,), (expected,) = mind_mlir.compile(module)(x, w), interpret(module, {"x": x, "w": w})
    np.testing.assert_array_equal(found, expected)
    assert np.isnan(expected).any()


@pytest.mark.parametrize("dtype", [DType.BF16, DType.F16, DType.F64])
def test_dtypes(dtype: DType) -> None:
    rng = np.random.default_rng(3)
    x, w = (rng.integers(-4, 5, s).astype(dtype.numpy) for s in ((1, 8, 9, 21), (3, 3, 1, 21)))
    function = mind_mlir.jit(lambda x, w: mnp.convolution(x, w, groups=21, **_PADDED))
    lowered = function.lower(x, w)
    assert ". depthwise" in lowered.as_text("schedule")
    exact = {"x": x.astype(np.float32), "w": w.astype(np.float32)}
    (expected,) = interpret(depthwise(x.shape, (3, 3), **_PADDED), exact)
    np.testing.assert_array_equal(np.asarray(function(x, w)), expected.astype(dtype.numpy))


@pytest.mark.parametrize(
    ("features", "window"), [(3, (3, 3)), (1, (17, 17))], ids=["three features", "too many terms"]
)
def test_what_is_something_else(features: int, window: Shape) -> None:
    module = depthwise((1, 20, 20, 8), window, features=features)
    assert ". depthwise" not in schedule(module)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    module = depthwise((2, 64, 64, 70), (5, 5), padding_low=(2, 2), padding_high=(2, 2))
    rng = np.random.default_rng(9)
    x, w = (rng.standard_normal(s, dtype=np.float32) for s in ((2, 64, 64, 70), (5, 5, 1, 70)))
    one, two = (mind_mlir.compile(module, threads=count)(x, w)[0] for count in (1, 2))
    assert one.tobytes() == two.tobytes()
