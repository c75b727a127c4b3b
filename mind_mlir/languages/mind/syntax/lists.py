"""Reads lists between brackets: a wrong element costs no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.cursor import BEGINNINGS, Fault, MindCursor

if TYPE_CHECKING:
    from mind_mlir.languages.text.cursor import Token

_T = TypeVar("_T")

_CLOSING = {"(": ")", "[": "]", "{": "}"}
#: Words that begin an element of a list where the comma before it is missing.
_ELEMENTS = frozenset(("name", "number", "string", "true", "false", "if", "!", "(", "["))


class ListReader:
    """Reads lists with the elements that others read."""

    def __init__(self, cursor: MindCursor) -> None:
        self.cursor = cursor
        #: What ends the lists that are being read.
        self._closings: list[str] = []

    def read(
        self,
        element: Callable[[], _T],
        what: str,
        lost: Callable[[nodes.Invalid], _T] | None = None,
        into: list[_T] | None = None,
    ) -> list[_T]:
        """Read elements between commas, and the brackets around them; a wrong one costs no other.

        Args:
            element: Reads one.
            what: What messages call them.
            lost: Makes what stands for one that cannot be read; without it, that is left out.
            into: Takes the elements, also where the list does not end.

        Raises:
            Fault: It is not known where the list ends.
        """
        cursor = self.cursor
        opening = cursor.advance()
        closing = _CLOSING[opening.text]
        outer, cursor.structs = cursor.structs, True
        self._closings.append(closing)
        try:
            return self._elements(element, what, lost, opening, [] if into is None else into)
        finally:
            cursor.structs = outer
            self._closings.pop()

    def _elements(
        self,
        element: Callable[[], _T],
        what: str,
        lost: Callable[[nodes.Invalid], _T] | None,
        opening: Token,
        found: list[_T],
    ) -> list[_T]:
        cursor = self.cursor
        closing = _CLOSING[opening.text]
        whole = True
        while cursor.word != closing:
            if self._ends_list(closing):
                self._not_closed(opening, closing)
                return found
            depth, start = cursor.depth, cursor.token.start
            try:
                found.append(element())
            except Fault:
                cursor.depth, cursor.structs = depth, True
                cursor.skip_element()
                if lost is not None:
                    found.append(lost(nodes.Invalid((start, max(start, cursor.last_end)))))
            if cursor.accept(",") or cursor.word == closing or self._ends_list(closing):
                continue
            whole = self._comma(opening, closing, what, report=whole)
        cursor.advance()
        return found

    def _ends_list(self, closing: str) -> bool:
        """Return whether a list ends here although nothing closes it."""
        cursor = self.cursor
        word = cursor.word
        if word in (")", "]", "}", "end"):
            return word != closing
        return (word == ";" and closing != "}") or (word in BEGINNINGS and cursor.begins_line())

    def _not_closed(self, opening: Token, closing: str) -> None:
        """Report that ``closing`` is missing; a bracket of another form in its place goes with it."""
        cursor = self.cursor
        other = cursor.word in (")", "]") and not cursor.begins_line()
        if "\n" in cursor.source.text[opening.start : cursor.last_end] and not other:
            if not cursor.silent():
                help_ = f"add '{closing}' behind its last element"
                cursor.report(f"this '{opening.text}' is not closed", (opening.start, opening.end), help_)
            return
        cursor.expected(f"',' or '{closing}'", f"'{closing}' ends what '{opening.text}' began")
        if other and cursor.ahead() == closing:
            cursor.advance()
        if cursor.word == closing or (other and cursor.word not in self._closings):
            cursor.advance()

    def _comma(self, opening: Token, closing: str, what: str, *, report: bool) -> bool:
        """Go on where a comma is missing, which is reported once in a list.

        Raises:
            Fault: This is no element.
        """
        cursor = self.cursor
        help_ = f"{what} stand between commas, and '{closing}' ends them"
        if cursor.silent():
            raise Fault
        if cursor.word == ";":  # between the fields of a struct
            cursor.expected("',' or '}'", help_)
            cursor.advance()
            return False
        deeper = not cursor.begins_line() or cursor.column() > self._indentation(opening)
        if cursor.word not in _ELEMENTS or not deeper:
            if cursor.begins_line():
                self._not_closed(opening, closing)
                raise Fault
            raise cursor.expected(f"',' or '{closing}'", help_)
        if report:
            cursor.expected(f"',' or '{closing}'", help_)
        return False

    def _indentation(self, token: Token) -> int:
        """Return by how much the line of ``token`` is indented."""
        cursor = self.cursor
        start = token.start - cursor.column(token.start)
        line = cursor.source.text[start : token.start]
        return len(line) - len(line.lstrip())


def same(invalid: nodes.Invalid) -> nodes.Invalid:
    """Return what stands for an element that cannot be read, as it is."""
    return invalid
