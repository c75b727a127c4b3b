"""The findings of autodiff (autodiff.md, "Error space"): E5001 to E5005, and wrong arguments (E51xx)."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import Diagnostic
from mind_mlir.ir.module import Parameter
from mind_mlir.ir.types import TensorType, format_shape
from mind_mlir.ops.opdef import COMPLEX, NotDifferentiable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.ops.opdef import OpDef

#: What the verifier's findings are called when a derivative rule causes them; others are E5002.
_CATEGORIES = dict.fromkeys(("E3004", "E3005"), "E5003") | dict.fromkeys(
    ("E3001", "E3002", "E3003", "E3006", "E3007", "E3009"), "E5004"
)
_NO_REAL_LOSS = (
    "gradients are those of real numbers, and none goes through the operations that make real numbers of "
    "complex ones: nothing that has a gradient depends on it"
)
_NAMES = {"E5002": "Verification", "E5003": "InvalidAxis", "E5004": "UnsupportedShape"}


def unsupported_operation(operation: CoreOperation, value: ValueId, record: OpDef) -> Diagnostic:
    """Return E5001: ``operation``, which defines ``value``, has no derivative rule."""
    if isinstance(record.derivative, NotDifferentiable):
        note = record.derivative.reason
        help_ = "leave the inputs it depends on out of `wrt`, or compute the value without it"
    else:
        note = f"autodiff.md leaves the derivative of {record.opcode} out of Core v1"
        help_ = "allow it: differentiate(..., extensions=True), or --extensions on the command line"
    return Diagnostic(
        "E5001",
        f"UnsupportedOp: {record.opcode} {operation.label} has no derivative rule",
        operation.location,
        (note,),
        help_,
        context=_context(operation, value),
    )


def failed_rule(operation: CoreOperation, value: ValueId, inner: Diagnostic) -> Diagnostic:
    """Return E5002, E5003 or E5004: the derivative of ``operation`` broke a rule of the IR."""
    code = _CATEGORIES.get(inner.code, "E5002")
    return Diagnostic(
        code,
        f"{_NAMES[code]}: the derivative of {operation.opcode} {operation.label} is not well-formed",
        operation.location,
        (f"{inner.code}: {inner.message}", *inner.notes),
        context=_context(operation, value, inner=inner),
    )


def unsupported_shape(
    operation: CoreOperation, value: ValueId, found: Sequence[int], expected: Sequence[int]
) -> Diagnostic:
    """Return E5004: a cotangent of shape ``found`` does not sum to an operand of shape ``expected``."""
    return Diagnostic(
        "E5004",
        f"UnsupportedShape: the derivative of {operation.opcode} {operation.label} has shape "
        f"{format_shape(tuple(found))}, which does not sum to the operand's {format_shape(tuple(expected))}",
        operation.location,
        context=_context(operation, value, found=tuple(found), expected=tuple(expected)),
    )


def invalid_gradient_module(inner: Diagnostic) -> Diagnostic:
    """Return E5002: the gradient module fails verification with ``inner``."""
    return Diagnostic(
        "E5002",
        "Verification: the gradient module fails verification",
        inner.location,
        (f"{inner.code}: {inner.message}", *inner.notes),
        context=MappingProxyType({"inner": inner}),
    )


def not_differentiable(name: str, value: CoreOperation | Parameter) -> Diagnostic:
    """Return E5005: the input called ``name``, an Input or a parameter, is not floating-point."""
    is_parameter = isinstance(value, Parameter)
    type_ = value.type if isinstance(value, Parameter) else value.result_type
    facts = {"operation": "Input", "value": value.value_id, "name": name}
    is_complex = isinstance(type_, TensorType) and type_.dtype in COMPLEX
    return Diagnostic(
        "E5005",
        f"{'argument' if is_parameter else 'input'} '{name}' has type {type_}, which is not differentiable",
        value.location,
        (_NO_REAL_LOSS,) if is_complex else (),
        "gradients exist with respect to floating-point inputs",
        context=MappingProxyType(facts),
    )


def unknown_input(name: str, known: Sequence[str]) -> Diagnostic:
    """Return E5101: there is no input called ``name``."""
    return Diagnostic(
        "E5101",
        f"the module has no input '{name}' to differentiate with respect to",
        None,
        (),
        f"its inputs are {', '.join(known)}" if known else "it has no inputs",
        context=MappingProxyType({"name": name, "inputs": tuple(known)}),
    )


def malformed_cotangents(found: object, count: int) -> Diagnostic:
    """Return E5102: ``found`` does not say where the cotangents of ``count`` outputs come from."""
    return Diagnostic(
        "E5102",
        f"cotangents must be 'unit' or 'given', once or for each of {count} outputs; found {found!r}",
        context=MappingProxyType({"found": repr(found), "outputs": count}),
    )


def _context(operation: CoreOperation, value: ValueId, **more: Any) -> MappingProxyType[str, Any]:
    return MappingProxyType({"operation": operation.opcode, "value": value, **more})
