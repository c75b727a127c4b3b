"""Rows that are summed at once because they share what they read, and what long sums ask for ahead."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from schedule_harness import Array, filled, function, generic, random, run, scheduled, tensor_type

from mind_mlir.lowering.emission.constants import SHARED_ROWS
from mind_mlir.target import Target

#: Their caches are so small that little work exceeds them.
SMALL = Target(l1_bytes=1 << 10, l2_bytes=1 << 12, l3_bytes=1 << 14)
TARGETS = {
    "avx512": dataclasses.replace(SMALL, vector_bytes=64, vector_registers=32, fma=True, masks=True),
    "sse": SMALL,
}


def products(shape: tuple[int, ...], dtype: str, *, scaled: bool = False) -> str:
    """Return ``(a, b, s, c) -> c + sum of a * b along rows``; if asked for, each row times its number."""
    *outer, _ = shape
    matrix, vector, numbers = (tensor_type(each, dtype) for each in (shape, shape[-1:], outer))
    dims = [f"d{i}" for i in range(len(shape))]
    kept = ", ".join(dims[:-1])
    multiply, add = ("arith.mulf", "arith.addf") if dtype[0] == "f" else ("arith.muli", "arith.addi")
    ins = [("%a0", matrix, ", ".join(dims)), ("%a1", vector, dims[-1])]
    body = f"%p = {multiply} %x0, %x1 : {dtype}\n"
    if scaled:
        ins.append(("%a2", numbers, kept))
        body += f"%q = {multiply} %p, %x2 : {dtype}\n"
    body += f"%n = {add} %y, %{'q' if scaled else 'p'} : {dtype}\nlinalg.yield %n : {dtype}"
    text = generic("r", ins, (numbers, kept), ["parallel"] * len(outer) + ["reduction"], body)
    text = text.replace("%r_init", "%a3")
    return function([matrix, vector, numbers, numbers], [numbers], text, ["%r"])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("shape", [(64, 300), (37, 1031), (3, 19, 130), (8, 2)], ids=str)
def test_sums_of_products_with_one_row(shape: tuple[int, ...], scaled: bool, target: str) -> None:
    a, b, s, c = (random(each, "f64", i) for i, each in enumerate((shape, shape[-1:], *[shape[:-1]] * 2)))
    out: Array = np.full(shape[:-1], 7.0)
    run(products(shape, "f64", scaled=scaled), [a, b, s, c], [out], TARGETS[target])
    np.testing.assert_allclose(out, c + (a @ b) * (s if scaled else 1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("target", TARGETS)
def test_a_row_has_the_same_bits_wherever_it_is(target: str) -> None:
    rows, columns = 37, 1031  # some at once, some alone, in chunks of either
    a, b = random((rows, columns), "f32", 1), random((columns,), "f32", 2)
    nothing: Array = np.zeros(rows, np.float32)
    text = products((rows, columns), "f32")
    out, turned = nothing.copy(), nothing.copy()
    run(text, [a, b, nothing, nothing], [out], TARGETS[target])
    run(text, [np.ascontiguousarray(a[::-1]), b, nothing, nothing], [turned], TARGETS[target])
    np.testing.assert_array_equal(out, turned[::-1])


def test_these_are_several_rows_at_once() -> None:
    """So the tests above run what they are about."""
    shape = (64, 300)
    text = scheduled(products(shape, "f32"), TARGETS["avx512"])
    reads = re.findall(r"vector.transfer_read %arg(\d)", text)
    assert reads.count("0") >= SHARED_ROWS * reads.count("1") > 0
    alone = scheduled(products(shape, "f32", scaled=True), TARGETS["avx512"])
    assert re.findall(r"vector.transfer_read %arg(\d)", alone).count("0") < SHARED_ROWS


def row_sums(shape: tuple[int, int]) -> str:
    t, o = tensor_type(shape, "f32"), tensor_type(shape[:1], "f32")
    body = filled("r", o, "0.0") + generic(
        "r",
        [("%a0", t, "d0, d1")],
        (o, "d0"),
        ["parallel", "reduction"],
        "%n = arith.addf %y, %x0 : f32\nlinalg.yield %n : f32",
    )
    return function([t], [o], body, ["%r"])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(9, 4096), (70, 333)], ids=str)
def test_what_a_sum_asks_for_changes_nothing(shape: tuple[int, int], target: str) -> None:
    x = random(shape, "f32", 1)
    near = dataclasses.replace(TARGETS[target], l3_bytes=1 << 30)
    text = row_sums(shape)
    assert re.search(r"memref.prefetch .* read, locality<0>, data", scheduled(text, TARGETS[target]))
    assert "memref.prefetch" not in scheduled(text, near)
    far: Array = np.zeros(shape[0], np.float32)
    close = far.copy()
    run(text, [x], [far], TARGETS[target])
    run(text, [x], [close], near)
    np.testing.assert_array_equal(far, close)
    np.testing.assert_allclose(far, x.astype(np.float64).sum(1), rtol=1e-4, atol=1e-4)
