"""Functions with open dimensions: one program for a range of extents, with the results of each extent."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.runtime.extent_ranges import range_of
from mind_mlir.runtime.open_function import OpenFunction

SEQ = {"x": {1: "n"}}


def _softmax(x: Any) -> Any:
    e = mnp.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _attention(x: Any) -> Any:
    scores = x @ x.transpose(0, 2, 1)
    i = mnp.arange(x.shape[1])
    return _softmax(mnp.where(i[:, None] >= i[None], scores, np.float32(-np.inf))) @ x


def _recurrent(x: Any) -> Any:
    def step(state: Any, row: Any) -> Any:
        state = mnp.tanh(state + row)
        return state, state * 2

    return mind_mlir.scan(step, mnp.zeros((2, 6), np.float32), x.transpose(1, 0, 2))


def _norm(x: Any) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / mnp.sqrt((centred**2).mean(axis=1, keepdims=True) + np.float32(1e-5))


def _looped(x: Any) -> Any:
    return mind_mlir.fori_loop(0, 3, lambda _, y: y * np.float32(0.5) + y.mean(axis=1, keepdims=True), x)


def _embedded(x: Any) -> Any:
    table = mnp.arange(50).astype("float32").reshape(10, 5)
    return mnp.take(table, (mnp.abs(x[..., 0]) * 3).astype("int32"), axis=0)


FUNCTIONS = {
    "elements": lambda x: mnp.tanh(x) * 2 + x[:, :1],
    "sum": lambda x: (x.sum(axis=1), x.sum(), x.sum(axis=(1, 2), keepdims=True)),
    "mean": lambda x: (x.mean(axis=1), x.mean(), x.var(axis=1)),
    "extremes": lambda x: (x.max(axis=1), x.min(axis=1), x.argmax(axis=1), x.argmin(axis=1)),
    "product of all": lambda x: (x.prod(axis=1), (x > -4).all(axis=1), (x > 2).any(axis=1)),
    "norm": _norm,
    "attention": _attention,
    "product": lambda x: (x.transpose(0, 2, 1) @ x, mnp.einsum("bnd,bne->de", x, x)),
    "reshaped": lambda x: (x.reshape(-1, 6), x.reshape(-1, 6) @ mnp.ones((6, 2), np.float32), x.reshape(-1)),
    "summed after reshape": lambda x: (x.reshape(-1, 6).sum(axis=0), x.reshape(2, -1).max(axis=1)),
    "ends": lambda x: (x[:, 0], x[:, -1], x[:, 1:], x[:, :-1], x[:, -3:-1], x[:, 2:4]),
    "joined": lambda x: (
        mnp.concatenate([x[:, :1], x], axis=1).sum(axis=1),
        mnp.concatenate([x, x[:, :2]], axis=1),
        mnp.stack([x, x], axis=1),
    ),
    "padded": lambda x: (
        mnp.pad(x, ((0, 0), (1, 2), (0, 0))),
        mnp.pad(x, ((0, 0), (2, 0), (1, 0))).max(axis=1),
    ),
    "differences": lambda x: (x[:, 1:] - x[:, :-1]).sum(axis=1),
    "positions": lambda x: x + mnp.arange(x.shape[1])[:, None].astype("float32"),
    "made": lambda x: mnp.ones((x.shape[1], 3), np.float32) * x.shape[1],
    "integers": lambda x: (x * 9).astype("int32") // (mnp.abs(x * 5).astype("int32") + 1),
    "table": _embedded,
    "sorted along another axis": lambda x: mnp.sort(x, axis=-1),
    "loop": _looped,
    "scan": _recurrent,
    "masked": lambda x: mnp.where(x > 0, x, 0).sum(axis=1) / mnp.maximum((x > 0).sum(axis=1), 1),
    "branch": lambda x: mind_mlir.cond(x.sum() > 0, lambda: x * 2, lambda: -x),
}


def _array(extent: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((2, extent, 6)).astype(np.float32)


def _leaves(result: Any) -> Any:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_each_extent(name: str) -> None:
    exact, opened = mind_mlir.jit(FUNCTIONS[name]), mind_mlir.jit(FUNCTIONS[name], dynamic=SEQ)
    for extent in (9, 13, 16):
        x = _array(extent, extent)
        for wanted, found in zip(_leaves(exact(x)), _leaves(opened(x)), strict=True):
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)
    assert opened.compiled == 1


def test_twenty_lengths_are_one_compilation() -> None:
    opened = mind_mlir.jit(_attention, dynamic=SEQ, buckets={"n": [64]})
    exact = mind_mlir.jit(_attention)
    for extent in range(30, 50):
        np.testing.assert_allclose(opened(_array(extent)), exact(_array(extent)), rtol=1e-4, atol=1e-5)
    assert opened.compiled == 1


def test_two_open_dimensions_and_weights() -> None:
    def layer(x: Any, w: Any) -> Any:
        y = mnp.maximum(x @ w, 0)
        return y, y.mean(axis=(0, 1)), y.sum(axis=0)

    opened = mind_mlir.jit(layer, dynamic={"x": {0: "batch", 1: "n"}})
    exact = mind_mlir.jit(layer)
    w = np.random.default_rng(1).standard_normal((6, 3)).astype(np.float32)
    for batch, extent in ((5, 9), (7, 16), (2, 10), (1, 1), (3, 12)):
        x = np.random.default_rng(batch).standard_normal((batch, extent, 6)).astype(np.float32)
        for wanted, found in zip(exact(x, w), opened(x, w), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_gradients() -> None:
    def loss(x: Any, w: Any) -> Any:
        return (_attention(x @ w) ** 2).mean() + _norm(x @ w).sum()

    w = np.random.default_rng(1).standard_normal((6, 6)).astype(np.float32) / 4
    exact = mind_mlir.jit(loss).value_and_grad((0, 1))
    opened = mind_mlir.jit(loss, dynamic=SEQ).value_and_grad((0, 1))
    assert isinstance(opened, OpenFunction)
    for extent in (9, 14):
        value, (dx, dw) = opened(_array(extent), w)
        wanted, (wanted_dx, wanted_dw) = exact(_array(extent), w)
        np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(dx, wanted_dx, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(dw, wanted_dw, rtol=1e-4, atol=1e-4)


@mind_mlir.jit(dynamic={"x": {0: "n"}})
def _energy(x: Any) -> Any:
    """Return a number."""
    return (x**2).sum() / x.shape[0]


def test_it_is_a_function_as_others_are() -> None:
    x = np.arange(12.0)
    np.testing.assert_allclose(mind_mlir.grad(_energy)(x), 2 * x / 12)
    assert isinstance(mind_mlir.grad(_energy), OpenFunction)
    value, pull = mind_mlir.vjp(_energy, x)
    np.testing.assert_allclose(pull(np.float64(1))[0], 2 * x / 12)
    np.testing.assert_allclose(value, (x**2).mean())
    np.testing.assert_allclose(mind_mlir.jit(lambda y: _energy(y) * 2)(x), 2 * (x**2).mean())
    assert pickle.loads(pickle.dumps(_energy)) is _energy  # noqa: S301 -- it is what was pickled here
    assert (_energy.__name__, _energy.__doc__) == ("_energy", "Return a number.")

    class Holder:
        scale = 2.0

        @mind_mlir.jit(dynamic={"x": {0: "n"}})
        def scaled(self, x: Any) -> Any:
            return x * self.scale

    with pytest.raises(mind_mlir.TracingError, match="self"):
        Holder().scaled(x)


def test_padding_of_any_value_stays_out() -> None:
    """What lies beyond an array may become infinite or no number: it is in no result."""

    def function(x: Any) -> Any:
        y = 1 / x  # infinite in the padding
        return (y - y).sum(axis=1), (y / y).max(axis=1), mnp.log(x).mean(axis=1), y @ y.transpose(0, 2, 1)

    x = np.abs(_array(10)) + 1
    for wanted, found in zip(
        mind_mlir.jit(function)(x), mind_mlir.jit(function, dynamic=SEQ)(x), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_surface_programs() -> None:
    program = mind_mlir.parse(
        "fn f(x: Tensor<f32, [n, 3]>) -> Tensor<f32, [3]> { mean(x, axes=[0]) }", format="mind"
    )
    opened = mind_mlir.jit(program, dynamic={"x": {0: "n"}})
    for extent in (9, 16):
        x = _array(extent)[0, :, :3]
        np.testing.assert_allclose(opened(x), x.mean(axis=0), rtol=1e-5)
    assert opened.compiled == 1


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda x: mnp.sort(x, axis=1), "works along an open dimension"),
        (lambda x: mnp.flip(x, axis=1), "grow as one open dimension"),
        (lambda x: x.reshape(2, 2, -1, 6) if x.shape[1] % 2 == 0 else x, "other"),
    ],
)
def test_what_has_no_rule_is_said(function: Any, what: str) -> None:
    with pytest.raises(mind_mlir.UnsupportedError) as caught:
        mind_mlir.jit(function, dynamic=SEQ)(_array(10))
    (finding,) = caught.value.diagnostics
    assert finding.code == "E7001"
    assert what in finding.message
    assert "dynamic=" in (finding.help or "")


def test_the_program_of_a_range_goes_anywhere() -> None:
    opened = mind_mlir.jit(_attention, dynamic=SEQ)
    lowered = opened.lower(_array(13))
    executable = mind_mlir.compile(lowered.module)
    assert [(each.name, each.type.extents) for each in executable.parameters] == [
        ("x", (2, 16, 6)),
        ("n", ()),
    ]
    x = np.zeros((2, 16, 6), np.float32)
    x[:, :13] = _array(13)
    (found,) = executable(x, np.int64(13))
    np.testing.assert_allclose(found[:, :13], opened(_array(13)), rtol=1e-6)


def test_mistakes() -> None:
    def add(x: Any, y: Any) -> Any:
        return x + y

    opened = mind_mlir.jit(add, dynamic={"x": {0: "n"}, "y": {0: "n"}})
    with pytest.raises(mind_mlir.ArgumentError, match="E6107"):
        opened(np.ones(5), np.ones(6))
    with pytest.raises(mind_mlir.ArgumentError, match="E6104"):
        opened(np.float64(1), np.ones(6))
    with pytest.raises(mind_mlir.ArgumentError, match="E6101"):
        mind_mlir.jit(add, dynamic={"z": {0: "n"}})(np.ones(5), np.ones(5))
    with pytest.raises(TypeError):
        mind_mlir.jit(add, dynamic=["x"])  # type: ignore[call-overload]  # what is tested
    with pytest.raises(ValueError, match="buckets"):
        mind_mlir.jit(add, dynamic={"x": {0: "n"}}, buckets={"m": [4]})
    with pytest.raises(ValueError, match="buckets"):
        mind_mlir.jit(add, buckets={"m": [4]})  # type: ignore[call-overload]  # what is tested
    with pytest.raises(ValueError, match="0 or more"):
        mind_mlir.jit(add, dynamic={"x": {-1: "n"}})


def test_ranges_cover_all_extents() -> None:
    ranges = [range_of(extent) for extent in range(5000)]
    for extent, (first, last) in enumerate(ranges):
        assert first <= extent <= last
        assert ranges[first] == range_of(last) == (first, last)
        assert last <= 32 or last * 8 <= (first - 1) * 9
    ends = [range_of(extent, [32, 100]) for extent in (5, 33, 100, 101, 129)]
    assert ends == [(4, 32), (33, 100), (33, 100), (101, 104), (129, 144)]


def test_padding_that_is_known_is_not_filled_again() -> None:
    def weights(x: Any) -> Any:
        return _softmax(x @ x.transpose(0, 2, 1)) @ x

    text = str(mind_mlir.jit(weights, dynamic=SEQ).lower(_array(13)))
    assert text.count("Select") == 1  # of the scores; what is zero stays zero
    opened, exact = mind_mlir.jit(weights, dynamic=SEQ), mind_mlir.jit(weights)
    for factor in (1, 0, np.inf, -np.inf, np.nan):
        x = _array(13) * np.float32(factor)
        np.testing.assert_allclose(opened(x), exact(x), rtol=1e-4, atol=1e-5)


def test_sums_of_rows_and_columns_know_their_padding() -> None:
    def outer(x: Any) -> Any:
        row = x[0, :, 0]
        return (row[:, None] + row[None]).sum(axis=0), (row[:, None] * row[None]).max(axis=1)

    for wanted, found in zip(
        mind_mlir.jit(outer)(_array(11)), mind_mlir.jit(outer, dynamic=SEQ)(_array(11)), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
