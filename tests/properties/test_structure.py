"""Any control-flow graph means the same in canonical and in structured form."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from budget import examples
from cfg_interpreter import run_blocks
from control_flow import Features, control_flow
from hypothesis import given
from programs import assert_same_bits

from mind_mlir.ir.module import Functions, Return
from mind_mlir.passes.canonicalize import canonical, canonicalize
from mind_mlir.passes.structure import structure, structure_function
from mind_mlir.passes.verify import verify

if TYPE_CHECKING:
    from control_flow import ControlFlow

    from mind_mlir import Module

GRAPHS = Features(blocks=16, operations=1, calls=0, regions=False, entry_loops=True)


@examples(45)
@given(program=control_flow())
def test_canonical_form_computes_the_same(program: ControlFlow) -> None:
    canonicalized = verify(canonicalize(program.module))
    assert_same_results(program, canonicalized)
    assert str(canonical(canonicalized)) == str(canonicalized)
    assert canonical(canonicalized) == canonicalized


@examples(45)
@given(program=control_flow())
def test_structured_form_computes_the_same(program: ControlFlow) -> None:
    structured = structure(program.module)
    assert_structured(verify(structured))
    assert_same_results(program, structured)
    assert canonical(structured) == structured


@examples(45)
@given(program=control_flow())
def test_structured_form_of_the_canonical_form_computes_the_same(program: ControlFlow) -> None:
    structured = structure(canonical(program.module))
    assert_structured(structured)
    assert_same_results(program, structured)


@examples(90)
@given(program=control_flow(GRAPHS))
def test_each_function_computes_the_same_before_anything_is_simplified(program: ControlFlow) -> None:
    functions = Functions(map(structure_function, program.module.functions))
    structured = replace(program.module, functions=functions)
    assert_structured(structured)
    assert_same_results(program, structured)


def assert_structured(module: Module) -> None:
    for function in module.functions:
        (block,) = function.blocks
        assert isinstance(block.terminator, Return)


def assert_same_results(program: ControlFlow, module: Module) -> None:
    for seed in range(3):
        arguments = program.arguments(seed)
        assert_same_bits(run_blocks(program.module, arguments), run_blocks(module, arguments))
