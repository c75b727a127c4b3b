"""Brings a flat module into canonical form (core-ir.md, "Canonicalisation").

Before: a verified flat module. After: the same function of its inputs, with

- inputs first, and value ids dense and ascending in program order; values have no names any more, so that
  equal programs have equal texts, but messages call them what the given module does (`CoreOperation.label`);
- operands of commutative operations in ascending order;
- operations on small constants replaced by their value, where that is safe;
- no operation whose value nothing needs (inputs stay: they are the interface).

Linear in the number of operations, deterministic and idempotent. Folding is bitwise exact: only operations
are folded whose record says that compiled code agrees with numpy bit for bit (never a transcendental function
or a reduction, whose last bit depends on who computes it), never one that raises a floating-point exception
or an error, and never into a constant of more than `MAX_FOLDED_ELEMENTS` elements.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from mind_mlir.diagnostics import ExecutionError
from mind_mlir.frozen import FrozenDict
from mind_mlir.interrupts import deliver
from mind_mlir.ir.attributes import Attributes, TensorLiteral
from mind_mlir.ir.module import Block, CoreOperation, Return
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.constants import constant_form
from mind_mlir.ops.contexts import EvalContext
from mind_mlir.ops.infer import complete_attributes
from mind_mlir.ops.opdef import Rounding
from mind_mlir.ops.registry import by_opcode
from mind_mlir.passes.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mind_mlir.ir.module import Module, ValueId

#: Larger results stay computed at run time: folding them would trade code size for nothing.
MAX_FOLDED_ELEMENTS = 16


def canonicalize(module: Module) -> Module:
    """Return the canonical form of a flat module; it is verified first.

    Raises:
        VerificationError: The module breaks a rule of its profile; all findings are in it.
        TypeError: ``module`` is no `Module`.
    """
    return canonicalize_with_map(verify(module))[0]


def canonicalize_with_map(
    module: Module, keep: Iterable[ValueId] = ()
) -> tuple[Module, Mapping[ValueId, ValueId]]:
    """Return the canonical form and the new id of every value that is left.

    Args:
        module: A verified flat module.
        keep: Values that must survive although no output needs them.
    """
    operations = _fold(_inputs_first(module.operations))
    terminator = module.returned
    live = _live_values(operations, (*terminator.operands, *keep))
    kept = [op for op in operations if op.opcode == "Input" or op.value_id in live]
    renamed = {op.value_id: new for new, op in enumerate(kept)}
    renumbered = tuple(_renumber(op, renamed) for op in kept)
    outputs = Return(tuple(renamed[value] for value in terminator.operands), terminator.locations)
    body = Block(renumbered, outputs, label=module.body.label)
    return module.with_body(body), FrozenDict(renamed)


def _inputs_first(operations: Iterable[CoreOperation]) -> list[CoreOperation]:
    return sorted(operations, key=lambda op: op.opcode != "Input")  # sorting is stable


@dataclass(slots=True)
class _Folder:
    constants: dict[ValueId, TensorLiteral] = field(default_factory=dict)

    def fold(self, operation: CoreOperation) -> CoreOperation:
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

    def _remember(self, operation: CoreOperation) -> None:
        literal = operation.attributes.get("value")
        if isinstance(literal, TensorLiteral) and literal.array.size <= MAX_FOLDED_ELEMENTS:
            self.constants[operation.value_id] = literal

    def _evaluate(self, operation: CoreOperation) -> TensorLiteral | None:
        record = by_opcode()[operation.opcode]
        type_ = operation.result_type
        if record.rounding is not Rounding.EXACT or not isinstance(type_, TensorType):
            return None
        if type_.dtype is DType.I1 or not 0 < type_.element_count <= MAX_FOLDED_ELEMENTS:
            return None
        operands = [self.constants.get(operand) for operand in operation.operands]
        known = tuple(literal.array for literal in operands if literal is not None)
        if len(known) < len(operands):
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


def _fold(operations: list[CoreOperation]) -> list[CoreOperation]:
    folder = _Folder()
    folded = []
    for operation in operations:
        deliver()
        folded.append(folder.fold(operation))
    return folded


def _live_values(operations: list[CoreOperation], roots: Iterable[ValueId]) -> set[ValueId]:
    live = set(roots)
    for operation in reversed(operations):
        if operation.value_id in live:
            live.update(operation.operands)
    return live


def _renumber(operation: CoreOperation, renamed: Mapping[ValueId, ValueId]) -> CoreOperation:
    record = by_opcode()[operation.opcode]
    operands = [renamed[operand] for operand in operation.operands]
    if record.commutative:
        operands.sort()
    return CoreOperation.create(
        renamed[operation.value_id],
        operation.opcode,
        operands,
        complete_attributes(record, operation.attributes),
        operation.result_type,
        operation.source,
        origin=operation.label,
    )
