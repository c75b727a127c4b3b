"""Builds flat modules from Python, inferring every result type from the operation records."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mind_mlir import border
from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.module import CoreOperation, Module, ValueId
from mind_mlir.ir.names import Names
from mind_mlir.ir.source_info import SourceInfo
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ir.value import Value
from mind_mlir.ops import registry
from mind_mlir.ops.attribute_values import from_python
from mind_mlir.ops.constants import constant_form, literal_dtype
from mind_mlir.ops.contexts import TypeContext
from mind_mlir.ops.infer import infer_type
from mind_mlir.ops.unknown import unknown_operation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from mind_mlir.ops.opdef import OpDef


@dataclass(slots=True, eq=False)
class Builder:
    """Appends operations to a flat module, assigning fresh value ids in creation order.

    What is wrong with an operation is a `VerificationError`, raised where it is built; what the operations
    are together (names of inputs, dtypes of the profile) is for `verify` to say.

    Example:
        >>> b = Builder()
        >>> x = b.input("x", TensorType(DType.F32, (2, 3)))
        >>> print(b.build([b.emit("Sum", x, axes=[1])]))
        %0 = Input {name="x"} : tensor<f32[2, 3]>
        %1 = Sum (%0) {axes=[1], keepdims=false} : tensor<f32[2]>
        outputs: %1
    """

    operations: list[CoreOperation] = field(default_factory=list, init=False)
    next_id: ValueId = 0

    def __post_init__(self) -> None:
        self.next_id = border.integer(self.next_id, "next_id")

    def __str__(self) -> str:
        return "\n".join(map(str, self.operations))

    def __repr__(self) -> str:
        return f"<Builder of {len(self.operations)} operations>"

    def input(self, name: str, type_: TensorType, source: SourceInfo | None = None) -> Value:
        """Declare an input called ``name``.

        Raises:
            VerificationError: E4004, ``name`` is no string, or ``type_`` no `TensorType` of known extents.
            TypeError: ``source`` is no `SourceInfo`.
        """
        if not isinstance(name, str):
            raise _not_an_input("name of an Input must be a string", name)
        if not isinstance(type_, TensorType) or not all(isinstance(extent, int) for extent in type_.shape):
            raise _not_an_input("type of an Input must be a TensorType of known extents", type_)
        return self._append("Input", (), {"name": name}, type_, _source(source))

    def constant(self, data: npt.ArrayLike, dtype: DType) -> Value:
        """Emit a constant; scalars take the shortest of the constant operations.

        Raises:
            VerificationError: E1104, E3010 or E4005, as `TensorLiteral.of`.
        """
        literal = TensorLiteral.of(data, dtype)
        opcode, attributes = constant_form(literal)
        return self._append(opcode, (), attributes, literal.type, None)

    def emit(
        self, opcode: str, /, *operands: Value, source: SourceInfo | None = None, **attributes: Any
    ) -> Value:
        """Append an operation and return its value.

        Attributes may be given as Python writes them: lists for tuples, ``dtype="f32"``, ``padding="Same"``,
        numbers for a literal.

        Raises:
            VerificationError: The opcode is unknown (E1102), an operand is no value of this builder (E4001),
                or the operation breaks a rule of its record.
            TypeError: ``source`` is no `SourceInfo`.
        """
        if not isinstance(opcode, str):
            message = f"an opcode must be a string, not {border.describe(opcode)}"
            raise VerificationError(Diagnostic("E1102", message))
        opcode, source = border.text(opcode, "opcode"), _source(source)
        record = registry.lookup(opcode)
        if record is None:
            raise VerificationError(unknown_operation(opcode, source.opcode if source else None))
        values = self._own(operands, "E4001", f"operand {{}} of {opcode}")
        types = tuple(value.type for value in values)
        complete = _attributes(record, types, attributes)
        context = TypeContext(opcode, self.next_id, types, complete, source=source)
        result = infer_type(record, context)
        if result is None:
            raise VerificationError(context.diagnostics)
        return self._append(opcode, values, context.attributes, result, source)

    def copy(self, operation: CoreOperation, operands: Sequence[Value]) -> Value:
        """Append a verified operation of another module, reading ``operands``, and return its value.

        Raises:
            VerificationError: E4001, an operand is no value of this builder.
            TypeError: ``operation`` is no `CoreOperation` with one result.
        """
        border.expect(operation, CoreOperation, "operation", "a CoreOperation")
        read = border.items(operands, "operands", "a sequence of Values")
        values = self._own(read, "E4001", f"operand {{}} of {operation.opcode}")
        value = Value(self.next_id, operation.tensor_type, self)
        ids = tuple(v.id for v in values)
        self.operations.append(
            replace(operation, value_id=value.id, operands=ids, names=Names(), origin=operation.label)
        )
        self.next_id += 1
        return value

    def build(self, outputs: Iterable[Value]) -> Module:
        """Return the module with the given outputs, or one output.

        Raises:
            VerificationError: E4003, an output is no value of this builder.
            TypeError: ``outputs`` is no iterable.
        """
        listed = (outputs,) if isinstance(outputs, Value) else outputs
        values = self._own(border.items(listed, "outputs", "a sequence of Values"), "E4003", "output {}")
        return Module.flat(self.operations, [value.id for value in values])

    def _own(self, values: Iterable[object], code: str, place: str) -> list[Value]:
        """Return ``values``, which must be of this builder."""
        own: list[Value] = []
        findings: list[Diagnostic] = []
        for index, value in enumerate(values):
            if isinstance(value, Value) and value.builder is self:
                own.append(value)
                continue
            found = "a value of another Builder" if isinstance(value, Value) else border.describe(value)
            help_ = "pass what a method of this Builder returned"
            help_ += "" if isinstance(value, Value) else "; Builder.constant makes a value of a number"
            findings.append(Diagnostic(code, f"{place.format(index)} is {found}", help=help_))
        if findings:
            raise VerificationError(findings)
        return own

    def _append(
        self,
        opcode: str,
        operands: Sequence[Value],
        attributes: Mapping[str, Any],
        type_: TensorType,
        source: SourceInfo | None,
    ) -> Value:
        value = Value(self.next_id, type_, self)
        self.operations.append(
            CoreOperation.create(value.id, opcode, [v.id for v in operands], attributes, type_, source)
        )
        self.next_id += 1
        return value


def _not_an_input(expected: str, found: object) -> VerificationError:
    shown = str(found) if isinstance(found, TensorType) else border.describe(found)
    help_ = 'write Builder.input("x", TensorType(DType.F32, (2, 3)))'
    return VerificationError(Diagnostic("E4004", f"the {expected}, not {shown}", help=help_))


def _source(source: object) -> SourceInfo | None:
    return None if source is None else border.expect(source, SourceInfo, "source", "a SourceInfo or None")


def _attributes(record: OpDef, operands: Sequence[TensorType], given: Mapping[str, object]) -> dict[str, Any]:
    """Return the attributes in the form that operations hold; None stands for what is no attribute."""
    dtype = literal_dtype(record.opcode, operands, given.get("dtype"))
    attributes: dict[str, Any] = {}
    for name, value in given.items():
        schema = record.attribute(name)
        attributes[name] = from_python(schema.kind if schema else None, value, dtype)
    return attributes
