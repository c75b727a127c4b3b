"""Operands of several dtypes take the dtype that the table of promotion gives them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir import DType, VerificationError
from mind_mlir.ir.types import DTypeKind
from mind_mlir.tracing.promotion import COMPLEX, FLOAT, INTEGER, LatticeNode, joined

_STRONG = [LatticeNode(dtype) for dtype in DType]
_NODES = [*_STRONG, INTEGER, FLOAT, COMPLEX, LatticeNode(DType.I1, weak=True)]
_PAIRS = list(itertools.combinations_with_replacement(_STRONG, 2))
_NARROW = {DType.SI4, DType.UI4, DType.FP8_E4M3, DType.FP8_E5M2}
_X = np.array([-1.5, 0.0, 2.0], np.float32)


def test_the_table_is_a_lattice() -> None:
    """But for what two formats of 8 bits would meet in: nothing depends on the order of operands."""
    for one in _NODES:
        assert joined([one]) == one
        for two in _NODES:
            both = joined([one, two])
            assert joined([two, one]) == both
            fp8 = {one.dtype, two.dtype} == {DType.FP8_E4M3, DType.FP8_E5M2}
            assert (both is None) == fp8
            if both is None:
                continue
            assert joined([both, one]) == joined([both, two]) == both
            for three in _NODES:
                rest = joined([two, three])
                if rest is not None:
                    assert joined([both, three]) == joined([one, rest]) == joined([one, two, three])


@pytest.mark.parametrize(("one", "two"), _PAIRS, ids=str)
def test_the_table_is_numpys_where_that_has_an_answer_of_one_kind(one: LatticeNode, two: LatticeNode) -> None:
    """Of integers with floats the floats' dtype, as in JAX; of integers without one, numpy's f64, weakly."""
    node = joined([one, two])
    if _NARROW & {one.dtype, two.dtype}:  # of these numpy knows few, and f32 for fp8_e5m2 with f16
        for each in (one.dtype, two.dtype):
            if node and each in _NARROW and node.dtype.kind is each.kind:
                values = np.arange(2**each.bits, dtype=np.uint8).view(each.numpy)
                held = values.astype(node.dtype.numpy).astype(each.numpy)
                np.testing.assert_array_equal(held.astype(np.float32), values.astype(np.float32))
        return
    try:
        wanted = np.promote_types(one.dtype.numpy, two.dtype.numpy)
    except TypeError:  # bf16 with f16, or with wide integers
        assert node in (LatticeNode(DType.F32), LatticeNode(DType.BF16))
        return
    assert node is not None
    kinds = [each.dtype.kind for each in (one, two)]
    exact = [kind not in (DTypeKind.FLOAT, DTypeKind.COMPLEX) for kind in kinds]
    if exact[0] == exact[1]:
        assert node.dtype.numpy == wanted
        assert node.weak == (node.dtype is DType.F64 and all(exact))
    else:
        assert node == (two if exact[0] else one)


def test_operators_and_functions_follow_the_table() -> None:
    """All pairs of dtypes, in one program."""
    takes = [
        (node.dtype, np.array([0, 1, 1]).astype(node.dtype.numpy)) for node in _STRONG if node.dtype.bits > 4
    ]
    pairs = [
        (a, b)
        for a, b in itertools.product(takes, takes)
        if joined([LatticeNode(a[0]), LatticeNode(b[0])]) is not None
    ]

    @mind_mlir.jit
    def program(pairs: Any) -> Any:
        return [
            (x + y, mnp.where(y == x, x, y), mnp.concatenate([x, y]), mnp.stack([x, y]), x == y)
            for x, y in pairs
        ]

    found = program([(x, y) for (_, x), (_, y) in pairs])
    for (one, two), results in zip(pairs, found, strict=True):
        node = joined([LatticeNode(one[0]), LatticeNode(two[0])])
        assert node is not None
        dtype = node.dtype.numpy
        for result in results[:4]:
            assert result.dtype == dtype, (one, two)
        assert (results[0] == np.add(one[1].astype(dtype), two[1].astype(dtype))).all()
        assert (results[2] == np.concatenate([one[1].astype(dtype), two[1].astype(dtype)])).all()
        assert results[4].all()


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (lambda x: x + mnp.zeros(3), "float32"),
        (lambda x: x @ mnp.eye(3), "float32"),
        (lambda x: x * (x > 0), "float32"),
        (lambda x: x * mnp.linspace(0, 1, 3) + mnp.arange(3.0), "float32"),
        (lambda x: x * mnp.array([0.25, 0.5, 0.25]), "float32"),
        (lambda x: x.astype("bf16") * np.arange(3), "bfloat16"),
        (lambda x: x.astype("f16") + x.astype("bf16"), "float32"),
        (lambda x: x + 1j, "complex64"),
        (lambda x: mnp.arange(3) / 2, "float64"),
        (lambda x: mnp.arange(3) / 2 * x, "float32"),
        (lambda x: mnp.arange(3) * 0.5 - x, "float32"),
        (lambda x: mnp.sqrt(mnp.arange(3)), "float64"),
        (lambda x: mnp.sqrt(mnp.arange(3)) + x, "float32"),
        (lambda x: (x > 0).mean() + x, "float32"),
        (lambda x: (x.argmax() == 2).mean(), "float64"),
        (lambda x: mnp.var(x > 0), "float64"),
        (lambda x: (x > 0).sum(), "int64"),
        (lambda x: x.astype("ui8").sum(), "uint64"),
        (lambda x: x.astype("si8").prod(), "int64"),
        (lambda x: mnp.cumsum(x.astype("i32")), "int64"),
        (lambda x: mnp.einsum("i,i", x.astype("i32"), x.astype("si8")), "int32"),
        (lambda x: mnp.where(x > 0, 1, 0), "int64"),
        (lambda x: mnp.where(x > 0, 1, 0) + x.astype("ui8"), "int64"),
        (lambda x: mnp.where(x > 0, 1.0, 0.5), "float64"),
        (lambda x: mnp.where(x > 0, 1.0, 0.5) * x, "float32"),
        (lambda x: (x > 0) + (x < 0), "bool"),
        (lambda x: mnp.maximum(x > 0, x < 0), "bool"),
        (lambda x: mnp.floor(mnp.arange(3)), "int64"),
        (lambda x: mnp.eye(3)[mnp.arange(3)] * x, "float32"),
        (lambda x: mnp.take(mnp.eye(3), mnp.arange(3), axis=1) * x, "float32"),
        (lambda x: x.at[0].set(np.float64(2)).at[1].add(np.ones(1)), "float32"),
        (lambda x: mnp.zeros(3).at[1].set(x[0]), "float32"),
        (lambda x: mind_mlir.fori_loop(0, 3, lambda i, s: s + i * x, mnp.zeros(3)), "float32"),
        (lambda x: mind_mlir.cond(x[0] > 0, lambda: 1, lambda: 0.5) * x, "float32"),
        (lambda x: mind_mlir.jit(lambda y: (y > 0).mean())(x) * x, "float32"),
        (lambda x: mnp.asarray(1.5) * x, "float32"),
        (lambda x: np.exp(np.arange(3)) + x, "float64"),
        (lambda x: np.multiply(x, x > 0), "float32"),
        (lambda x: x.astype("i64") // 2.0, "float64"),
        (lambda x: x.astype("i64") ** 0.5, "float64"),
        (lambda x: mnp.zeros(3), "float64"),
    ],
)
def test_dtypes_of_programs(function: Any, dtype: str) -> None:
    assert str(mind_mlir.jit(function)(_X).dtype) == dtype


def test_ui64_compares_exactly_with_signed_integers() -> None:
    big = np.array([2**64 - 1, 2**63, 2**63 - 1, 0, 5, 2**53 + 1], np.uint64)
    signed = np.array([-1, -(2**63), 2**63 - 1, 0, 6, 2**53], np.int64)
    for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
        compare = getattr(np, name)
        ours = getattr(mnp, name)
        found = mind_mlir.jit(lambda a, b: (ours(a, b), ours(b, a)))  # noqa: B023 -- it runs in this turn
        for one, two in zip(found(big, signed), (compare(big, signed), compare(signed, big)), strict=True):
            np.testing.assert_array_equal(one, two, name)


def test_integers_of_python_compare_with_any_others() -> None:
    """Those that an array's dtype does not hold, too, as numpy has it."""
    for dtype in (np.uint8, np.int8, np.uint32, np.uint64, np.int64):
        x: Any = np.array([0, 1, 127], dtype)
        for number in (-1, 0, 300, 2**40, 2**63, -(2**63)):
            found = mind_mlir.jit(lambda x, n: (x == n, x < n, n <= x, x != n), static_argnames="n")(
                x, number
            )
            for one, two in zip(found, (x == number, x < number, number <= x, x != number), strict=True):
                np.testing.assert_array_equal(one, two, f"{dtype}, {number}")


