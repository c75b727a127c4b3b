"""Functions as jax lowered them compile, and agree with jax, which need not be there: texts are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import guarded
import numpy as np
import pytest
import recorded

import mind_mlir

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS = recorded.read()
_GRADIENT = "gradient of "
#: How near results are to jax's; on the processor, jax leaves out roundings to bf16 between operations.
NEAR = {"bf16": 0.02}


def agree(name: str, found: Sequence[Any], expected: Sequence[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        near = NEAR.get(name, 2e-5)
        np.testing.assert_allclose(one, other, rtol=near, atol=near)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if not name.startswith(_GRADIENT)])
def test_what_jax_lowers_agrees_with_jax(name: str) -> None:
    program = PROGRAMS[name]
    module = mind_mlir.from_stablehlo(program.text)
    arguments = {f"arg{index}": array for index, array in enumerate(program.arguments)}
    executable = mind_mlir.compile(module, function="main")
    agree(name, guarded.call_executable(executable, arguments), program.results)
    agree(name, mind_mlir.interpret(module, arguments, function="main"), program.results)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name.startswith(_GRADIENT)])
def test_gradients_of_ours_agree_with_those_of_jax(name: str) -> None:
    program = PROGRAMS[name]
    arguments = {f"arg{index}": array for index, array in enumerate(program.arguments)}
    gradient = mind_mlir.differentiate(mind_mlir.from_stablehlo(program.text), "main", extensions=True)
    found = mind_mlir.compile(gradient.module)(**arguments)
    agree(name, found, program.results)
