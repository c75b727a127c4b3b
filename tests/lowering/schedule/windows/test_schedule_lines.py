"""Convolutions of few channels: vectors run along lines, and compute what the numpy rule does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import guarded
import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir import Builder, DType, TensorType, interpret

if TYPE_CHECKING:
    from mind_mlir import Module

_ONCE = {"padding_low": (2, 1), "padding_high": (0, 3)}


def convolution(
    image: tuple[int, ...], window: tuple[int, ...], features: int = 0, groups: int = 0, **lists: Any
) -> Module:
    """Return a convolution of each channel by itself, with one feature each, unless said otherwise."""
    builder = Builder()
    groups = groups or (1 if features else image[-1])
    x = builder.input("x", TensorType(DType.F32, image))
    filters = (*window, image[-1] // groups, features or image[-1])
    w = builder.input("w", TensorType(DType.F32, filters))
    form: dict[str, Any] = {"groups": groups, "accum_dtype": DType.F32, "out_dtype": DType.F32}
    return builder.build([builder.emit("Convolution", x, w, **form, **lists)])


def given(module: Module, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        each.name: rng.integers(-3, 4, each.type.extents).astype(each.type.dtype.numpy)
        for each in mind_mlir.compile(module).parameters
    }


@pytest.mark.parametrize(
    ("image", "window", "lists"),
    [
        ((1, 20, 37, 1), (3, 3), {}),
        ((2, 9, 40, 3), (3, 5), _ONCE),
        ((1, 7, 33, 4), (7, 2), {"strides": (2, 1)}),
        ((1, 12, 50, 2), (3, 3), {"window_dilation": (2, 5)}),
        ((3, 300, 1), (70,), {}),
        ((1, 600, 1), (300,), {}),
        ((1, 21, 60, 1), (17, 19), {"padding_low": (1, 0)}),
        ((1, 4, 5, 16, 3), (3, 2, 3), {}),
        ((1, 6, 18, 1), (2, 2), {"padding_low": (-1, 0), "padding_high": (0, -1)}),
        ((1, 3, 131, 5), (2, 4), {}),
        # In planes.
        ((2, 9, 70, 1), (4, 5), {"strides": (1, 2)}),
        ((1, 11, 71, 1), (3, 7), {"strides": (2, 3), "window_dilation": (1, 2)}),
        ((1, 14, 80, 1), (20, 13), {"strides": (1, 2), "padding_low": (3, 4), "padding_high": (4, 1)}),
        ((2, 300, 1), (70,), {"strides": (4,)}),
        ((2, 6, 40, 2), (3, 3), {"features": 2}),
        ((1, 7, 53, 1), (5, 5), {"features": 3}),
        ((1, 40, 70, 2), (9, 9), {"features": 3, "strides": (2, 2)}),
        ((1, 9, 67, 3), (7, 7), {"strides": (1, 2)}),
        ((2, 9, 50, 4), (9, 5), {"features": 4, "groups": 2}),
        ((1, 4, 5, 33, 2), (3, 2, 3), {"features": 2, "strides": (1, 1, 1)}),
    ],
)
@pytest.mark.parametrize("target", ["sse", "avx2", None])
def test_values(
    image: tuple[int, ...], window: tuple[int, ...], lists: dict[str, Any], target: str | None
) -> None:
    module = convolution(image, window, **lists)
    assert ". lines" in mind_mlir.compile(module, target="avx512" if image[-1] == 5 else "avx2").as_text(
        "schedule"
    )
    arguments = given(module, image[1])
    (found,) = guarded.call_executable(mind_mlir.compile(module, target=target), arguments)
    np.testing.assert_array_equal(found, interpret(module, arguments)[0])


@pytest.mark.parametrize(
    ("image", "window", "lists", "reason"),
    [
        ((1, 9, 40, 16), (3, 3), {}, "less than a pixel"),
        ((1, 9, 40, 3), (3, 3), {"strides": (1, 2)}, "planes would take longer"),
        ((1, 9, 40, 64), (3, 3), {"features": 1}, "planes would take longer"),
        ((1, 9, 8, 1), (3, 3), {}, "would not fit registers, or lines"),
    ],
)
def test_what_is_something_else(
    image: tuple[int, ...], window: tuple[int, ...], lists: dict[str, Any], reason: str
) -> None:
    text = mind_mlir.compile(convolution(image, window, **lists), target="avx512").as_text("schedule")
    assert ". lines" not in text
    assert reason in text


@pytest.mark.parametrize("dtype", [DType.F64, DType.F16, DType.BF16])
def test_dtypes(dtype: DType) -> None:
    rng = np.random.default_rng(1)
    x, w = (rng.integers(-3, 4, each).astype(dtype.numpy) for each in ((1, 9, 50, 2), (3, 3, 1, 2)))
    function = mind_mlir.jit(lambda x, w: mnp.convolution(x, w, groups=2))
    assert ". lines" in function.lower(x, w).as_text("schedule")
    exact = {"x": x.astype(np.float32), "w": w.astype(np.float32)}
    (expected,) = interpret(convolution(x.shape, (3, 3)), exact)
    np.testing.assert_array_equal(np.asarray(function(x, w)), expected.astype(dtype.numpy))


@pytest.mark.parametrize(("width", "stride"), [(40, 1), (81, 2), (80, 2), (122, 3)])
def test_numbers_that_are_none_stay_where_they_are_seen(width: int, stride: int) -> None:
    module = convolution((1, 5, width, 1), (2, 3), strides=(1, stride))
    arguments = given(module, 2)
    arguments["x"][0, 2, 20, 0], arguments["x"][0, 1, -1, 0] = np.nan, np.inf
    arguments["w"][1, 1, 0, 0] = np.inf
    (found,), (expected,) = mind_mlir.compile(module)(**arguments), interpret(module, arguments)
    np.testing.assert_array_equal(found, expected)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    module = convolution((1, 200_000, 1), (300,))
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((1, 200_000, 1), np.float32), rng.standard_normal((300, 1, 1), np.float32)
    one, two = (mind_mlir.compile(module, threads=count)(x, w)[0] for count in (1, 2))
    assert one.tobytes() == two.tobytes()
    expected = np.convolve(x[0, :, 0].astype(np.float64), w[::-1, 0, 0].astype(np.float64), "valid")
    np.testing.assert_allclose(one[0, :, 0], expected, atol=1e-4)


def test_what_lines_refuse_reads_what_has_been_computed_for_them() -> None:
    def function(x: mind_mlir.Array, w: mind_mlir.Array) -> mind_mlir.Array:
        return mnp.convolution(mnp.abs(x) + 1, w)

    rng = np.random.default_rng(3)
    x, w = (rng.integers(-3, 4, each).astype(np.float32) for each in ((1, 9, 8, 1), (3, 3, 1, 1)))
    (expected,) = interpret(convolution(x.shape, (3, 3)), {"x": np.abs(x) + 1, "w": w})
    np.testing.assert_array_equal(np.asarray(mind_mlir.jit(function)(x, w)), expected)
