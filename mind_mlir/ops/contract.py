"""How PTIR programs write an operation: a part of its record (ptir-formats.md).

The readers and writers of all PTIR formats go by this alone. A field of the contract becomes the attribute of
the record that has its name, or the one that is named; where they differ by more than the name, the record
says how one is had from the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ir.types import TensorType

#: From the fields of an operation and the types of its operands to the attributes of the record.
ReadRule: TypeAlias = "Callable[[Mapping[str, Any], Sequence[TensorType]], Mapping[str, AttributeValue]]"
#: From the complete attributes and the types of the operands to the fields.
WriteRule: TypeAlias = "Callable[[Mapping[str, AttributeValue], Sequence[TensorType]], Mapping[str, Any]]"


class FieldKind(Enum):
    """What values a field takes, as Python holds them, and what they look like in JSON."""

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
    SCALAR = "scalar literal"  # float, int, bool or complex: {"Float": 0.0}
    LITERAL = "tensor literal"  # TensorLiteral: {"spec": ..., "bytes": ...}
    REGION = "region"  # int, the id of a region of the program: 0
    MAP = "map of attributes"  # dict[str, ...]: {"name": {"kind": "I64", "value": 3}}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an operation's spec.

    Attributes:
        name: Its name in the contract.
        kind: What values it takes.
        choices: The words of a `FieldKind.WORD`.
        attribute: The record's attribute that holds it; None where it has the same name.
    """

    name: str
    kind: FieldKind
    choices: tuple[str, ...] = ()
    attribute: str | None = None


@dataclass(frozen=True, slots=True)
class Contract:
    """The operation as the contract has it.

    Attributes:
        name: Its name there, such as ``Reduce``, or ``ElementwiseUnary`` for what is one of a family.
        variant: Which of the family it is, such as ``Exp``: the whole of its spec.
        fields: The fields of its spec, in the contract's order.
        read: Where attributes are not the fields under their names, how they are had from these.
        write: The other way round.
    """

    name: str
    variant: str | None = None
    fields: tuple[Field, ...] = ()
    read: ReadRule | None = None
    write: WriteRule | None = None