@pytest.mark.parametrize("strict", [False, True])
def test_loops_over_any_integers(strict: bool) -> None:
    def sums(x: Any, last: Any) -> Any:
        first = 0 if strict else np.int32(0)
        return mind_mlir.fori_loop(first, last, lambda i, total: total + x * i, x)

    jitted = mind_mlir.jit(sums, promotion="strict" if strict else "standard")
    np.testing.assert_array_equal(jitted(_X, np.array(3, np.int16)), _X * 4)


def _trained(x: Any) -> Any:
    w = mnp.zeros(3)
    for _ in range(2):
        w = w - 0.5 * mind_mlir.grad(lambda w: ((x * w - 1) ** 2).sum())(w)
        w = w - mind_mlir.vjp(lambda w: (x * w).sum(), w)[1](0.5)[0]
    total: Any = 0.0
    return mind_mlir.scan(lambda total, row: (total + row, row), total, w)[1] + x


def test_gradients_have_the_width_of_their_arguments() -> None:
    assert mind_mlir.jit(_trained)(_X).dtype == np.float32
    assert mind_mlir.jit(_trained)(_X.astype(np.float64)).dtype == np.float64


def test_gradients_flow_through_what_is_converted() -> None:
    def loss(x: Any, w: Any) -> Any:
        return (x * w * np.arange(3) * (w > 0) + x @ mnp.eye(3)).sum()

    w = np.array([2.0, -1.0, 0.5])
    of_x, of_w = mind_mlir.grad(loss, argnums=("x", "w"))(_X, w)
    assert (of_x.dtype, of_w.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(of_x, w * np.arange(3) * (w > 0) + 1)
    np.testing.assert_allclose(of_w, _X * np.arange(3) * (w > 0))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + np.zeros(3),
        lambda x: x + mnp.zeros(3),
        lambda x: x * (x > 0),
        mind_mlir.jit(lambda y: y @ np.eye(3)),
        mind_mlir.grad(lambda y: (y * np.ones(3)).sum()),
    ],
)
def test_strict_programs_convert_nothing(function: Any) -> None:
    with pytest.raises(VerificationError, match=r"Dtype mismatch: arrays of f32 and (f64|i1)") as caught:
        mind_mlir.jit(function, promotion="strict")(_X)
    (found,) = caught.value.diagnostics
    assert found.code == "E2004"
    assert "x.astype('f32'); promotion='strict' converts none" in str(found.help)


