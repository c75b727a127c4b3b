"""Printing and reading back, verification and canonical form of random programs."""

from __future__ import annotations

from dataclasses import replace

from budget import examples
from hypothesis import given
from hypothesis import strategies as st
from programs import Program, assert_same_bits, programs

from mind_mlir import Module, canonicalize, interpret, parse, print_module, verify


@examples(120)
@given(programs(wild=True))
def test_printing_and_reading_back_gives_an_equal_module(program: Program) -> None:
    text = print_module(program.module)
    read = parse(text)
    assert read == program.module
    assert print_module(read) == text


@examples(60)
@given(programs(wild=True))
def test_what_is_built_verifies(program: Program) -> None:
    assert verify(program.module) == program.module
    assert verify(parse(print_module(program.module))) == program.module


@examples(60)
@given(programs(wild=True), st.integers(0, 99), st.booleans())
def test_canonical_form(program: Program, seed: int, wild: bool) -> None:
    canonical = canonicalize(program.module)
    verify(canonical)
    assert canonicalize(canonical) == canonical
    assert [op.value_id for op in canonical.operations] == list(range(len(canonical.operations)))
    assert canonical.operations[: len(canonical.inputs)] == canonical.inputs
    assert [op.attributes for op in canonical.inputs] == [op.attributes for op in program.module.inputs]
    # Folding is exact, and reordering commutes, so that not even rounding differs.
    arguments = program.arguments(seed, wild)
    assert_same_bits(interpret(canonical, arguments), interpret(program.module, arguments))


@examples(36)
@given(programs(), st.integers(1, 5))
def test_canonical_form_forgets_numbering_and_dead_operations(program: Program, step: int) -> None:
    module = program.module
    renumbered = {op.value_id: step * position + 3 for position, op in enumerate(module.operations)}
    operations = []
    for op in module.operations:
        operands = tuple(renumbered[operand] for operand in op.operands)
        operations.append(replace(op, value_id=renumbered[op.value_id], operands=operands))
    fresh = step * len(operations) + 3
    operations += [replace(op, value_id=fresh + i) for i, op in enumerate(operations) if op.opcode != "Input"]
    again = Module.flat(operations, [renumbered[output] for output in module.outputs])
    assert canonicalize(verify(again)) == canonicalize(module)
