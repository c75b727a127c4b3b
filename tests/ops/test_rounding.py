"""Rounding, roots, signs and finiteness: values written out by hand, and what PTIR says instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from harness import Use, build, edge_values, run_both, run_numpy, run_vjp, type_of

import mind_mlir
from mind_mlir.ir.types import DType
from mind_mlir.languages.ptir.from_module import from_module
from mind_mlir.languages.ptir.to_module import to_module
from mind_mlir.ops.example_types import dtypes_of
from mind_mlir.ops.numbers import widened
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

OPS = by_opcode()
NAN, INF = float("nan"), float("inf")
FLOATS = pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
ROUNDING = ("Floor", "Ceil", "RoundEven", "Round")
#: Around halves, and what is just less than a half: adding a half to that gives one.
VALUES = [0.0, -0.0, 0.3, -0.3, 0.5, -0.5, 1.5, 2.5, -2.5, -0.7, 3.0, NAN, INF, -INF]
EXPECTED = {
    "Floor": [0.0, -0.0, 0.0, -1.0, 0.0, -1.0, 1.0, 2.0, -3.0, -1.0, 3.0, NAN, INF, -INF],
    "Ceil": [0.0, -0.0, 1.0, -0.0, 1.0, -0.0, 2.0, 3.0, -2.0, -0.0, 3.0, NAN, INF, -INF],
    "RoundEven": [0.0, -0.0, 0.0, -0.0, 0.0, -0.0, 2.0, 2.0, -2.0, -1.0, 3.0, NAN, INF, -INF],
    "Round": [0.0, -0.0, 0.0, -0.0, 1.0, -1.0, 2.0, 3.0, -3.0, -1.0, 3.0, NAN, INF, -INF],
    "Sign": [0.0, -0.0, 1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0, NAN, 1.0, -1.0],
    "Sqrt": [0.0, -0.0, 0.3**0.5, NAN, 0.5**0.5, NAN, 1.5**0.5, 2.5**0.5, NAN, NAN, 3**0.5, NAN, INF, NAN],
}


def same_bits(actual: Array, expected: Array) -> None:
    actual, expected = widened(actual), widened(expected)
    np.testing.assert_array_equal(actual, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual)[numbers], np.signbit(expected)[numbers])


@FLOATS
@pytest.mark.parametrize("opcode", EXPECTED)
def test_values(opcode: str, dtype: DType) -> None:
    x = np.array(VALUES, dtype.numpy)
    result = run_both(OPS[opcode], [x], {})
    if opcode == "Sqrt":
        np.testing.assert_allclose(result, np.array(EXPECTED[opcode]), rtol=np.finfo(dtype.numpy).eps)
    else:
        same_bits(result, np.array(EXPECTED[opcode], dtype.numpy))


@FLOATS
def test_numbers_near_a_half_and_large_ones_are_rounded_once(dtype: DType) -> None:
    info = np.finfo(dtype.numpy)
    whole = 2.0**info.nmant
    below = np.nextafter(dtype.numpy.type(0.5), dtype.numpy.type(0))
    x = np.array([below, -below, whole / 2 + 0.5, whole - 0.5, whole + 1, 2 * whole, info.max], dtype.numpy)
    near = [whole / 2 + 1, whole, whole + 1, 2 * whole, info.max]
    same_bits(run_both(OPS["Round"], [x], {}), np.array([0.0, -0.0, *near], dtype.numpy))
    even = [whole / 2, whole, whole + 1, 2 * whole, info.max]
    same_bits(run_both(OPS["RoundEven"], [x], {}), np.array([0.0, -0.0, *even], dtype.numpy))


def test_sign_of_integers() -> None:
    x = np.array([np.iinfo(np.int32).min, -7, 0, 9], np.int32)
    assert run_both(OPS["Sign"], [x], {}).tolist() == [-1, -1, 0, 1]


def test_is_finite() -> None:
    x = np.array([0.0, -3.4e38, INF, -INF, NAN, 1e-45], np.float32)
    assert run_both(OPS["IsFinite"], [x], {}).tolist() == [True, True, False, False, False, True]


def test_gradient_of_the_root() -> None:
    (gradient,) = run_vjp(OPS["Sqrt"], [np.array([4.0, 1e-300, 0.0])], np.array([2.0, 1.0, 1.0]), {})
    assert gradient is not None
    np.testing.assert_allclose(gradient, [0.5, 0.5e150, INF])


@pytest.mark.parametrize("opcode", [*ROUNDING, "Sign", "IsFinite"])
def test_what_ptir_programs_say_instead_is_the_same_bit_for_bit(opcode: str) -> None:
    for dtype in dtypes_of(OPS[opcode]):
        assert dtype is not None
        x = _awkward(dtype)
        expected = run_numpy(OPS[opcode], [x], {})
        said = to_module(from_module(build([Use(OPS[opcode], (type_of(x),), {})])))
        assert opcode not in {operation.opcode for operation in said.functions[0].entry.operations}
        (actual,) = mind_mlir.interpret(said, {"x0_0": x})
        same_bits(actual, expected)


def _awkward(dtype: DType) -> Array:
    if dtype.is_integer:
        return edge_values(dtype)
    with np.errstate(over="ignore"):
        near = (np.arange(-40, 40) / 8).astype(dtype.numpy)
        large = (2.0 ** np.arange(2, 54) - 0.5).astype(dtype.numpy)
    return np.concatenate([edge_values(dtype), near, large, -large])
