"""JSON text as it is read: values by the standard decoder, and where in the text they stand.

The decoder is quick, but tells no places. So objects and lists are entered here where their parts shall have
places (`members`, `elements`), and everything below is one call of the decoder (`value`); where something in
such a value is wrong, its place is looked for afterwards (`spans`). Long lists of bytes never reach the
decoder: numbers that no text spells stand for them.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mind_mlir.languages.ptir.json_faults import JsonFault, first_fault, is_too_deep
from mind_mlir.languages.ptir.literals import ByteList
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.diagnostics import SourceText

#: Shorter lists of bytes are read as any other.
_LONG = 256
_BYTES = re.compile(r'"bytes"[ \t\r\n]*+:[ \t\r\n]*+\[')
_SPACE = re.compile(r"[ \t\r\n]*+")
#: What the numbers that stand for lists begin with, beyond every float, and where a text has such itself.
_PREFIX = "1e999"
_ONES = re.compile(r"1++(?=e999)")
_BYTE_ORDER_MARK = "\ufeff"


class _Refused(Exception):  # noqa: N818 -- a control-flow signal that never reaches a user
    """The decoder met something that JSON has, or Python takes for it, but no program."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object: its key, where that and its value stand, and whether the key came before."""

    key: str
    key_start: int
    key_end: int
    start: int
    again: bool


class JsonText:
    """One text, and how far it has been read.

    Positions are those of the text without its long lists; `span` gives those of the source.
    """

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self._lists: list[ByteList] = []
        self._starts: list[int] = []  # where the numbers that stand for lists begin
        self._behind: list[int] = []  # for each, how much farther on the source is behind it
        self._prefix = _PREFIX
        self.text = self._without_lists()
        self.position = int(self.text.startswith(_BYTE_ORDER_MARK))
        self._decoder = json.JSONDecoder(
            parse_float=self._float, parse_constant=_refuse, object_pairs_hook=_unique
        )

    def _without_lists(self) -> str:
        text = self.source.text
        pieces: list[str] = []
        taken = length = end = 0
        for found in _BYTES.finditer(text):
            start = found.end()
            end = text.find("]", start) if end < start else end
            if end < 0:
                break
            if end - start < _LONG or any(text.find(other, start, end) >= 0 for other in '"[{:'):
                continue
            if not pieces:  # a number that no text spells is longer than all that it does
                self._prefix = "1" * max(map(len, _ONES.findall(text)), default=0) + _PREFIX
            number = f"{self._prefix}{len(self._lists)}"
            piece = text[taken : start - 1]
            self._starts.append(length + len(piece))
            self._lists.append(ByteList(text, start, end))
            pieces += [piece, number]
            length += len(piece) + len(number)
            taken = end + 1
            self._behind.append(taken - length)
        return "".join([*pieces, text[taken:]]) if pieces else text

    def _float(self, spelled: str) -> float | ByteList:
        if self._lists and spelled.startswith(self._prefix):
            return self._lists[int(spelled[len(self._prefix) :])]
        value = float(spelled)
        if math.isinf(value):
            raise _Refused
        return value

    # Reading on.

    def peek(self) -> str:
        """Return the next character that is no space, or nothing at the end."""
        space = _SPACE.match(self.text, self.position)
        assert space is not None, "it matches nothing, too"
        self.position = space.end()
        return self.text[self.position : self.position + 1]

    def value(self) -> Any:
        """Return the value that begins here, as the decoder gives it, and go behind it.

        Raises:
            JsonFault: It is malformed, or holds what no program may.
        """
        self.peek()
        start = self.position
        try:
            value, self.position = self._decoder.raw_decode(self.text, start)
            if is_too_deep(self.text, start, self.position):  # how deep the decoder goes is Python's matter
                raise _Refused
        except (ValueError, RecursionError, _Refused) as error:
            fault = first_fault(self.text, start)
            if fault is None:
                raise
            raise fault from error
        return value

    def members(self) -> Iterator[Member]:
        """Enter the object that begins here: yield its members, each of which must be read."""
        self._expect("{", "an object")
        keys: set[str] = set()
        if self.peek() == "}":
            self.position += 1
            return
        while True:
            start = self.position
            if self.peek() != '"':
                raise self._fault("expected a key, a string")
            start, key = self.position, self.value()
            end = self.position
            self._expect(":", "':'")
            self.peek()
            yield Member(key, start, end, self.position, again=key in keys)
            keys.add(key)
            if not self._goes_on("}"):
                return

    def elements(self) -> Iterator[int]:
        """Enter the list that begins here: yield the index of each element, which must be read."""
        self._expect("[", "a list")
        if self.peek() == "]":
            self.position += 1
            return
        index = 0
        while True:
            self.peek()
            yield index
            index += 1
            if not self._goes_on("]"):
                return

    def _goes_on(self, closing: str) -> bool:
        found = self.peek()
        if found not in (",", closing) or not found:
            raise self._fault(f"expected ',' or '{closing}'")
        self.position += 1
        return found == ","

    def _expect(self, character: str, what: str) -> None:
        if self.peek() != character:
            raise self._fault(f"expected {what}")
        self.position += 1

    def _fault(self, expected: str) -> JsonFault:
        found = self.peek()
        shown = repr(found) if found else "the end of the text"
        return JsonFault(
            "E1101", f"syntax error: {expected}, found {shown}", self.position, self.position + 1, (), None
        )

    # Places.

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where a part of the text stands in the source."""
        return self._in_source(start), self._in_source(max(end - 1, start)) + 1

    def _in_source(self, position: int) -> int:
        index = bisect_right(self._starts, position) - 1
        if index < 0:
            return position
        list_ = self._lists[index]
        end = self._starts[index] + len(self._prefix) + len(str(index))
        return position + self._behind[index] if position >= end else list_.start - 1

    def spans(self, start: int, wanted: Mapping[Any, Any], found: dict[int, tuple[int, int]]) -> int:
        """Find parts of the well-formed value at ``start``, and return its end.

        Args:
            start: Where the value begins.
            wanted: A tree of keys and indices; ``None`` leads to the numbers under which the place of a value
                goes to ``found``, ``(None, key)`` to those for the place of a key.
            found: Takes the places, in the source.
        """
        self.position = start
        self.peek()
        start = self.position
        opening = self.text[start]
        if wanted.keys() <= {None}:
            self.value()
        elif opening == "{":
            for member in self.members():
                for number in wanted.get((None, member.key), ()):
                    found[number] = self.span(member.key_start, member.key_end)
                self.spans(member.start, wanted.get(member.key, {}), found)
        elif opening == "[":
            for index in self.elements():
                self.spans(self.position, wanted.get(index, {}), found)
        else:
            self.value()
        for number in wanted.get(None, ()):
            found[number] = self.span(start, self.position)
        return self.position


def _refuse(_spelled: str) -> float:
    raise _Refused


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Refused
    return found
