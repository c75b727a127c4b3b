"""The contract of an operation, by which PTIR programs write it: a part of its record (ptir-formats.md).

The readers and writers of all PTIR formats go by this alone. A field of the contract becomes the attribute of
the record that has its name, or the one that is named; where they differ by more than the name, the record
says how one is had from the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from mind_mlir.diagnostics import Diagnostic, UnsupportedError, VerificationError
from mind_mlir.ir.attributes import AttributeValue, TensorLiteral
from mind_mlir.ir.types import DType, DTypeKind, TensorType
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ops.opdef import AttributeDef

#: From the fields of an operation and the types of its operands to the attributes of the record; what breaks
#: a rule of the contract is a VerificationError without a place (`refuse`), which the caller gives one.
ReadRule: TypeAlias = "Callable[[Mapping[str, Any], Sequence[TensorType]], Mapping[str, AttributeValue]]"
#: From the complete attributes and the types of the operands to the fields; what the contract has no words
#: for is an UnsupportedError (`cannot_say`).
WriteRule: TypeAlias = "Callable[[Mapping[str, AttributeValue], Sequence[TensorType]], Mapping[str, Any]]"


class FieldKind(Enum):
    """The kind of a field: the values that it takes, as Python holds them, and their form in JSON."""

    BOOLEAN = "boolean"  # bool: true
    INTEGER = "integer"  # int: -1
    OPTIONAL_INTEGER = "optional integer"  # int or None: null
    INTEGERS = "list of integers"  # tuple[int, ...]: [0, 1]
    FLOAT = "number"  # float: 1e-05
    WORD = "word"  # str, one of the choices: "Less"
    TEXT = "string"  # str
    DTYPE = "dtype"  # DType: "F32"
    OPTIONAL_DTYPE = "optional dtype"  # DType or None: null
    SHAPE = "shape"  # tuple[int | SymbolicDim, ...]: {"dims": [{"Static": 2}, {"Dynamic": "B"}]}
    NEW_SHAPE = "shape to infer"  # as SHAPE, with None for "Infer": [{"Explicit": {"Static": 4}}, "Infer"]
    PAIRS = "list of pairs of integers"  # tuple[tuple[int, int], ...]: [[0, 1], [2, 3]]
    SCALAR = "scalar literal"  # Tagged, of `SCALAR_KINDS`: {"Float": 0.0}
    LITERAL = "tensor literal"  # TensorLiteral; it is the whole spec: {"spec": ..., "bytes": ...}
    REGION = "region"  # int, the id of a region of the program: 0
    MAP = "map of attributes"  # FrozenDict[str, Tagged], of `MAP_KINDS`: {"n": {"kind": "I64", "value": 3}}


#: What a scalar literal may be, and its class in Python.
SCALAR_KINDS: Mapping[str, type] = FrozenDict(
    {"Float": float, "Signed": int, "Unsigned": int, "I1": bool, "Complex": complex}
)
#: What an attribute of a custom call may be, and its class; that of the elements for an array, a tuple.
MAP_KINDS: Mapping[str, type] = FrozenDict(
    {
        "I64": int,
        "F64": float,
        "Bool": bool,
        "String": str,
        "I64Array": int,
        "F64Array": float,
        "BoolArray": bool,
        "StringArray": str,
    }
)


@dataclass(frozen=True, slots=True)
class Tagged:
    """A value with the name that the contract has for its kind, which the value alone does not tell.

    Every NaN is `math.nan`, so that equal programs are equal.
    """

    kind: str
    value: bool | int | float | complex | str | tuple[bool | int | float | str, ...]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tagged):
            return NotImplemented
        # Tuples hold what is the same object for equal; dataclasses no longer compare by them in Python 3.13.
        return (self.kind, self.value) == (other.kind, other.value)

    def __hash__(self) -> int:
        return hash((self.kind, self.value))


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an operation's spec.

    Attributes:
        name: Its name in the contract.
        kind: What values it takes.
        choices: The words of a `FieldKind.WORD`.
        attribute: The record's attribute that holds it, or its region; None where it has the same name.
        short: Its name in the compact text; None where that is the same.
    """

    name: str
    kind: FieldKind
    choices: tuple[str, ...] = ()
    attribute: str | None = None
    short: str | None = None


