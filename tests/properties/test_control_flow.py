"""Random programs of functions, branches and loops: compiled, interpreted, differentiated, printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from budget import examples
from cfg_interpreter import run_blocks
from control_flow import COUNT, FLAG, FLOATS, Features, control_flow
from counted import compile_counted
from hypothesis import assume, given
from programs import assert_same_bits

import mind_mlir
from mind_mlir.passes.structure import structure

if TYPE_CHECKING:
    from control_flow import ControlFlow

    from mind_mlir.ir.attributes import Array

SMALL = Features(blocks=6, operations=3, calls=1)
#: Programs whose results are polynomials of their arguments: no float decides where to go.
SMOOTH = Features(blocks=5, operations=3, calls=1, float_conditions=False, types=(COUNT, *FLOATS[:2], FLAG))
#: With larger numbers on the way, rounding would hide what is compared.
TAME = 1e3


@examples(24)
@given(program=control_flow(SMALL))
def test_compiled_code_and_the_interpreter_compute_what_the_blocks_say(program: ControlFlow) -> None:
    compiled = compile_counted(program.module)
    for seed in range(3):
        arguments = program.arguments(seed)
        expected = run_blocks(program.module, arguments)
        assert_same_bits(mind_mlir.interpret(program.module, arguments), expected)
        assert_same_bits(compiled(**arguments), expected)


@examples(60)
@given(program=control_flow())
def test_every_form_prints_and_reads_back(program: ControlFlow) -> None:
    canonical = mind_mlir.canonicalize(program.module)
    for module in (program.module, canonical, structure(canonical)):
        text = mind_mlir.print_module(module)
        again = mind_mlir.parse(text)
        assert again == module
        assert mind_mlir.print_module(again) == text


@examples(24)
@given(program=control_flow(SMOOTH))
def test_gradients_are_those_of_finite_differences(program: ControlFlow) -> None:
    arguments = program.arguments(0, fuel=6)
    names = [name for name, array in arguments.items() if array.dtype.kind == "f"]
    results = mind_mlir.interpret(program.module, arguments)
    assume(all(np.all(np.abs(result) < TAME) for result in results))
    gradient = mind_mlir.differentiate(program.module, wrt=names).module
    assert mind_mlir.parse(mind_mlir.print_module(gradient)) == gradient
    random = np.random.default_rng(1)
    directions = {name: random.standard_normal(arguments[name].shape) for name in names}

    def total(step: float) -> float:
        moved = {name: arguments[name] + step * direction for name, direction in directions.items()}
        outputs = mind_mlir.interpret(program.module, {**arguments, **moved})
        return float(sum(np.sum(output) for output in outputs if output.dtype.kind == "f"))

    width = 1e-4
    difference = (8 * (total(width) - total(-width)) - (total(2 * width) - total(-2 * width))) / (12 * width)
    found = mind_mlir.interpret(gradient, arguments)
    assert_same_bits(found[: len(results)], results)
    np.testing.assert_allclose(slope(found, names, directions), difference, rtol=1e-6, atol=1e-6)


@examples(8)
@given(program=control_flow(SMOOTH))
def test_compiled_gradients_are_the_interpreted_ones(program: ControlFlow) -> None:
    gradient = mind_mlir.differentiate(program.module).module
    compiled = compile_counted(gradient)
    for seed in range(2):
        arguments = program.arguments(seed, fuel=5)
        for ours, theirs in zip(compiled(**arguments), mind_mlir.interpret(gradient, arguments), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def slope(found: tuple[Array, ...], names: list[str], directions: dict[str, Array]) -> float:
    gradients = found[len(found) - len(names) :]
    pairs = zip(names, gradients, strict=True)
    return sum(float(np.sum(gradient * directions[name])) for name, gradient in pairs)
