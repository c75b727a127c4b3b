"""The backward pass: gradients of values, accumulated in reverse program order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import AutodiffError, VerificationError
from mind_mlir.ir.source_info import SourceInfo
from mind_mlir.ir.types import TensorType
from mind_mlir.ops.infer import complete_attributes
from mind_mlir.ops.opdef import NotDifferentiable
from mind_mlir.ops.registry import by_opcode
from mind_mlir.ops.vjp import VjpContext
from mind_mlir.passes.autodiff_errors import failed_rule, unsupported_operation, unsupported_shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from mind_mlir.core.builder import Builder
    from mind_mlir.diagnostics import Diagnostic
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.ir.types import ValueType
    from mind_mlir.ir.value import Value

#: How messages call what a derivative rule appends.
_DERIVED = "in the derivative of "


def is_float(type_: ValueType) -> bool:
    """Return whether values of ``type_`` have gradients."""
    return isinstance(type_, TensorType) and type_.dtype.is_float


def varying_values(operations: Sequence[CoreOperation], chosen: AbstractSet[ValueId]) -> set[ValueId]:
    """Return the values that have a gradient if an output depends on them.

    These are the chosen inputs and every floating-point value that is computed from one, except through an
    operation whose result is locally constant.
    """
    varying = set(chosen)
    records = by_opcode()
    for operation in operations:
        if varying.isdisjoint(operation.operands) or not is_float(operation.result_type):
            continue
        derivative = records[operation.opcode].derivative
        if not (isinstance(derivative, NotDifferentiable) and derivative.constant):
            varying.add(operation.value_id)
    return varying


def full(builder: Builder, type_: TensorType, value: float) -> Value:
    """Append a tensor with ``value`` in every element; no large literal, whatever the shape."""
    scalar = builder.constant(value, type_.dtype)
    return builder.emit("BroadcastTo", scalar, result_shape=type_.extents) if type_.rank else scalar


@dataclass(slots=True)
class Backward:
    """The gradients so far, and the operations that compute them.

    Attributes:
        builder: The gradient module; holds the primal operations when the pass starts.
        primal: Values of the differentiated module as values of the gradient module.
        varying: The values that may have a gradient (`varying_values`).
        original: Values of the differentiated module as the user numbered them, for diagnostics.
        extensions: Whether rules outside Core v1 may be used.
        gradients: For each value that has one so far, its gradient: of exactly the value's type.
    """

    builder: Builder
    primal: Mapping[ValueId, Value]
    varying: AbstractSet[ValueId]
    original: Mapping[ValueId, ValueId]
    extensions: bool = False
    gradients: dict[ValueId, Value] = field(default_factory=dict)

    def accumulate(self, value: ValueId, contribution: Value) -> None:
        """Add ``contribution``, which has the type of ``value``, to its gradient."""
        assert contribution.type == self.primal[value].type, "a gradient has the type of its value"
        so_far = self.gradients.get(value)
        self.gradients[value] = (
            contribution if so_far is None else self.builder.emit("Add", so_far, contribution)
        )

    def run(self, operations: Sequence[CoreOperation]) -> None:
        """Visit ``operations`` in reverse, from the gradients of the outputs to those of the inputs.

        Raises:
            AutodiffError: All that went wrong, in program order.
        """
        problems: list[list[Diagnostic]] = []
        for operation in reversed(operations):
            if operation.operands and operation.value_id in self.gradients:
                start = len(self.builder.operations)
                found = self._visit(operation)
                if found:
                    problems.append(found)
                self._locate(start, operation)
        if problems:
            raise AutodiffError([problem for found in reversed(problems) for problem in found])

    def _visit(self, operation: CoreOperation) -> list[Diagnostic]:
        needs = tuple(operand in self.varying for operand in operation.operands)
        contributions: Sequence[Value | None]
        try:
            problems, contributions = [], self._contributions(operation, needs)
        except AutodiffError as error:
            problems = list(error.diagnostics)
            # The module is lost, but the operations before this one may have findings of their own: go on
            # with any values of the right types.
            contributions = [self.primal[operand] for operand in operation.operands]
        for operand, needed, contribution in zip(operation.operands, needs, contributions, strict=True):
            if needed and contribution is not None:
                self.accumulate(operand, contribution)
        return problems

    def _contributions(self, operation: CoreOperation, needs: tuple[bool, ...]) -> list[Value | None]:
        """Return the gradients of the operands through ``operation``, each of its operand's type."""
        value = self.original[operation.value_id]
        record = by_opcode()[operation.opcode]
        rule = record.derivative
        if isinstance(rule, NotDifferentiable) or (record.derivative_is_extension and not self.extensions):
            raise AutodiffError(unsupported_operation(operation, value, record))
        operands = tuple(self.primal[operand] for operand in operation.operands)
        context = VjpContext(
            self.builder,
            operands,
            self.primal[operation.value_id],
            self.gradients[operation.value_id],
            complete_attributes(record, operation.attributes),
            needs,
        )
        try:
            cotangents = rule(context)
            return [
                self._summed_to(operation, cotangent, operand.shape)
                if needed and cotangent is not None
                else None
                for cotangent, operand, needed in zip(cotangents, operands, needs, strict=True)
            ]
        except VerificationError as error:
            raise AutodiffError([failed_rule(operation, value, d) for d in error.diagnostics]) from error

    def _summed_to(self, operation: CoreOperation, cotangent: Value, shape: tuple[int, ...]) -> Value:
        """Sum ``cotangent`` over the axes along which broadcasting stretched ``shape`` to its shape."""
        found = cotangent.shape
        leading = len(found) - len(shape)
        padded = (1,) * leading + shape
        if leading < 0 or any(e not in (f, 1) for e, f in zip(padded, found, strict=True)):
            value = self.original[operation.value_id]
            raise AutodiffError(unsupported_shape(operation, value, found, shape))
        inner = [axis for axis in range(leading, len(found)) if padded[axis] != found[axis]]
        axes = (*range(leading), *inner)
        if not axes:
            return cotangent
        total = self.builder.emit("Sum", cotangent, axes=axes, keepdims=bool(inner))
        if inner and leading:
            return self.builder.emit("Squeeze", total, axes=tuple(range(leading)))
        return total

    def _locate(self, start: int, operation: CoreOperation) -> None:
        """Say of the operations from ``start`` on which one they differentiate, and where it is."""
        appended = self.builder.operations
        source = SourceInfo.at(operation.location) if operation.location else None
        origin = f"{_DERIVED}{operation.label.removeprefix(_DERIVED)}"
        appended[start:] = [replace(op, source=source, origin=origin) for op in appended[start:]]
