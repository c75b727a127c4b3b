"""Reads expressions: operators, and what follows an operand (surface.md, "Programs")."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.lists import ListReader, same
from mind_mlir.languages.mind.syntax.operands import EXPRESSIONS, OperandReader
from mind_mlir.languages.mind.syntax.slips import COMPARISON, LEVELS, OPERATOR_WORDS, OPERATORS
from mind_mlir.languages.text.cursor import Token

if TYPE_CHECKING:
    from mind_mlir.languages.mind.syntax.cursor import MindCursor
    from mind_mlir.languages.mind.syntax.types import TypeReader

_SIGNS = frozenset(("-", "!", "+", "&", "*"))
_FOLLOWING = frozenset(("(", "[", ".", "::"))
#: What ends an item of an index.
_AFTER_ITEM = frozenset((",", "]", ":"))

#: An operator that waits for its right side: how tightly it binds, the operator, its left side.
_Waiting = tuple[int, Token, nodes.Expression]


class ExpressionReader:
    """Reads expressions."""

    def __init__(
        self, cursor: MindCursor, lists: ListReader, types: TypeReader, block: Callable[[], nodes.Block]
    ) -> None:
        """Read with parts of one reader; ``block`` reads the blocks in expressions."""
        self.cursor = cursor
        self.lists = lists
        self.operands = OperandReader(cursor, lists, types, self.expression, block)
        #: Whether ``::`` behind an expression parts the bounds of a slice.
        self._slicing = False

    def expression(self) -> nodes.Expression:
        """Read an expression.

        Raises:
            Fault: There is none; it has been reported.
        """
        cursor = self.cursor
        cursor.deeper()
        waiting: list[_Waiting] = []
        left = self._operand()
        while True:
            bound = LEVELS.get(cursor.word) or self._foreign_operator(waiting)
            if not bound:
                break
            while waiting and waiting[-1][0] >= bound:
                left = self._reduced(waiting.pop(), left, bound)
            waiting.append((bound, cursor.advance(), left))
            left = self._operand() if self._has_operand(waiting[-1][1]) else self._nothing()
        while waiting:
            left = self._reduced(waiting.pop(), left, 0)
        cursor.depth -= 1
        return left

    def _reduced(self, waiting: _Waiting, right: nodes.Expression, following: int) -> nodes.Expression:
        """Return what an operator and its sides make up; ``following`` is how the next operator binds."""
        bound, operator, left = waiting
        span = (left.span[0], right.span[1])
        if bound == following == COMPARISON:
            if not isinstance(left, nodes.Invalid):
                self.cursor.fault("comparisons do not follow one another", "write a < b && b < c")
            return nodes.Invalid(span)
        if operator.text not in LEVELS:
            return nodes.Invalid(span)
        return nodes.Binary(operator.text, left, right, (operator.start, operator.end), span)

    def _has_operand(self, operator: Token) -> bool:
        """Return whether an operand must follow: not behind a character that has been reported."""
        cursor = self.cursor
        return operator.kind != "bad" or (cursor.word in EXPRESSIONS and not cursor.begins_line())

    def _nothing(self) -> nodes.Expression:
        cursor = self.cursor
        return nodes.Invalid((cursor.last_end, cursor.last_end))

    def _foreign_operator(self, waiting: list[_Waiting]) -> int:
        """Report an operator that the language does not have; return how tightly it binds, or 0."""
        cursor = self.cursor
        token = cursor.token
        if cursor.word == "bad":
            if token.text or cursor.begins_line():
                return 0
            return 1 if self._is_choice(token) else COMPARISON + 1
        if cursor.word == ":":
            return 1 if any(self._is_choice(operator) for _, operator, _ in waiting) else 0
        if cursor.word == "name":
            if token.text not in OPERATOR_WORDS or cursor.begins_line() or cursor.ahead() not in EXPRESSIONS:
                return 0
            sign = OPERATOR_WORDS[token.text]
            cursor.report(f"there is no operator '{token.text}'", token.span, f"write '{sign}'")
            return LEVELS[sign]
        if cursor.word not in OPERATORS:
            return 0
        bound, help_ = OPERATORS[cursor.word]
        cursor.report(f"there is no operator '{cursor.word}'", token.span, help_)
        return bound

    def _is_choice(self, token: Token) -> bool:
        """Return whether ``token`` is the question mark of ``c ? a : b``, which has been reported."""
        return token.kind == "bad" and self.cursor.source.text[token.start : token.end] == "?"

    def _operand(self) -> nodes.Expression:
        """Read an operand: signs, what they stand before, and what follows it in turn."""
        cursor = self.cursor
        if cursor.word not in _SIGNS and not (cursor.word == "name" and cursor.token.text == "not"):
            return self.followed(self.operands.primary())
        depth = cursor.depth
        signs: list[Token] = []
        while True:
            token = cursor.token
            word = token.text == "not" and cursor.word == "name" and self._negates()
            if cursor.word not in _SIGNS and not word:
                break
            cursor.advance()
            if token.text in ("-", "!"):
                cursor.deeper()
                signs.append(token)
            elif word:
                cursor.report("there is no operator 'not'", token.span, "write '!'")
                signs.append(token)
            else:
                cursor.report(f"'{token.text}' is no sign", token.span, "leave it out")
        found = self.followed(self.operands.primary())
        for token in reversed(signs):
            span = (token.start, found.span[1])
            if token.text == "not":
                found = nodes.Invalid(span)
            else:
                found = nodes.Unary(token.text, found, token.span, span)
        cursor.depth = depth
        return found

    def _negates(self) -> bool:
        """Return whether the next word, ``not``, is meant as an operator."""
        cursor = self.cursor
        return cursor.ahead() in ("name", "true", "false") and not cursor.begins_line(1)

    def followed(self, found: nodes.Expression) -> nodes.Expression:
        """Read calls, indices and fields behind ``found``."""
        cursor = self.cursor
        if cursor.word not in _FOLLOWING:
            return found
        depth, start = cursor.depth, found.span[0]
        while cursor.word in _FOLLOWING:
            if cursor.word in ("(", "[") and cursor.begins_line():
                break  # a tuple or a list in a line of its own, after a semicolon that is missing
            if cursor.word == "::" and self._slicing:
                break
            cursor.deeper()
            outer, self._slicing = self._slicing, False
            if cursor.word == "(":
                arguments = self.lists.read(self._argument, "arguments", nodes.Argument)
                found = nodes.Call(found, arguments, (start, cursor.last_end))
            elif cursor.word == "[":
                found = self._index(found)
            elif cursor.word == ".":
                cursor.advance()
                found = nodes.Field(found, self._field(), (start, cursor.last_end))
            else:
                found = self._path(start)
            self._slicing = outer
        cursor.depth = depth
        return found

    def _field(self) -> nodes.Ident:
        cursor = self.cursor
        token = cursor.token
        if cursor.word == "number" and token.text.isdigit():
            cursor.advance()
            return nodes.Ident(token.text, token.span)
        return cursor.name("the name of a field, or the number of a tuple's part")

    def _path(self, start: int) -> nodes.Expression:
        """Read the rest of a path, which stands in imports alone."""
        cursor = self.cursor
        token = cursor.advance()
        name = cursor.name("a name")
        path = f"{cursor.source.text[start : token.start][:40]}::{name.text}"
        help_ = f"write import {path}; at the top, and {name.text} here"
        cursor.report("paths stand in imports alone", token.span, help_)
        return nodes.Name(name.text, name.span)

    def _argument(self) -> nodes.Argument:
        cursor = self.cursor
        if cursor.word == "name" and cursor.ahead() in ("=", ":"):
            token = cursor.advance()
            if cursor.word == ":":
                cursor.expected("'=' behind the name of an argument", f"write {token.text}=value")
            cursor.advance()
            name = nodes.Ident(token.text, token.span)
            return nodes.Argument(self.expression(), name)
        return nodes.Argument(self.expression())

    # Indices

    def _index(self, value: nodes.Expression) -> nodes.Expression:
        cursor = self.cursor
        opening = cursor.token
        items: list[nodes.Expression | nodes.Slice] = self.lists.read(self._index_item, "indices", same)
        span = (value.span[0], cursor.last_end)
        if not items:
            cursor.report("an index is missing", (opening.start, cursor.last_end), "write x[0] or x[0:2, :]")
            return nodes.Invalid(span)
        return nodes.Index(value, items, span)

    def _index_item(self) -> nodes.Expression | nodes.Slice:
        cursor = self.cursor
        start = cursor.token.start
        first = second = third = None
        if cursor.word not in (":", "::"):
            first = self._bound()
            if cursor.word not in (":", "::"):
                return first
        if cursor.word == "::":
            cursor.advance()
            third = None if cursor.word in _AFTER_ITEM else self._bound()
            return nodes.Slice(first, second, third, (start, cursor.last_end))
        cursor.advance()
        if cursor.word not in _AFTER_ITEM:
            second = self._bound()
        if cursor.accept(":") and cursor.word not in _AFTER_ITEM:
            third = self._bound()
        return nodes.Slice(first, second, third, (start, cursor.last_end))

    def _bound(self) -> nodes.Expression:
        self._slicing = True
        try:
            return self.expression()
        finally:
            self._slicing = False
