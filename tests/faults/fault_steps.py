"""What a process does with compiled code, step by step; each step says whether its results are right."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXT = """
%x = Input {name="x"} : tensor<f32[96, 96]>
%w = Input {name="w"} : tensor<f32[96, 96]>
%product = MatMul (%x, %w) : tensor<f32[96, 96]>
%exp = Exp (%product) : tensor<f32[96, 96]>
%sum = Sum (%exp) {axes=[1], keepdims=false} : tensor<f32[96]>
outputs: %exp, %sum
"""
X = np.linspace(-1, 1, 96 * 96, dtype=np.float32).reshape(96, 96)
W = np.eye(96, dtype=np.float32) / 2
EXPECTED = np.exp(X @ W)


def right(results: Any) -> bool:
    """Return whether these are the results of the program."""
    product, total = results
    return bool(np.allclose(product, EXPECTED, 1e-4) and np.allclose(total, EXPECTED.sum(1), 1e-4))


@cache
def module() -> mind_mlir.Module:
    """Return the program."""
    return mind_mlir.parse(TEXT, format="core")


def compile_and_call(folder: Path) -> bool:
    """Compile without a cache, and call with more threads than one."""
    return right(mind_mlir.compile(module(), cache=False)(X, W))


def fill_cache(folder: Path) -> bool:
    """Compile what is then kept."""
    return right(mind_mlir.compile(module(), cache=folder / "cache")(X, W))


def read_cache(folder: Path) -> bool:
    """Compile what is kept."""
    return fill_cache(folder)


def call_often(folder: Path) -> bool:
    """Call until native calls are made, and beyond."""
    executable = mind_mlir.compile(module(), cache=folder / "cache")
    return all(right(executable(X, W)) for _ in range(130))


def trace(folder: Path) -> bool:
    """Trace and differentiate a function of Python."""
    function = mind_mlir.jit(mind_mlir.grad(lambda x: mnp.sum(x * x)))
    return bool(np.allclose(function(X), 2 * X, 1e-5))


def write_bundle(folder: Path) -> bool:
    """Package a program, where a package is already."""
    mind_mlir.package(module(), folder / "bundle")
    return right(mind_mlir.load_bundle(folder / "bundle")(X, W))


def read_bundle(folder: Path) -> bool:
    """Load a package and call it."""
    return right(mind_mlir.load_bundle(folder / "bundle")(X, W))


def release(folder: Path) -> bool:
    """Give memory back and change the number of threads."""
    mind_mlir.release_memory()
    mind_mlir.set_num_threads(3)
    try:
        return read_cache(folder)
    finally:
        mind_mlir.set_num_threads(2)


#: What a step needs before.
_BEFORE: dict[Callable[[Path], bool], tuple[Callable[[Path], bool], ...]] = {
    read_cache: (fill_cache,),
    call_often: (fill_cache,),
    release: (fill_cache,),
    write_bundle: (write_bundle,),
    read_bundle: (write_bundle,),
}


def prepare(step: Callable[[Path], bool], folder: Path) -> None:
    """Do what ``step`` needs; nothing fails here."""
    for each in _BEFORE.get(step, ()):
        assert each(folder)


STEPS = (
    compile_and_call,
    fill_cache,
    read_cache,
    call_often,
    trace,
    write_bundle,
    read_bundle,
    release,
)
