"""Random modules of Core IR as PTIR programs, and back: the same results, and the same from then on."""

from __future__ import annotations

from budget import examples
from control_flow import ControlFlow, control_flow
from hypothesis import given
from hypothesis import strategies as st
from programs import Program, assert_close, assert_same_bits, programs

import mind_mlir
from mind_mlir.languages.ptir.from_module import from_module
from mind_mlir.languages.ptir.to_core import to_core
from mind_mlir.languages.ptir.to_module import to_module

SEEDS = st.integers(0, 99)


@examples(20)
@given(programs(size=14, wild=True), SEEDS)
def test_every_flat_module_is_said_in_ptir(program: Program, seed: int) -> None:
    arguments = program.arguments(seed)
    said = from_module(program.module)
    assert_close(program.module, arguments, mind_mlir.interpret(said, arguments))
    assert from_module(to_module(said)) == said


@examples(20)
@given(programs(size=14, empties=False), SEEDS)
def test_what_came_from_core_goes_back(program: Program, seed: int) -> None:
    arguments = program.arguments(seed)
    said = from_module(program.module)
    back = to_core(said)
    assert back.profile == "core-functions"
    assert_same_bits(mind_mlir.interpret(back, arguments), mind_mlir.interpret(said, arguments))
    assert mind_mlir.parse(mind_mlir.print_module(back)) == back
    assert to_core(from_module(back)) == back


@examples(20)
@given(control_flow(), SEEDS)
def test_control_flow_and_calls_are_said_in_ptir(program: ControlFlow, seed: int) -> None:
    arguments = program.arguments(seed)
    said = from_module(program.module)
    expected = mind_mlir.interpret(program.module, arguments)
    assert_same_bits(mind_mlir.interpret(said, arguments), expected)
    assert_same_bits(mind_mlir.interpret(to_core(said), arguments), expected)
