"""The ids of values as spelled, and the aliases among them.

A text may hold millions of names and of aliases, so what is kept of each is small: names get dense numbers,
and what is known of these lies in arrays.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mind_mlir.ir.names import Names
from mind_mlir.languages.core.tokens import COMMENT, LONGEST_VALUE, STRING

if TYPE_CHECKING:
    from mind_mlir.ir.module import ValueId

#: The numbers of values, past strings (closed or not) and comments.
_NUMBERED = re.compile(rf'{STRING}|"[^\n]*|{COMMENT}|%(?P<number>-?[0-9]++)(?!\w)')
#: The ids of aliases that are names begin here: no operation has them, and no number of a text is as great.
_FIRST_ALIAS = 2**64


@dataclass(slots=True)
class Ids:
    """The ids of the values of one source: numbers are what they say, names get those after the greatest.

    Names that are first met as aliases take none of these, so that a program without aliases numbers its
    values as the program with them does.
    """

    text: str
    names: Names = field(default_factory=Names)
    #: The ids of names; for an alias -1 less its number, since small integers take less memory.
    _by_name: dict[str, int] = field(default_factory=dict)

    def of(self, spelled: str) -> ValueId:
        """Return the id of a value as spelled, ``%7`` or ``%name``."""
        known = self._known(spelled)
        if known is not None:
            return known
        if not self.names:
            self.names.first = self._greatest() + 1
        value = self._by_name[spelled] = self.names.first + len(self.names)
        self.names.spelled.append(spelled)
        return value

    def of_alias(self, spelled: str) -> ValueId:
        """Return the id of a value that a statement makes an alias."""
        known = self._known(spelled)
        if known is not None:
            return known
        aliases = len(self._by_name) - len(self.names)
        self._by_name[spelled] = -1 - aliases
        return _FIRST_ALIAS + aliases

    def _known(self, spelled: str) -> ValueId | None:
        if spelled[1] in "-0123456789":
            return int(spelled[1:])
        known = self._by_name.get(spelled)
        return known if known is None or known >= 0 else _FIRST_ALIAS - 1 - known

    def _greatest(self) -> ValueId:
        """Return the greatest number of a value anywhere in the text, or -1."""
        numbers = (match["number"] for match in _NUMBERED.finditer(self.text))
        return max((int(n) for n in numbers if n is not None and len(n) < LONGEST_VALUE), default=-1)


@dataclass(slots=True)
class Aliases:
    """The values that are others by another name: what each stands for, and where that is said."""

    _others: dict[ValueId, ValueId] = field(default_factory=dict)
    _other_starts: array[int] = field(default_factory=lambda: array("q"))  # in the dictionary's order
    _targets: array[int] = field(default_factory=lambda: array("q"))  # of names, in their order
    _starts: array[int] = field(default_factory=lambda: array("q"))

    def __contains__(self, value: ValueId) -> bool:
        return value in self._others or 0 <= value - _FIRST_ALIAS < len(self._targets)

    def resolve(self, value: ValueId) -> ValueId:
        """Return what ``value`` stands for: itself, unless it is an alias."""
        if 0 <= value - _FIRST_ALIAS < len(self._targets):
            return self._targets[value - _FIRST_ALIAS]
        return self._others.get(value, value)

    def add(self, value: ValueId, target: ValueId, start: int) -> None:
        """Make ``value``, which is none yet, an alias of ``target``; the statement begins at ``start``."""
        if value < _FIRST_ALIAS:
            self._others[value] = target
            self._other_starts.append(start)
            return
        self._targets.append(target)
        self._starts.append(start)

    def start(self, value: ValueId) -> int:
        """Return where the statement begins that makes ``value`` an alias."""
        if value >= _FIRST_ALIAS:
            return self._starts[value - _FIRST_ALIAS]
        return self._other_starts[list(self._others).index(value)]
