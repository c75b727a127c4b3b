"""Random programs, simplified: results are the same bits, types hold, and nothing is left to simplify."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st
from programs import assert_same_bits, programs

from mind_mlir.interpreter import run
from mind_mlir.ir.module import Functions
from mind_mlir.ir.types import DType
from mind_mlir.passes.forms import structured_form
from mind_mlir.passes.optimize import PASSES
from mind_mlir.passes.verify import verify

if TYPE_CHECKING:
    from programs import Program

SIMPLIFYING = [each for each in PASSES if each.name in ("algebra", "chains", "dots")]
MOVING = frozenset(
    {
        *("Reshape", "ExpandDims", "Squeeze", "Transpose", "BroadcastTo", "Slice", "Concat", "Pad", "Tile"),
        *("DynamicSlice", "DynamicUpdateSlice", "Take", "Gather", "Reduce", "Exp", "Select", "Compare"),
        *("ConstTensor", "ConstF32", "Add"),
    }
)
EXACT = frozenset(
    {
        *(
            "Add",
            "Sub",
            "Mul",
            "Maximum",
            "Minimum",
            "Neg",
            "Relu",
            "Abs",
            "Clamp",
            "StopGradient",
            "Compare",
        ),
        *("Select", "And", "Or", "Xor", "Not", "Cast", "ConstTensor", "ConstF32", "ConstI64", "BroadcastTo"),
    }
)


@pytest.mark.parametrize("opcodes", [MOVING, EXACT], ids=["moving", "exact"])
@examples(150)
@given(data=st.data())
def test_bits_stay(opcodes: frozenset[str], data: st.DataObject) -> None:
    dtypes = (DType.F32, DType.SI32, DType.SI64)
    program: Program = data.draw(programs(opcodes=opcodes, dtypes=dtypes, size=12, wild=True))
    arguments = program.arguments(7, wild=True)
    module = structured_form(program.module)
    expected = run(module, arguments)
    for each in SIMPLIFYING:
        (function,) = module.functions
        changed = each.run(function)
        assert each.run(changed) is changed
        module = replace(module, functions=Functions((changed,)), profile="core-functions")
        verify(module)
        assert_same_bits(expected, run(module, arguments))
