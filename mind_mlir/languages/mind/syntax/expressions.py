"""Reads expressions: operators, and what follows an operand (surface.md, "Programs")."""

from __future__ import annotations

from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.operands import EXPRESSIONS, OperandReader
from mind_mlir.languages.mind.syntax.slips import COMPARISON, LEVELS, OPERATOR_WORDS, OPERATORS
from mind_mlir.languages.mind.syntax.tokens import Token

_SIGNS = frozenset(("-", "!", "+", "&", "*"))
_FOLLOWING = frozenset(("(", "[", ".", "::"))
#: What ends an item of an index.
_AFTER_ITEM = frozenset((",", "]", ":"))

#: An operator that waits for its right side: how tightly it binds, the operator, its left side.
_Waiting = tuple[int, Token, nodes.Expression]


class ExpressionReader(OperandReader):
    """Reads expressions."""

    #: Whether ``::`` behind an expression parts the bounds of a slice.
    _slicing = False

    def expression(self) -> nodes.Expression:
        """Read an expression.

        Raises:
            Fault: There is none; it has been reported.
        """
        self.deeper()
        waiting: list[_Waiting] = []
        left = self._operand()
        while True:
            bound = LEVELS.get(self.word) or self._foreign_operator(waiting)
            if not bound:
                break
            while waiting and waiting[-1][0] >= bound:
                left = self._reduced(waiting.pop(), left, bound)
            waiting.append((bound, self.advance(), left))
            left = self._operand() if self._has_operand(waiting[-1][1]) else self._nothing()
        while waiting:
            left = self._reduced(waiting.pop(), left, 0)
        self.depth -= 1
        return left

    def _reduced(self, waiting: _Waiting, right: nodes.Expression, following: int) -> nodes.Expression:
        """Return what an operator and its sides make up; ``following`` is how the next operator binds."""
        bound, operator, left = waiting
        span = (left.span[0], right.span[1])
        if bound == following == COMPARISON:
            if not isinstance(left, nodes.Invalid):
                self.fault("comparisons do not follow one another", "write a < b && b < c")
            return nodes.Invalid(span)
        if operator.text not in LEVELS:
            return nodes.Invalid(span)
        return nodes.Binary(operator.text, left, right, (operator.start, operator.end), span)

    def _has_operand(self, operator: Token) -> bool:
        """Return whether an operand must follow: not behind a character that has been reported."""
        return operator.kind != "bad" or (self.word in EXPRESSIONS and not self.begins_line())

    def _nothing(self) -> nodes.Expression:
        return nodes.Invalid((self.last_end, self.last_end))

    def _foreign_operator(self, waiting: list[_Waiting]) -> int:
        """Report an operator that the language does not have; return how tightly it binds, or 0."""
        token = self.token
        if self.word == "bad":
            if token.text or self.begins_line():
                return 0
            return 1 if self._is_choice(token) else COMPARISON + 1
        if self.word == ":":
            return 1 if any(self._is_choice(operator) for _, operator, _ in waiting) else 0
        if self.word == "name":
            if token.text not in OPERATOR_WORDS or self.begins_line() or self.ahead() not in EXPRESSIONS:
                return 0
            sign = OPERATOR_WORDS[token.text]
            self.report(f"there is no operator '{token.text}'", (token.start, token.end), f"write '{sign}'")
            return LEVELS[sign]
        if self.word not in OPERATORS:
            return 0
        bound, help_ = OPERATORS[self.word]
        self.report(f"there is no operator '{self.word}'", (token.start, token.end), help_)
        return bound

    def _is_choice(self, token: Token) -> bool:
        """Return whether ``token`` is the question mark of ``c ? a : b``, which has been reported."""
        return token.kind == "bad" and self.source.text[token.start : token.end] == "?"

    def _operand(self) -> nodes.Expression:
        """Read an operand: signs, what they stand before, and what follows it in turn."""
        if self.word not in _SIGNS and not (self.word == "name" and self.token.text == "not"):
            return self.followed(self.primary())
        depth = self.depth
        signs: list[Token] = []
        while True:
            token = self.token
            word = token.text == "not" and self.word == "name" and self._negates()
            if self.word not in _SIGNS and not word:
                break
            self.advance()
            if token.text in ("-", "!"):
                self.deeper()
                signs.append(token)
            elif word:
                self.report("there is no operator 'not'", (token.start, token.end), "write '!'")
                signs.append(token)
            else:
                self.report(f"'{token.text}' is no sign", (token.start, token.end), "leave it out")
        found = self.followed(self.primary())
        for token in reversed(signs):
            span = (token.start, found.span[1])
            if token.text == "not":
                found = nodes.Invalid(span)
            else:
                found = nodes.Unary(token.text, found, (token.start, token.end), span)
        self.depth = depth
        return found

    def _negates(self) -> bool:
        """Return whether the next word, ``not``, is meant as an operator."""
        return self.ahead() in ("name", "true", "false") and not self.begins_line(1)

    def followed(self, found: nodes.Expression) -> nodes.Expression:
        """Read calls, indices and fields behind ``found``."""
        if self.word not in _FOLLOWING:
            return found
        depth, start = self.depth, found.span[0]
        while self.word in _FOLLOWING:
            if self.word in ("(", "[") and self.begins_line():
                break  # a tuple or a list in a line of its own, after a semicolon that is missing
            if self.word == "::" and self._slicing:
                break
            self.deeper()
            outer, self._slicing = self._slicing, False
            if self.word == "(":
                arguments = self.listed(self._argument, "arguments", nodes.Argument)
                found = nodes.Call(found, arguments, (start, self.last_end))
            elif self.word == "[":
                found = self._index(found)
            elif self.word == ".":
                self.advance()
                found = nodes.Field(found, self._field(), (start, self.last_end))
            else:
                found = self._path(start)
            self._slicing = outer
        self.depth = depth
        return found

    def _field(self) -> nodes.Ident:
        token = self.token
        if self.word == "number" and token.text.isdigit():
            self.advance()
            return nodes.Ident(token.text, (token.start, token.end))
        return self.name("the name of a field, or the number of a tuple's part")

    def _path(self, start: int) -> nodes.Expression:
        """Read the rest of a path, which stands in imports alone."""
        token = self.advance()
        name = self.name("a name")
        path = f"{self.source.text[start : token.start][:40]}::{name.text}"
        help_ = f"write import {path}; at the top, and {name.text} here"
        self.report("paths stand in imports alone", (token.start, token.end), help_)
        return nodes.Name(name.text, name.span)

    def _argument(self) -> nodes.Argument:
        if self.word == "name" and self.ahead() in ("=", ":"):
            token = self.advance()
            if self.word == ":":
                self.expected("'=' behind the name of an argument", f"write {token.text}=value")
            self.advance()
            name = nodes.Ident(token.text, (token.start, token.end))
            return nodes.Argument(self.expression(), name)
        return nodes.Argument(self.expression())

    # Indices

    def _index(self, value: nodes.Expression) -> nodes.Expression:
        opening = self.token
        items: list[nodes.Expression | nodes.Slice] = self.listed(self._index_item, "indices", _same)
        span = (value.span[0], self.last_end)
        if not items:
            self.report("an index is missing", (opening.start, self.last_end), "write x[0] or x[0:2, :]")
            return nodes.Invalid(span)
        return nodes.Index(value, items, span)

    def _index_item(self) -> nodes.Expression | nodes.Slice:
        start = self.token.start
        first = second = third = None
        if self.word not in (":", "::"):
            first = self._bound()
            if self.word not in (":", "::"):
                return first
        if self.word == "::":
            self.advance()
            third = None if self.word in _AFTER_ITEM else self._bound()
            return nodes.Slice(first, second, third, (start, self.last_end))
        self.advance()
        if self.word not in _AFTER_ITEM:
            second = self._bound()
        if self.take(":") and self.word not in _AFTER_ITEM:
            third = self._bound()
        return nodes.Slice(first, second, third, (start, self.last_end))

    def _bound(self) -> nodes.Expression:
        self._slicing = True
        try:
            return self.expression()
        finally:
            self._slicing = False


def _same(invalid: nodes.Invalid) -> nodes.Expression | nodes.Slice:
    return invalid
