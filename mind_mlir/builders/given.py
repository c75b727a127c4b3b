"""What callers give to builders, checked: values, types, where something is written, attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.ir.source_info import SourceInfo
from mind_mlir.ir.types import TensorType
from mind_mlir.ir.value import Value
from mind_mlir.ops.attribute_values import from_python
from mind_mlir.ops.constants import literal_dtype
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from mind_mlir.ops.opdef import OpDef

_T = TypeVar("_T")


def each_of(values: object, parameter: str, kind: type[_T], one: str, several: str) -> list[_T]:
    """Return the items of an argument, all of class ``kind``; messages call one ``one``, all ``several``."""
    found = argument_checks.items(values, parameter, several)
    return [argument_checks.expect(value, kind, f"each of {parameter}", one) for value in found]


def tensor_types(values: tuple[object, ...], parameter: str) -> tuple[TensorType, ...]:
    """Return ``values``, which must be tensor types."""
    what = f"each type in {parameter}"
    return tuple(argument_checks.expect(value, TensorType, what, "a TensorType") for value in values)


def listed(values: object, parameter: str) -> tuple[object, ...]:
    """Return values that may be given as one value."""
    if isinstance(values, Value):
        return (values,)
    return argument_checks.items(values, parameter, "a sequence of Values")


def source_of(source: object) -> SourceInfo | None:
    """Return where an operation is written, if anywhere."""
    if source is None:
        return None
    return argument_checks.expect(source, SourceInfo, "source", "a SourceInfo or None")


def attributes_of(
    record: OpDef, operands: Sequence[TensorType], given: Mapping[str, object]
) -> dict[str, Any]:
    """Return the attributes in the form that operations hold; None stands for what is no attribute."""
    dtype = literal_dtype(record.opcode, operands, given.get("dtype"))
    attributes: dict[str, Any] = {}
    for name, value in given.items():
        schema = record.attribute(name)
        attributes[name] = from_python(schema.kind if schema else None, value, dtype)
    return attributes


def raise_any(findings: Iterable[Diagnostic | None]) -> None:
    """Raise what is wrong, if anything is."""
    found = [finding for finding in findings if finding is not None]
    if found:
        raise VerificationError(found)


def not_an_input(expected: str, found: object) -> VerificationError:
    """Return E4004: ``found`` is no name, or no type, of an input."""
    shown = str(found) if isinstance(found, TensorType) else argument_checks.describe(found)
    help_ = 'write Builder.input("x", TensorType(DType.F32, (2, 3)))'
    return VerificationError(Diagnostic("E4004", f"the {expected}, not {shown}", help=help_))


def not_own(value: object, place: str, code: str, *, ended: bool) -> Diagnostic:
    """Return ``code``: what stands at ``place`` is no value of the builder, or one of a region that ended."""
    if ended:
        message = f"{place} is {value}, a value of a region that has ended"
        return Diagnostic(code, message, help="yield it from the region")
    help_ = "pass what a method of this Builder returned"
    if isinstance(value, Value):
        return Diagnostic(code, f"{place} is a value of another Builder", help=help_)
    help_ += "; Builder.constant makes a value of a number"
    return Diagnostic(code, f"{place} is {argument_checks.describe(value)}", help=help_)
