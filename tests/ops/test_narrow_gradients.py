"""Gradients in floats that Core lacks: each operation has them, and sums are rounded once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from harness import Use, build, profile_of, uses_of

import mind_mlir
from mind_mlir import differentiate
from mind_mlir.ir.profiles import PTIR
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.example_types import dtypes_of
from mind_mlir.ops.opdef import ALL_FLOATS, NotDifferentiable
from mind_mlir.ops.registry import all_ops, by_opcode

if TYPE_CHECKING:
    from mind_mlir.ops.opdef import OpDef

NARROW = [dtype for dtype in ALL_FLOATS if dtype.bits < 32]
DIFFERENTIABLE = [
    pytest.param(record, id=record.opcode)
    for record in all_ops()
    if record.in_dialect
    and not isinstance(record.derivative, NotDifferentiable)
    and DType.BF16 in dtypes_of(record)
]


@pytest.mark.parametrize("record", DIFFERENTIABLE)
def test_every_operation_has_its_gradient_in_narrow_floats(record: OpDef) -> None:
    uses = [(dtype, use) for dtype in NARROW for use in uses_of(record, dtype)]
    tested = 0
    for dtype, use in uses:
        place = next((place for place, type_ in enumerate(use.types) if type_.dtype is dtype), None)
        if place is None:
            continue
        assert profile_of([use]) is PTIR
        gradient = differentiate(build([use]), wrt=[f"x0_{place}"]).module  # it is verified
        result_types = gradient.functions["main"].result_types
        assert result_types is not None
        # An empty operand is sliced from an input.
        declared = tuple(max(extent, 1) for extent in use.types[place].extents)
        assert result_types[-1] == TensorType(dtype, declared)
        tested += 1
    assert tested


@pytest.mark.parametrize(
    ("opcode", "attributes"),
    [("BroadcastTo", {"result_shape": (300, 2, 3)}), ("Tile", {"repeats": (300, 1)})],
)
def test_sums_of_what_is_repeated_are_rounded_once(opcode: str, attributes: dict[str, Any]) -> None:
    use = Use(by_opcode()[opcode], (TensorType(DType.BF16, (2, 3)),), attributes)
    gradient = differentiate(build([use]), cotangents="given").module
    shape = (300, 2, 3) if opcode == "BroadcastTo" else (600, 3)
    cotangent = np.random.default_rng(6).standard_normal(shape).astype(ml_dtypes.bfloat16)
    *_, found = mind_mlir.compile(gradient)(x0_0=np.zeros((2, 3), ml_dtypes.bfloat16), cotangent_0=cotangent)
    exact = cotangent.astype(np.float64).reshape(300, 2, 3).sum(axis=0)
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=2**-8, atol=1e-4)
