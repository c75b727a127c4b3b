"""Micro-kernels are machine code once in a process, whichever modules call them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mind_mlir
from mind_mlir.pipeline import Lowering
from mind_mlir.runtime import kernels
from mind_mlir.runtime.native import NativeFunction, NativeModule


def product(m: int, k: int, n: int, dtype: str = "f32") -> mind_mlir.Module:
    return mind_mlir.parse(
        f'%0 = Input {{name="a"}} : tensor<{dtype}[{m}, {k}]>\n'
        f'%1 = Input {{name="b"}} : tensor<{dtype}[{k}, {n}]>\n'
        f"%2 = MatMul (%0, %1) : tensor<{dtype}[{m}, {n}]>\noutputs: %2\n"
    )


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    addresses: dict[str, int] = {}
    monkeypatch.setattr(kernels, "_addresses", addresses)
    return addresses


def test_products_of_other_shapes_share_a_kernel(fresh: dict[str, int]) -> None:
    mind_mlir.compile(product(100, 70, 96))
    made = dict(fresh)
    assert made
    mind_mlir.compile(product(130, 40, 192))
    assert fresh == made
    mind_mlir.compile(product(100, 70, 96, "f64"))
    assert len(fresh) > len(made)


def test_kernels_for_other_targets_are_others(fresh: dict[str, int]) -> None:
    mind_mlir.compile(product(100, 70, 96), target="sse")
    made = len(fresh)
    mind_mlir.compile(product(100, 70, 96), target="sse")
    assert len(fresh) == made
    assert all("sse" in key or "x86-64" in key for key in fresh)


def test_results_are_those_of_kernels_inside_the_module() -> None:
    module = product(33, 65, 49)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((33, 65), np.float32), rng.standard_normal((65, 49), np.float32)
    (expected,) = mind_mlir.compile(module)(a, b)
    lowering = Lowering()
    lowering.run(module)
    native = NativeFunction(NativeModule(lowering.mlir, together=True), entry="main")
    found = np.empty((33, 49), np.float32)
    native.call([array.ctypes.data for array in (a, b, found)])
    assert found.tobytes() == expected.tobytes()


def test_threads_may_make_them_at_the_same_time(fresh: dict[str, int]) -> None:
    a, b = np.ones((40, 50), np.float32), np.ones((50, 48), np.float32)
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda _: mind_mlir.compile(product(40, 50, 48))(a, b), range(8)))
    assert all((result == 50).all() for (result,) in results)
    assert fresh
