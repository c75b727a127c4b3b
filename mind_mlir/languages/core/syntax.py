"""The parsed form of one statement of Core IR text: small records of tokens and offsets.

A statement may be as long as its text. So of what can be many in one (operands, results, types, parameters)
only offsets are kept, the start and end of each in turn. Nobody compares or prints these records.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, TypeAlias, cast

from mind_mlir.languages.core.tokens import Token

if TYPE_CHECKING:
    from collections.abc import Iterable

    Integers = array[int]
else:
    Integers = array  # which takes no parameter at run time

#: Attributes and trailing arguments that one statement may have; far more than any operation takes.
MAX_ATTRIBUTES = 256


class TooManyArguments(Exception):  # noqa: N818 -- a control-flow signal that never reaches a user
    """Ends the parsing of a statement that has more attributes than any operation."""


class Offsets(Integers):
    """Starts and ends, in turn."""

    __slots__ = ()

    def __new__(cls, offsets: Iterable[int] = ()) -> Self:
        """Make it of these."""
        return cast("Self", super().__new__(cls, "q", offsets))


#: Of an operation of one result: those of the others.
NO_RESULTS = Offsets()


def no_offsets() -> Integers:
    """Return a list of offsets to append to; cheaper than one of a class of ours."""
    return array("q")


class Types(Offsets):
    """Of several types, or of one in parentheses."""

    __slots__ = ()


@dataclass(slots=True, eq=False, repr=False)
class PaddingSyntax:
    """``Custom([[t, b], [l, r]])``."""

    keyword: Token
    pairs: Token


RawValue: TypeAlias = Token | PaddingSyntax


@dataclass(slots=True, eq=False, repr=False)
class Positional:
    """A trailing argument of the grammar form."""

    value: RawValue


@dataclass(slots=True, eq=False, repr=False)
class Attribute:
    """``name=value`` or ``name: value``."""

    name: Token
    value: RawValue


@dataclass(slots=True, eq=False, repr=False)
class Arguments:
    """The operands and attributes of an operation.

    Attributes:
        values: The offsets, start and end, of each operand.
        others: The arguments that are no operands, each with the number of operands before it.
    """

    values: Integers = field(default_factory=no_offsets)
    others: list[tuple[int, Positional | Attribute]] = field(default_factory=list)

    def append(self, argument: Token | Positional | Attribute) -> Arguments:
        """Take one more argument and return this.

        Raises:
            TooManyArguments: No operation has so many attributes.
        """
        if isinstance(argument, Token):
            self.values.extend((argument.start_pos, argument.end_pos))
        elif len(self.others) == MAX_ATTRIBUTES:
            raise TooManyArguments
        else:
            self.others.append((len(self.values) // 2, argument))
        return self


@dataclass(slots=True, eq=False, repr=False)
class Definition:
    """``%0 = Opcode (...) {...} : type``, or ``%0, %1 = call @f (...) : (type, type)``.

    Attributes:
        result: The first result.
        others: The offsets of the others.
        opcode: The word after the equals sign.
        callee: The name of a function, after the word ``call``.
        arguments: Operands and attributes.
        types: The offsets of the types.
        opens: Whether regions follow.
    """

    result: Token
    others: Offsets
    opcode: Token
    callee: Token | None
    arguments: Arguments
    types: Integers
    opens: bool


@dataclass(slots=True, eq=False, repr=False)
class Alias:
    """``%7 = %6``."""

    result: Token
    target: Token


@dataclass(slots=True, eq=False, repr=False)
class Outputs:
    """``outputs: %1, %2``; of the values, it has the offsets, start and end of each."""

    keyword: Token
    values: Offsets


@dataclass(slots=True, eq=False, repr=False)
class Parameters:
    """``%x: type, %0 {name="a b"}: type``.

    Attributes:
        offsets: Of each parameter the start and end of its value, then of its type.
        attributes: What stands in braces, by the number of the parameter.
    """

    offsets: Offsets = field(default_factory=Offsets)
    attributes: dict[int, Arguments] = field(default_factory=dict)


@dataclass(slots=True, eq=False, repr=False)
class Head:
    """``func @name(%x: type) -> (type) {``; ``visibility`` is a word before ``func``."""

    visibility: Token | None
    name: Token
    parameters: Parameters
    types: Integers


@dataclass(slots=True, eq=False, repr=False)
class Label:
    """``^name(%x: type):``."""

    name: Token
    parameters: Parameters


@dataclass(slots=True, eq=False, repr=False)
class TargetSyntax:
    """``^name(%x, %y)`` in a branch; of the arguments, it has the offsets."""

    name: Token
    values: Offsets


@dataclass(slots=True, eq=False, repr=False)
class BranchSyntax:
    """``br ^a(%x)`` or ``cond_br %p, ^a(%x), ^b``."""

    keyword: Token
    condition: Token | None
    targets: tuple[TargetSyntax, ...]


@dataclass(slots=True, eq=False, repr=False)
class Exit:
    """``return %x, %y`` or ``yield %x``."""

    keyword: Token
    values: Offsets


@dataclass(slots=True, eq=False, repr=False)
class Closing:
    """``}``."""

    brace: Token


TerminatorSyntax: TypeAlias = BranchSyntax | Exit
Syntax: TypeAlias = Definition | Alias | Outputs | Head | Label | TerminatorSyntax | Closing
