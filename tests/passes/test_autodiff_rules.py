"""Every derivative rule, on every example of its record, in f64.

With J the Jacobian of an operation: its gradient module gives J^T w, differentiating that with respect to w
gives J v exactly, and the central difference along v gives J v approximately. Second derivatives likewise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from differentiation import (
    directions,
    example_module,
    example_values,
    finite_difference,
    float_inputs,
    inner,
    with_outputs,
)

from mind_mlir import DType, TensorType, differentiate, interpret
from mind_mlir.ir.profiles import CORE_V1
from mind_mlir.ops.opdef import Example, NotDifferentiable, OpDef
from mind_mlir.ops.registry import all_ops

if TYPE_CHECKING:
    from mind_mlir import Module
    from mind_mlir.passes.gradient_choice import Cotangent

#: By dtype: the step of the central difference, what it may be wrong by, and the rounding of a short sum.
PRECISION = {DType.F64: (1e-5, 1e-6, 1e-10), DType.F32: (1e-1, 1e-3, 1e-4)}


def _is_of_core(operand: str) -> bool:
    name = operand.partition("[")[0]
    return name == "T" or DType.from_name(name) in CORE_V1.dtypes


CASES = [
    pytest.param(record, example, id=f"{record.opcode}-{index}")
    for record in all_ops()
    if not record.collective
    if not isinstance(record.derivative, NotDifferentiable) and record.opcode not in CORE_V1.refused
    for index, example in enumerate(record.examples)
    if any(operand.startswith(("T", "f")) for operand in example.operands)
    and example.attributes.get("dtype", DType.F32) in (DType.F32, DType.F64)  # what a Cast gives
    and all(_is_of_core(operand) for operand in example.operands)  # differences of narrow floats say little
]


def precision(module: Module) -> tuple[float, float, float]:
    dtypes = {op.result_type.dtype for op in module.operations if isinstance(op.result_type, TensorType)}
    return PRECISION[DType.F32 if DType.F32 in dtypes else DType.F64]


@pytest.mark.parametrize(("record", "example"), CASES)
def test_first_derivative(record: OpDef, example: Example) -> None:
    rng = np.random.default_rng(5)
    module = example_module(record, example)
    values, names = example_values(record, example, rng), float_inputs(module)
    backward = differentiate(module, cotangents="given", extensions=True).module
    v = directions(module, names, rng)
    w = directions(backward, [name for name in float_inputs(backward) if name not in names], rng)
    step, error, rounding = precision(module)

    value, *gradients = interpret(backward, values | w)
    np.testing.assert_array_equal(value, interpret(module, values)[0])
    assert [g.shape for g in gradients] == [v[name].shape for name in names]
    if value.size == 0:
        assert not any(np.any(g) for g in gradients)
        return

    modes: list[Cotangent] = ["unit"]  # the value does not depend on w
    modes += ["given"] * len(names)
    forward = differentiate(backward, wrt=["cotangent_0"], cotangents=modes, extensions=True).module
    given = {f"cotangent_{i}": v[name] for i, name in enumerate(names, start=1)}
    tangent = interpret(forward, values | w | given)[-1]  # J v

    (expected,) = finite_difference(module, values, v, step)
    np.testing.assert_allclose(tangent, expected, rtol=error, atol=error)
    left, right = inner([tangent], [w["cotangent_0"]]), inner([v[name] for name in names], gradients)
    np.testing.assert_allclose(left, right, rtol=rounding, atol=rounding)


@pytest.mark.parametrize(("record", "example"), CASES)
def test_second_derivative(record: OpDef, example: Example) -> None:
    rng = np.random.default_rng(6)
    module = example_module(record, example)
    values, names = example_values(record, example, rng), float_inputs(module)
    first = differentiate(module, cotangents="given", extensions=True).module
    first = with_outputs(first, first.outputs[1:])
    v = directions(module, names, rng)
    w = directions(first, [name for name in float_inputs(first) if name not in names], rng)
    step, error, _ = precision(module)

    second = differentiate(first, wrt=names, cotangents="given", extensions=True).module
    taken = float_inputs(first)
    given = {f"cotangent_{i}" + "_" * (f"cotangent_{i}" in taken): v[name] for i, name in enumerate(names)}
    products = interpret(second, values | w | given)[len(names) :]  # the Hessian of <w, f>, times v
    expected = finite_difference(first, values | w, v, step)
    for product, reference in zip(products, expected, strict=True):
        np.testing.assert_allclose(product, reference, rtol=error, atol=error)
