"""Stores past the cache: where they are used, and that they change no bit, aligned or not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from schedule_harness import (
    Array,
    compiled,
    empty,
    filled,
    function,
    generic,
    lowered,
    random,
    reduce,
    run,
    tensor_type,
)

from mind_mlir.target import Target, host_target

#: Anything exceeds the caches of this machine.
SMALL = replace(host_target(), l1_bytes=64, l2_bytes=64, l3_bytes=64)
SHAPES = [(2048,), (2050,), (64, 256), (61, 256), (61, 250), (3, 5, 256)]


def program(shape: tuple[int, ...], dtype: str = "f32") -> str:
    """Return a program that multiplies rows by a row, if there are rows, and adds the elements themselves."""
    dims = ", ".join(f"d{i}" for i in range(len(shape)))
    t, row = tensor_type(shape, dtype), tensor_type(shape[-1:], dtype)
    body = empty("r", t) + generic(
        "r",
        [("%a0", t, dims), ("%a1", row, f"d{len(shape) - 1}")],
        (t, dims),
        ["parallel"] * len(shape),
        f"%p = arith.mulf %x0, %x1 : {dtype}\n        %s = arith.addf %p, %x0 : {dtype}\n"
        f"        linalg.yield %s : {dtype}",
    )
    return function([t, row], [t], body, ["%r"])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_results_are_the_same_bits(shape: tuple[int, ...], dtype: str) -> None:
    x, row = random(shape, dtype, 1), random(shape[-1:], dtype, 2)
    out: Array = np.zeros_like(x)
    run(program(shape, dtype), [x, row], [out], SMALL)
    np.testing.assert_array_equal(out, x * row + x)


@pytest.mark.parametrize("offset", range(0, 64, 4))
def test_buffers_that_are_not_aligned(offset: int) -> None:
    native = compiled(program((61, 256)), SMALL)
    x, row = random((61, 256), "f32", 1), random((256,), "f32", 2)
    memory = np.zeros(x.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    out = memory[start : start + x.nbytes].view(np.float32).reshape(x.shape)
    native.call([x.ctypes.data, row.ctypes.data, out.ctypes.data])
    np.testing.assert_array_equal(out, x * row + x)
    assert not memory[:start].any()
    assert not memory[start + x.nbytes :].any()


@pytest.mark.parametrize(
    ("shape", "streams"), [((64, 256), True), ((2050,), True), ((61, 250), False), ((4, 4), False)], ids=str
)
def test_only_where_every_vector_of_an_aligned_buffer_is(shape: tuple[int, ...], streams: bool) -> None:
    text = lowered(program(shape), SMALL)
    assert ("nontemporal" in text) == streams
    assert ("llvm.fence" in text) == streams


@pytest.mark.parametrize("target", [replace(SMALL, l2_bytes=1 << 20), replace(SMALL, l3_bytes=1 << 20)])
def test_not_for_results_that_fit_a_cache(target: Target) -> None:
    assert "nontemporal" not in lowered(program((64, 256)), target)


def test_not_for_what_is_read_again() -> None:
    t, o = tensor_type((64, 256), "f32"), tensor_type((256,), "f32")
    body = program((64, 256)).split("{\n", 1)[1].rsplit("    return", 1)[0]
    body += filled("q", o, "0.0") + reduce("q", ("%r", t), o, [0], "arith.addf")
    text = function([t, o], [t, o], body, ["%r", "%q"])
    assert "nontemporal" not in lowered(text, SMALL)


def test_not_for_what_is_only_written() -> None:
    t, row = tensor_type((64, 256), "f32"), tensor_type((256,), "f32")
    body = empty("r", t) + generic(
        "r", [("%a0", row, "d1")], (t, "d0, d1"), ["parallel"] * 2, "linalg.yield %x0 : f32"
    )
    assert "nontemporal" not in lowered(function([row], [t], body, ["%r"]), SMALL)
