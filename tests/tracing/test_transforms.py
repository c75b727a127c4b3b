"""`grad`, `value_and_grad` and `vjp` of functions of Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import AutodiffError, grad, jit, value_and_grad, vjp
from mind_mlir import numpy as mnp

X = np.array([0.5, -1.25, 2.0])
STEP = 1e-6


def slopes(function: Any, x: Any) -> Any:
    """Return the finite differences of a function of one array."""
    found = np.empty_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = STEP
        found[place] = (function(x + step) - function(x - step)) / (2 * STEP)
    return found


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x**3 / (1 + x * x)).sum(),
        lambda x: (x[::-1] * x[1]).mean(),
        lambda x: mnp.tanh(x @ x.reshape(3, 1)).sum() + abs(x).max(),
        lambda x: mnp.where(x > 0, x * x, 3 * x).sum(),
        lambda x: (x % 0.75 + x // 0.3 * x).sum(),
        lambda x: x[np.array([0, 2, 2])].prod() + x.at[1].set(4.0).sum() + x.at[0].multiply(x[1]).sum(),
        lambda x: jit(lambda y: y * x.sum())(x).sum(),
    ],
)
def test_gradients_are_finite_differences(function: Any) -> None:
    np.testing.assert_allclose(grad(function)(X), slopes(jit(function), X), rtol=1e-5, atol=1e-7)
    within = jit(lambda x: grad(function)(x) * 2)
    np.testing.assert_allclose(within(X), grad(function)(X) * 2)


def test_gradients_of_containers_are_such_containers() -> None:
    def loss(params: Any, x: Any) -> Any:
        return ((x * params["w"] + params["b"][0]) ** 2).sum()

    params = {"w": X, "b": (np.float64(2), np.zeros(2))}
    value, found = value_and_grad(loss)(params, X)
    assert value == ((X * X + 2) ** 2).sum()
    assert list(found) == ["w", "b"]
    np.testing.assert_allclose(found["w"], 2 * X * (X * X + 2))
    np.testing.assert_allclose(found["b"][0], 2 * (X * X + 2).sum())
    np.testing.assert_array_equal(found["b"][1], np.zeros(2))
    both = grad(loss, argnums=(1, "params"))(params, X)
    np.testing.assert_allclose(both[0], 2 * X * (X * X + 2))
    np.testing.assert_allclose(both[1]["w"], found["w"])
    by_name = grad(jit(loss), argnums="x")(params=params, x=X)
    np.testing.assert_allclose(by_name, both[0])


def test_gradients_of_gradients() -> None:
    second = grad(grad(lambda x: x**4))
    np.testing.assert_allclose(second(1.5), 12 * 1.5**2)
    third = grad(lambda x: grad(grad(lambda y: (y**5) * x))(x))
    np.testing.assert_allclose(third(2.0), 20 * 4 * 2.0**3)
    hessian = jit(lambda x: vjp(grad(lambda y: (y**3).sum()), x)[1](mnp.ones_like(x))[0])
    np.testing.assert_allclose(hessian(X), 6 * X)


def test_functions_in_loops_and_branches_read_what_is_around() -> None:
    def f(x: Any) -> Any:
        total = x.sum()

        def body(i: Any, c: Any) -> Any:
            scaled = jit(lambda z: z * total + c.sum())(c)
            return scaled * 0.1 + grad(lambda w: (w * w * total + w * c).sum())(c) * 0.01

        y = mind_mlir.fori_loop(0, 3, body, x)
        z = mind_mlir.cond(total > 0, lambda: jit(lambda q: q * total + y)(y), lambda: y)
        return (z + jit(lambda q: q + total)(x)).sum()

    total, c = X.sum(), X
    for _ in range(3):
        c = (c * total + c.sum()) * 0.1 + (2 * c * total + c) * 0.01
    np.testing.assert_allclose(jit(f)(X), (c * total + c + X + total).sum())
    np.testing.assert_allclose(grad(f)(X), slopes(jit(f), X), rtol=1e-5)


def test_the_pullback_takes_cotangents_of_the_result() -> None:
    def f(x: Any, n: Any, p: Any) -> Any:
        return {"y": x * p["w"], "s": n + 1, "z": [x.sum()]}

    weights = {"w": X + 1}
    found, back = vjp(f, X, np.array(3), weights)
    np.testing.assert_allclose(found["y"], X * (X + 1))
    cotangent: Any = {"y": np.array([1.0, 2, 3]), "s": np.array(0), "z": [np.float64(10)]}
    dx, dn, dp = back(cotangent)
    np.testing.assert_allclose(dx, cotangent["y"] * (X + 1) + 10)
    assert dn is None
    np.testing.assert_allclose(dp["w"], cotangent["y"] * X)

    def traced(x: Any) -> Any:
        y, pull = vjp(lambda a: a * x.sum(), x)
        return pull(y)[0]

    np.testing.assert_allclose(jit(traced)(X), X * X.sum() * X.sum())


def test_gradients_are_compiled_once() -> None:
    seen = []

    def loss(x: Any) -> Any:
        seen.append(x)
        return (x * x).sum()

    for _ in range(5):
        grad(loss)(X)
        value_and_grad(loss, 0)(X)
        value_and_grad(loss, "x")(X)
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: grad(lambda x: x)(X), "E5103"),
        (lambda: grad(lambda x: (x.sum(), x.sum()))(X), "E5103"),
        (lambda: grad(lambda x: x.sum())(np.arange(3)), "E5103"),
        (lambda: grad(lambda x, y: x.sum(), 1)(X, np.arange(3)), "E5005"),
        (lambda: grad(lambda x: (x["a"] * 1.0).sum())({"a": X, "n": 1}), "E5005"),
        (lambda: grad(lambda x, y: y.sum())((), X), "E5005"),
        (lambda: vjp(lambda x: x * 2, X)[1](X[:2]), "E5104"),
        (lambda: vjp(lambda x: x * 2, X)[1]((X,)), "E5104"),
        (lambda: vjp(lambda x: x * 2, X)[1](X.astype(np.float32)), "E5104"),
    ],
)
def test_what_has_no_gradient(call: Any, code: str) -> None:
    with pytest.raises(AutodiffError) as caught:
        call()
    assert caught.value.code == code
    assert caught.value.diagnostics[0].help


@pytest.mark.parametrize(
    ("argnums", "error", "text"),
    [
        (2, ValueError, "argnums must be places of the 2 positional parameters"),
        ("z", ValueError, r"argnums must be parameters \(x, n\)"),
        ((0, 0), ValueError, "argnums must be different arguments"),
        ((), ValueError, "argnums must be different arguments"),
        ("n", ValueError, "no static ones"),
        (1.5, TypeError, "argnums must be an integer, a name, or a sequence of these"),
    ],
)
def test_wrong_argnums(argnums: Any, error: type[Exception], text: str) -> None:
    function = jit(lambda x, n: (x * n).sum(), static_argnames="n")
    with pytest.raises(error, match=text):
        grad(function, argnums)


def test_what_is_no_function() -> None:
    transforms: list[Any] = [grad, value_and_grad, vjp, jit]
    for transform in transforms:
        with pytest.raises(TypeError, match="function must be callable, not the int 3"):
            transform(3)


def test_a_network_learns() -> None:
    random = np.random.default_rng(0)
    params = [(random.standard_normal((4, 8)), np.zeros(8)), (random.standard_normal((8, 1)), np.zeros(1))]
    inputs, targets = random.standard_normal((32, 4)), random.standard_normal((32, 1))

    def loss(params: Any, x: Any, y: Any) -> Any:
        for w, b in params[:-1]:
            x = mnp.maximum(x @ w + b, 0)
        w, b = params[-1]
        return ((x @ w + b - y) ** 2).mean()

    @jit
    def step(params: Any, x: Any, y: Any, rate: Any) -> Any:
        value, gradients = value_and_grad(loss)(params, x, y)
        return value, [
            (w - rate * dw, b - rate * db) for (w, b), (dw, db) in zip(params, gradients, strict=True)
        ]

    first = mind_mlir.jit(loss)(params, inputs, targets)
    for _ in range(60):
        value, params = step(params, inputs, targets, 0.05)
    assert value < first / 2
