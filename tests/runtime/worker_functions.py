"""Functions that tests send to other processes, which import this module and never compile."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import mind_mlir
import mind_mlir.numpy as mnp

#: What nothing loads that calls what has been compiled.
MLIR = ("torch_mlir", "mind_mlir.mlir.bindings")


class Params(NamedTuple):
    w: Any
    b: Any


@mind_mlir.jit
def loss(params: Params, x: Any) -> Any:
    return (mnp.tanh(x @ params.w + params.b) ** 2).mean()


@mind_mlir.jit(static_argnames="times")
def scaled(x: Any, times: int) -> Any:
    return x * times


@mind_mlir.jit(static_argnames="way")
def either(x: Any, way: Any) -> Any:
    return (x.x if hasattr(x, "x") else x) * (1 if way is None else 2)


@mind_mlir.jit(dynamic={"x": {0: "batch"}}, buckets={"batch": [16]})
def normed(x: Any) -> Any:
    return x - x.mean(axis=0)


def plain(x: Any) -> Any:
    return mnp.exp(x).sum(axis=1)


SURFACE = """
fn mean_square(x: Tensor<f32, [n]>) -> f32 {
    mean(x * x, axes = [0])
}
"""
SHARED = """\
%x = Input {name="x"} : tensor<f32[1048576]>
%y = Exp (%x) : tensor<f32[1048576]>
outputs: %y
"""
PTIR = """\
spec_version "ptir.v0.4"
func @main(%x: tensor<f32, ?B>, %y: tensor<f32, ?B>) -> tensor<f32, ?B> {
  %r = add %x, %y -> tensor<f32, ?B>
  return %r
}
"""
CORE = """\
%x = Input {name="x"} : tensor<f32[4, 3]>
%i = Input {name="i"} : tensor<i64[]>
%y = Gather (%x, %i) : tensor<f32[3]>
outputs: %y
"""


def report() -> tuple[int, int, list[str]]:
    """Return which process this is, how often it has compiled, and what of MLIR it has loaded."""
    loaded = [name for name, module in sys.modules.items() if name.startswith(MLIR) and module]
    return os.getpid(), mind_mlir.compilation_count(), loaded


def call(function: Callable[..., Any], *args: Any) -> tuple[Any, tuple[int, int, list[str]]]:
    """Return what a function returns, and the report behind it."""
    results = function(*args)
    for _ in range(150):  # so that calls become native ones
        function(*args)
    return results, report()


def no_bindings() -> None:
    """Let this process have no MLIR bindings."""
    sys.modules["torch_mlir"] = None  # type: ignore[assignment]  # as Python says it


PARAMS = Params(np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5), np.ones(5, np.float32))
X = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)
