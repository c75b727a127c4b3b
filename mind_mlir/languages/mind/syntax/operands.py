"""Reads what stands between operators: names, literals, brackets, closures, branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.cursor import Fault
from mind_mlir.languages.mind.syntax.literals import number, string
from mind_mlir.languages.mind.syntax.slips import NO_EXPRESSIONS
from mind_mlir.languages.mind.syntax.types import TypeReader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.diagnostics import SourceText
    from mind_mlir.diagnostics.findings import Findings
    from mind_mlir.languages.mind.syntax.tokens import Token

#: Words that an expression may begin with.
EXPRESSIONS = frozenset(
    ("name", "number", "string", "bad", "true", "false", "(", "[", "{", "-", "!", "|", "||", "if")
)
#: What follows the first name of a struct's fields.
_AFTER_FIELD = frozenset((":", ",", "}", "="))
_ELSE_IF = frozenset(("elif", "elsif", "elseif"))


class OperandReader(TypeReader):
    """Reads operands."""

    def __init__(self, source: SourceText, tokens: Sequence[Token], findings: Findings) -> None:
        super().__init__(source, tokens, findings)
        self._openers: dict[str, Callable[[], nodes.Expression]] = {
            "name": self._name,
            "number": self._number,
            "string": self._string,
            "bad": self._bad,
            "true": self._bool,
            "false": self._bool,
            "(": self._parenthesised,
            "[": self._list,
            "|": self._closure,
            "||": self._closure,
            "if": self.branch,
            "{": self.block,
        }

    def expression(self) -> nodes.Expression:
        """Read an expression; the reader of operators does."""
        raise NotImplementedError

    def block(self) -> nodes.Block:
        """Read a block; the reader of statements does."""
        raise NotImplementedError

    def primary(self) -> nodes.Expression:
        """Read an operand without what stands before and behind it.

        Raises:
            Fault: There is none.
        """
        opener = self._openers.get(self.word)
        if opener is None:
            word = self.token.text
            help_ = None if self.begins_line() else NO_EXPRESSIONS.get(self.word)
            if help_ is None and self.token.kind == "keyword" and not self.begins_line():
                help_ = f"'{word}' is a word of the language, and no expression"
            raise self.expected("an expression", help_)
        return opener()

    def _number(self) -> nodes.Number:
        token = self.advance()
        value = number(token.text)
        assert value is not None, "the lexer has read it"
        return nodes.Number(value, token.text, (token.start, token.end))

    def _string(self) -> nodes.String:
        token = self.advance()
        return nodes.String(string(token.text), token.text, (token.start, token.end))

    def _bool(self) -> nodes.Bool:
        token = self.advance()
        return nodes.Bool(token.text == "true", (token.start, token.end))

    def _bad(self) -> nodes.Expression:
        """Read a word that has been reported: the operand itself, or what stands before it."""
        token = self.advance()
        if not token.text and self.word in EXPRESSIONS and not self.begins_line():
            self.deeper()
            self.primary()
            self.depth -= 1
        return nodes.Invalid((token.start, self.last_end))

    def _list(self) -> nodes.List:
        start = self.token.start
        items = self.listed(self.expression, "elements", _same)
        return nodes.List(items, (start, self.last_end))

    def _parenthesised(self) -> nodes.Expression:
        start, single = self.token.start, False

        def item() -> nodes.Expression:
            nonlocal single
            found = self.expression()
            single = self.word != ","
            return found

        items = self.listed(item, "elements", _same)
        if len(items) == 1 and (single or isinstance(items[0], nodes.Invalid)):
            return items[0]
        return nodes.Tuple(items, (start, self.last_end))

    # Names and structs

    def _name(self) -> nodes.Expression:
        token = self.token
        if token.text == "lambda" and self.ahead() == "name" and not self.begins_line(1):
            raise self.fault("there is no 'lambda'", "write a closure: |x| x + 1.0")
        self.advance()
        if self.word == "{" and self.structs and self._begins_fields(token):
            return self._struct(nodes.Ident(token.text, (token.start, token.end)))
        return nodes.Name(token.text, (token.start, token.end))

    def _begins_fields(self, name: Token) -> bool:
        """Return whether the next brace begins a struct's fields."""
        if self.begins_line():
            return False
        first, second = self.ahead(), self.ahead(2)
        if first in ("name", "bad"):
            return second in _AFTER_FIELD or name.text[:1].isupper()
        return first == "}" or name.text[:1].isupper()

    def _struct(self, name: nodes.Ident) -> nodes.StructLiteral:
        fields = self.listed(self._field_value, "fields")
        return nodes.StructLiteral(name, fields, (name.span[0], self.last_end))

    def _field_value(self) -> nodes.FieldValue:
        name = self.name("the name of a field")
        if self.word == "=":
            self.expected("':' behind the name of a field", f"write {name.text}: value")
            self.advance()
        elif self.word == "name" and self.ahead() == ":":
            self.expected("':' behind the name of a field", f"write {name.text}: value")
            self.advance()
            self.advance()
        elif not self.take(":"):
            if self.word not in (",", "}"):
                raise self.expected("':' behind the name of a field", f"write {name.text}: value")
            return nodes.FieldValue(name, nodes.Name(name.text, name.span), short=True)
        depth = self.depth
        try:
            return nodes.FieldValue(name, self.expression())
        except Fault:
            self.depth, self.structs = depth, True
            self.skip_element()
            return nodes.FieldValue(name, nodes.Invalid((self.last_end, self.last_end)))

    # Closures

    def _closure(self) -> nodes.Closure:
        start, both = self.token.start, self.word == "||"
        self.advance()
        parameters: list[nodes.Parameter] = []
        while not both and not self.take("|"):
            name = self.name("a parameter, or '|'")
            parameters.append(nodes.Parameter(name, self.type() if self.take(":") else None))
            if not self.take(",") and self.word != "|":
                raise self.expected("',' or '|'", "a closure is written |a, b| f(a, b)")
        body = self.expression()
        return nodes.Closure(parameters, body, (start, body.span[1]))

    # Branches

    def condition(self, word: str) -> nodes.Expression:
        """Read what stands between ``word`` and a block, in which no struct's fields begin.

        Raises:
            Fault: It is no expression, or no block follows.
        """
        outer, self.structs = self.structs, False
        found = self.expression()
        if self.word == "=":
            help_ = "compare with '=='"
            self.report("'=' gives a variable a value", (self.token.start, self.token.end), help_)
            self.advance()
            found = nodes.Invalid((found.span[0], self.expression().span[1]))
        if self.word == "{" and self.ahead() == "name" and self.ahead(2) == ":":
            help_ = f"put it in parentheses: {word} (a == P {{ x: b }}) {{ ... }}"
            self.fault(f"a struct between {word} and its block", help_)
            self.listed(self._field_value, "fields")
        self.structs = outer
        if self.word != "{":
            self.lacking.append(self.token.start)
            raise self.expected(f"'{{' behind the condition of {word}", f"write {word} c {{ ... }}")
        return found

    def branch(self) -> nodes.If:
        """Read an ``if``; what follows it in turn is a level deeper each."""
        depth = self.depth
        opened: list[tuple[int, nodes.Expression, nodes.Block]] = []
        otherwise: nodes.Block | nodes.If | None = None
        while True:
            start = self.advance().start
            self.deeper()
            condition = self.condition("if")
            opened.append((start, condition, self.block()))
            token = self.token
            if self.word == "name" and token.text in _ELSE_IF:
                self.report(f"there is no '{token.text}'", (token.start, token.end), "write else if")
                continue
            if not self.take("else"):
                break
            if self.word == "if":
                continue
            if self.word != "{":
                self.lacking.append(token.start)
                raise self.expected("'{' behind else", "write else { ... }")
            otherwise = self.block()
            break
        for start, condition, then in reversed(opened):
            otherwise = nodes.If(condition, then, otherwise, (start, self.last_end))
        self.depth = depth
        assert isinstance(otherwise, nodes.If), "at least one has been read"
        return otherwise


def _same(invalid: nodes.Invalid) -> nodes.Invalid:
    return invalid
