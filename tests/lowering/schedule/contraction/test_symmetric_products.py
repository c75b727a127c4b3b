"""Products of a matrix and its own transpose: one half of the result is computed, to the same bits."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from schedule_harness import Array, function, run, scheduled, tensor_type

import mind_mlir
from mind_mlir.target import Target

AVX512 = Target(vector_bytes=64, vector_registers=32, fma=True, masks=True)
DOTS = Target(64, 32, fma=True, half=True, masks=True, bf16_dots=True)
NUMPY = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "i32": np.int32}


def gram(n: int, k: int, dtype: str, *, tall: bool, same: bool = True, batch: int = 0) -> str:
    """Return ``x.T @ x`` of a ``tall`` matrix, else ``x @ x.T``; both are ``same`` or two arguments."""
    stored = tensor_type((*[batch] * (batch > 0), *((k, n) if tall else (n, k))), dtype)
    sums = "f32" if dtype == "bf16" else dtype
    out = tensor_type((*[batch] * (batch > 0), n, n), sums)
    b = "b, " if batch else ""
    left, right = (f"{b}k, m", f"{b}k, n") if tall else (f"{b}m, k", f"{b}n, k")
    maps = ", ".join(f"affine_map<({b}m, n, k) -> ({each})>" for each in (left, right, f"{b}m, n"))
    kinds = ", ".join([f'"{each}"' for each in ["parallel"] * (2 + (batch > 0)) + ["reduction"]])
    widened = (
        "" if sums == dtype else f"%u = arith.extf %x : {dtype} to f32 %v = arith.extf %y : {dtype} to f32"
    )
    u, v = ("%x", "%y") if sums == dtype else ("%u", "%v")
    kind = "i" if dtype == "i32" else "f"
    body = f"""
    %zero = arith.constant {"0" if kind == "i" else "0.0"} : {sums}
    %empty = tensor.empty() : {out}
    %fill = linalg.fill ins(%zero : {sums}) outs(%empty : {out}) -> {out}
    %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins(%a0, {"%a0" if same else "%a1"} : {stored}, {stored}) outs(%fill : {out}) {{
    ^bb0(%x: {dtype}, %y: {dtype}, %z: {sums}):
      {widened}
      %p = arith.mul{kind} {u}, {v} : {sums}
      %s = arith.add{kind} %z, %p : {sums}
      linalg.yield %s : {sums}
    }} -> {out}"""
    return function([stored] if same else [stored, stored], [out], body, ["%r"])


def values(shape: tuple[int, ...], dtype: str) -> Array:
    random = np.random.default_rng(5)
    if dtype == "i32":
        return random.integers(-(2**31), 2**31, shape).astype(np.int32)
    return random.standard_normal(shape).astype(NUMPY[dtype])


@pytest.mark.parametrize("target", [None, Target()], ids=["this", "sse"])
@pytest.mark.parametrize(
    ("n", "k", "dtype", "tall", "batch"),
    [
        (197, 131, "f32", True, 0),
        (197, 131, "f32", False, 0),
        (97, 331, "f64", True, 0),
        (127, 64, "f64", False, 3),
        (197, 521, "bf16", True, 0),
        (131, 257, "i32", False, 0),
    ],
)
def test_the_halves_have_the_bits_of_the_whole(
    n: int, k: int, dtype: str, tall: bool, batch: int, target: Target | None
) -> None:
    outer = [batch] * (batch > 0)
    x = values((*outer, *((k, n) if tall else (n, k))), dtype)
    wide = np.int32 if dtype == "i32" else np.float64 if dtype == "f64" else np.float32
    one: Array = np.full((*outer, n, n), 7, wide)
    other = one.copy()
    run(gram(n, k, dtype, tall=tall, batch=batch), [x], [one], target)
    run(gram(n, k, dtype, tall=tall, batch=batch, same=False), [x, x.copy()], [other], target)
    assert one.tobytes() == other.tobytes()
    assert one.tobytes() == np.swapaxes(one, -1, -2).tobytes()


def test_half_is_computed_where_that_saves_time() -> None:
    assert "mirrors = true" in scheduled(gram(197, 131, "f32", tall=True), AVX512)
    assert "mirrors = true" in scheduled(gram(197, 521, "bf16", tall=True), DOTS)
    for text in (
        gram(197, 131, "f32", tall=True, same=False),  # nobody knows that both are the same
        gram(197, 31, "f32", tall=True),  # a pass over the result takes as long
        gram(47, 131, "f32", tall=True),  # it is over soon
        gram(60, 8209, "f32", tall=True),  # all macro-tiles reach the diagonal
    ):
        assert "mirrors = true" not in scheduled(text, AVX512)


def test_what_is_not_finite_is_on_both_sides() -> None:
    x = values((131, 197), "f32")
    x[3, 5], x[7, 150], x[:, 90] = np.nan, np.inf, 0
    found = mind_mlir.jit(lambda x: x.T @ x)(x)
    with np.errstate(invalid="ignore"):
        wanted = x.T.astype(np.float64) @ x
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_sums_that_start_from_a_matrix_are_computed_as_a_whole() -> None:
    x, start = values((131, 197), "f32"), values((197, 197), "f32")
    found = mind_mlir.jit(lambda x, start: (start + x.T @ x) * 2)(x, start)
    np.testing.assert_allclose(found, 2 * (start + x.T @ x), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_reads_the_result_reads_both_halves(threads: int) -> None:
    x, y = values((131, 197), "f64"), values((197, 3), "f64")
    found = mind_mlir.jit(lambda x, y: ((x.T @ x) / 130) @ y, threads=threads)(x, y)
    np.testing.assert_allclose(found, (x.T @ x / 130) @ y, rtol=1e-9, atol=1e-9)
