"""Products whose results go past the cache: where they do, and that it changes no bit, aligned or not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from schedule_harness import Array, compiled, function, lowered, random, run, tensor_type

from mind_mlir.target import Target, host_target

#: A quarter of most results here fills the second-level cache.
SMALL = dataclasses.replace(host_target(), l1_bytes=256, l2_bytes=4096)
LARGE = dataclasses.replace(host_target(), l2_bytes=64 << 20)
SHAPES = [(64, 256, 40), (61, 250, 33), (200, 48, 64), (50, 600, 160), (70, 64, 2)]

needs_masks = pytest.mark.skipif(not host_target().masks, reason="only kernels with masks stream")


def program(m: int, n: int, k: int, *, read: bool = False) -> str:
    """Return a product; if it is ``read``, its negation as a second result."""
    left, right, out = (tensor_type(shape, "f32") for shape in ((m, k), (k, n), (m, n)))
    body = f"""
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : {out}
    %fill = linalg.fill ins(%zero : f32) outs(%empty : {out}) -> {out}
    %r = linalg.matmul ins(%a0, %a1 : {left}, {right}) outs(%fill : {out}) -> {out}
"""
    if not read:
        return function([left, right], [out], body, ["%r"])
    body += f"""    %init = tensor.empty() : {out}
    %q = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%r : {out}) outs(%init : {out}) {{
      ^bb0(%x: f32, %o: f32):
        %n = arith.negf %x : f32
        linalg.yield %n : f32
    }} -> {out}
"""
    return function([left, right], [out, out], body, ["%r", "%q"])


def factors(m: int, n: int, k: int) -> tuple[Array, Array]:
    return random((m, k), "f32", 1), random((k, n), "f32", 2)


@needs_masks
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_results_are_the_same_bits(shape: tuple[int, int, int]) -> None:
    left, right = factors(*shape)
    streamed, plain = np.zeros((2, *shape[:2]), np.float32)
    assert "nontemporal" in lowered(program(*shape), SMALL)
    run(program(*shape), [left, right], [streamed], SMALL)
    run(program(*shape), [left, right], [plain], LARGE)
    np.testing.assert_array_equal(streamed, plain)
    np.testing.assert_allclose(streamed, left @ right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("offset", [0, 4, 16, 60])
def test_buffers_that_are_not_aligned(offset: int) -> None:
    left, right = factors(61, 256, 40)
    native = compiled(program(61, 256, 40), SMALL)
    memory = np.zeros(61 * 256 * 4 + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    out = memory[start : start + 61 * 256 * 4].view(np.float32).reshape(61, 256)
    native.call([left.ctypes.data, right.ctypes.data, out.ctypes.data])
    np.testing.assert_allclose(out, left @ right, rtol=1e-4, atol=1e-4)
    assert not memory[:start].any()
    assert not memory[start + out.nbytes :].any()


@needs_masks
def test_other_threads_see_what_went_past_the_cache() -> None:
    assert "llvm.fence" in lowered(program(64, 256, 40), SMALL)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (program(64, 256, 40), LARGE),
        (program(64, 256, 40, read=True), SMALL),
        (program(64, 256, 1000), SMALL),  # in several blocks of steps: each adds to what the last one stored
    ],
    ids=["fits the cache", "read again", "many products"],
)
def test_not_where_results_are_read(text: str, target: Target) -> None:
    assert "_streams" not in lowered(text, target)
