"""The parsed form of one statement of Core IR text: small records of tokens and offsets.

A statement may be as long as its text. So of what can be many in one (operands, results, types, parameters)
only offsets are kept, the start and end of each in turn.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mind_mlir.languages.text.cursor import Token
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.languages.text.report import Span

    Offsets: TypeAlias = array[int]

#: Attributes and trailing arguments that one statement may have; far more than any operation takes.
MAX_ATTRIBUTES = 256


def no_offsets() -> Offsets:
    """Return a list of offsets to append to."""
    return array("q")


def spans(offsets: Offsets) -> Iterator[Span]:
    """Return the places that ``offsets`` are the beginnings and ends of."""
    return zip(offsets[::2], offsets[1::2], strict=True)


#: Of an operation of one result: those of the others.
NO_RESULTS = no_offsets()


class PaddingSyntax(NamedTuple):
    """``Custom([[t, b], [l, r]])``."""

    keyword: Token
    pairs: Token

    @property
    def span(self) -> Span:
        """Return where it stands."""
        return self.keyword.start, self.pairs.end + 1


RawValue: TypeAlias = Token | PaddingSyntax


class Attribute(NamedTuple):
    """``name=value`` or ``name: value``; without a name, a trailing argument of the grammar form."""

    name: Token | None
    value: RawValue


@dataclass(slots=True, eq=False, repr=False)
class Arguments:
    """The operands and attributes of an operation.

    Attributes:
        values: The offsets, start and end, of each operand.
        others: The arguments that are no operands, each with the number of operands before it.
    """

    values: Offsets = field(default_factory=no_offsets)
    others: list[tuple[int, Attribute]] = field(default_factory=list)


class Definition(NamedTuple):
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
    types: Offsets
    opens: bool


class ValueAlias(NamedTuple):
    """``%7 = %6``."""

    result: Token
    target: Token


class Outputs(NamedTuple):
    """``outputs: %1, %2``; of the values, it has the offsets, start and end of each."""

    keyword: Token
    values: Offsets


class Parameters(NamedTuple):
    """``%x: type, %0 {name="a b"}: type``.

    Attributes:
        offsets: Of each parameter the start and end of its value, then of its type.
        attributes: What stands in braces, by the number of the parameter.
    """

    offsets: Offsets
    attributes: dict[int, Arguments]


class Head(NamedTuple):
    """``func @name(%x: type) -> (type) {``; ``visibility`` is a word before ``func``."""

    visibility: Token | None
    name: Token
    parameters: Parameters
    types: Offsets


class Label(NamedTuple):
    """``^name(%x: type):``."""

    name: Token
    parameters: Parameters


class TargetSyntax(NamedTuple):
    """``^name(%x, %y)`` in a branch; of the arguments, it has the offsets."""

    name: Token
    values: Offsets


class BranchSyntax(NamedTuple):
    """``br ^a(%x)`` or ``cond_br %p, ^a(%x), ^b``."""

    condition: Token | None
    targets: tuple[TargetSyntax, ...]


class Exit(NamedTuple):
    """``return %x, %y`` or ``yield %x``."""

    keyword: Token
    values: Offsets


class Closing(NamedTuple):
    """``}``."""

    brace: Token


TerminatorSyntax: TypeAlias = BranchSyntax | Exit
Syntax: TypeAlias = Definition | ValueAlias | Outputs | Head | Label | TerminatorSyntax | Closing
