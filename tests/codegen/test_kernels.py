"""Micro-kernels are machine code once in a process, whichever modules call them."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pytest
from native_code import native_function

import mind_mlir
from mind_mlir.codegen import ahead, kernels
from mind_mlir.lowering.kernels.library import declared_kernels
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.lowering.to_llvm import linked
from mind_mlir.target import Target, named_target

if TYPE_CHECKING:
    from mind_mlir.codegen.library import NativeCode
    from mind_mlir.lowering.kernels.library import Kernel

    Codes: TypeAlias = dict[tuple[Kernel, Target], NativeCode]


def product(m: int, k: int, n: int, dtype: str = "f32") -> mind_mlir.Module:
    return mind_mlir.parse(
        f'%0 = Input {{name="a"}} : tensor<{dtype}[{m}, {k}]>\n'
        f'%1 = Input {{name="b"}} : tensor<{dtype}[{k}, {n}]>\n'
        f"%2 = MatMul (%0, %1) : tensor<{dtype}[{m}, {n}]>\noutputs: %2\n",
        format="core",
    )


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Codes:
    codes: Codes = {}
    monkeypatch.setattr(kernels, "_codes", codes)
    return codes


def test_products_of_other_shapes_share_a_kernel(fresh: Codes) -> None:
    mind_mlir.compile(product(100, 70, 128))
    made = dict(fresh)
    assert made
    mind_mlir.compile(product(130, 40, 192))
    assert fresh == made
    mind_mlir.compile(product(100, 70, 128, "f64"))
    assert len(fresh) > len(made)


def test_kernels_for_other_targets_are_others(fresh: Codes) -> None:
    mind_mlir.compile(product(100, 70, 96), target="sse")
    made = len(fresh)
    mind_mlir.compile(product(100, 70, 96), target="sse")
    assert len(fresh) == made
    mind_mlir.compile(product(100, 70, 96), target=None)
    assert {target.cpu for _, target in fresh} == {"x86-64", named_target().cpu}


def test_results_are_those_of_kernels_inside_the_module() -> None:
    module = product(33, 65, 49)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((33, 65), np.float32), rng.standard_normal((65, 49), np.float32)
    (expected,) = mind_mlir.compile(module)(a, b)
    lowering = Lowering()
    lowering.run(module)
    native = native_function(linked(lowering.mlir, named_target()))
    found = np.empty((33, 49), np.float32)
    native.call([array.ctypes.data for array in (a, b, found)])
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("shape", [(40, 50, 48), (3, 700, 40), (300, 520, 1030), (2000, 300, 130)], ids=str)
@pytest.mark.parametrize("dtype", ["f32", "i64"])
@pytest.mark.parametrize("flip", ["a", "b"])
def test_they_are_known_when_the_module_is_scheduled(
    shape: tuple[int, int, int], dtype: str, flip: str
) -> None:
    """Else their code would be begun late, or in vain."""
    m, k, n = shape
    left, right = ((k, m), (k, n)) if flip == "a" else ((m, k), (n, k))
    turned = left if flip == "a" else right
    operands = "(%2, %1)" if flip == "a" else "(%0, %2)"
    module = mind_mlir.parse(
        f'%0 = Input {{name="a"}} : tensor<{dtype}[{left[0]}, {left[1]}]>\n'
        f'%1 = Input {{name="b"}} : tensor<{dtype}[{right[0]}, {right[1]}]>\n'
        f"%2 = Transpose (%{0 if flip == 'a' else 1}) {{permutation=[1, 0]}}"
        f" : tensor<{dtype}[{turned[1]}, {turned[0]}]>\n"
        f"%3 = MatMul {operands} : tensor<{dtype}[{m}, {n}]>\noutputs: %3\n"
    )
    told: list[Kernel] = []
    lowering = Lowering(kernels=told.extend)
    lowering.run(module)
    assert {kernel for _, kernel in declared_kernels(lowering.mlir)} == set(told)
    assert told


def test_threads_may_make_them_at_the_same_time(fresh: Codes) -> None:
    a, b = np.ones((40, 50), np.float32), np.ones((50, 48), np.float32)
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda _: mind_mlir.compile(product(40, 50, 48))(a, b), range(8)))
    assert all((result == 50).all() for (result,) in results)
    assert fresh


@pytest.mark.parametrize("cores", [1, 2])
def test_results_are_the_same_whoever_makes_them(
    fresh: Codes, monkeypatch: pytest.MonkeyPatch, cores: int
) -> None:
    monkeypatch.setattr(ahead, "usable_cores", lambda: cores)
    a, b = np.full((40, 50), 2, np.float32), np.ones((50, 48), np.float32)
    assert (mind_mlir.compile(product(40, 50, 48))(a, b)[0] == 100).all()
    assert fresh


def test_a_process_may_have_no_more_threads(fresh: Codes, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ahead, "usable_cores", lambda: 2)
    monkeypatch.setattr(ahead, "start_new_thread", fail)
    a, b = np.full((40, 50), 2, np.float32), np.ones((50, 48), np.float32)
    assert (mind_mlir.compile(product(40, 50, 48))(a, b)[0] == 100).all()
    assert fresh


def test_the_llvm_form_holds_kernels_whatever_the_process_has(fresh: Codes) -> None:
    executable = mind_mlir.compile(product(40, 50, 48))
    assert fresh
    text = executable.as_text("llvm")
    fresh.clear()
    seen: dict[str, str] = {}
    mind_mlir.compile(product(40, 50, 48), observer=lambda stage, text: seen.update({stage: text()}))
    assert seen["llvm"] == text
    assert "llvm.func internal @mind_product_" in text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_waits_for_the_threads(fresh: Codes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "usable_cores", lambda: 2)
    release = threading.Timer(0.2, lambda: None)
    with ahead.making:
        release.start()
        ahead.Ahead(release.join)
    child = os.fork()
    if child == 0:
        a, b = np.full((40, 50), 2, np.float32), np.ones((50, 48), np.float32)
        os._exit(int(mind_mlir.compile(product(40, 50, 48))(a, b)[0][0, 0]))
    assert not release.is_alive()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 100
