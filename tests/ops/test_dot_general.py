"""DotGeneral: every arrangement of dimensions, accumulators, wide and narrow results, and rejections."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from harness import (
    Use,
    assert_agrees,
    compile_uses,
    findings,
    random_operands,
    run_both,
    run_compiled,
    run_numpy,
    run_vjp,
)

import mind_mlir
from mind_mlir.ir.types import DType, DTypeKind, TensorType
from mind_mlir.ops.accumulators import default_accumulator
from mind_mlir.ops.registry import by_opcode

DOT = by_opcode()["DotGeneral"]
EXTENTS = {"b": 2, "c": 3, "m": 5, "n": 4, "k": 7, "l": 6}


def form(lhs: str, rhs: str, dtype: DType, out: DType | None = None) -> dict[str, Any]:
    """Return the attributes for operands whose dimensions are named: b, c are batch, k, l contracted."""
    batch = [name for name in "bc" if name in lhs]
    contract = [name for name in "kl" if name in lhs]
    return {
        "batch_lhs": tuple(map(lhs.index, batch)),
        "batch_rhs": tuple(map(rhs.index, batch)),
        "contract_lhs": tuple(map(lhs.index, contract)),
        "contract_rhs": tuple(map(rhs.index, contract)),
        "accum_dtype": dtype,
        "out_dtype": out or dtype,
    }


def shape(names: str) -> tuple[int, ...]:
    return tuple(EXTENTS[name] for name in names)


ORDERS = list(
    itertools.product(
        map("".join, itertools.permutations("bmk")), map("".join, itertools.permutations("bnk"))
    )
)


@pytest.mark.parametrize(("lhs", "rhs"), ORDERS)
def test_every_order_of_dimensions(lhs: str, rhs: str) -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal(shape(names)) for names in (lhs, rhs))
    found = run_both(DOT, [x, y], form(lhs, rhs, DType.F64))
    np.testing.assert_allclose(found, np.einsum(f"{lhs},{rhs}->bmn", x, y))
    seed = rng.standard_normal(found.shape)
    left, right = run_vjp(DOT, [x, y], seed, form(lhs, rhs, DType.F64))
    assert left is not None
    assert right is not None
    np.testing.assert_allclose(left, np.einsum(f"bmn,{rhs}->{lhs}", seed, y))
    np.testing.assert_allclose(right, np.einsum(f"bmn,{lhs}->{rhs}", seed, x))


@pytest.mark.parametrize(
    ("lhs", "rhs", "out"),
    [
        ("cmbkl", "lnbkc", "bcmn"),
        ("kl", "lk", ""),
        ("bck", "kcb", "bc"),
        ("mk", "k", "m"),
        ("k", "nk", "n"),
        ("m", "n", "mn"),
        ("bm", "bn", "bmn"),
        ("bc", "cb", "bc"),
    ],
)
def test_any_number_of_dimensions(lhs: str, rhs: str, out: str) -> None:
    rng = np.random.default_rng(4)
    for dtype in (DType.F32, DType.SI32):
        x, y = (rng.integers(-9, 10, shape(names)).astype(dtype.numpy) for names in (lhs, rhs))
        found = run_both(DOT, [x, y], form(lhs, rhs, dtype))
        np.testing.assert_array_equal(found, np.einsum(f"{lhs},{rhs}->{out}", x, y))


def test_batches_come_in_the_order_that_they_are_named_in() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    attributes = form("bck", "bck", DType.F64) | {"batch_lhs": (1, 0), "batch_rhs": (1, 0)}
    np.testing.assert_array_equal(run_both(DOT, [x, x], attributes), np.einsum("bck,bck->cb", x, x))


def test_products_are_those_of_the_accumulator() -> None:
    x = np.full((1, 2), 2**20, np.int32)
    np.testing.assert_array_equal(run_both(DOT, [x, x.T.copy()], form("mk", "kn", DType.SI32)), [[0]])
    np.testing.assert_array_equal(run_both(DOT, [x, x.T.copy()], form("mk", "kn", DType.SI64)), [[2**41]])
    saturated = run_both(DOT, [x, x.T.copy()], form("mk", "kn", DType.SI64, DType.SI32))
    np.testing.assert_array_equal(saturated, [[2**31 - 1]])
    y = np.array([[1.0, 2.0**-20, -1.0]], np.float32)
    exact = run_both(DOT, [y, y.T * 2.0**-20], form("mk", "kn", DType.F64))
    assert exact[0, 0] == 2.0**-60 + 2.0**-19


def test_products_of_which_nothing_is_summed_keep_their_sign() -> None:
    x, y = np.array([[-0.0, 0.0], [2.0, -1.0]], np.float32), np.array([[3.0], [-0.0]], np.float32)
    cases = (
        ("bm", "bn", x, y, x[:, :, None] * y[:, None]),
        ("m", "n", x[0], y[:, 0], x[0, :, None] * y[:, 0]),
    )
    for lhs, rhs, left, right, expected in cases:
        for run in (run_numpy, run_compiled):
            found = run(DOT, [left, right], form(lhs, rhs, DType.F32))
            assert found.tobytes() == expected.tobytes()


def test_the_gradient_has_the_operands_dtype() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((5, 7)).astype(np.float32), rng.standard_normal((7, 4)).astype(np.float32)
    seed = rng.standard_normal((5, 4))
    left, right = run_vjp(DOT, [x, y], seed, form("mk", "kn", DType.F64))
    assert left is not None
    assert right is not None
    assert left.dtype == right.dtype == np.float32
    np.testing.assert_allclose(left, seed @ y.T.astype(np.float64), rtol=1e-6)
    np.testing.assert_allclose(right, x.T.astype(np.float64) @ seed, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"contract_lhs": (3,)}, "E3004"),
        ({"contract_rhs": (-4,)}, "E3004"),
        ({"batch_lhs": (2,)}, "E3005"),
        ({"batch_rhs": (-2,)}, "E3005"),
        ({"batch_lhs": ()}, "E1103"),
        ({"contract_rhs": ()}, "E1103"),
        ({"contract_lhs": (1,)}, "E3003"),
        ({"accum_dtype": DType.I1}, "E2005"),
        ({"out_dtype": DType.I1}, "E2005"),
    ],
)
def test_rejections(change: dict[str, Any], code: str) -> None:
    types = [TensorType(DType.F32, shape("bmk")), TensorType(DType.F32, shape("bkn"))]
    assert findings(DOT, types, form("bmk", "bkn", DType.F32)) == []
    (finding,) = findings(DOT, types, form("bmk", "bkn", DType.F32) | change)
    assert finding.code == code
    assert finding.help


@pytest.mark.parametrize(("lhs", "rhs"), [*ORDERS, ("bmck", "bnck"), ("cmbkl", "lnbkc")])
def test_it_is_one_product_that_reads_its_operands_as_they_lie(lhs: str, rhs: str) -> None:
    extents = dict(zip("bcmnkl", (4, 3, 64, 48, 32, 5), strict=True))
    types = [TensorType(DType.F32, tuple(extents[name] for name in names)) for names in (lhs, rhs)]
    builder = mind_mlir.Builder()
    x, y = (builder.input(name, type_) for name, type_ in zip("xy", types, strict=True))
    module = builder.build([builder.emit("DotGeneral", x, y, **form(lhs, rhs, DType.F32))])
    listing = mind_mlir.compile(module).as_text("schedule")
    assert listing.count(". product ") == 1, listing
    assert "plain" not in listing
    # A right factor whose last dimension is a batch has no contiguous rows: it is transposed before.
    assert (". transposition " in listing) == (rhs[-1] in "bc"), listing


def test_all_dtypes_by_the_policy_and_with_wide_accumulators() -> None:
    wide = {
        DTypeKind.FLOAT: DType.F64,
        DTypeKind.SIGNED: DType.SI64,
        DTypeKind.UNSIGNED: DType.UI64,
        DTypeKind.COMPLEX: DType.CF64,
    }
    uses = [
        Use(DOT, (TensorType(dtype, (2, 9, 17)), TensorType(dtype, (2, 35, 17))), attributes)
        for dtype in DOT.operands[0].dtypes
        for accumulator, out in (
            (default_accumulator(dtype), dtype),
            (default_accumulator(dtype), default_accumulator(dtype)),
            (wide[dtype.kind], wide[dtype.kind]),
            (dtype, dtype),
        )
        for attributes in [form("bmk", "bnk", accumulator, out)]
    ]
    rng = np.random.default_rng(9)
    operands = [random_operands(use, rng) for use in uses]
    for use, given, found in zip(uses, operands, compile_uses(uses)(operands), strict=True):
        assert_agrees(DOT, found, run_numpy(DOT, given, use.attributes), given, use.attributes)


def test_narrow_products_neither_overflow_nor_round() -> None:
    x = np.array([[300.0, 1.0, -300.0]], np.float16)
    y = np.array([[300.0], [0.5], [300.0]], np.float16)
    assert run_both(DOT, [x, y], form("mk", "kn", DType.F32, DType.F16))[0, 0] == 0.5
    i = np.full((1, 4), 100, np.int8)
    assert run_both(DOT, [i, i.T.copy()], form("mk", "kn", DType.SI32))[0, 0] == 40000
    assert run_both(DOT, [i, i.T.copy()], form("mk", "kn", DType.SI8))[0, 0] == np.array(40000).astype(
        np.int8
    )


def test_unsigned_numbers_are_read_as_they_are_by_signed_accumulators() -> None:
    rng = np.random.default_rng(8)
    for dtype, accumulator in ((DType.UI8, DType.SI32), (DType.UI4, DType.SI8), (DType.UI16, DType.SI64)):
        greatest = (1 << dtype.bits) - 1
        x, y = (rng.integers(0, greatest + 1, shape).astype(dtype.numpy) for shape in ((40, 33), (33, 20)))
        x[0], y[:, 0] = greatest, greatest
        attributes = form("mk", "kn", accumulator)
        np.testing.assert_array_equal(run_both(DOT, [x, y], attributes), run_numpy(DOT, [x, y], attributes))
