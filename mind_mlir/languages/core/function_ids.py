"""The ids of the values of one function as spelled, known before its statements are read.

A value may be used in a block that stands before the one that defines it. So the text of a function is looked
through first: for the numbers it spells, its names in order of definition, and its aliases. Whatever does not
look like a definition is left to the parser; names that only a statement in error has follow the others.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ir.names import NO_NAMES, Names
from mind_mlir.languages.core.syntax import Definition, ValueAlias, spans
from mind_mlir.languages.core.tokens import COMMENT, FUNCTION, LONGEST_VALUE, STRING, VALUE, Statement
from mind_mlir.support.distinct import distinct
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.languages.text.report import Report, Span

_SPACE = r"[ \t\r]*+"
#: Values separated by commas and what follows them, past strings (closed or not) and
#: comments; or the next function.
_VALUES = re.compile(
    rf'{STRING}|"[^\n]*|{COMMENT}|(?P<next>(?:^|\}}){_SPACE}{FUNCTION})'
    rf"|(?P<values>{VALUE}(?:{_SPACE},{_SPACE}{VALUE})*+)(?:{_SPACE}(?P<after>=(?:{_SPACE}(?={VALUE})%)?|,{_SPACE}=|[:{{]))?",
    re.M,
)
_VALUE = re.compile(VALUE)
_ALIAS = re.compile(rf"{VALUE}{_SPACE}={_SPACE}({VALUE})")
#: In the table of aliases: an id, or else this and the offset of the statement that makes the alias.
_AT = 2**62
_IN_PROGRESS = 2**63


@dataclass(slots=True)
class FunctionIds:
    """The ids of the values of the function that begins at offset ``start``.

    Numbers are what they say. Names get the smallest numbers that the function does not spell, in order of
    definition; aliases take none.

    Attributes:
        names: The table of the function's operations; those that have no names share one.
        circular: Aliases that stand for themselves, by way of others.
        undefined: What aliases stand for without a definition anywhere in the function.
        redefined: Aliases that have several definitions, and where the first one is.
    """

    report: Report
    start: int
    names: Names = field(default_factory=lambda: NO_NAMES)
    circular: set[str] = field(default_factory=set)
    undefined: set[str] = field(default_factory=set)
    redefined: dict[str, int] = field(default_factory=dict)
    _text: str = field(init=False)
    _by_name: dict[str, int] = field(default_factory=dict)
    _aliases: dict[str, int] = field(default_factory=dict)
    #: The numbers that the function spells, while they are needed.
    _numbers: array[int] = field(default_factory=lambda: array("q"))
    #: The id to try next, and how many spelled ids are below it.
    _next: int = 0
    _skipped: int = 0

    def __post_init__(self) -> None:
        self._text = self.report.source.text
        numbers = array("q")
        defined: dict[str, int] = self._by_name
        for match in self._matches():
            _collect_numbers(match["values"], numbers)
            is_alias = (match["after"] or "").endswith("%") and "," not in match["values"]
            for spelled, start in _defined(match):
                if is_alias:
                    self._aliases.setdefault(spelled, _AT + start)
                elif not _is_number(spelled):
                    defined.setdefault(spelled, -1)
        for spelled in self._aliases:
            defined.pop(spelled, None)
        self._numbers = numbers
        for spelled in defined:
            self._add(spelled)
        if self._aliases:
            self._check_aliases()

    def of(self, spelled: str) -> ValueId:
        """Return the id of a value as spelled, ``%7`` or ``%name``: for an alias, what that stands for."""
        if spelled in self._aliases:
            return self._resolved(spelled)
        if _is_number(spelled):
            return int(spelled[1:])
        known = self._by_name.get(spelled)
        return self._add(spelled) if known is None else known

    def begin(self, definition: Definition) -> ValueId:
        """Return the id of the first result of a definition, none of whose results is an alias.

        Raises:
            ParseError: E4002.
        """
        if self.redefined:
            for span in [definition.result.span, *spans(definition.others)]:
                self.not_redefined(span)
        return self.of(definition.result.text)

    def define(self, operation: CoreOperation) -> None:
        """Take the results of an operation as defined: they are known already."""

    def recover(self, statement: Statement) -> None:
        """Take what a statement in error defines as defined: it is known already."""

    def alias(self, alias: ValueAlias) -> None:
        """Report what the verifier cannot see: an alias leaves no operation behind.

        Raises:
            ParseError: E4001 where it stands for itself or for nothing; E4002 for a second definition.
        """
        self.not_redefined(alias.result.span)
        self.of(alias.result.text)
        target, span = alias.target.text, alias.target.span
        if alias.result.text in self.circular:
            message, help_ = f"{alias.result.text} stands for itself", "name the value that it stands for"
            raise self.report.error("E4001", message, span, help_, operand=target)
        if target in self.undefined:
            message = f"{target} has no definition in this function"
            help_ = "define the value, or correct the id"
            raise self.report.error("E4001", message, span, help_, operand=target)

    def not_redefined(self, span: Span) -> None:
        """Report a second definition of an alias, or an alias that is a second definition."""
        spelled = self._text[slice(*span)]
        first = self.redefined.get(spelled)
        if first is None or first == span[0]:
            return
        place = self.report.locate((first, first + len(spelled)))
        raise self.report.error(
            "E4002",
            f"{spelled} is defined twice",
            span,
            "give one of the two another id",
            (f"the first definition is at {place}",),
            id=spelled,
            places=(str(place), str(self.report.locate(span))),
        )

    def _matches(self) -> Iterator[re.Match[str]]:
        """Yield the matches of values until the next function."""
        for match in _VALUES.finditer(self._text, self.start):
            if match["values"] is not None:
                yield match
            elif match["next"] is not None and match.start() > self.start:
                return

    def _add(self, spelled: str) -> ValueId:
        if self.names is NO_NAMES:
            self.names = Names(spelled_ids=_distinct(self._numbers))
            self._numbers = array("q")
        taken, value = self.names.spelled_ids, self._next
        while self._skipped < len(taken) and taken[self._skipped] == value:
            self._skipped += 1
            value += 1
        self._next = value + 1
        self._by_name[spelled] = value
        self.names.spelled.append(spelled)
        return value

    def _resolved(self, spelled: str) -> ValueId:
        """Follow aliases to what they stand for, and remember that of all on the way."""
        way: list[str] = []
        while (known := self._aliases.get(spelled, -1)) >= _AT:
            if known == _IN_PROGRESS:
                self.circular.update(way)
                break
            way.append(spelled)
            self._aliases[spelled] = _IN_PROGRESS
            found = _ALIAS.match(self._text, known - _AT)
            assert found is not None, "it has been found there"
            spelled = found[1]
        if spelled in self._aliases and self._aliases[spelled] != _IN_PROGRESS:
            value = self._aliases[spelled]
        elif _is_number(spelled):
            value = int(spelled[1:])
        else:
            named = self._by_name.get(spelled)
            value = self._add(spelled) if named is None else named
        for alias in way:
            self._aliases[alias] = value
        return value

    def _check_aliases(self) -> None:
        """Find aliases of nothing, and those with several definitions."""
        for known in self._aliases.values():
            found = _ALIAS.match(self._text, known - _AT)
            if found is not None and found[1] not in self._aliases and found[1] not in self._by_name:
                self.undefined.add(found[1])
        for match in self._matches():
            for spelled, start in _defined(match):
                self.undefined.discard(spelled)
                at = self._aliases.get(spelled)
                if at is not None and at != _AT + start:
                    self.redefined.setdefault(spelled, min(start, at - _AT))


def _is_number(spelled: str) -> bool:
    return spelled[1] in "-0123456789"


def _collect_numbers(values: str, numbers: array[int]) -> None:
    for match in _VALUE.finditer(values):
        spelled = match[0]
        if _is_number(spelled) and len(spelled) <= LONGEST_VALUE:
            numbers.append(int(spelled[1:]))


def _distinct(numbers: array[int]) -> Sequence[int]:
    """Return the numbers that are ids of names otherwise, ascending."""
    if not numbers:
        return ()
    ascending = distinct(np.frombuffer(numbers, np.int64))
    return array("q", ascending[ascending >= 0].tobytes())


def _defined(match: re.Match[str]) -> Iterator[tuple[str, int]]:
    """Yield the values that stand as definitions do, and their offsets: before a colon, the last one."""
    after = match["after"]
    if after is None:
        return
    values, start = match["values"], match.start("values")
    if after in (":", "{"):
        spelled = values[max(values.rfind("%"), 0) :]
        yield spelled, start + len(values) - len(spelled)
        return
    for value in _VALUE.finditer(values):
        yield value[0], start + value.start()
