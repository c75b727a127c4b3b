"""Reads lists between brackets, types and patterns (surface.md, "Types")."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.cursor import BEGINNINGS, Cursor, Fault
from mind_mlir.languages.mind.syntax.literals import number
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.diagnostics import SourceText
    from mind_mlir.diagnostics.findings import Findings
    from mind_mlir.languages.mind.syntax.tokens import Token

_T = TypeVar("_T")

_CLOSING = {"(": ")", "[": "]", "{": "}"}
#: Words that begin an element of a list where the comma before it is missing.
_ELEMENTS = frozenset(("name", "number", "string", "true", "false", "if", "!", "(", "["))
_TENSOR = "a tensor's type is written Tensor<f32, [2, 3]>"
_TYPES = "types are f32, Tensor<f32, [2, 3]>, (A, B), or the name of a struct"
_EXTENT = "write a number, or a name that stands for any extent"
#: What ends a type at the latest.
_AFTER_TYPE = frozenset((";", "=", "{", "}", ")", "end"))


class TypeReader(Cursor):
    """Reads lists, types and patterns."""

    def __init__(self, source: SourceText, tokens: Sequence[Token], findings: Findings) -> None:
        super().__init__(source, tokens, findings)
        #: What ends the lists that are being read.
        self._closings: list[str] = []

    def listed(
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
        opening = self.advance()
        closing = _CLOSING[opening.text]
        outer, self.structs = self.structs, True
        self._closings.append(closing)
        try:
            return self._elements(element, what, lost, opening, [] if into is None else into)
        finally:
            self.structs = outer
            self._closings.pop()

    def _elements(
        self,
        element: Callable[[], _T],
        what: str,
        lost: Callable[[nodes.Invalid], _T] | None,
        opening: Token,
        found: list[_T],
    ) -> list[_T]:
        closing = _CLOSING[opening.text]
        whole = True
        while self.word != closing:
            if self._ends_list(closing):
                self._not_closed(opening, closing)
                return found
            depth, start = self.depth, self.token.start
            try:
                found.append(element())
            except Fault:
                self.depth, self.structs = depth, True
                self.skip_element()
                if lost is not None:
                    found.append(lost(nodes.Invalid((start, max(start, self.last_end)))))
            if self.take(",") or self.word == closing or self._ends_list(closing):
                continue
            whole = self._comma(opening, closing, what, report=whole)
        self.advance()
        return found

    def _ends_list(self, closing: str) -> bool:
        """Return whether a list ends here although nothing closes it."""
        word = self.word
        if word in (")", "]", "}", "end"):
            return word != closing
        return (word == ";" and closing != "}") or (word in BEGINNINGS and self.begins_line())

    def _not_closed(self, opening: Token, closing: str) -> None:
        """Report that ``closing`` is missing; a bracket of another form in its place goes with it."""
        other = self.word in (")", "]") and not self.begins_line()
        if "\n" in self.source.text[opening.start : self.last_end] and not other:
            if not self.silent():
                help_ = f"add '{closing}' behind its last element"
                self.report(f"this '{opening.text}' is not closed", (opening.start, opening.end), help_)
            return
        self.expected(f"',' or '{closing}'", f"'{closing}' ends what '{opening.text}' began")
        if other and self.ahead() == closing:
            self.advance()
        if self.word == closing or (other and self.word not in self._closings):
            self.advance()

    def _comma(self, opening: Token, closing: str, what: str, *, report: bool) -> bool:
        """Go on where a comma is missing, which is reported once in a list.

        Raises:
            Fault: This is no element.
        """
        help_ = f"{what} stand between commas, and '{closing}' ends them"
        if self.silent():
            raise Fault
        if self.word == ";":  # between the fields of a struct
            self.expected("',' or '}'", help_)
            self.advance()
            return False
        deeper = not self.begins_line() or self.column() > self._indentation(opening)
        if self.word not in _ELEMENTS or not deeper:
            if self.begins_line():
                self._not_closed(opening, closing)
                raise Fault
            raise self.expected(f"',' or '{closing}'", help_)
        if report:
            self.expected(f"',' or '{closing}'", help_)
        return False

    def _indentation(self, token: Token) -> int:
        """Return by how much the line of ``token`` is indented."""
        start = token.start - self.column(token.start)
        line = self.source.text[start : token.start]
        return len(line) - len(line.lstrip())

    def declared(self, what: str, help_: str) -> nodes.Ident:
        """Read the name of a parameter or a field, and the colon behind it.

        Where the name is missing, it is ``_``.

        Raises:
            Fault: There is neither a name nor a colon.
        """
        start = self.token.start
        if self.word == ":":
            self.expected(f"the name of {what}", help_)
            self.advance()
            return nodes.Ident("_", (start, start))
        name = self.name(f"the name of {what}")
        if not self.take(":"):
            self.expected(f"':' behind {name.text}", f"write {name.text}: T")
            if self.word == "name" and self.ahead() == ":":
                self.advance()
            if not self.take(":") and (self.word not in ("name", "(", "<") or self.begins_line()):
                raise Fault
        return name

    # Types

    def type(self) -> nodes.Type:
        """Read a type.

        Raises:
            Fault: It is none.
        """
        token = self.token
        self.deeper()
        found: nodes.Type
        if self.word == "(":
            found = self._tuple_type()
        elif token.text == "Tensor" and self.ahead() in ("<", "["):
            found = self._tensor()
        elif self.word == "name" and self.ahead() == "<":
            found = self._no_tensor()
        elif self.word in ("name", "bad") and token.text:
            found = self._named_type()
        elif self.word == "<":
            self.expected("a type", _TENSOR)
            found = self._skip_angles(token.start)
        else:
            raise self.expected("a type", _HELP.get(self.word, _TYPES))
        self.depth -= 1
        return found

    def _named_type(self) -> nodes.Type:
        bad = self.word == "bad"
        name = self.name("a type")
        if bad:
            return nodes.Invalid(name.span)
        if self.word == "[" and not self.begins_line():
            self.report(_TENSOR, name.span, f"write Tensor<{name.text}, [2, 3]>")
            self.listed(self._dimension, "extents", lambda _: nodes.Ident(""))
            return nodes.Invalid((name.span[0], self.last_end))
        return nodes.NamedType(name, name.span)

    def _tuple_type(self) -> nodes.Type:
        start, single = self.token.start, False

        def item() -> nodes.Type:
            nonlocal single
            found = self.type()
            single = self.word != ","
            return found

        items = self.listed(item, "types", _same)
        return items[0] if len(items) == 1 and single else nodes.TupleType(items, (start, self.last_end))

    def _no_tensor(self) -> nodes.Type:
        """Report a type with parameters that is no tensor."""
        name = self.token
        near = did_you_mean(name.text, ["Tensor"])
        self.report(
            f"there is no type {name.text}<...>{near}",
            (name.start, name.end),
            f"only Tensor has parameters: {_TENSOR}",
            code="E2202",
            name=name.text,
        )
        self.advance()
        return self._skip_angles(name.start)

    def _skip_angles(self, start: int) -> nodes.Invalid:
        """Go behind what is between ``<`` and ``>`` where it cannot be read."""
        while self.word not in _AFTER_TYPE and self.word not in (">", ">="):
            self.advance()
        if self.word == ">=":
            self.divide()
        else:
            self.take(">")
        return nodes.Invalid((start, self.last_end))

    def _tensor(self) -> nodes.Type:
        start = self.advance().start
        if self.word == "[":  # Tensor[f32, [2, 3]]
            self.expected("'<' behind Tensor", _TENSOR)
            self.advance()
            self.skip_to("]")
            return nodes.Invalid((start, self.last_end))
        try:
            self.advance()
            dtype = self.name("an element type")
            if not self.take(","):
                fault = self.expected("',' behind the element type", _TENSOR)
                if self.word != "[":
                    raise fault
            if self.word != "[":
                raise self.expected("'[' before the extents", _TENSOR)
            extents = self.listed(self._dimension, "extents", lambda _: nodes.Ident(""))
        except Fault:
            return self._skip_angles(start)
        if self.word == "]" and self.ahead() in (">", ">="):
            self.expected("'>' behind the extents", _TENSOR)
            self.advance()
        if self.word == ">=":  # let x: Tensor<f32, [2]>= e
            self.divide()
        elif not self.take(">"):
            self.expected("'>' behind the extents", _TENSOR)
        span = (start, self.last_end)
        if not all(isinstance(each, nodes.Number) or each.text for each in extents):
            return nodes.Invalid(span)
        return nodes.Tensor(dtype, extents, span)

    def _dimension(self) -> nodes.Ident | nodes.Number:
        if self.word == "[":
            self.expected("an extent", _EXTENT)
            self.advance()
        token = self.token
        if self.word == "number":
            self.advance()
            value = number(token.text)
            assert value is not None, "the lexer has read it"
            return nodes.Number(value, token.text, (token.start, token.end))
        if self.word == "bad":
            self.advance()
            return nodes.Ident("", (token.start, token.end))
        if self.word != "name":
            raise self.expected("an extent", _EXTENT)
        return self.name("an extent")

    # Patterns

    def pattern(self) -> nodes.Pattern:
        """Read a name, or a tuple of patterns.

        Raises:
            Fault: It is none.
        """
        start = self.token.start
        if self.word != "(":
            return self.name("a name")
        self.deeper()
        items = self.listed(self.pattern, "names", lambda invalid: nodes.Ident("_", invalid.span))
        self.depth -= 1
        return nodes.TuplePattern(items, (start, self.last_end))


def _same(invalid: nodes.Invalid) -> nodes.Invalid:
    return invalid


#: What to write instead of a type of another language, by the word it begins with.
_HELP = {
    "[": "a tensor's type is written Tensor<f32, [4]>, a tuple's (f32, f32)",
    "&": "there are no references: leave '&' out",
    "*": "there are no pointers: leave '*' out",
    "fn": "a type is f32, Tensor<f32, [2, 3]>, (A, B), or a struct's name; functions have none",
}
