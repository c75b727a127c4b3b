"""Transposes move behind what can be computed without them: by convolutions, and where that moves less."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    from collections.abc import Callable

_F32 = np.float32
_FRONT, _LAST = (0, 3, 1, 2), (0, 2, 3, 1)


def conv(x: Any, w: Any, groups: int = 1) -> Any:
    """Return a convolution of an image and filters with channels in front."""
    pads = {"padding_low": (1, 1), "padding_high": (1, 1)} if w.shape[-1] == 3 else {}
    form: dict[str, Any] = {"groups": groups, **pads}
    return mnp.transpose(
        mnp.convolution(mnp.transpose(x, _LAST), mnp.transpose(w, (2, 3, 1, 0)), **form), _FRONT
    )


def pooled(x: Any, kind: Any = "Max") -> Any:
    ones, none, two = (1,) * 4, (0,) * 4, (1, 1, 2, 2)
    lists: dict[str, Any] = {"padding_low": none, "padding_high": none}
    lists |= {"base_dilation": ones, "window_dilation": ones, "reduce": kind}
    return mnp.reduce_window(x, window_dims=two, strides=two, **lists)


def _layers(x: Any, w: Any, s: Any) -> Any:
    """A residual block with a scale for each channel, and a pooling."""
    y = mnp.maximum(conv(x, w) * s.reshape(1, -1, 1, 1) + _F32(0.5), _F32(0))
    return pooled(mnp.maximum(conv(y, w) + y, _F32(0)))


def _gate(x: Any, w: Any, s: Any) -> Any:
    """Squeeze and excitation, with 1 x 1 convolutions of means."""
    y = conv(x, w)
    gate = conv(mnp.mean(y, axis=(2, 3), keepdims=True), w[:, :, 1:2, 1:2])
    return conv(y * mnp.logistic(gate), w) + s.reshape(8, 1, 1)


def _joined(x: Any, w: Any, s: Any) -> Any:
    """What is joined and cut along the channels, and padded along height."""
    y = conv(x, w)
    y = mnp.concatenate([y, mnp.tanh(y)], axis=1)[:, 3:11, 1:, ::2]
    y = mnp.pad(y, ((0, 0), (0, 0), (1, 0), (0, 0)))
    return conv(y, w) * s.reshape(1, 8, 1, 1)


def _tokens(x: Any, w: Any, s: Any) -> Any:
    """Pixels as rows, as transformers take them."""
    y = mnp.transpose(mnp.reshape(conv(x, w), (2, 8, -1)), (0, 2, 1))
    return y * s


def _normal(x: Any, w: Any, s: Any) -> Any:
    """Each pixel less the mean of its channels, between convolutions."""
    y = conv(x, w)
    y = (y - mnp.mean(y, axis=1, keepdims=True)) * s.reshape(8, 1, 1)
    return conv(y, w)


def _block(x: Any, w: Any, s: Any) -> Any:
    """A matrix product of each pixel's channels, and a residual, as ConvNeXt has it."""
    x = conv(x, w)
    y = mnp.transpose(conv(x, w), _LAST) @ w[:, :, 0, 0] + s
    return conv(mnp.transpose(mnp.tanh(y), _FRONT) * s.reshape(8, 1, 1) + x, w)


_NETWORKS = {each.__name__: each for each in (_layers, _gate, _joined, _tokens, _normal, _block)}


def transposes(text: str, size: int) -> int:
    """Return how many transposes of so many elements and more there are."""
    found = 0
    for line in text.splitlines():
        if " = Transpose " in line:
            shape = line[line.rindex("[") + 1 : line.rindex("]")]
            found += int(np.prod([int(extent) for extent in shape.split(",")])) >= size
    return found


@pytest.mark.parametrize(
    ("network", "left"),
    # The input, and the result where that is an image.
    [("_layers", 2), ("_gate", 2), ("_joined", 2), ("_tokens", 1), ("_normal", 2), ("_block", 2)],
)
def test_transposes_between_convolutions_go(network: str, left: int) -> None:
    rng = np.random.default_rng(1)
    shapes = (2, 8, 12, 16), (8, 8, 3, 3), (8,)
    x, w, s = (rng.standard_normal(shape).astype(_F32) for shape in shapes)
    function: Callable[..., Any] = _NETWORKS[network]
    moved, plain = (mind_mlir.jit(function, disabled_passes=off) for off in ((), ("layouts",)))
    text = moved.lower(x, w, s).as_text("optimized")
    assert transposes(text, 600) == left, text
    np.testing.assert_allclose(moved(x, w, s), plain(x, w, s), rtol=1e-4, atol=1e-4)


