"""Sums keep to the bound that the records state, whatever is summed and whatever the target."""

from __future__ import annotations

import math

import numpy as np
import pytest
from schedule_harness import DTYPES, Array, empty, filled, function, generic, reduce, run, tensor_type

from mind_mlir.ops.accumulation import BLOCK, roundings
from mind_mlir.target import Target, host_target

TARGETS = {
    "host": host_target(),
    "avx2": Target(vector_bytes=32, fma=True),
    "sse": Target(),
}
#: A shape and the axes that are summed: primes, rows and columns, a few long ones, parts and none.
CASES = [
    ((100_003,), (0,)),
    ((1 << 20,), (0,)),
    ((3, 40_009), (1,)),
    ((40_009, 3), (0,)),
    ((5003, 17), (0,)),
    ((2053, 1031), (0,)),
    ((700, 1300), (0,)),
    ((257, 1300), (0,)),
    ((2, 611, 1031), (1,)),
    ((1031, 2, 67), (0, 2)),
    ((2, 1021, 1031), (0, 1)),
    ((7, 1021, 64), (0, 1, 2)),
]


def hard_numbers(kind: str, count: int, dtype: str) -> Array:
    """Return numbers whose sum in index order is far off."""
    ones = np.ones(count)
    if kind == "alternating":
        return np.asarray(
            np.where(np.arange(count) % 2, -1.1, 1.1) * (1 + np.arange(count) % 7), DTYPES[dtype]
        )
    if kind == "huge then tiny":
        ones[: max(1, count // 4096)] = 2.0 ** (25 if dtype == "f32" else 54)
        return np.asarray(ones, DTYPES[dtype])
    return np.asarray(0.1 * ones, DTYPES[dtype])


def exact(x: Array, axes: tuple[int, ...]) -> Array:
    """Return the sums of ``x`` over ``axes``, rounded once."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    rows = x.transpose(*kept, *axes).reshape(math.prod(x.shape[axis] for axis in kept), -1)
    shape = [x.shape[axis] for axis in kept]
    return np.array([math.fsum(row) for row in rows.astype(np.float64)]).reshape(shape)


def assert_within_bound(out: Array, x: Array, axes: tuple[int, ...]) -> None:
    terms = math.prod(x.shape[axis] for axis in axes)
    unit = np.finfo(out.dtype).eps / 2
    allowed = roundings(terms) * unit * exact(np.abs(x), axes)
    error = np.abs(out.astype(np.float64) - exact(x, axes))
    assert (error <= allowed).all(), (error / allowed).max()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("shape", "axes"), CASES, ids=str)
@pytest.mark.parametrize("kind", ["constant", "alternating", "huge then tiny"])
def test_sums_are_within_the_bound(
    kind: str, shape: tuple[int, ...], axes: tuple[int, ...], target: str
) -> None:
    t = tensor_type(shape, "f32")
    kept = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    o = tensor_type(kept, "f32")
    x = hard_numbers(kind, math.prod(shape), "f32").reshape(shape)
    out: Array = np.full(kept, 9, np.float32)
    body = filled("r", o, "0.0") + reduce("r", ("%a0", t), o, list(axes), "arith.addf")
    run(function([t], [o], body, ["%r"]), [x], [out], TARGETS[target])
    assert_within_bound(out, x, axes)


@pytest.mark.parametrize("target", TARGETS)
def test_sums_of_f64_are_within_the_bound(target: str) -> None:
    t, o = tensor_type((300_007,), "f64"), tensor_type((), "f64")
    x = hard_numbers("huge then tiny", 300_007, "f64")
    out: Array = np.zeros(())
    body = filled("r", o, "0.0") + reduce("r", ("%a0", t), o, [0], "arith.addf")
    run(function([t], [o], body, ["%r"]), [x], [out], TARGETS[target])
    assert_within_bound(out, x, (0,))


def test_a_sum_in_index_order_is_not_within_the_bound() -> None:
    """So what the tests above hold is more than any sum would."""
    x = hard_numbers("constant", 1 << 20, "f32")
    with pytest.raises(AssertionError):
        assert_within_bound(np.cumsum(x)[-1:], x[None], (1,))


@pytest.mark.parametrize("shape", [(1 << 20,), (3, 200_003)], ids=str)
def test_sums_of_products_are_within_the_bound(shape: tuple[int, ...]) -> None:
    t, o = tensor_type(shape, "f32"), tensor_type(shape[:-1], "f32")
    body = empty("p", t) + f"\n    %p = linalg.mul ins(%a0, %a1 : {t}, {t}) outs(%p_init : {t}) -> {t}"
    body += filled("r", o, "0.0") + reduce("r", ("%p", t), o, [len(shape) - 1], "arith.addf")
    x = hard_numbers("huge then tiny", math.prod(shape), "f32").reshape(shape)
    out: Array = np.zeros(shape[:-1], np.float32)
    run(function([t, t], [o], body, ["%r"]), [x, np.ones_like(x)], [out])
    assert_within_bound(out, x, (len(shape) - 1,))


@pytest.mark.parametrize(("shape", "axes"), CASES, ids=str)
def test_integers_are_exact_and_start_from_their_init(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    t = tensor_type(shape, "i32")
    kept = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    o = tensor_type(kept, "i32")
    x = np.random.default_rng(1).integers(-(2**31), 2**31, shape, np.int32)
    start = np.random.default_rng(2).integers(-(2**31), 2**31, kept, np.int32)
    out: Array = np.zeros(kept, np.int32)
    body = reduce("r", ("%a0", t), o, list(axes), "arith.addi").replace("%r_init", "%a1")
    run(function([t, o], [o], body, ["%r"]), [x, start], [out])
    np.testing.assert_array_equal(out, start + x.sum(axis=axes, dtype=np.int32))


@pytest.mark.parametrize(("shape", "axes"), CASES, ids=str)
def test_infinities_and_nans_arrive(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    t = tensor_type(shape, "f32")
    kept = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    o = tensor_type(kept, "f32")
    x = np.ones(shape, np.float32)
    x.reshape(-1)[-1] = np.inf
    x.reshape(-1)[0] = np.nan
    out: Array = np.zeros(kept, np.float32)
    body = filled("r", o, "0.0") + reduce("r", ("%a0", t), o, list(axes), "arith.addf")
    run(function([t], [o], body, ["%r"]), [x], [out])
    np.testing.assert_array_equal(out, x.sum(axis=axes))


@pytest.mark.parametrize(("shape", "axes"), [((5003, 1300), (0,)), ((600_011,), (0,))], ids=str)
def test_a_stream_and_several_reductions_in_parts(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """A result for each element beside a sum and a maximum, all of one nest whose reduced loop is cut."""
    t = tensor_type(shape, "f64")
    kept = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    o = tensor_type(kept, "f64")
    dims = ", ".join(f"d{i}" for i in range(len(shape)))
    body = empty("p", t) + generic(
        "p",
        [("%a0", t, dims)],
        (t, dims),
        ["parallel"] * len(shape),
        "%s = arith.addf %x0, %x0 : f64\n        linalg.yield %s : f64",
    )
    body += filled("r", o, "1.0") + reduce("r", ("%p", t), o, list(axes), "arith.addf")
    body += filled("m", o, "0xFFF0000000000000") + reduce("m", ("%p", t), o, list(axes), "arith.maximumf")
    x = np.random.default_rng(5).standard_normal(shape)
    doubled, total, top = np.zeros(shape), np.zeros(kept), np.zeros(kept)
    run(function([t], [t, o, o], body, ["%p", "%r", "%m"]), [x], [doubled, total, top])
    np.testing.assert_array_equal(doubled, 2 * x)
    np.testing.assert_array_equal(top, (2 * x).max(axis=axes))
    np.testing.assert_allclose(total, 1 + (2 * x).sum(axis=axes), rtol=1e-11, atol=1e-11)


def test_the_number_of_roundings() -> None:
    assert [roundings(n) for n in (0, 1, BLOCK, BLOCK + 1, BLOCK**2)] == [1, 2, 257, 259, 513]
    assert roundings(1 << 40) < 6 * BLOCK
