"""Reduce: accumulators and results of other dtypes, empty axes, extremes, ties, and rejections."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import (
    Use,
    assert_agrees,
    build,
    compile_uses,
    edge_operands,
    edge_values,
    findings,
    random_operands,
    run_both,
    run_compiled,
    run_numpy,
    run_vjp,
)

import mind_mlir
from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.ptir.fields import attributes_of
from mind_mlir.languages.ptir.program import Operation
from mind_mlir.ops.accumulators import default_accumulator
from mind_mlir.ops.numbers import widened
from mind_mlir.ops.opdef import COMPLEX
from mind_mlir.ops.registry import by_opcode, lookup

REDUCE = by_opcode()["Reduce"]
EXTREMES = pytest.mark.parametrize("kind", ["Max", "Min"])


def form(kind: str, axes: tuple[int, ...], dtype: DType, out: DType | None = None, **more: Any) -> Any:
    return {
        "kind": kind,
        "axes": axes,
        "keepdims": False,
        "accum_dtype": dtype,
        "out_dtype": out or dtype,
    } | more


def test_no_axes_reduce_nothing() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for kind in ("Sum", "Max", "Min"):
        np.testing.assert_array_equal(run_both(REDUCE, [x], form(kind, (), DType.F32)), x)


@pytest.mark.parametrize("kind", ["Sum", "Max", "Min"])
@pytest.mark.parametrize("dtype", [DType.F64, DType.F32, DType.BF16, DType.FP8_E4M3])
def test_what_is_not_reduced_keeps_its_sign(kind: str, dtype: DType) -> None:
    x = np.array([-0.0, 0.0, -1.5], np.float64)
    for out in (dtype, DType.F32):
        given = x.astype(dtype.numpy)
        for found in (
            run_numpy(REDUCE, [given], form(kind, (), dtype, out)),
            run_compiled(REDUCE, [given], form(kind, (), dtype, out)),
        ):
            np.testing.assert_array_equal(found.astype(np.float64), x)
            np.testing.assert_array_equal(np.signbit(found), [True, False, True])
    along_one = run_both(REDUCE, [x[:, None]], form("Sum", (1,), DType.F64))
    np.testing.assert_array_equal(np.signbit(along_one), [False, False, True])  # sums begin with 0.0


def test_no_negative_number_is_one_of_an_unsigned_accumulator() -> None:
    """Cast of PTIR saturates, and what is accumulated is cast."""
    x = np.array([[-51, 0, 0], [-1, 7, 2]], np.int32)
    np.testing.assert_array_equal(run_both(REDUCE, [x], form("Sum", (1,), DType.UI64)), [0, 9])
    np.testing.assert_array_equal(run_both(REDUCE, [x], form("Sum", (), DType.UI8)), np.maximum(x, 0))
    np.testing.assert_array_equal(run_both(REDUCE, [x], form("Sum", (1,), DType.SI64, DType.UI64)), [0, 8])


@pytest.mark.parametrize(
    ("kind", "dtype", "expected"),
    [
        ("Sum", DType.F32, 0.0),
        ("Max", DType.F32, -np.inf),
        ("Min", DType.F32, np.inf),
        ("Sum", DType.SI32, 0),
        ("Max", DType.SI32, -(2**31)),
        ("Min", DType.SI64, 2**63 - 1),
        ("Max", DType.I1, False),
        ("Min", DType.I1, True),
    ],
)
def test_of_no_elements_it_is_the_identity(kind: str, dtype: DType, expected: Any) -> None:
    result = run_both(REDUCE, [np.zeros((3, 0), dtype.numpy)], form(kind, (1,), dtype))
    np.testing.assert_array_equal(result, np.full(3, expected, dtype.numpy))
    assert not np.signbit(np.asarray(result, np.float64)).any() or kind == "Max"


@EXTREMES
@pytest.mark.parametrize("dtype", [DType.I1, DType.SI32, DType.SI64, DType.F32, DType.F64])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_extremes_are_exact(kind: str, dtype: DType, axes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(8)
    values = edge_values(dtype)
    x = rng.choice(values[~np.isnan(values)], (37, 41))
    expected = run_numpy(REDUCE, [x], form(kind, axes, dtype))
    found = run_compiled(REDUCE, [x], form(kind, axes, dtype))
    assert found.tobytes() == expected.tobytes()
    function = np.max if kind == "Max" else np.min
    np.testing.assert_array_equal(found, function(x, axis=axes))


@EXTREMES
@pytest.mark.parametrize("dtype", [DType.I1, DType.SI8, DType.UI16, DType.SI64, DType.BF16])
def test_extremes_are_found_in_the_dtype_of_the_elements(kind: str, dtype: DType) -> None:
    rng = np.random.default_rng(9)
    for accumulator, out in ((DType.F64, DType.F32), (DType.F32, DType.F16), (DType.SI64, DType.SI32)):
        for axes in ((0,), (1,), (0, 1)):
            attributes = form(kind, axes, accumulator, out)
            (x,) = random_operands(Use(REDUCE, (TensorType(dtype, (7, 37)),), attributes), rng)
            run_both(REDUCE, [x], attributes)


@pytest.mark.parametrize("dtype", [DType.I1, DType.SI8, DType.UI8, DType.SI16, DType.UI16, DType.SI32])
def test_sums_of_small_integers_are_exact_up_to_their_ends(dtype: DType) -> None:
    least, greatest = (0, 1) if dtype is DType.I1 else limits(dtype)
    for accumulator, out in ((DType.F64, DType.F64), (DType.SI64, DType.UI8), (DType.F32, DType.I1)):
        for end in (least, greatest):
            x = np.full((3, 300), end, dtype.numpy)
            found = run_both(REDUCE, [x], form("Sum", (1,), accumulator, out))
            if out is DType.F64:
                np.testing.assert_array_equal(found, 300.0 * end)


def test_truth_values_are_not_widened_for_extremes() -> None:
    use = Use(REDUCE, (TensorType(DType.I1, (64, 512)),), form("Max", (1,), DType.F64))
    linalg = mind_mlir.compile(build([use])).as_text("linalg")
    assert "outs(%1 : tensor<64xi1>)" in linalg
    assert "maximumf" not in linalg


@EXTREMES
@pytest.mark.parametrize("extent", [1, 5, 37])
def test_nan_is_the_extreme(kind: str, extent: int) -> None:
    x = np.ones((extent, extent), np.float32) * np.arange(extent, dtype=np.float32)
    x[extent // 2, extent - 1] = np.nan
    for axis in (0, 1):
        result = run_both(REDUCE, [x], form(kind, (axis,), DType.F32))
        at = extent - 1 if axis == 0 else extent // 2
        np.testing.assert_array_equal(np.isnan(result), np.arange(extent) == at)


@EXTREMES
def test_zeros_are_ordered_by_sign(kind: str) -> None:
    x = np.array([[0.0, -0.0, -0.0], [-0.0, -0.0, -0.0], [-0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    for rows in (x, x.T.copy(), np.repeat(x, 9, 1)):
        axis = 0 if rows.shape[0] == 3 else 1
        found = run_both(REDUCE, [rows], form(kind, (axis,), DType.F64))
        signs = np.signbit(rows).all(axis) if kind == "Max" else np.signbit(rows).any(axis)
        np.testing.assert_array_equal(np.signbit(found), signs)


def test_integers_wrap_in_the_accumulator_and_saturate_in_the_result() -> None:
    x = np.array([[2**31 - 1, 1, 2**31 - 1], [-(2**31), -1, 0]], np.int32)
    own = run_both(REDUCE, [x], form("Sum", (1,), DType.SI32))
    np.testing.assert_array_equal(own, [-1, 2**31 - 1])
    wide = run_both(REDUCE, [x], form("Sum", (1,), DType.SI64))
    np.testing.assert_array_equal(wide, [2**32 - 1, -(2**31) - 1])
    cast = run_both(REDUCE, [x], form("Sum", (1,), DType.SI64, DType.SI32))
    np.testing.assert_array_equal(cast, [2**31 - 1, -(2**31)])


def test_terms_are_cast_before_they_are_added() -> None:
    x = np.array([0.75, 0.75, -1.5, np.nan], np.float32)
    assert run_both(REDUCE, [x], form("Sum", (0,), DType.SI32)) == -1
    assert run_both(REDUCE, [x[:3]], form("Sum", (0,), DType.F64, DType.F32)) == 0
    wide = np.array([1.0, 2.0**-30, -1.0], np.float32)
    assert run_both(REDUCE, [wide], form("Sum", (0,), DType.F64, DType.F32)) == np.float32(2.0**-30)


def test_truth_values_can_be_counted() -> None:
    x = np.random.default_rng(3).random((5, 71)) < 0.5
    count = run_both(REDUCE, [x], form("Sum", (1,), DType.SI32))
    np.testing.assert_array_equal(count, x.sum(1))
    (finding,) = findings(REDUCE, [TensorType(DType.I1, (3,))], form("Sum", (0,), DType.I1, DType.SI32))
    assert (finding.code, finding.context["found"]) == ("E2005", "i1")
    assert "i32" in str(finding.help)


@EXTREMES
def test_ties_share_the_gradient(kind: str) -> None:
    sign = 1.0 if kind == "Max" else -1.0
    x = sign * np.array([[1.0, 3.0, 3.0, 2.0], [5.0, 4.0, 3.0, 1.0], [7.0, 7.0, 7.0, 7.0]])
    (gradient,) = run_vjp(REDUCE, [x], np.array([6.0, 7.0, 8.0]), form(kind, (1,), DType.F64))
    np.testing.assert_array_equal(gradient, [[0, 3, 3, 0], [7, 0, 0, 0], [2, 2, 2, 2]])


def test_the_gradient_goes_to_nans_where_the_result_is_one() -> None:
    x = np.array([[1.0, np.nan, np.nan, 2.0], [1.0, 2.0, np.inf, 0.0]])
    (gradient,) = run_vjp(REDUCE, [x], np.array([1.0, 4.0]), form("Max", (1,), DType.F64))
    np.testing.assert_array_equal(gradient, [[0, 0.5, 0.5, 0], [0, 0, 4, 0]])


def test_a_narrower_result_does_not_hide_where_the_maximum_is() -> None:
    x = np.array([1.0, 1.0 + 2.0**-40, 1.0])
    (gradient,) = run_vjp(REDUCE, [x], np.array(2.0, np.float32), form("Max", (0,), DType.F32))
    np.testing.assert_array_equal(gradient, [0, 2, 0])


@pytest.mark.parametrize(
    ("axes", "codes"), [((2,), ["E3004"]), ((-3,), ["E3004"]), ((1, -1), ["E3005"]), ((0, 1), [])]
)
def test_axes_are_checked(axes: tuple[int, ...], codes: list[str]) -> None:
    found = findings(REDUCE, [TensorType(DType.F32, (2, 3))], form("Max", axes, DType.F32))
    assert [finding.code for finding in found] == codes


def test_compact_names_fix_the_kind() -> None:
    for kind in ("Sum", "Max", "Min"):
        assert lookup(f"reduce_{kind.lower()}", "ptir-v0.4") == (REDUCE, {"kind": kind})


def test_the_contract_leaves_dtypes_to_the_policy() -> None:
    assert REDUCE.contract is not None
    fields = {"kind": "Sum", "axes": (1,), "keepdims": True, "accum_dtype": None, "out_dtype": None}
    for dtype in DType:
        operation = Operation("Reduce", fields=fields)
        attributes = attributes_of(REDUCE.contract, operation, [TensorType(dtype, (2, 3))])
        assert (attributes["accum_dtype"], attributes["out_dtype"]) == (default_accumulator(dtype), dtype)
    assert default_accumulator(DType.BF16) is DType.F32
    assert default_accumulator(DType.SI8) is DType.SI8


def test_extremes_are_vectors() -> None:
    text = """\