def test_gradients_agree() -> None:
    rng = np.random.default_rng(3)
    shapes = (2, 8, 8, 8), (8, 8, 3, 3), (8,)
    x, w, s = (rng.standard_normal(shape) for shape in shapes)

    def loss(x: Any, w: Any, s: Any) -> Any:
        y = mnp.tanh(conv(x, w) * s.reshape(1, -1, 1, 1))
        return mnp.sum(pooled(conv(y, w) + y, "Sum") ** 2)

    gradient = mind_mlir.grad(loss, argnums=(0, 1, 2))
    moved, plain = (mind_mlir.jit(gradient, disabled_passes=off) for off in ((), ("layouts",)))
    for one, other in zip(moved(x, w, s), plain(x, w, s), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


def _turned(x: Any) -> Any:
    return mnp.transpose(x)


def _variance(x: Any) -> Any:
    return mnp.var(_turned(x), axis=0), mnp.argmax(_turned(x), axis=1, keepdims=True)


def _scores(x: Any) -> Any:
    """What several readings share, and two transposes of equal order."""
    y = mnp.exp(_turned(x) - mnp.max(_turned(x), axis=1, keepdims=True))
    return mnp.sum(y * _turned(x), axis=1), mnp.prod(mnp.tanh(y), axis=0)


_FEWER: dict[str, tuple[Callable[[Any], Any], int]] = {
    "sum": (lambda x: mnp.sum(_turned(x), axis=1), 0),
    "sum of all": (lambda x: mnp.sum(_turned(x)), 0),
    "least": (lambda x: mnp.argmin(_turned(x), axis=0), 0),
    "variance": (_variance, 0),
    "scores": (_scores, 0),
    "there and back": (lambda x: _turned(mnp.where(_turned(x) > 0, _turned(x), _F32(3))), 0),
    "rows of a scan": (lambda x: _turned(mnp.cumsum(_turned(x), axis=1)[1:]), 0),
    "planes": (lambda x: mnp.max(x.reshape(16, 20, 30).transpose(2, 0, 1), axis=2), 0),
    "a part": (lambda x: mnp.exp(_turned(x))[3:5], 0),
    # As much is transposed then as before, or more.
    "softmax": (lambda x: mnp.exp(_turned(x)) / mnp.sum(mnp.exp(_turned(x)), axis=1, keepdims=True), 1),
    "read": (lambda x: (mnp.sum(_turned(x), axis=1), _turned(x)), 1),
    "one of two": (lambda x: mnp.sum(_turned(x) * mnp.reshape(x, (30, 320)), axis=1), 1),
    "few columns": (lambda x: mnp.sum(_turned(mnp.reshape(x, (-1, 4))) ** 2, axis=1), 1),
}


@pytest.mark.parametrize("name", _FEWER)
def test_transposes_move_where_fewer_elements_are_transposed(name: str) -> None:
    function, left = _FEWER[name]
    x = np.random.default_rng(5).standard_normal((320, 30)).astype(_F32)
    x[3, 7], x[17, 0], x[18, 1], x[4, 29] = np.inf, np.nan, -0.0, -np.inf
    moved, plain = (mind_mlir.jit(function, disabled_passes=off) for off in ((), ("layouts",)))
    text = moved.lower(x).as_text("optimized")
    assert transposes(text, 2000) == left, text
    for one, other in zip(as_tuple(moved(x)), as_tuple(plain(x)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_scans_along_rows_become_scans_along_columns() -> None:
    x = np.arange(600, dtype=np.int32).reshape(20, 30)
    for axis, first in ((1, "Cumulate"), (0, "Transpose")):
        function = mind_mlir.jit(_scan, static_argnames="axis")
        text = function.lower(x, axis=axis).as_text("optimized")
        assert min(("Transpose", "Cumulate"), key=lambda name: text.index(f" = {name} ")) == first
        np.testing.assert_array_equal(function(x, axis=axis), np.cumsum(x.T, axis=axis))


def _scan(x: Any, *, axis: int) -> Any:
    return mnp.cumsum(_turned(x), axis=axis)


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def test_heads_of_attention_stay_as_they_are() -> None:
    def attention(q: Any, k: Any) -> Any:
        turned = mnp.transpose(mnp.reshape(q, (16, 4, 8)), (1, 0, 2)) * _F32(0.5)
        return turned @ mnp.transpose(mnp.reshape(k, (16, 4, 8)), (1, 2, 0))

    q = np.ones((16, 32), _F32)
    found, plain = (
        mind_mlir.jit(attention, disabled_passes=off).lower(q, q).as_text("optimized")
        for off in ((), ("layouts",))
    )
    assert found == plain


def test_filters_with_channels_in_front_are_transposed_as_matrices() -> None:
    """Packing would else read rows of three elements of them."""
    x, w = np.ones((1, 8, 8, 64), _F32), np.ones((32, 64, 3, 3), _F32)
    function = mind_mlir.jit(lambda x, w: mnp.convolution(x, mnp.transpose(w, (2, 3, 1, 0))))
    text = function.lower(x, w).as_text("schedule")
    assert "transposition 576 x 32" in text
    assert ". fused" not in text
    rng = np.random.default_rng(7)
    x, w = (rng.integers(-3, 4, each.shape).astype(_F32) for each in (x, w))
    last = np.ascontiguousarray(w.transpose(2, 3, 1, 0))
    plain = mind_mlir.jit(lambda x, w: mnp.convolution(x, w) * _F32(1))
    expected = plain(x, last)
    np.testing.assert_array_equal(function(x, w), expected)


def test_pictures_are_computed_along_their_rows() -> None:
    """What follows a convolution of three features is not along these: vectors would be empty."""

    def picture(x: Any, w: Any) -> Any:
        y = mnp.convolution(x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0))
        return mnp.tanh(y.transpose(0, 3, 1, 2) + 1)

    rng = np.random.default_rng(1)
    for features, first in ((3, "Transpose"), (8, "Tanh")):
        x, w = (rng.standard_normal(shape).astype(_F32) for shape in ((1, 8, 18, 18), (features, 8, 3, 3)))
        text = mind_mlir.jit(picture).lower(x, w).as_text("optimized").split(" = Convolution ")[1]
        assert min(("Transpose", "Tanh"), key=lambda name: text.index(f" = {name} ")) == first
