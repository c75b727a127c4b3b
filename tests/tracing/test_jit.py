"""`mind_mlir.jit`: what it takes and returns, and how often it traces."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import mind_mlir
from mind_mlir import DType, TensorType, TracingError, VerificationError, jit
from mind_mlir import numpy as mnp

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass(frozen=True)
class Layer:
    w: Any
    b: Any

    @jit
    def apply(self, x: Any) -> Any:
        return x * self.w + self.b


class Scaled:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @jit
    def loss(self, x: Any) -> Any:
        return (x * x).sum() * self.factor


@jit
def doubled(x: Any) -> Any:
    return x + x


def test_containers_come_back_in_the_form_that_is_returned() -> None:
    @jit
    def f(params: Any, pair: Any, *, scale: Any = 2.0) -> Any:
        return {"z": pair.first * scale, "a": [params["w"], (params["b"], None)], "l": Layer(pair.second, 1)}

    for _ in range(120):  # with and without the native calls
        found = f({"b": X + 1, "w": X}, Pair(X, X[0]), scale=3.0)
    assert list(found) == ["z", "a", "l"]
    np.testing.assert_array_equal(found["z"], X * 3)
    np.testing.assert_array_equal(found["a"][1][0], X + 1)
    assert found["a"][1][1] is None
    assert isinstance(found["l"], Layer)
    assert found["l"].b == 1
    names = f.lower({"w": X, "b": X}, Pair(X, X)).compile().parameters
    assert [each.name for each in names] == ["params.b", "params.w", "pair.first", "pair.second", "scale"]


def test_one_array_is_returned_as_an_array_and_a_tuple_as_a_tuple() -> None:
    one, several, in_tuple = jit(lambda x: x + 1), jit(lambda x: (x, x + 1)), jit(lambda x: (x + 1,))
    for _ in range(120):
        np.testing.assert_array_equal(one(X), X + 1)
        first, second = several(X)
        (only,) = in_tuple(X)
        np.testing.assert_array_equal(second, only)
        np.testing.assert_array_equal(first, X)


def test_numbers_take_the_dtype_of_the_array_they_meet() -> None:
    half = X.astype(np.float16)
    assert jit(lambda x, s: x * s)(half, 0.5).dtype == np.float16
    assert jit(lambda x: x * np.sqrt(2) + np.int64(1))(X).dtype == np.float32
    assert jit(lambda x, s: x * s)(X.astype(np.int8), 3).dtype == np.int8
    assert jit(lambda s: s * 2)(1.5).dtype == np.float64
    assert jit(lambda s: s * 2)(1).dtype == np.int64


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "uint8", "complex64", "int16"])
def test_all_dtypes(dtype: str) -> None:
    x = X.astype(np.dtype(dtype))
    found = jit(lambda x: (x + x[:1]) * x)(x)
    np.testing.assert_array_equal(found, (x + x[:1]) * x)
    assert found.dtype == x.dtype


def test_arrays_without_elements() -> None:
    np.testing.assert_array_equal(jit(lambda x: x[:0] * 2)(X), X[:0])
    np.testing.assert_array_equal(jit(lambda x: x + 1)(X[:0]), X[:0])


def test_methods_bind() -> None:
    scaled, layer = Scaled(3.0), Layer(X, X + 1)
    assert scaled.loss(X) == (X * X).sum() * 3
    np.testing.assert_array_equal(scaled.loss.grad()(X), X * 6)
    (back,) = scaled.loss.vjp(X)[1](np.float32(1))
    np.testing.assert_array_equal(back, X * 6)
    np.testing.assert_array_equal(layer.apply(X), X * X + X + 1)
    np.testing.assert_array_equal(Layer(X + 1, X).apply(X), X * (X + 1) + X)


def test_functions_call_functions() -> None:
    @jit
    def quadrupled(x: Any) -> Any:
        return doubled(doubled(x))

    np.testing.assert_array_equal(quadrupled(X), X * 4)
    np.testing.assert_array_equal(jit(doubled)(X), X * 2)
    assert "Call" not in quadrupled.lower(X).as_text("core")


def test_functions_of_both_languages_call_each_other() -> None:
    text = """
    struct Layer { w: Tensor<f32, [n, m]>, b: Tensor<f32, [m]> }
    fn layer(p: Layer, x: Tensor<f32, [k, n]>) -> Tensor<f32, [k, m]> { return twice(matmul(x, p.w) + p.b); }
    """
    program = mind_mlir.parse(text, format="mind", functions={"twice": doubled})
    layer = jit(program, "layer")
    params = {"w": X.T, "b": np.ones(2, np.float32)}
    np.testing.assert_array_equal(layer(params, X), 2 * (X @ X.T + 1))
    loss = jit(lambda p, x: layer(p, x).sum() * 3.0)
    np.testing.assert_allclose(loss.grad()(params, X)["b"], [12, 12])
    assert loss(params, X) == (X @ X.T + 1).sum() * 6
    with pytest.raises(ValueError, match="entry must be left out"):
        jit(doubled, "layer")  # type: ignore[call-overload]  # that is what is tested


def test_functions_read_what_is_around_them() -> None:
    @jit
    def outer(x: Any, y: Any) -> Any:
        scale = x.sum()
        inner = jit(lambda z: z * scale + y)
        first = inner(x)
        scale = scale + 1
        return first, inner(x), jit(lambda z: z * x)(np.float32(3))

    first, second, third = outer(X, X + 1)
    np.testing.assert_array_equal(first, X * 15 + X + 1)
    np.testing.assert_array_equal(second, X * 16 + X + 1)
    np.testing.assert_array_equal(third, X * 3)


def test_two_levels_of_what_is_around() -> None:
    def f(x: Any) -> Any:
        def middle(y: Any) -> Any:
            return jit(lambda z: x * y * z)(y + 1)

        return jit(middle)(x * 2)

    np.testing.assert_array_equal(jit(f)(X), X * (X * 2) * (X * 2 + 1))


def test_numpys_functions_are_ours() -> None:
    def f(x: Any) -> Any:
        return (
            np.sin(x)
            + np.where(x > 2, x, 0)
            + np.sum(x, axis=0)
            + np.maximum(X, x) @ np.ones((3, 3), x.dtype)
        )

    np.testing.assert_allclose(jit(f)(X), f(X), rtol=1e-6)
    with pytest.raises(TracingError, match=r"numpy\.unwrap is not known"):
        jit(np.unwrap)(X)
    with pytest.raises(TracingError, match=r"numpy\.linalg\.eigvals is not known"):
        jit(np.linalg.eigvals)(X)  # type: ignore[arg-type]  # f32 is not a plain matrix to its stubs
    with pytest.raises(TracingError, match=r"numpy\.exp with where= is not known"):
        jit(lambda x: np.exp(x, where=x))(X)
    with pytest.raises(TracingError, match="cannot be written to"):
        jit(lambda x: np.add(x, x, out=np.zeros_like(X)))(X)


def test_exceptions_of_the_function_arrive_unchanged() -> None:
    error = KeyError("mine")

    @jit
    def f(x: Any) -> Any:
        raise error

    for _ in range(2):
        with pytest.raises(KeyError) as caught:
            f(X)
        assert caught.value is error


def test_recursion_ends_where_python_ends_it() -> None:
    def power(x: Any, n: int) -> Any:
        return x if n == 1 else x * power(x, n - 1)

    np.testing.assert_array_equal(jit(power, static_argnames="n")(X, 5), X * (X * (X * (X * X))))

    @jit
    def endless(x: Any) -> Any:
        return endless(x)

    @jit
    def again(x: Any) -> Any:
        return again(np.ones(3)) + x

    for f in (endless, again):
        with pytest.raises(VerificationError, match="calls itself"):
            f(np.ones(3))


def test_threads_trace_once() -> None:
    seen, found = [], []

    @jit
    def f(x: Any) -> Any:
        seen.append(x)
        return x * 2

    def run() -> None:
        found.extend([f(X) for _ in range(100)])

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 1
    assert all(np.array_equal(each, X * 2) for each in found)


def test_records_live_while_they_are_used() -> None:
    """Each call gives the function another native record, while other threads are in native code."""
    f = jit(lambda x: x + x.sum(), max_signatures=1)
    arrays = [np.ones(size, np.float32) for size in (200_000, 150_000)]
    for _ in range(110):
        doubled(X)
    found: list[tuple[float, int]] = []

    def run(array: Any) -> None:
        found.extend([(float(f(array)[0]), array.size) for _ in range(12)])

    threads = [threading.Thread(target=run, args=(array,)) for array in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(total == size + 1 for total, size in found)
    assert len(found) == 24


def test_lower_takes_types_and_shows_stages() -> None:
    lowered = doubled.lower(TensorType(DType.F32, (2, 3)))
    assert f"{lowered}\n" == lowered.as_text("core")
    assert lowered.as_text("core").splitlines()[1] == "%1 = Add (%0, %0) : tensor<f32[2, 3]>"
    np.testing.assert_array_equal(lowered.compile()(x=X)[0], X * 2)
    assert "mind.add" in lowered.as_text("mind")
    with pytest.raises(ValueError, match="stage must be one of"):
        lowered.as_text("nosuch")


def test_the_same_function_is_the_same_text() -> None:
    def f(p: Any) -> Any:
        return {"b": p["a"] @ p["b"], "a": p["a"].sum(0)}

    texts = {jit(f).lower({"a": X, "b": X.T}).as_text() for _ in range(3)}
    assert len(texts) == 1


def test_a_long_program_is_traced_in_linear_time() -> None:
    def chain(x: Any, count: int) -> Any:
        for _ in range(count):
            x = x + 1.0
        return x

    module = jit(chain, static_argnames="count").lower(np.float64(0), 10_000).module
    assert len(module.operations) == 20_001


def test_methods_of_arrays() -> None:
    def f(x: Any) -> Any:
        return [
            x.T, x.ravel(), x.transpose(1, 0), x.swapaxes(0, 1), x[None].squeeze(0), x.max(0), x.min(1),
            x.prod(), x.mean(), x.mean((0, 1), keepdims=True), x.argmax(), x.argmin(1), x.clip(1, 3),
            (x > 2).sum(), (x > 2).any(1), (x >= 0).all(), -x, abs(-x), ~(x > 2), x.size * x, x**3, x**0.5,
            2.0**x, x**-1,
        ]  # fmt: skip

    for found, wanted in zip(jit(f)(X + 1), f(X + 1), strict=True):
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_functions_of_the_package_are_part_of_the_program() -> None:
    np.testing.assert_allclose(jit(mnp.tanh)(X), np.tanh(X), rtol=1e-6)
