"""Integers and truth values that a program computes from constants: indices and shapes, mostly.

They are what the numpy rules of the operations give, so that import knows of them what the interpreter would
find. Nothing is replaced: the operations stay, and are pruned where nothing needs them any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.diagnostics import ExecutionError
from mind_mlir.ir.attributes import Array, TensorLiteral
from mind_mlir.ir.types import TensorType
from mind_mlir.ops.contexts import EvalContext
from mind_mlir.ops.infer import complete_attributes
from mind_mlir.ops.registry import by_opcode
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.ir.value import Value

#: What has more elements than this is looked at as if it depended on an argument.
MOST_ELEMENTS = 1 << 20


@dataclass(slots=True)
class Folded:
    """The operations of a function as they are appended, and what is known of their results.

    Attributes:
        makers: What makes each value of one dtype and shape.
        found: What values are that have been asked for; None where it is not known.
    """

    makers: dict[ValueId, CoreOperation] = field(default_factory=dict)
    found: dict[ValueId, Array | None] = field(default_factory=dict)

    def append(self, operations: Iterable[CoreOperation]) -> None:
        """Take note of operations that have been appended."""
        for operation in operations:
            if not operation.regions and not operation.others:
                self.makers[operation.value_id] = operation

    def array(self, value: Value) -> Array | None:
        """Return what ``value`` is, whatever the arguments are; None where that is not known."""
        waiting = [value.id]
        while waiting:
            current = waiting[-1]
            if current in self.found:
                waiting.pop()
                continue
            operation = self.makers.get(current)
            if operation is None or not _is_foldable(operation):
                self.found[current] = None
                continue
            missing = [each for each in operation.operands if each not in self.found]
            if missing:
                waiting += missing
                continue
            known = [self.found[each] for each in operation.operands]
            arrays = tuple([each for each in known if each is not None])
            self.found[current] = _evaluated(operation, arrays) if len(arrays) == len(known) else None
        return self.found[value.id]


def _is_foldable(operation: CoreOperation) -> bool:
    type_ = operation.result_type
    if not isinstance(type_, TensorType) or operation.opcode in ("Call", "CustomCall", "Input"):
        return False
    return not type_.dtype.is_float and not type_.dtype.is_complex and type_.element_count <= MOST_ELEMENTS


def _evaluated(operation: CoreOperation, operands: tuple[Array, ...]) -> Array | None:
    literal = operation.attributes.get("value")
    if not operands and isinstance(literal, TensorLiteral):
        return np.asarray(literal.array)
    record = by_opcode()[operation.opcode]
    attributes = complete_attributes(record, operation.attributes)
    context = EvalContext(operation.opcode, operation.label, operands, attributes, operation.tensor_type)
    try:
        with np.errstate(all="ignore"):
            found: Any = record.evaluate(context)
    except ExecutionError:
        return None  # the call is to end there, rather than import
    return np.asarray(found)
