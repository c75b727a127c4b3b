"""Reads types and patterns (surface.md, "Types")."""

from __future__ import annotations

from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.cursor import Fault, MindCursor
from mind_mlir.languages.mind.syntax.lists import ListReader, same
from mind_mlir.languages.mind.syntax.tokens import number
from mind_mlir.support.suggestions import did_you_mean

_TENSOR = "a tensor's type is written Tensor<f32, [2, 3]>"
_TYPES = "types are f32, Tensor<f32, [2, 3]>, (A, B), or the name of a struct"
_EXTENT = "write a number, or a name that stands for any extent"
#: What ends a type at the latest.
_AFTER_TYPE = frozenset((";", "=", "{", "}", ")", "end"))
#: What to write instead of a type of another language, by the word it begins with.
_HELP = {
    "[": "a tensor's type is written Tensor<f32, [4]>, a tuple's (f32, f32)",
    "&": "there are no references: leave '&' out",
    "*": "there are no pointers: leave '*' out",
    "fn": "a type is f32, Tensor<f32, [2, 3]>, (A, B), or a struct's name; functions have none",
}


class TypeReader:
    """Reads types, patterns, and the names that have types."""

    def __init__(self, cursor: MindCursor, lists: ListReader) -> None:
        self.cursor = cursor
        self.lists = lists

    def declared(self, what: str, help_: str) -> nodes.Ident:
        """Read the name of a parameter or a field, and the colon behind it.

        Where the name is missing, it is ``_``.

        Raises:
            Fault: There is neither a name nor a colon.
        """
        cursor = self.cursor
        start = cursor.token.start
        if cursor.word == ":":
            cursor.expected(f"the name of {what}", help_)
            cursor.advance()
            return nodes.Ident("_", (start, start))
        name = cursor.name(f"the name of {what}")
        if not cursor.accept(":"):
            cursor.expected(f"':' behind {name.text}", f"write {name.text}: T")
            if cursor.word == "name" and cursor.ahead() == ":":
                cursor.advance()
            if not cursor.accept(":") and (cursor.word not in ("name", "(", "<") or cursor.begins_line()):
                raise Fault
        return name

    # Types

    def type(self) -> nodes.Type:
        """Read a type.

        Raises:
            Fault: It is none.
        """
        cursor = self.cursor
        token = cursor.token
        cursor.deeper()
        found: nodes.Type
        if cursor.word == "(":
            found = self._tuple_type()
        elif token.text == "Tensor" and cursor.ahead() in ("<", "["):
            found = self._tensor()
        elif cursor.word == "name" and cursor.ahead() == "<":
            found = self._no_tensor()
        elif cursor.word in ("name", "bad") and token.text:
            found = self._named_type()
        elif cursor.word == "<":
            cursor.expected("a type", _TENSOR)
            found = self._skip_angles(token.start)
        else:
            raise cursor.expected("a type", _HELP.get(cursor.word, _TYPES))
        cursor.depth -= 1
        return found

    def _named_type(self) -> nodes.Type:
        cursor = self.cursor
        bad = cursor.word == "bad"
        name = cursor.name("a type")
        if bad:
            return nodes.Invalid(name.span)
        if cursor.word == "[" and not cursor.begins_line():
            cursor.report(_TENSOR, name.span, f"write Tensor<{name.text}, [2, 3]>")
            self.lists.read(self._dimension, "extents", lambda _: nodes.Ident(""))
            return nodes.Invalid((name.span[0], cursor.last_end))
        return nodes.NamedType(name, name.span)

    def _tuple_type(self) -> nodes.Type:
        cursor = self.cursor
        start, single = cursor.token.start, False

        def item() -> nodes.Type:
            nonlocal single
            found = self.type()
            single = cursor.word != ","
            return found

        items = self.lists.read(item, "types", same)
        return items[0] if len(items) == 1 and single else nodes.TupleType(items, (start, cursor.last_end))

    def _no_tensor(self) -> nodes.Type:
        """Report a type with parameters that is no tensor."""
        cursor = self.cursor
        name = cursor.token
        near = did_you_mean(name.text, ["Tensor"])
        cursor.report(
            f"there is no type {name.text}<...>{near}",
            (name.start, name.end),
            f"only Tensor has parameters: {_TENSOR}",
            code="E2202",
            name=name.text,
        )
        cursor.advance()
        return self._skip_angles(name.start)

    def _skip_angles(self, start: int) -> nodes.Invalid:
        """Go behind what is between ``<`` and ``>`` where it cannot be read."""
        cursor = self.cursor
        while cursor.word not in _AFTER_TYPE and cursor.word not in (">", ">="):
            cursor.advance()
        if cursor.word == ">=":
            cursor.divide()
        else:
            cursor.accept(">")
        return nodes.Invalid((start, cursor.last_end))

    def _tensor(self) -> nodes.Type:
        cursor = self.cursor
        start = cursor.advance().start
        if cursor.word == "[":  # Tensor[f32, [2, 3]]
            cursor.expected("'<' behind Tensor", _TENSOR)
            cursor.advance()
            cursor.skip_to("]")
            return nodes.Invalid((start, cursor.last_end))
        try:
            cursor.advance()
            dtype = cursor.name("an element type")
            if not cursor.accept(","):
                fault = cursor.expected("',' behind the element type", _TENSOR)
                if cursor.word != "[":
                    raise fault
            if cursor.word != "[":
                raise cursor.expected("'[' before the extents", _TENSOR)
            extents = self.lists.read(self._dimension, "extents", lambda _: nodes.Ident(""))
        except Fault:
            return self._skip_angles(start)
        if cursor.word == "]" and cursor.ahead() in (">", ">="):
            cursor.expected("'>' behind the extents", _TENSOR)
            cursor.advance()
        if cursor.word == ">=":  # let x: Tensor<f32, [2]>= e
            cursor.divide()
        elif not cursor.accept(">"):
            cursor.expected("'>' behind the extents", _TENSOR)
        span = (start, cursor.last_end)
        if not all(isinstance(each, nodes.Number) or each.text for each in extents):
            return nodes.Invalid(span)
        return nodes.Tensor(dtype, extents, span)

    def _dimension(self) -> nodes.Ident | nodes.Number:
        cursor = self.cursor
        if cursor.word == "[":
            cursor.expected("an extent", _EXTENT)
            cursor.advance()
        token = cursor.token
        if cursor.word == "number":
            cursor.advance()
            value = number(token.text)
            assert value is not None, "the lexer has read it"
            return nodes.Number(value, token.text, token.span)
        if cursor.word == "bad":
            cursor.advance()
            return nodes.Ident("", token.span)
        if cursor.word != "name":
            raise cursor.expected("an extent", _EXTENT)
        return cursor.name("an extent")

    # Patterns

    def pattern(self) -> nodes.Pattern:
        """Read a name, or a tuple of patterns.

        Raises:
            Fault: It is none.
        """
        cursor = self.cursor
        start = cursor.token.start
        if cursor.word != "(":
            return cursor.name("a name")
        cursor.deeper()
        items = self.lists.read(self.pattern, "names", lambda invalid: nodes.Ident("_", invalid.span))
        cursor.depth -= 1
        return nodes.TuplePattern(items, (start, cursor.last_end))
