"""Builds flat modules from Python, inferring every result type from the operation records."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.frozen import FrozenDict
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.module import CoreOperation, Module, ValueId
from mind_mlir.ops import registry
from mind_mlir.ops.constants import constant_form
from mind_mlir.ops.contexts import TypeContext
from mind_mlir.ops.infer import infer_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from mind_mlir.ir.module import SourceInfo
    from mind_mlir.ir.types import DType, TensorType


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the module being built."""

    id: ValueId
    type: TensorType

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the static shape."""
        return self.type.extents


@dataclass(slots=True)
class Builder:
    """Appends operations to a flat module, assigning fresh value ids in creation order.

    Example:
        >>> b = Builder()
        >>> x = b.input("x", TensorType(DType.F32, (2, 3)))
        >>> print(b.build([b.emit("Sum", x, axes=(1,))]).outputs)
        (1,)
    """

    operations: list[CoreOperation] = field(default_factory=list)
    next_id: ValueId = 0

    def input(self, name: str, type_: TensorType, source: SourceInfo | None = None) -> Value:
        """Declare an input called ``name``."""
        return self._append("Input", (), {"name": name}, type_, source)

    def constant(self, data: npt.ArrayLike, dtype: DType) -> Value:
        """Emit a constant; scalars take the shortest of the constant operations."""
        literal = TensorLiteral.of(data, dtype)
        opcode, attributes = constant_form(literal)
        return self._append(opcode, (), attributes, literal.type, None)

    def emit(
        self, opcode: str, *operands: Value, source: SourceInfo | None = None, **attributes: Any
    ) -> Value:
        """Append an operation and return its value.

        Raises:
            VerificationError: The opcode is unknown or the operation breaks a rule of its record.
        """
        record = registry.lookup(opcode)
        if record is None:
            raise VerificationError(Diagnostic("E1102", f"unknown operation '{opcode}'"))
        context = TypeContext(
            opcode, self.next_id, tuple(v.type for v in operands), attributes, source=source
        )
        result = infer_type(record, context)
        if result is None:
            raise VerificationError(context.diagnostics)
        return self._append(opcode, operands, dict(context.attributes), result, source)

    def copy(self, operation: CoreOperation, operands: Sequence[Value]) -> Value:
        """Append a verified operation of another module, reading ``operands``, and return its value."""
        value = Value(self.next_id, operation.tensor_type)
        ids = tuple(v.id for v in operands)
        self.operations.append(
            replace(operation, value_id=value.id, operands=ids, names=FrozenDict(), origin=operation.label)
        )
        self.next_id += 1
        return value

    def build(self, outputs: Iterable[Value]) -> Module:
        """Return the module with the given outputs."""
        return Module.flat(self.operations, [value.id for value in outputs])

    def _append(
        self,
        opcode: str,
        operands: Sequence[Value],
        attributes: dict[str, Any],
        type_: TensorType,
        source: SourceInfo | None,
    ) -> Value:
        value = Value(self.next_id, type_)
        self.operations.append(
            CoreOperation.create(value.id, opcode, [v.id for v in operands], attributes, type_, source)
        )
        self.next_id += 1
        return value
