"""Products read factors before these are converted: there is no converted copy of them."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import guarded
import ml_dtypes
import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.target import Target

N, K = 160, 224
PRODUCTS: dict[str, Any] = {
    "q @ x": lambda x, q: q.astype("float32") @ x[0],
    "x @ q": lambda x, q: x[0] @ q.T.astype("float32"),
    "x @ q.T": lambda x, q: x[0] @ q.astype("float32").T,
    "row @ q.T": lambda x, q: x[:1] @ q.astype("float32").T,
    "rows @ q.T": lambda x, q: x @ q.astype("float32").T,
    "rows @ transposed": lambda x, q: x @ mnp.reshape(q, (K, N)).astype("float32"),
    "half of q @ x": lambda x, q: (q.astype("float32") * 0.5) @ x[0] * 2,
}


def scratch_of(module: mind_mlir.Module) -> int:
    text = mind_mlir.compile(module, threads=1).as_text("bufferized")
    return int(text.partition("mind.scratch_bytes = ")[2].split()[0])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", PRODUCTS)
def test_results_are_those_of_converted_factors_and_no_copy_is_made(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((3, K)).astype(np.float32)
    q = (rng.standard_normal((N, K)) * 40 + 60).astype(dtype)
    module = mind_mlir.jit(PRODUCTS[name]).lower(x, q).module
    assert scratch_of(module) < N * K
    (found,) = guarded.call_executable(mind_mlir.compile(module), {"x": x, "q": q})
    (expected,) = mind_mlir.interpret(module, {"x": x, "q": q})
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-3)


WORDS = Target(64, 32, fma=True, masks=True, integer_dots=True)
TILES = dataclasses.replace(WORDS, integer_tiles=True)


@pytest.mark.parametrize(
    ("left", "right", "words", "tiles"),
    [
        ("int8", "int8", "words", "tiles"),
        ("uint8", "uint8", "words", "tiles"),
        ("int16", "int16", "words", "words"),
        ("uint8", "int8", "words", "tiles"),
        ("int8", "uint8", "words", "tiles"),
        ("int8", "int16", None, None),
    ],
)
def test_integers_of_few_bits_go_through_instructions_for_these(
    left: str, right: str, words: str | None, tiles: str | None
) -> None:
    def product(x: Any, y: Any) -> Any:
        return x.astype("int32") @ y.astype("int32").T

    rng = np.random.default_rng(3)
    x, y = (rng.integers(-128, 128, (33, 70)).astype(dtype) for dtype in (left, right))
    np.testing.assert_array_equal(mind_mlir.jit(product)(x, y), product(x, y))
    module = mind_mlir.jit(product).lower(x, y).module
    for target, strategy in ((WORDS, words), (TILES, tiles)):
        text = Lowering(target, threads=1).run(module, "schedule")
        assert text is not None
        assert (re.search(f"strategy +{strategy} ", text) is None) is (strategy is None), text
        assert ("Cast" in text) is (strategy is None)


def test_a_factor_with_another_use_is_converted_once() -> None:
    rng = np.random.default_rng(2)
    x, q = rng.standard_normal(K).astype(np.float32), rng.integers(-9, 9, (N, K), dtype=np.int8)

    def both(x: Any, q: Any) -> Any:
        wide = q.astype("float32")
        return wide @ x, mnp.exp(wide)

    found = mind_mlir.jit(both)(x, q)
    np.testing.assert_allclose(found[0], q.astype(np.float32) @ x, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(found[1], np.exp(q.astype(np.float32)), rtol=1e-6)
