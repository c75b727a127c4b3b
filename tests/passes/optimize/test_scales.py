"""Norms behind convolutions become part of their filters, where both are constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.ops.accumulation import roundings

RANDOM = np.random.default_rng(3)
F32 = np.float32


def channels_first(x: Any, w: Any, c: Any, s: Any, m: Any) -> Any:
    shape = (1, -1, 1, 1)
    y = mnp.convolution(x, w.transpose(2, 3, 1, 0)).transpose(0, 3, 1, 2) + c.reshape(shape)
    return mnp.relu((y - m.reshape(shape)) * s.reshape(shape))


def channels_last(x: Any, w: Any, c: Any, s: Any, m: Any) -> Any:
    y = mnp.convolution(x, w.transpose(2, 3, 1, 0), groups=2, strides=(2, 2))
    return s * (y - m) + c


def twice_read(x: Any, w: Any, c: Any, s: Any, m: Any) -> Any:
    y = mnp.convolution(x, w.transpose(2, 3, 1, 0))
    return y * s + y + c + m


def by_pixel(x: Any, w: Any, c: Any, s: Any, m: Any) -> Any:
    y = mnp.convolution(x, w.transpose(2, 3, 1, 0)) + c + m
    return y * s[:7].reshape(1, 7, 1, 1)


@pytest.mark.parametrize(
    ("function", "products", "inputs"),
    [(channels_first, 0, 16), (channels_last, 0, 8), (twice_read, 1, 16), (by_pixel, 1, 16)],
)
def test_a_scale_is_in_the_filter(function: Any, products: int, inputs: int) -> None:
    x = RANDOM.standard_normal((1, 9, 9, 16)).astype(F32)
    w = RANDOM.standard_normal((24, inputs, 3, 3)).astype(F32)
    c, s, m = (RANDOM.standard_normal(24).astype(F32) for _ in range(3))
    module = mind_mlir.jit(function).lower(x, w, c, s, m).module
    constants = {"w": w, "c": c, "s": s, "m": m}
    folded = mind_mlir.compile(module, constants=constants)
    assert folded.as_text("optimized").count(" = Mul ") == products
    (expected,) = mind_mlir.compile(module)(x, w, c, s, m)
    (sizes,) = mind_mlir.compile(module)(*map(abs, (x, w, c, s)), -abs(m))
    unit = np.finfo(F32).eps / 2
    for disabled in ([], ["scales"], ["prepare"]):
        (found,) = mind_mlir.compile(module, constants=constants, disabled_passes=disabled)(x)
        assert (abs(found - expected) <= (2 * roundings(9 * inputs) + 4) * unit * sizes).all()


def test_transposes_of_filters_are_made_when_it_is_compiled() -> None:
    """Those of several elements are constants in their order; others are read through, and nothing moves."""

    def function(x: Any, w: Any, v: Any, u: Any) -> Any:
        for filter_, stride in ((w, 1), (v, 1), (u, 2)):
            x = mnp.convolution(x, filter_.transpose(2, 3, 1, 0), strides=(stride, stride))
        return x

    x = RANDOM.standard_normal((1, 9, 9, 32)).astype(F32)
    w, v, u = (RANDOM.standard_normal((32, 32, size, size)).astype(F32) for size in (3, 1, 1))
    module = mind_mlir.jit(function).lower(x, w, v, u).module
    constant = mind_mlir.compile(module, constants={"w": w, "v": v, "u": u})
    assert ". transposition" not in constant.as_text("schedule")
    assert constant.as_text("optimized").count("Transpose") == 1
    plain = mind_mlir.compile(module)
    assert plain.as_text("schedule").count(". transposition") == 2
    np.testing.assert_allclose(constant(x)[0], plain(x, w, v, u)[0], rtol=1e-4, atol=1e-2)
