"""What type checkers are told of compiled functions: `mypy --strict` reads this file, nothing runs it."""

from __future__ import annotations

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import mind_mlir
from mind_mlir import jit

X: NDArray[np.float32] = np.ones(3, np.float32)


@jit
def scaled(x: NDArray[np.float32], factor: float = 1.0) -> NDArray[np.float32]:
    return x * np.float32(factor)


@jit(static_argnames="count")
def named(x: NDArray[np.float32], *, count: int) -> tuple[NDArray[np.float32], int]:
    return x, count


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

scaled(X, "two")  # type: ignore[arg-type]  # that is what is tested
scaled(X, 1.0, 2.0)  # type: ignore[call-arg]  # as above
named(X)  # type: ignore[call-arg]  # as above
Model().loss(X)  # type: ignore[call-arg]  # as above
