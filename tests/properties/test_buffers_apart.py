"""Whatever the program: buffers in use together lie apart, in an arena as large as that of compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networks
import pytest
from budget import examples
from buffer_plans import check_plan
from control_flow import ControlFlow, control_flow
from hypothesis import given
from hypothesis import strategies as st
from programs import Program, programs

import mind_mlir
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.mlir.references import References

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from mind_mlir import Module


@pytest.mark.parametrize("kind", [networks.attentions, networks.graphs], ids=["attentions", "graphs"])
@examples(4)
@given(random=st.randoms(use_true_random=True), gradient=st.booleans())
def test_networks_apart(kind: Callable[[Random], Module], random: Random, gradient: bool) -> None:
    module = kind(random)
    if gradient:
        module = mind_mlir.differentiate(module).module
    check_plan(module)
    assert bufferized(module) == bufferized(module), "what addresses objects have must not matter"


def bufferized(module: Module) -> str:
    """Return the code of a module on memory, as `mind_mlir.compile` makes it."""
    lowering = Lowering(kernels=lambda _: None, references=References())
    lowering.run(module, "bufferized")
    return str(lowering.mlir)


@examples(8)
@given(program=programs())
def test_programs_apart(program: Program) -> None:
    check_plan(program.module)


@examples(8)
@given(program=control_flow())
def test_control_flow_apart(program: ControlFlow) -> None:
    check_plan(program.module)