def test_strict_programs_are_those_of_one_dtype() -> None:
    strict = mind_mlir.jit(lambda x: (x + mnp.zeros(3)) * 2, promotion="strict")
    np.testing.assert_array_equal(strict(np.ones(3)), [2, 2, 2])
    assert mind_mlir.jit(lambda x: x.sum(), promotion="strict")(np.ones(3, np.int32)).dtype == np.int32
    with pytest.raises(VerificationError, match="E2005"):
        mind_mlir.jit(lambda x: x / 2, promotion="strict")(np.ones(3, np.int32))
    with pytest.raises(ValueError, match="promotion must be one of standard, strict"):
        mind_mlir.jit(promotion="none")  # type: ignore[call-overload]  # what is tested
    with pytest.raises(ValueError, match="promotion must be left out for a program"):
        mind_mlir.jit(mind_mlir.parse("fn f(x: f32) -> f32 { x }"), promotion="strict")


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x.astype("fp8_e4m3") + x.astype("fp8_e5m2"), "no dtype holds what both do"),
        (lambda x: x.astype("i32").at[0].set(0.5), r"convert the array: x.astype\('f64'\)"),
        (lambda x: (x > 0).at[0].set(x.astype("ui8")[0]), "an integer meets an array of i1"),
        (lambda x: x.astype("i32").at[0].set(x[0]), r"convert the array: x.astype\('f32'\)"),
        (lambda x: mind_mlir.cond(x[0] > 0, lambda: x, lambda: x.astype("f64")), "E2320"),
    ],
)
def test_what_has_no_dtype_together(function: Any, text: str) -> None:
    with pytest.raises(mind_mlir.MindError, match=text):
        mind_mlir.jit(function)(_X)


def test_mind_functions_take_numbers_of_no_dtype() -> None:
    program = mind_mlir.parse("fn twice(x: Tensor<f32, [3]>) -> Tensor<f32, [3]> { x + x }")
    twice = mind_mlir.jit(program)
    assert mind_mlir.jit(lambda x: twice(mnp.ones(3)) * x)(_X).dtype == np.float32
    assert mind_mlir.jit(lambda x: x * np.arange(3))(_X.astype(bfloat16)).dtype == bfloat16
