"""The fields of an operation as the attributes of its record (`mind_mlir.ops.contract`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.attributes import AttributeValue, TensorLiteral
from mind_mlir.ir.types import DType, SymbolicDim, TensorType
from mind_mlir.languages.ptir.schema import form_of, forms
from mind_mlir.ops.accumulators import default_accumulator
from mind_mlir.ops.contract import Contract, Field, FieldKind, Tagged
from mind_mlir.ops.custom_attributes import AttributesError
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from mind_mlir.languages.ptir.program import Operation
    from mind_mlir.ops.opdef import OpDef


class FieldError(AttributesError):
    """An error in a field; the caller says where that is."""


def record_of(operation: Operation) -> OpDef | None:
    """Return the record of an operation, or None where there is none."""
    form = form_of(operation.name, operation.variant)
    return None if form is None else form.record


def suggestion(operation: Operation) -> str:
    """Return what an operation that no record has may have been meant to be, for the end of a message."""
    variants = [variant for variant in forms().get(operation.name, ()) if variant is not None]
    if variants:
        return did_you_mean(operation.variant or "", variants)
    return did_you_mean(operation.name, forms())


def regions_of(contract: Contract, operation: Operation) -> dict[str, int]:
    """Return the regions that an operation names, by what the record calls them.

    Raises:
        FieldError: A field is missing or of another kind.
    """
    return {
        field.attribute or field.name: _value(field, operation)
        for field in contract.fields
        if field.kind is FieldKind.REGION
    }


def attributes_of(
    contract: Contract, operation: Operation, operands: Sequence[TensorType]
) -> Mapping[str, AttributeValue]:
    """Return the attributes of the record, complete: defaults of the contract are resolved.

    Args:
        contract: How programs write the operation.
        operation: The operation, static.
        operands: The types of its operands.

    Raises:
        FieldError: A field is missing, of another kind, or one that the operation does not have.
        VerificationError: A field breaks a rule of the contract.
    """
    known = {field.name: field for field in contract.fields}
    for name in operation.fields:
        if name not in known:
            guess = did_you_mean(name, list(known))
            raise FieldError(
                f"{spelled(operation)} has no field '{name}'{guess}",
                f"its fields are: {', '.join(known) or 'none'}",
            )
    values = {field.name: _value(field, operation) for field in contract.fields}
    fields = {name: _resolved(known[name], value, operands) for name, value in values.items()}
    if contract.read is not None:
        return contract.read(fields, operands)
    return {
        field.attribute or field.name: _attribute(fields[field.name])
        for field in contract.fields
        if field.kind is not FieldKind.REGION
    }


def _value(field: Field, operation: Operation) -> Any:
    if field.name not in operation.fields:
        raise FieldError(
            f"{spelled(operation)} needs field '{field.name}'",
            f"it is a {field.kind.value}{_choices(field)}",
        )
    value = operation.fields[field.name]
    if not _accepts(field, value):
        raise FieldError(
            f"field '{field.name}' of {spelled(operation)} must be a {field.kind.value}{_choices(field)}",
            "write it as the contract has it",
        )
    return value


def _choices(field: Field) -> str:
    return f", one of {', '.join(field.choices)}" if field.choices else ""


def spelled(operation: Operation) -> str:
    """Return what messages call an operation: its name, and which of a family it is."""
    return operation.name if operation.variant is None else f"{operation.name}({operation.variant})"


def _resolved(field: Field, value: Any, operands: Sequence[TensorType]) -> Any:
    """Return a field's value, or what the policy says where it is left open."""
    if field.kind is not FieldKind.OPTIONAL_DTYPE or value is not None or not operands:
        return value
    dtype = operands[0].dtype
    return default_accumulator(dtype) if field.name == "accum_dtype" else dtype


def _attribute(value: Any) -> Any:
    """Return what stands for a field in an attribute of the same name: an extent left open is -1."""
    if isinstance(value, tuple) and None in value:
        return tuple(-1 if each is None else each for each in value)
    return value


def _accepts(field: Field, value: object) -> bool:
    if field.kind is FieldKind.WORD:
        return isinstance(value, str) and (not field.choices or value in field.choices)
    return _ACCEPTS[field.kind](value)


def _integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _extent(value: object) -> bool:
    return _integer(value) or isinstance(value, SymbolicDim)


def _pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_integer, value))


_ACCEPTS: Mapping[FieldKind, Callable[[object], bool]] = MappingProxyType(
    {
        FieldKind.BOOLEAN: lambda value: isinstance(value, bool),
        FieldKind.INTEGER: _integer,
        FieldKind.OPTIONAL_INTEGER: lambda value: value is None or _integer(value),
        FieldKind.INTEGERS: lambda value: isinstance(value, tuple) and all(map(_integer, value)),
        FieldKind.FLOAT: lambda value: isinstance(value, float) or _integer(value),
        FieldKind.TEXT: lambda value: isinstance(value, str),
        FieldKind.DTYPE: lambda value: isinstance(value, DType),
        FieldKind.OPTIONAL_DTYPE: lambda value: value is None or isinstance(value, DType),
        FieldKind.SHAPE: lambda value: isinstance(value, tuple) and all(map(_extent, value)),
        FieldKind.NEW_SHAPE: lambda value: (
            isinstance(value, tuple) and all(each is None or _extent(each) for each in value)
        ),
        FieldKind.PAIRS: lambda value: isinstance(value, tuple) and all(map(_pair, value)),
        FieldKind.SCALAR: lambda value: isinstance(value, Tagged),
        FieldKind.LITERAL: lambda value: isinstance(value, TensorLiteral),
        FieldKind.REGION: _integer,
        FieldKind.MAP: lambda value: hasattr(value, "items"),
    }
)
