"""Programs as StableHLO: its reference interpreter gives what ours does, for every record and dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import harness
import numpy as np
import pytest
from stablehlo_border import run
from stablehlo_interpreter import Interpreter

import mind_mlir
from mind_mlir.conversion.stablehlo.text import to_stablehlo
from mind_mlir.ir.profiles import CORE_V1
from mind_mlir.ops.example_types import dtypes_of
from mind_mlir.ops.opdef import Domain
from mind_mlir.ops.registry import all_ops

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Use

    from mind_mlir.ops.opdef import OpDef

Array = np.ndarray[Any, np.dtype[Any]]

#: Uses of a dtype that Core lacks: what shapes do is the same in all dtypes.
_FEW = 2


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    with Interpreter() as running:
        yield running


def uses_of(record: OpDef) -> list[list[Use]]:
    """Return the uses of a record that may stand in one module: PTIR's operands have one shape."""
    groups: list[list[Use]] = [[], []]
    for dtype in dtypes_of(record):
        of_core = dtype is None or dtype in CORE_V1.dtypes
        uses = harness.uses_of(record, dtype)
        groups[not of_core] += uses if of_core else uses[:_FEW]
    return [list({str(use): use for use in group}.values()) for group in groups if group]


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(r, id=r.opcode)
        for r in all_ops()
        if r.examples and r.opcode != "Input" and not r.collective  # which its interpreter has not
    ],
)
def test_operations_compute_the_same(record: OpDef, interpreter: Interpreter) -> None:
    rng = np.random.default_rng(29)
    for uses in uses_of(record):
        module = harness.build(uses)
        operands = [_comparable(use, harness.edge_operands(use, rng)) for use in uses]
        expected = [
            harness.run_numpy_all(record, each, use.attributes)
            for use, each in zip(uses, operands, strict=True)
        ]
        given = [
            a if a.size else np.zeros([max(e, 1) for e in a.shape], a.dtype)
            for each in operands
            for a in each
        ]
        types = [harness.type_of(array) for arrays in expected for array in arrays]
        text = to_stablehlo(module)
        found = iter(run(interpreter, text, given, types))
        for use, arrays, wanted in zip(uses, operands, expected, strict=True):
            actual = tuple(next(found) for _ in wanted)
            try:
                harness.assert_agrees(record, actual, wanted, arrays, use.attributes)
            except AssertionError as error:
                error.add_note(f"in {use}")
                raise


def _comparable(use: Use, operands: list[Array]) -> list[Array]:
    """Return operands that StableHLO means the same with: it multiplies the gaps of a base dilation, too."""
    if use.record.opcode != "Convolution" or max(use.attributes["base_dilation"], default=1) == 1:
        return operands
    image, filter_ = operands
    return [image, np.nan_to_num(filter_, nan=1.0, posinf=2.0, neginf=-2.0)]


@pytest.mark.parametrize("record", [pytest.param(r, id=r.opcode) for r in all_ops() if r.programs])
def test_programs_compute_the_same(record: OpDef, interpreter: Interpreter) -> None:
    rng = np.random.default_rng(3)
    for program in record.programs:
        module = mind_mlir.parse(program.text)
        assert isinstance(module, mind_mlir.Module)
        text = to_stablehlo(module)
        for _ in range(2):  # so that branches go both ways
            arguments = {
                str(parameter.name): harness.random_array(parameter.tensor_type, Domain.ANY, rng)
                for parameter in module.functions["main"].parameters
            }
            expected = mind_mlir.interpret(module, arguments)
            types = [harness.type_of(array) for array in expected]
            found = run(interpreter, text, list(arguments.values()), types)
            for actual, wanted in zip(found, expected, strict=True):
                np.testing.assert_array_equal(actual, wanted)
