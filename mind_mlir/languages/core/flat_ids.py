"""The ids of the values of a flat text as spelled, and the aliases among them.

A text may hold millions of names and of aliases, so what is kept of each is small: names get dense numbers,
and what is known of these lies in arrays.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import field
from typing import TYPE_CHECKING, NoReturn

from mind_mlir.ir.names import Names
from mind_mlir.languages.core.tokens import COMMENT, LONGEST_VALUE, STRING, VALUE, Statement
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.languages.core.syntax import Definition, ValueAlias
    from mind_mlir.languages.text.cursor import Token
    from mind_mlir.languages.text.report import Report

#: The numbers of values, past strings (closed or not) and comments.
_NUMBERED = re.compile(rf'{STRING}|"[^\n]*|{COMMENT}|%(?P<number>-?[0-9]++)(?!\w)')
_VALUE = re.compile(VALUE)
#: The ids of aliases that are names begin here: no operation has them, and no number of a text is as great.
_FIRST_ALIAS = 2**64


@dataclass(slots=True)
class FlatIds:
    """The ids of the values of one source: numbers are what they say, names get those after the greatest.

    Names that are first met as aliases take none of these, so that a program without aliases numbers its
    values as the program with them does. A value that an alias stands for must be defined before it.
    """

    report: Report
    names: Names = field(default_factory=Names)
    #: The ids of names; for an alias -1 less its number, since small integers take less memory.
    _by_name: dict[str, int] = field(default_factory=dict)
    #: What first defines each value that is no alias: an operation, or the statement in error at an offset.
    _defined: dict[ValueId, CoreOperation | int] = field(default_factory=dict)
    #: What aliases that are numbers stand for, and where their statements begin, in the same order.
    _others: dict[ValueId, ValueId] = field(default_factory=dict)
    _other_starts: array[int] = field(default_factory=lambda: array("q"))
    #: The same of aliases that are names, in the order of their numbers.
    _targets: array[int] = field(default_factory=lambda: array("q"))
    _starts: array[int] = field(default_factory=lambda: array("q"))

    def of(self, spelled: str) -> ValueId:
        """Return the id of a value as spelled, ``%7`` or ``%name``: for an alias, what that stands for."""
        value = self._id(spelled)
        return self._resolved(value) if self._others or self._targets else value

    def begin(self, definition: Definition) -> ValueId:
        """Return the id of the first result of a definition, which no alias has.

        Raises:
            ParseError: E4002.
        """
        value = self._id(definition.result.text)
        if self._is_alias(value):
            self._defined_twice(value, definition.result)
        return value

    def define(self, operation: CoreOperation) -> None:
        """Take the results of an operation as defined."""
        for value in operation.result_ids:
            self._defined.setdefault(value, operation)

    def alias(self, alias: ValueAlias) -> None:
        """Make a value another one by another name.

        Raises:
            ParseError: E4001 where that is not defined before; E4002 where the alias is defined already.
        """
        target = self._id(alias.target.text)
        if target not in self._defined and not self._is_alias(target):
            message = f"{alias.target.text} has no definition before this alias"
            raise self.report.error(
                "E4001", message, alias.target.span, "define the value first", operand=target
            )
        value = self._known(alias.result.text)
        if value is None:
            aliases = len(self._by_name) - len(self.names)
            self._by_name[alias.result.text] = -1 - aliases
            value = _FIRST_ALIAS + aliases
        if value in self._defined or self._is_alias(value):
            self._defined_twice(value, alias.result)
        target, start = self._resolved(target), alias.result.start
        if value < _FIRST_ALIAS:
            self._others[value] = target
            self._other_starts.append(start)
        else:
            self._targets.append(target)
            self._starts.append(start)

    def recover(self, statement: Statement) -> None:
        """Take what a statement in error defines as defined, so that one mistake is reported once."""
        first, second = statement.first, statement.second
        if first.kind != "VALUE" or second is None or second.kind != "=":
            return
        if len(first.text) <= LONGEST_VALUE or not first.text[1:].lstrip("-").isdigit():
            self._defined.setdefault(self._id(first.text), first.start)

    def _id(self, spelled: str) -> ValueId:
        """Return the id of a value, without following aliases."""
        known = self._known(spelled)
        if known is not None:
            return known
        if not self.names:
            self.names.first = self._greatest() + 1
        value = self._by_name[spelled] = self.names.first + len(self.names)
        self.names.spelled.append(spelled)
        return value

    def _known(self, spelled: str) -> ValueId | None:
        if spelled[1] in "-0123456789":
            return int(spelled[1:])
        known = self._by_name.get(spelled)
        return known if known is None or known >= 0 else _FIRST_ALIAS - 1 - known

    def _greatest(self) -> ValueId:
        """Return the greatest number of a value anywhere in the text, or -1."""
        numbers = (match["number"] for match in _NUMBERED.finditer(self.report.source.text))
        return max((int(n) for n in numbers if n is not None and len(n) < LONGEST_VALUE), default=-1)

    def _is_alias(self, value: ValueId) -> bool:
        return value in self._others or 0 <= value - _FIRST_ALIAS < len(self._targets)

    def _resolved(self, value: ValueId) -> ValueId:
        if 0 <= value - _FIRST_ALIAS < len(self._targets):
            return self._targets[value - _FIRST_ALIAS]
        return self._others.get(value, value)

    def _defined_twice(self, value: ValueId, again: Token) -> NoReturn:
        """Report what the verifier cannot see: an alias leaves no operation behind."""
        first = self._first_definition(value)
        raise self.report.error(
            "E4002",
            f"{again.text} is defined twice",
            again.span,
            "give one of the two another id",
            (f"the first definition is at {first}",),
            id=value,
            places=(str(first), str(self.report.locate(again.span))),
        )

    def _first_definition(self, value: ValueId) -> Location:
        """Return where a value is first defined."""
        if value >= _FIRST_ALIAS:
            start = self._starts[value - _FIRST_ALIAS]
        elif value in self._others:
            start = self._other_starts[list(self._others).index(value)]
        else:
            first = self._defined[value]
            if isinstance(first, int):
                start = first
            else:
                assert first.location is not None, "it has been read from a text"
                start = first.location.offsets[0]
        found = _VALUE.match(self.report.source.text, start)
        assert found is not None, "a definition begins with the value"
        return self.report.locate(found.span())
