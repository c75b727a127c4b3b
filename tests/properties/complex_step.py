"""Directional derivatives of interpreted modules, exact to rounding.

The numpy rules of smooth operations hold for complex numbers as they stand, so that f(x + ihv) gives both
f(x) and, with an h too small to matter, the derivative along v: its imaginary part over h. No difference is
taken, so nothing cancels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from programs import tensor

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ops.contexts import EvalContext
from mind_mlir.ops.infer import complete_attributes
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir import CoreOperation, Module
    from mind_mlir.ir.attributes import Array

_STEP = 1e-100


def directional_derivative(
    module: Module, arguments: Mapping[str, Array], direction: Mapping[str, Array]
) -> list[Array]:
    """Return the derivative of each output along ``direction``; zero for one that is not floating-point.

    Args:
        module: A module of smooth operations in f64 (integer and i1 values take no part).
        arguments: Where to differentiate.
        direction: A tensor of the input's type for each input that moves.
    """
    values: dict[int, Array] = {}
    for operation in module.operations:
        values[operation.value_id] = _value(operation, values, arguments, direction)
    outputs = [values[output] for output in module.outputs]
    return [
        np.imag(output) / _STEP if output.dtype.kind == "c" else np.zeros(output.shape) for output in outputs
    ]


def _value(
    operation: CoreOperation,
    values: Mapping[int, Array],
    arguments: Mapping[str, Array],
    direction: Mapping[str, Array],
) -> Array:
    if operation.opcode == "Input":
        name = str(operation.attributes["name"])
        array: Any = arguments[name]
        return array + 1j * _STEP * direction[name] if name in direction else _as_complex(array)
    record = by_opcode()[operation.opcode]
    context = EvalContext(
        operation.opcode,
        operation.label,
        tuple(values[operand] for operand in operation.operands),
        complete_attributes(record, operation.attributes),
        tensor(operation),
    )
    if operation.opcode == "Pad":  # pads with a number, into an array of that number's dtype
        real = record.evaluate(_with_operand(context, np.real(context.operands[0])))
        if context.operands[0].dtype.kind != "c":
            return np.asarray(real)
        zeros = {**context.attributes, "pad_value": TensorLiteral.from_array(np.zeros(()))}
        imaginary = record.evaluate(_with_operand(context, np.imag(context.operands[0]), zeros))
        return np.asarray(real + 1j * imaginary)
    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # as the interpreter does: Smith's method divides by 0
        return _as_complex(record.evaluate(context))


def _with_operand(
    context: EvalContext, operand: Array, attributes: Mapping[str, Any] | None = None
) -> EvalContext:
    attributes = context.attributes if attributes is None else attributes
    return EvalContext(context.opcode, context.label, (operand,), attributes, context.result_type)


def _as_complex(array: Array) -> Array:
    return np.asarray(array, np.complex128) if array.dtype.kind == "f" else array
