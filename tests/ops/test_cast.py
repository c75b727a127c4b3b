"""Cast, every pair of real dtypes, against Python's exact numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from harness import Use, compile_uses, run_numpy, type_of

from mind_mlir.ir.elements import limits, wide_integer
from mind_mlir.ir.types import DType
from mind_mlir.ops.numbers import widened
from mind_mlir.ops.opdef import ALL_FLOATS, ALL_INTEGERS
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.attributes import Array

CAST = by_opcode()["Cast"]
#: Bits of a significand, the leading one included.
PRECISION = {DType.FP8_E4M3: 4, DType.FP8_E5M2: 3, DType.BF16: 8, DType.F16: 11, DType.F32: 24, DType.F64: 53}


def check(sources: Sequence[Array], targets: Sequence[DType], exact: Callable[[Any, DType], Any]) -> None:
    """Check each source as each target, compiled and by the numpy rule, element by element."""
    cases = [(source, target) for source in sources for target in targets]
    uses = [Use(CAST, (type_of(source),), {"dtype": target}) for source, target in cases]
    results = compile_uses(uses)([[source] for source, _ in cases])
    for (source, target), compiled in zip(cases, results, strict=True):
        interpreted = run_numpy(CAST, [source], {"dtype": target})
        with np.errstate(over="ignore"):
            wanted = [exact(number, target) for number in widened(source).tolist()]
            expected = np.array(wanted, wide_integer(target) if target.is_integer else np.float64)
            expected = expected.astype(target.numpy)
        for found in (compiled, interpreted):
            np.testing.assert_array_equal(widened(found), widened(expected), f"{source.dtype} as {target}")


def integers(dtype: DType) -> Array:
    """Return integers that are about to round, and the extremes."""
    least, greatest = limits(dtype)
    found = {0, 1, 3, least, least + 1, greatest, greatest - 1}
    for precision in PRECISION.values():
        for length in range(precision + 1, dtype.bits + 1):
            unit = 1 << (length - precision)  # of the last place
            for number in (1 << (length - 1), (1 << (length - 1)) + unit, (1 << length) - unit):
                halfway = number + unit // 2
                found.update((halfway - 1, halfway, halfway + 1, number, -halfway, 1 - halfway, -1 - halfway))
    held = sorted(number for number in found if least <= number <= greatest)
    return np.array(held, wide_integer(dtype)).astype(dtype.numpy)


def nearest(number: int, target: DType) -> float:
    """Return the nearest number that has so many significant bits; ties go to an even last bit."""
    magnitude, precision = abs(number), PRECISION[target]
    shift = max(magnitude.bit_length() - precision, 0)
    kept, rest = magnitude >> shift, magnitude & ((1 << shift) - 1)
    half = (1 << shift) >> 1
    kept += rest > half or (rest == half > 0 and kept % 2 == 1)
    return math.copysign(float(kept << shift), number)


def test_integers_become_the_nearest_floats() -> None:
    check([integers(dtype) for dtype in ALL_INTEGERS], ALL_FLOATS, nearest)


def test_integers_saturate() -> None:
    def saturated(number: int, target: DType) -> int:
        least, greatest = limits(target)
        return min(max(number, least), greatest)

    check([integers(dtype) for dtype in ALL_INTEGERS], ALL_INTEGERS, saturated)


def floats(dtype: DType) -> Array:
    """Return floats around the limits of all integer dtypes, and what is no number."""
    info: Any = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]  # ml_dtypes has none
    found = [0.0, -0.0, 0.5, -0.5, 0.999, -0.999, 1.5, -1.5, math.nan, math.inf, -math.inf]
    found += [float(info.max), -float(info.max), float(info.smallest_subnormal)]
    for integer in ALL_INTEGERS:
        for limit in limits(integer):
            found += [float(limit + step) for step in (-1, -0.5, 0, 0.5, 1)]
    with np.errstate(over="ignore", invalid="ignore"):
        array = np.array(found).astype(dtype.numpy)
    if dtype.bits >= 32:
        with np.errstate(over="ignore", under="ignore"):
            array = np.concatenate([array, np.nextafter(array, 0), np.nextafter(array, math.inf)])
    return array


def truncated(number: float, target: DType) -> int:
    least, greatest = limits(target)
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return least if number < 0 else greatest
    return min(max(math.trunc(number), least), greatest)


def test_floats_are_truncated_and_saturate() -> None:
    check([floats(dtype) for dtype in ALL_FLOATS], ALL_INTEGERS, truncated)


@pytest.mark.parametrize("target", [dtype for dtype in ALL_FLOATS if dtype.bits < 32], ids=str)
def test_f64_rounds_once(target: DType) -> None:
    unit = 2.0 ** (1 - PRECISION[target])
    halfway = np.array([1 + unit / 2, 1 + 3 * unit / 2, -1 - unit / 2])
    source = np.concatenate([np.nextafter(halfway, 0), halfway, np.nextafter(halfway, 9 * np.sign(halfway))])
    expected = np.array([1, 1 + unit, -1, 1, 1 + 2 * unit, -1, 1 + unit, 1 + 2 * unit, -1 - unit])
    (compiled,) = compile_uses([Use(CAST, (type_of(source),), {"dtype": target})])([[source]])
    for found in (compiled, run_numpy(CAST, [source], {"dtype": target})):
        np.testing.assert_array_equal(found.astype(np.float64), expected)
