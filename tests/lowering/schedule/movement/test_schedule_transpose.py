"""Transposes, alone and in front of products."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from schedule_harness import DTYPES, Array, bufferized, function, lowered, run, scheduled, tensor_type

from mind_mlir.target import Target, host_target

CASES = [
    ((64, 64), (1, 0)),
    ((37, 50), (1, 0)),
    ((100, 3), (1, 0)),
    ((3, 100), (1, 0)),
    ((2, 2), (1, 0)),
    ((1, 9), (1, 0)),
    ((9, 1), (1, 0)),
    ((0, 9), (1, 0)),
    ((5, 20, 33), (0, 2, 1)),
    ((5, 20, 33), (2, 1, 0)),
    ((5, 20, 33), (1, 0, 2)),
    ((5, 20, 33), (2, 0, 1)),
    ((2, 3, 17, 19), (0, 2, 1, 3)),
    ((2, 3, 17, 19), (3, 1, 0, 2)),
    ((4, 1, 17), (2, 1, 0)),
]


def numbers(shape: tuple[int, ...], dtype: str) -> Array:
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    return values.astype(DTYPES[dtype]) if dtype != "i1" else values % 3 == 0


def transpose(
    name: str, source: str, shape: tuple[int, ...], permutation: tuple[int, ...], dtype: str
) -> str:
    before = tensor_type(shape, dtype)
    after = tensor_type([shape[p] for p in permutation], dtype)
    return f"""
    %{name}_init = tensor.empty() : {after}
    %{name} = linalg.transpose ins({source} : {before}) outs(%{name}_init : {after})
      permutation = {list(permutation)}"""


@pytest.mark.parametrize(("shape", "permutation"), CASES, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_transpose(shape: tuple[int, ...], permutation: tuple[int, ...], dtype: str) -> None:
    types = [tensor_type(shape, dtype), tensor_type([shape[p] for p in permutation], dtype)]
    x = numbers(shape, dtype)
    out: Array = np.full([shape[p] for p in permutation], -1, DTYPES[dtype])
    text = function(types[:1], types[1:], transpose("r", "%a0", shape, permutation, dtype), ["%r"])
    run(text, [x], [out])
    np.testing.assert_array_equal(out, x.transpose(permutation))
    assert "memref.copy" not in bufferized(text)


@pytest.mark.parametrize("dtype", ["i1", "i32"])
@pytest.mark.parametrize("target", [None, Target()], ids=["host", "sse"])
def test_other_types_and_targets(dtype: str, target: Target | None) -> None:
    shape = (19, 6)
    types = [tensor_type(shape, dtype), tensor_type(shape[::-1], dtype)]
    x, out = numbers(shape, dtype), np.zeros(shape[::-1], DTYPES[dtype])
    run(
        function(types[:1], types[1:], transpose("r", "%a0", shape, (1, 0), dtype), ["%r"]),
        [x],
        [out],
        target,
    )
    np.testing.assert_array_equal(out, x.T)


@pytest.mark.parametrize("shape", [(512, 70), (512, 64), (3, 544, 17), (2, 512, 140)], ids=str)
def test_results_that_exceed_the_caches(shape: tuple[int, ...]) -> None:
    """They are written past the cache, a few columns of the source at a time."""
    small = dataclasses.replace(host_target(), l1_bytes=64, l2_bytes=64, l3_bytes=64)
    permutation = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    turned = tuple(shape[p] for p in permutation)
    x, out = numbers(shape, "f32"), np.zeros(turned, np.float32)
    types = [tensor_type(shape, "f32"), tensor_type(turned, "f32")]
    text = function(types[:1], types[1:], transpose("r", "%a0", shape, permutation, "f32"), ["%r"])
    assert "nontemporal" in lowered(text, small)
    run(text, [x], [out], small)
    np.testing.assert_array_equal(out, x.transpose(permutation))


@pytest.mark.parametrize("target", [host_target(), Target(32, 16), Target()], ids=["host", "avx2", "sse"])
@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
@pytest.mark.parametrize("dtype", ["i8", "i16"])
@pytest.mark.parametrize("shape", [(130, 77), (16, 300)], ids=str)
def test_narrow_numbers_in_squares_side_by_side(
    shape: tuple[int, int], dtype: str, far: bool, target: Target
) -> None:
    target = dataclasses.replace(target, l2_bytes=64) if far else target
    types = [tensor_type(shape, dtype), tensor_type(shape[::-1], dtype)]
    x, out = numbers(shape, dtype), np.zeros(shape[::-1], DTYPES[dtype])
    text = function(types[:1], types[1:], transpose("r", "%a0", shape, (1, 0), dtype), ["%r"])
    run(text, [x], [out], target)
    np.testing.assert_array_equal(out, x.T)


def product(left: str, right: str, m: int, n: int, k: int) -> str:
    types = [tensor_type(shape, "f32") for shape in ((m, k), (k, n), (m, n))]
    return f"""
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : {types[2]}
    %fill = linalg.fill ins(%zero : f32) outs(%empty : {types[2]}) -> {types[2]}
    %r = linalg.matmul ins({left}, {right} : {types[0]}, {types[1]}) outs(%fill : {types[2]}) -> {types[2]}"""


@pytest.mark.parametrize("shape", [(20, 33, 40), (1, 30, 50), (30, 1, 50), (130, 70, 90)], ids=str)
def test_products_read_through_transposes(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    types = [tensor_type(s, "f32") for s in ((k, m), (n, k), (m, n))]
    body = transpose("x", "%a0", (k, m), (1, 0), "f32") + transpose("y", "%a1", (n, k), (1, 0), "f32")
    body += product("%x", "%y", m, n, k)
    x, y = np.sin(numbers((k, m), "f32")), np.cos(numbers((n, k), "f32"))
    out = np.zeros((m, n), np.float32)
    text = function(types[:2], types[2:], body, ["%r"])
    assert "linalg.transpose" not in scheduled(text)
    assert "linalg." not in bufferized(text)
    run(text, [x, y], [out])
    np.testing.assert_allclose(out, x.T @ y.T, rtol=1e-4, atol=1e-4)


def test_transpose_with_another_user_is_computed() -> None:
    m, n, k = 20, 33, 40
    types = [tensor_type(s, "f32") for s in ((k, m), (k, n), (m, n), (m, k))]
    body = transpose("x", "%a0", (k, m), (1, 0), "f32") + product("%x", "%a1", m, n, k)
    x, y = np.sin(numbers((k, m), "f32")), np.cos(numbers((k, n), "f32"))
    out, turned = np.zeros((m, n), np.float32), np.zeros((m, k), np.float32)
    run(function(types[:2], types[2:], body, ["%r", "%x"]), [x, y], [out, turned])
    np.testing.assert_allclose(out, x.T @ y, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(turned, x.T)


@pytest.mark.parametrize("permutation", [(1, 2, 0), (2, 0, 1), (0, 2, 1), (1, 0, 2)], ids=str)
def test_batch_product_of_transposed_tensors(permutation: tuple[int, int, int]) -> None:
    b, m, n, k = 3, 10, 20, 30
    stored = tuple((b, k, n)[permutation.index(axis)] for axis in range(3))
    types = [tensor_type(s, "f32") for s in ((b, m, k), stored, (b, k, n), (b, m, n))]
    body = transpose("y", "%a1", stored, permutation, "f32")
    body += f"""
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : {types[3]}
    %fill = linalg.fill ins(%zero : f32) outs(%empty : {types[3]}) -> {types[3]}
    %r = linalg.batch_matmul ins(%a0, %y : {types[0]}, {types[2]}) outs(%fill : {types[3]}) -> {types[3]}"""
    x, y = np.sin(numbers((b, m, k), "f32")), np.cos(numbers(stored, "f32"))
    out = np.zeros((b, m, n), np.float32)
    text = function(types[:2], types[3:], body, ["%r"])
    assert "linalg.transpose" not in scheduled(text)
    assert "linalg." not in bufferized(text)
    run(text, [x, y], [out])
    np.testing.assert_allclose(out, x @ y.transpose(permutation), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "permutation"), [((601, 1013), (1, 0)), ((3, 270, 517), (2, 0, 1))], ids=str
)
def test_large_sources_are_asked_for_ahead(shape: tuple[int, ...], permutation: tuple[int, ...]) -> None:
    target = Target(64, 32, fma=True, masks=True, l2_bytes=1 << 20)
    types = [tensor_type(shape, "f32"), tensor_type([shape[p] for p in permutation], "f32")]
    text = function(types[:1], types[1:], transpose("t", "%a0", shape, permutation, "f32"), ["%t"])
    assert "memref.prefetch" in bufferized(text, target)
    x = numbers(shape, "f32")
    out: Array = np.full([shape[p] for p in permutation], -1, np.float32)
    run(text, [x], [out])
    np.testing.assert_array_equal(out, x.transpose(permutation))
