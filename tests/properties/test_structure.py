"""Any control-flow graph means the same in structured form."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from budget import examples
from cfg_interpreter import run_blocks
from control_flow import control_flow
from hypothesis import given
from programs import assert_same_bits

from mind_mlir.ir.module import Functions, Return
from mind_mlir.passes.structure import structure_function

if TYPE_CHECKING:
    from control_flow import ControlFlow


@examples(300)
@given(program=control_flow())
def test_structured_form_computes_the_same(program: ControlFlow) -> None:
    functions = Functions(structure_function(function) for function in program.module.functions)
    structured = replace(program.module, functions=functions)
    for function in structured.functions:
        (block,) = function.blocks
        assert isinstance(block.terminator, Return)
    for seed in range(3):
        arguments = program.arguments(seed)
        assert_same_bits(run_blocks(program.module, arguments), run_blocks(structured, arguments))
