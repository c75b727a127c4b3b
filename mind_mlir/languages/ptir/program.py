"""A PTIR program as the contract has it: the data that all its formats write down (ptir-v0.4.md).

    Program     ::= spec_version, entry, Function+, Region*
    Function    ::= name, parameter (id: type)*, Instruction*, result (id: type)*, hints
    Region      ::= id, type*, Instruction*, type*
    Instruction ::= id, Operation, Operand*, type
    Operation   ::= name, variant?, field*
    Operand     ::= Value | TupleElement | TensorLiteral

Nothing is changed on the way in or out: ids, hints, literals within operands and tuples are what the text
said, so that reading and writing are each the inverse of the other. What an operation means, and whether it
is used as it may be, is a matter of the module that a program becomes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from mind_mlir.diagnostics.display import short_repr
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.types import ValueType

#: The version of the contract that programs say they follow.
SPEC_VERSION = "ptir.v0.4"


@dataclass(frozen=True, slots=True)
class ValueRef:
    """An operand: the value of a parameter or of an earlier instruction."""

    value: int


@dataclass(frozen=True, slots=True)
class TupleElement:
    """An operand: one element of a value of tuple type."""

    tuple: int
    index: int


Operand: TypeAlias = ValueRef | TupleElement | TensorLiteral


@dataclass(frozen=True, slots=True)
class Operation:
    """The operation of an instruction: a name of the contract and the fields of its spec.

    Attributes:
        name: For example ``Reduce`` or ``ElementwiseUnary``.
        variant: Which of a family, for example ``Exp``.
        fields: By name, in the forms that `mind_mlir.ops.contract.FieldKind` says.
    """

    name: str
    variant: str | None = None
    fields: Mapping[str, Any] = field(default_factory=FrozenDict)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    Attributes:
        id: The value it defines.
        operation: What it does.
        operands: What it reads.
        output: The type of its value.
        location: Where it is written; takes no part in equality.
        path: Where it stands in a JSON text, such as ``$.functions[0].body[3]``; nor does this.
    """

    id: int
    operation: Operation
    operands: tuple[Operand, ...]
    output: ValueType
    location: Location | None = field(default=None, compare=False, repr=False)
    path: str | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Function:
    """One function.

    Attributes:
        name: Its name.
        parameters: The types of its parameters.
        parameter_ids: The values of them.
        body: Its instructions, in order.
        results: The types of its results.
        result_ids: The values that it returns.
        hints: What its producer advises, as JSON; kept, and not needed.
        names: What the compact text calls values; takes no part in equality.
        seed: The value that its random operations draw from, where it has been given one
            (`mind_mlir.languages.ptir.seeding`); no format writes it.
    """

    name: str
    parameters: tuple[ValueType, ...]
    parameter_ids: tuple[int, ...]
    body: tuple[Instruction, ...]
    results: tuple[ValueType, ...]
    result_ids: tuple[int, ...]
    hints: Any = None
    names: Mapping[int, str] = field(default_factory=FrozenDict, compare=False, repr=False)
    location: Location | None = field(default=None, compare=False, repr=False)
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Region:
    """The body of an operation with regions; its parameters are the values 0 to n - 1.

    Its results are its last instructions, as many as there are types, or the elements of the last one.

    Attributes:
        id: The number by which instructions name it.
        parameters: The types of its parameters.
        body: Its instructions, in order.
        results: The types of its results.
        names: What the compact text calls values; takes no part in equality.
    """

    id: int
    parameters: tuple[ValueType, ...]
    body: tuple[Instruction, ...]
    results: tuple[ValueType, ...]
    names: Mapping[int, str] = field(default_factory=FrozenDict, compare=False, repr=False)
    location: Location | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Program:
    """One program.

    Attributes:
        functions: Its functions, in order.
        regions: The regions that its instructions name by their ids.
        entry: The name of the function that a call means.
        spec_version: The version of the contract; no reader lets another one pass.
    """

    functions: tuple[Function, ...]
    regions: tuple[Region, ...] = ()
    entry: str = "main"
    spec_version: str = SPEC_VERSION

    __repr__ = short_repr
