"""What type checkers are told of compiled functions: `mypy --strict` reads this file, nothing runs it."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir import grad, jit, value_and_grad, vjp

X: NDArray[np.float32] = np.ones(3, np.float32)
MODULE = mind_mlir.Module.flat([], [])


@jit
def scaled(x: NDArray[np.float32], factor: float = 1.0) -> NDArray[np.float32]:
    return x * np.float32(factor)


@jit(static_argnames="count")
def named(x: NDArray[np.float32], *, count: int) -> tuple[NDArray[np.float32], int]:
    return x, count


@jit(dynamic={"x": {0: "n"}})
def summed(x: NDArray[np.float32], scale: float) -> NDArray[np.float32]:
    return mnp.sum(x) * scale


def loss(params: dict[str, NDArray[np.float32]], x: NDArray[np.float32]) -> NDArray[np.float32]:
    hidden = mnp.tanh(x @ params["w"])
    updated = mnp.concatenate([hidden, hidden]).at[0].set(1)
    return mnp.mean(mnp.linalg.solve(x, updated) ** 2 + mnp.fft.fft(x).real)


class Model:
    @jit
    def run(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        return x

    @jit(opt_level=1)
    def loss(self, x: NDArray[np.float32], weight: float) -> float:
        return weight


assert_type(scaled(X), NDArray[np.float32])
assert_type(scaled(X, factor=2.0), NDArray[np.float32])
assert_type(named(X, count=1), tuple[NDArray[np.float32], int])
assert_type(Model().run(X), NDArray[np.float32])
assert_type(Model().loss(X, 2.0), float)
assert_type(jit(scaled)(X), NDArray[np.float32])
assert_type(mind_mlir.jit(max_signatures=2)(Model().run)(X), NDArray[np.float32])
assert_type(scaled.lower(X), mind_mlir.Lowered)

PARAMS = {"w": X}
assert_type(grad(loss)(PARAMS, x=X), Any)
assert_type(value_and_grad(loss)(PARAMS, X), tuple[NDArray[np.float32], Any])
assert_type(grad(lambda x: mnp.sum(x * x))(X), Any)
assert_type(scaled.grad()(X, factor=2.0), Any)
assert_type(scaled.value_and_grad()(X), tuple[NDArray[np.float32], Any])
assert_type(scaled.grad(("x", "factor"))(X, factor=2.0), Any)
assert_type(Model().run.grad()(X), Any)
assert_type(vjp(loss, PARAMS, X)[0], NDArray[np.float32])
assert_type(scaled.vjp(X, 2.0)[0], NDArray[np.float32])
assert_type(summed(X, 2.0), NDArray[np.float32])
assert_type(summed(X, scale=2.0), NDArray[np.float32])
assert_type(mnp.tanh(X), mnp.Array)
assert_type(mnp.linalg.inv(X), mnp.Array)
assert_type(mind_mlir.numpy.exp(X), mnp.Array)
assert_type(mind_mlir.compile(mind_mlir.verify(MODULE))(X), tuple[NDArray[Any], ...])

scaled(X, "two")  # type: ignore[arg-type]  # that is what is tested
scaled(X, 1.0, 2.0)  # type: ignore[call-arg]  # as above
named(X)  # type: ignore[call-arg]  # as above
Model().loss(X)  # type: ignore[call-arg]  # as above
summed(X)  # type: ignore[call-arg]  # as above
summed(X, [1])  # type: ignore[arg-type]  # as above
grad(loss)(PARAMS)  # type: ignore[call-arg]  # as above
grad(loss)(X, X)  # type: ignore[arg-type]  # as above
value_and_grad(loss)(PARAMS, "x")  # type: ignore[arg-type]  # as above
scaled.grad()(X, "two")  # type: ignore[arg-type]  # as above
scaled.vjp(X, "two")  # type: ignore[arg-type]  # as above
mnp.sum(X, axis="0")  # type: ignore[arg-type]  # as above
mnp.linalg.inv()  # type: ignore[call-arg]  # as above
jit(loss, opt_level="3")  # type: ignore[call-overload]  # as above
