"""Quantization: what the formulas give at ties, at the ends of the range and for awkward numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from harness import findings, run_both, run_numpy, run_vjp

from mind_mlir import DType, TensorType
from mind_mlir.ops.opdef import NotDifferentiable
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

OPS = by_opcode()


def quantize(
    x: Any, scale: Any, zero_point: Any, dtype: DType = DType.SI8, axis: tuple[int, ...] = ()
) -> Array:
    operands = [
        np.asarray(x, np.float32),
        np.asarray(scale, np.float32),
        np.asarray(zero_point, dtype.numpy),
    ]
    return run_both(OPS["Quantize"], operands, {"output_dtype": dtype, "axis": axis})


def test_ties_go_to_even_before_the_zero_point_is_added() -> None:
    x = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49, 0.51]
    assert quantize(x, 1, 0).tolist() == [0, 2, 2, 0, -2, -2, 0, 1]
    assert quantize(x, 1, 1).tolist() == [1, 3, 3, 1, -1, -1, 1, 2]


@pytest.mark.parametrize(
    ("dtype", "least", "greatest"),
    [
        (DType.SI4, -8, 7),
        (DType.UI4, 0, 15),
        (DType.SI8, -128, 127),
        (DType.UI8, 0, 255),
        (DType.SI16, -32768, 32767),
        (DType.UI16, 0, 65535),
    ],
)
def test_what_is_out_of_range_saturates(dtype: DType, least: int, greatest: int) -> None:
    x = [1e30, -1e30, np.inf, -np.inf, greatest + 5, least - 5, greatest, least]
    expected = [greatest, least, greatest, least, greatest, least, greatest, least]
    assert quantize(x, 1, 0, dtype).tolist() == expected
    # The zero point takes part in what is out of range.
    assert quantize([greatest - 2.0, greatest + 1.0], 1, 3, dtype).tolist() == [greatest, greatest]


def test_nan_becomes_the_zero_point() -> None:
    assert quantize([np.nan, 0.0], 1, 17).tolist() == [17, 17]
    assert quantize([1.0, -1.0, 0.0], 0, 5).tolist() == [127, -128, 5]
    assert quantize([1.0, np.inf], np.inf, 5).tolist() == [5, 5]
    assert quantize([1.0, 2.0], np.nan, 5).tolist() == [5, 5]


def test_a_quotient_of_f32_is_rounded_as_the_exact_one_is() -> None:
    rng = np.random.default_rng(4)
    scale = np.float32(rng.uniform(0.001, 0.1))
    # Numbers next to ties, whose quotients round to the tie in f32.
    ties = ((np.arange(-30_000, 30_000) + 0.5) * float(scale)).astype(np.float32)
    x = np.concatenate([ties, np.nextafter(ties, np.float32(-9e9)), np.nextafter(ties, np.float32(9e9))])
    exact = [round(Fraction(float(value)) / Fraction(float(scale))) for value in x]
    assert quantize(x, scale, 0, DType.SI16).tolist() == exact


@pytest.mark.parametrize("axis", [1, -2])
def test_scales_along_an_axis(axis: int) -> None:
    x = np.full((2, 3, 2), 6.0)
    expected = np.broadcast_to(np.array([6, 13, 0])[:, None], (2, 3, 2))
    found = quantize(x, [1, 0.5, -3], [0, 1, 2], axis=(axis,))
    np.testing.assert_array_equal(found, expected)


def test_dequantized_numbers_are_rounded_once() -> None:
    x, scale = np.arange(-32768, 32768, dtype=np.int16), np.float32(0.1)
    zero_point = np.int16(-32768)
    operands: list[Array] = [x, np.asarray(scale), np.asarray(zero_point)]
    found = run_both(OPS["Dequantize"], operands, {"output_dtype": DType.F32, "axis": ()})
    exact = [Fraction(int(value) + 32768) * Fraction(float(scale)) for value in x]
    # A fraction is turned into an f64 correctly; the products have too few bits for that to round.
    np.testing.assert_array_equal(found, np.array([float(value) for value in exact], np.float32))
    assert all(Fraction(float(value)) == value for value in exact)


def test_differences_of_32_bits_do_not_overflow() -> None:
    x = np.array([2**31 - 1, -(2**31)], np.int32)
    operands = [x, np.array(1.0), np.array(-(2**31), np.int32)]
    found = run_both(OPS["Dequantize"], operands, {"output_dtype": DType.F64, "axis": ()})
    assert found.tolist() == [2**32 - 1, 0]


@pytest.mark.parametrize("dtype", [DType.SI4, DType.UI4, DType.SI8, DType.UI8, DType.SI16, DType.UI16])
def test_quantization_undoes_dequantization(dtype: DType) -> None:
    info: Any = ml_dtypes.iinfo(dtype.numpy)  # type: ignore[no-untyped-call]  # it has no stubs
    x = np.arange(info.min, info.max + 1).astype(dtype.numpy)
    scale, zero_point = np.asarray(np.float32(0.037)), np.asarray(7, dtype.numpy)
    real = run_numpy(OPS["Dequantize"], [x, scale, zero_point], {"output_dtype": DType.F32})
    back = run_numpy(OPS["Quantize"], [real, scale, zero_point], {"output_dtype": dtype})
    np.testing.assert_array_equal(back, x)


def test_requantization_is_one_step() -> None:
    x = np.array([-1000, 0, 1000, 2**31 - 1, -(2**31), 15, 25], np.int32)
    operands = [
        x,
        np.asarray(0.25),
        np.asarray(0, np.int32),
        np.asarray(np.float32(2.5)),
        np.asarray(100, np.uint8),
    ]
    found = run_both(OPS["Requantize"], operands, {"output_dtype": DType.UI8, "axis": ()})
    # 15 / 10 is a tie, as is 25 / 10.
    assert found.tolist() == [0, 100, 200, 255, 0, 102, 102]


def test_the_gradient_of_a_scale_sums_steps() -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]], np.int32)
    seed = np.array([[1.0, 0.0, 2.0], [0.5, 1.0, 0.0]])
    for axis, shape, expected in (((), (), 14), ((0,), (2,), [4, 5.5]), ((-1,), (3,), [3, 5, 6])):
        zero_point = np.full(shape, 0 if axis != (0,) else 1, np.int32)
        operands = [x, np.full(shape, 0.5), zero_point]
        _, cotangent, _ = run_vjp(
            OPS["Dequantize"], operands, seed, {"output_dtype": DType.F64, "axis": axis}
        )
        assert cotangent is not None
        assert np.sum(cotangent) == pytest.approx(np.sum(expected))
        if axis:
            np.testing.assert_allclose(cotangent, expected)


@pytest.mark.parametrize("opcode", ["Quantize", "Requantize"])
def test_rounding_has_no_derivative(opcode: str) -> None:
    rule = OPS[opcode].derivative
    assert isinstance(rule, NotDifferentiable)
    assert not rule.constant
    assert "straight-through" in rule.reason


# What is refused

X, SCALE, ZERO = TensorType(DType.F32, (2, 3)), TensorType(DType.F32), TensorType(DType.SI8)


@pytest.mark.parametrize(
    ("types", "changed", "codes"),
    [
        ((X, SCALE, ZERO), {"output_dtype": DType.F32}, ["E2005", "E2004"]),
        ((X, SCALE, TensorType(DType.SI32)), {}, ["E2005"]),
        ((X, SCALE, ZERO), {"axis": (0, 1)}, ["E1103"]),
        ((X, SCALE, ZERO), {"axis": (2,)}, ["E3004"]),
        ((X, SCALE, ZERO), {"axis": (-3,)}, ["E3004"]),
        ((X, SCALE, ZERO), {"axis": (1,)}, ["E3002", "E3002"]),
        ((X, SCALE.with_shape((3,)), ZERO), {"axis": (1,)}, ["E3002"]),
        ((X, SCALE.with_shape((2,)), ZERO.with_shape((3,))), {"axis": (1,)}, ["E3003"]),
        ((X, SCALE.with_shape((3,)), ZERO), {}, ["E3002"]),
        ((X, SCALE, TensorType(DType.UI8)), {}, ["E2004"]),
    ],
)
def test_what_is_refused(types: tuple[TensorType, ...], changed: dict[str, Any], codes: list[str]) -> None:
    found = findings(OPS["Quantize"], types, {"output_dtype": DType.SI8, "axis": (), **changed})
    assert [finding.code for finding in found] == codes
    assert all(finding.help for finding in found)


def test_requantize_checks_both_pairs() -> None:
    types = (
        TensorType(DType.SI32, (2, 3)),
        SCALE,
        TensorType(DType.SI8),
        SCALE.with_shape((2,)),
        TensorType(DType.SI16),
    )
    found = findings(OPS["Requantize"], types, {"output_dtype": DType.SI8})
    assert [finding.code for finding in found] == ["E2004", "E3002", "E2004"]
    assert "in_zero_point" in found[0].message
    assert "out_scale" in found[1].message
    assert "out_zero_point" in found[2].message


def test_the_axis_counts_from_the_front_in_normal_form() -> None:
    normalize = OPS["Quantize"].normalize
    assert normalize is not None
    result = TensorType(DType.SI8, (2, 3))
    assert normalize({"output_dtype": DType.SI8, "axis": (-1,)}, result)["axis"] == (1,)
    assert normalize({"output_dtype": DType.SI8, "axis": ()}, result)["axis"] == ()


def test_the_axis_of_the_contract_is_a_number_or_nothing() -> None:
    for opcode in ("Quantize", "Dequantize", "Requantize"):
        contract = OPS[opcode].contract
        assert contract is not None
        assert contract.read is not None
        assert contract.write is not None
        for axis, held in ((None, ()), (-1, (-1,)), (2, (2,))):
            attributes = contract.read({"output_dtype": DType.SI8, "axis": axis}, [])
            assert attributes == {"output_dtype": DType.SI8, "axis": held}
            assert contract.write(attributes, []) == {"output_dtype": DType.SI8, "axis": axis}