@dataclass(frozen=True, slots=True)
class Contract:
    """The operation as the contract has it.

    Attributes:
        name: Its name there, such as ``Reduce``, or ``ElementwiseUnary`` for what is one of a family.
        variant: Which of the family it is, such as ``Exp``: the whole of its spec.
        fields: The fields of its spec, in the contract's order.
        read: Where attributes are not the fields under their names, how they are had from these.
        write: The other way round.
        spec: What the display text calls its fields together; by default its name with ``Spec`` behind it.
            None where they stand behind its own name.
        seeded: Whether the operation draws random numbers: its last operand, which programs do not write, is
            the seed of the function, and its attribute ``stream`` is its place among such operations.
    """

    name: str
    variant: str | None = None
    fields: tuple[Field, ...] = ()
    read: ReadRule | None = None
    write: WriteRule | None = None
    spec: str | None = ""
    seeded: bool = False

    def __post_init__(self) -> None:
        if self.spec == "":
            object.__setattr__(self, "spec", f"{self.name}Spec")


_KINDS = {
    AttrKind.BOOL: FieldKind.BOOLEAN,
    AttrKind.I64: FieldKind.INTEGER,
    AttrKind.I64_LIST: FieldKind.INTEGERS,
    AttrKind.F64: FieldKind.FLOAT,
    AttrKind.ENUM: FieldKind.WORD,
    AttrKind.DTYPE: FieldKind.DTYPE,
}
#: The attributes that the contract may leave out, though records have them.
_OPTIONAL = ("accum_dtype", "out_dtype")


def same_fields(name: str, attributes: Sequence[AttributeDef], **facts: Any) -> Contract:
    """Return the contract of an operation whose fields are its attributes, under their names, in order."""

    def field(attribute: AttributeDef) -> Field:
        optional = attribute.name in _OPTIONAL
        kind = FieldKind.OPTIONAL_DTYPE if optional else _KINDS[attribute.kind]
        return Field(attribute.name, kind, attribute.choices)

    return Contract(name, fields=tuple(map(field, attributes)), **facts)


def unary(variant: str) -> Contract:
    """Return how one of the elementwise operations with one operand is written."""
    return Contract("ElementwiseUnary", variant)


def binary(variant: str) -> Contract:
    """Return how one of the elementwise operations with two operands is written."""
    return Contract("ElementwiseBinary", variant)


def refuse(code: str, message: str, field: str, help_text: str | None = None, **context: Any) -> NoReturn:
    """Report, from a read rule, that a field breaks a rule of the contract.

    Raises:
        VerificationError: Always; its context names the field.
    """
    facts = FrozenDict({**context, "field": field})
    raise VerificationError(Diagnostic(code, message, None, (), help_text, context=facts))


def cannot_say(what: str, why: str) -> NoReturn:
    """Report, from a write rule, that the contract has no words for what an operation does.

    Raises:
        UnsupportedError: Always (E7001).
    """
    raise UnsupportedError(Diagnostic("E7001", f"PTIR cannot say {what}", help=why))


def scalar_literal(scalar: Tagged, dtype: DType) -> TensorLiteral:
    """Return a scalar literal as one of ``dtype``.

    Raises:
        VerificationError: E4005, ``dtype`` does not hold it.
    """
    return TensorLiteral.of(scalar.value, dtype)


def tagged_scalar(literal: TensorLiteral) -> Tagged:
    """Return a literal of rank 0 as the contract's scalar literal of its kind."""
    dtype, value = literal.type.dtype, literal.array.item()
    if dtype.kind is DTypeKind.BOOL:
        return Tagged("I1", bool(value))
    if dtype.is_integer:
        return Tagged("Unsigned" if dtype.kind is DTypeKind.UNSIGNED else "Signed", int(value))
    if dtype.kind is DTypeKind.COMPLEX:
        return Tagged("Complex", complex(value))
    return Tagged("Float", math.nan if math.isnan(value) else float(value))
