"""Random programs, compiled against interpreted."""

from __future__ import annotations

from dataclasses import replace

import guarded
import numpy as np
import pytest
from budget import examples
from counted import compile_counted
from growth import LARGE
from hypothesis import given
from hypothesis import strategies as st
from programs import Program, assert_close, assert_same_bits, programs
from recipes import CONSTANTS, ELEMENTWISE

import mind_mlir
from mind_mlir import ExecutionError
from mind_mlir.ops.opdef import Rounding
from mind_mlir.ops.registry import all_ops
from mind_mlir.tools.comparison import first_difference

SEEDS = st.integers(0, 99)
EXACT = {record.opcode for record in all_ops() if record.rounding is Rounding.EXACT}


@examples(72)
@given(programs(size=14), SEEDS)
def test_compiled_programs_agree_with_the_interpreter(program: Program, seed: int) -> None:
    arguments = program.arguments(seed)
    given_ = {name: array.copy() for name, array in arguments.items()}
    outputs = guarded.call_executable(compile_counted(program.module), given_)
    assert_close(program.module, arguments, outputs)
    for name, array in arguments.items():
        assert array.tobytes() == given_[name].tobytes(), f"argument {name} was written to"
    arrays = [*outputs, *given_.values()]
    for position, left in enumerate(outputs):
        assert not any(np.shares_memory(left, right) for right in arrays[position + 1 :])


@examples(54)
@given(programs(size=14, wild=True), SEEDS)
def test_every_operation_agrees_on_awkward_values(program: Program, seed: int) -> None:
    """Each on the compiled values of its operands: nothing hides behind an error that came before."""
    assert first_difference(program.module, program.arguments(seed, wild=True)) is None


@examples(21)
@given(programs(ELEMENTWISE | CONSTANTS, size=14, wild=True), SEEDS)
def test_elementwise_results_do_not_depend_on_the_optimisation_level(program: Program, seed: int) -> None:
    arguments = program.arguments(seed, wild=True)
    plain, optimised = (compile_counted(program.module, opt_level=level)(**arguments) for level in (0, 3))
    assert_same_bits(plain, optimised)


@examples(14)
@given(programs(size=8, sizes=LARGE), SEEDS)
def test_large_programs_agree_with_the_interpreter(program: Program, seed: int) -> None:
    arguments = program.arguments(seed)
    outputs = guarded.call_executable(compile_counted(program.module), arguments)
    assert_close(program.module, arguments, outputs)


@examples(43)
@given(programs((ELEMENTWISE | CONSTANTS) & EXACT, size=14, wild=True), SEEDS)
def test_arithmetic_is_exact(program: Program, seed: int) -> None:
    """Whatever is fused and vectorised, elementwise arithmetic rounds exactly where the program says."""
    arguments = program.arguments(seed, wild=True)
    outputs = compile_counted(program.module)(**arguments)
    assert_same_bits(outputs, mind_mlir.interpret(program.module, arguments))


@examples(28)
@given(programs({"Gather", "ScatterAdd", "Neg", "Transpose", "Reshape"}, size=6), SEEDS)
def test_indices_out_of_bounds_are_reported_alike(program: Program, seed: int) -> None:
    domains = {name: replace(domain, extent=domain.extent + 1) for name, domain in program.domains.items()}
    arguments = Program(program.module, domains).arguments(seed)
    module = mind_mlir.canonicalize(program.module)  # what is dead cannot fail
    executable = compile_counted(module)
    try:
        mind_mlir.interpret(module, arguments)
    except ExecutionError as error:
        with pytest.raises(ExecutionError) as caught:
            executable(**arguments)
        # The interpreter stops at the first; compiled code reports all.
        assert {finding.code for finding in caught.value.diagnostics} == {"E6001"}
        (first,) = error.diagnostics
        facts = ("operation", "index", "shape")
        assert [caught.value.diagnostics[0].context[fact] for fact in facts] == [
            first.context[fact] for fact in facts
        ]
    else:
        assert_close(module, arguments, executable(**arguments))
    # A call that failed leaves nothing behind.
    arguments = program.arguments(seed)
    assert_close(module, arguments, executable(**arguments))


@examples(12)
@given(programs(size=14), SEEDS)
def test_layout_of_arguments_does_not_matter(program: Program, seed: int) -> None:
    arguments = program.arguments(seed)
    executable = compile_counted(program.module)
    strided = {}
    for name, array in arguments.items():
        spread = np.zeros((*array.shape, 2), array.dtype)
        spread[..., 1] = array
        strided[name] = spread[..., 1]
        strided[name].setflags(write=False)
    assert_same_bits(executable(**strided), executable(**arguments))
