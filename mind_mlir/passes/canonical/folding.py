"""Replaces operations on small constants by their value, where that is safe.

Folding is bitwise exact: only operations are folded whose record says that compiled code agrees with numpy
bit for bit (never a transcendental function or a reduction, whose last bit depends on who computes it), never
one that raises a floating-point exception or an error, and never into a constant of more than
`MAX_FOLDED_ELEMENTS` elements.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from mind_mlir.diagnostics import ExecutionError
from mind_mlir.ir.attributes import Attributes, TensorLiteral
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.constants import constant_form
from mind_mlir.ops.contexts import EvalContext
from mind_mlir.ops.infer import complete_attributes
from mind_mlir.ops.opdef import Rounding
from mind_mlir.ops.registry import by_opcode
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.module import CoreOperation, ValueId

#: Larger results stay computed at run time: folding them would trade code size for nothing.
MAX_FOLDED_ELEMENTS = 16


@dataclass(slots=True)
class Folder:
    """Folds operations one after the other, each after those whose values it reads.

    Attributes:
        flags: Whether i1 values are folded, as branches need it.
        most: The elements of a constant that takes the place of an operation, at most.
        constants: The values that are known.
    """

    flags: bool = False
    most: int = MAX_FOLDED_ELEMENTS
    constants: dict[ValueId, TensorLiteral] = field(default_factory=dict)

    def fold(self, operation: CoreOperation) -> CoreOperation:
        """Return the operation, or a constant in its place."""
        if operation.regions or operation.others:
            return operation
        if not operation.operands:
            self._remember(operation)
            return operation
        folded = self._evaluate(operation)
        if folded is None:
            return operation
        self.constants[operation.value_id] = folded
        opcode, attributes = constant_form(folded)
        return replace(
            operation,
            opcode=opcode,
            operands=(),
            attributes=Attributes.of(attributes),
            result_type=folded.type,
        )

    def flag(self, value: ValueId) -> bool | None:
        """Return a scalar i1 where it is known."""
        literal = self.constants.get(value)
        return None if literal is None else bool(literal.array)

    def _remember(self, operation: CoreOperation) -> None:
        literal = operation.attributes.get("value")
        if isinstance(literal, TensorLiteral) and literal.array.size <= self.most:
            self.constants[operation.value_id] = literal

    def _evaluate(self, operation: CoreOperation) -> TensorLiteral | None:
        type_ = operation.result_type
        operands = [self.constants.get(operand) for operand in operation.operands]
        known = tuple(literal.array for literal in operands if literal is not None)
        if len(known) < len(operands) or not isinstance(type_, TensorType):
            return None
        record = by_opcode()[operation.opcode]
        if record.runs_others or record.rounding is not Rounding.EXACT:
            return None
        if (type_.dtype is DType.I1 and not self.flags) or not 0 < type_.element_count <= self.most:
            return None
        context = EvalContext(
            operation.opcode,
            operation.label,
            known,
            complete_attributes(record, operation.attributes),
            type_,
        )
        # Integer wrap-around is defined; an exception flag of a float operation is worth keeping.
        mode: Literal["raise", "ignore"] = "raise" if type_.dtype.is_float else "ignore"
        try:
            with np.errstate(divide=mode, over=mode, invalid=mode, under="ignore"):
                return TensorLiteral.of(record.evaluate(context), type_.dtype)
        except (FloatingPointError, ExecutionError):
            return None  # unsafe: left for run time, where it behaves as documented