%0 = Input {name="x"} : tensor<f32[512, 512]>
%1 = Reduce (%0) {kind=Max, axes=[1], keepdims=true, accum_dtype=f32, out_dtype=f32} : tensor<f32[512, 1]>
%2 = Reduce (%0) {kind=Min, axes=[0], keepdims=false, accum_dtype=f32, out_dtype=f32} : tensor<f32[512]>
outputs: %1, %2
"""
    executable = mind_mlir.compile(mind_mlir.parse(text))
    listing = executable.as_text("schedule")
    assert listing.count("fused 512 x 512") == 2
    assert "plain" not in listing


@pytest.mark.parametrize("values", [random_operands, edge_operands], ids=["ordinary", "edge"])
def test_all_dtypes_by_the_policy(values: Any) -> None:
    uses = [
        Use(REDUCE, (TensorType(dtype, shape),), form(kind, (axis,), default_accumulator(dtype), dtype))
        for dtype in DType
        if dtype in REDUCE.operands[0].dtypes
        for kind in ("Sum", "Max", "Min")
        if (kind, dtype) != ("Sum", DType.I1) and (kind == "Sum" or dtype not in COMPLEX)
        for shape, axis in (((5, 37), 1), ((37, 5), 0))
    ]
    rng = np.random.default_rng(9)
    operands = [values(use, rng) for use in uses]
    for use, given, found in zip(uses, operands, compile_uses(uses)(operands), strict=True):
        expected = run_numpy(REDUCE, given, use.attributes)
        assert_agrees(REDUCE, found, expected, given, use.attributes)
        if use.attributes["kind"] != "Sum":
            numbers = ~np.isnan(widened(expected)) if use.types[0].dtype.is_float else ...
            assert widened(found)[numbers].tobytes() == widened(expected)[numbers].tobytes()


def test_identities_of_all_dtypes() -> None:
    uses = [
        Use(REDUCE, (TensorType(dtype, (2, 0)),), form(kind, (1,), dtype))
        for dtype in REDUCE.operands[0].dtypes
        for kind in ("Sum", "Max", "Min")
        if (kind, dtype) != ("Sum", DType.I1) and (kind == "Sum" or dtype not in COMPLEX)
    ]
    operands = [[np.zeros((2, 0), use.types[0].dtype.numpy)] for use in uses]
    for use, given, found in zip(uses, operands, compile_uses(uses)(operands), strict=True):
        assert widened(found).tobytes() == widened(run_numpy(REDUCE, given, use.attributes)).tobytes()
        kind, dtype = use.attributes["kind"], use.types[0].dtype
        if dtype.is_integer:
            assert int(found[0]) == {"Sum": 0, "Max": limits(dtype)[0], "Min": limits(dtype)[1]}[kind]
        elif dtype.is_float and dtype is not DType.FP8_E4M3:  # which has no infinities: its greatest number
            assert float(found[0]) == {"Sum": 0, "Max": -np.inf, "Min": np.inf}[kind]


def test_narrow_floats_are_added_in_f32_and_rounded_once() -> None:
    x = np.ones((1, 1000), ml_dtypes.bfloat16)
    assert run_both(REDUCE, [x], form("Sum", (1,), DType.F32, DType.BF16))[0] == 1000
    assert run_both(REDUCE, [x], form("Sum", (1,), DType.BF16))[0] == 1000
    big = np.full((1, 3), 60000, np.float16)
    big[0, 1] = -60000
    assert run_both(REDUCE, [big], form("Sum", (1,), DType.F32, DType.F16))[0] == 60000


@pytest.mark.parametrize(
    ("dtype", "value", "counts"),
    [
        (DType.I1, True, (255, 256, 32_767, 32_768)),
        (DType.SI8, -128, (256, 257)),
        (DType.SI8, 127, (258, 259)),
        (DType.UI8, 255, (128, 129)),
        (DType.SI16, -32_768, (1, 65_536, 65_537)),
    ],
)
@pytest.mark.parametrize("accumulator", [DType.SI32, DType.SI64, DType.F32])
def test_sums_at_the_limits_of_narrow_accumulators(
    dtype: DType, value: int, counts: tuple[int, ...], accumulator: DType
) -> None:
    for count in counts:
        x = np.full((count, 3), value, dtype.numpy)
        x[0, 1] = 0
        attributes = {"kind": "Sum", "axes": (0,), "accum_dtype": accumulator, "out_dtype": DType.SI64}
        found = run_both(by_opcode()["Reduce"], (x,), attributes)
        wanted = [count * int(value), (count - 1) * int(value), count * int(value)]
        if accumulator is not DType.F32:
            wanted = [
                (each + 2**31) % 2**32 - 2**31 if accumulator is DType.SI32 else each for each in wanted
            ]
            np.testing.assert_array_equal(found, wanted)
