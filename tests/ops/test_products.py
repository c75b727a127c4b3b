"""ReduceProd and ReduceBits: gradients where factors are zero, long rows, bits against Python's integers."""

from __future__ import annotations

import functools
import math
import operator

import numpy as np
import pytest
from harness import edge_values, run_both, run_vjp

from mind_mlir.ir.types import DType
from mind_mlir.ops.opdef import ALL_INTEGERS
from mind_mlir.ops.registry import by_opcode

PROD, BITS = by_opcode()["ReduceProd"], by_opcode()["ReduceBits"]


def test_the_gradient_is_the_product_of_the_others() -> None:
    x = np.array([[2, 3, -4, 5], [2, 0, 3, 4], [0, 2, 0, 3], [0, 0, 0, 0]], np.float64)
    (gradient,) = run_vjp(PROD, [x], np.array([1.0, 10.0, 1.0, 1.0]), {"axes": (1,), "keepdims": False})
    assert gradient is not None
    expected = [[math.prod(np.delete(row, place)) for place in range(4)] for row in x]
    expected[1] = [10 * each for each in expected[1]]
    np.testing.assert_allclose(gradient, expected, rtol=1e-15)


@pytest.mark.parametrize("axis", [0, 1])
def test_long_rows(axis: int) -> None:
    x = np.exp(np.random.default_rng(0).normal(0, 0.1, (501, 1003)))
    found = run_both(PROD, [x.astype(np.float32)], {"axes": (axis,), "keepdims": False})
    np.testing.assert_allclose(found, np.prod(x, axis), rtol=1e-4)


@pytest.mark.parametrize("kind", ["And", "Or", "Xor"])
def test_bits(kind: str) -> None:
    combine = {"And": operator.and_, "Or": operator.or_, "Xor": operator.xor}[kind]
    rng = np.random.default_rng(0)
    for dtype in (DType.I1, *ALL_INTEGERS):
        values = edge_values(dtype)
        x = values[rng.integers(0, len(values), (4, 67))]
        found = run_both(BITS, [x], {"axes": (1,), "keepdims": False, "kind": kind})
        expected = [functools.reduce(combine, map(int, row)) for row in x]
        assert [int(each) for each in found] == expected, dtype
