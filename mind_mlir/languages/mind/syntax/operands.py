"""Reads what stands between operators: names, literals, brackets, closures, branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.lists import ListReader, same
from mind_mlir.languages.mind.syntax.slips import NO_EXPRESSIONS
from mind_mlir.languages.mind.syntax.tokens import number, string

if TYPE_CHECKING:
    from mind_mlir.languages.mind.syntax.cursor import MindCursor
    from mind_mlir.languages.mind.syntax.types import TypeReader
    from mind_mlir.languages.text.cursor import Token

#: Words that an expression may begin with.
EXPRESSIONS = frozenset(
    ("name", "number", "string", "bad", "true", "false", "(", "[", "{", "-", "!", "|", "||", "if")
)
#: What follows the first name of a struct's fields.
_AFTER_FIELD = frozenset((":", ",", "}", "="))
_ELSE_IF = frozenset(("elif", "elsif", "elseif"))


class OperandReader:
    """Reads operands."""

    def __init__(
        self,
        cursor: MindCursor,
        lists: ListReader,
        types: TypeReader,
        expression: Callable[[], nodes.Expression],
        block: Callable[[], nodes.Block],
    ) -> None:
        """Read with parts of one reader; ``expression`` and ``block`` read what stands within an operand."""
        self.cursor = cursor
        self.lists = lists
        self.types = types
        self._expression = expression
        self._block = block
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
            "{": block,
        }

    def primary(self) -> nodes.Expression:
        """Read an operand without what stands before and behind it.

        Raises:
            Fault: There is none.
        """
        cursor = self.cursor
        opener = self._openers.get(cursor.word)
        if opener is None:
            word = cursor.token.text
            help_ = None if cursor.begins_line() else NO_EXPRESSIONS.get(cursor.word)
            if help_ is None and cursor.token.kind == "keyword" and not cursor.begins_line():
                help_ = f"'{word}' is a word of the language, and no expression"
            raise cursor.expected("an expression", help_)
        return opener()

    def _number(self) -> nodes.Number:
        token = self.cursor.advance()
        value = number(token.text)
        assert value is not None, "the lexer has read it"
        return nodes.Number(value, token.text, token.span)

    def _string(self) -> nodes.String:
        token = self.cursor.advance()
        return nodes.String(string(token.text), token.text, token.span)

    def _bool(self) -> nodes.Bool:
        token = self.cursor.advance()
        return nodes.Bool(token.text == "true", token.span)

    def _bad(self) -> nodes.Expression:
        """Read a word that has been reported: the operand itself, or what stands before it."""
        cursor = self.cursor
        token = cursor.advance()
        if not token.text and cursor.word in EXPRESSIONS and not cursor.begins_line():
            cursor.deeper()
            self.primary()
            cursor.depth -= 1
        return nodes.Invalid((token.start, cursor.last_end))

    def _list(self) -> nodes.List:
        cursor = self.cursor
        start = cursor.token.start
        items = self.lists.read(self._expression, "elements", same)
        return nodes.List(items, (start, cursor.last_end))

    def _parenthesised(self) -> nodes.Expression:
        cursor = self.cursor
        start, single = cursor.token.start, False

        def item() -> nodes.Expression:
            nonlocal single
            found = self._expression()
            single = cursor.word != ","
            return found

        items = self.lists.read(item, "elements", same)
        if len(items) == 1 and (single or isinstance(items[0], nodes.Invalid)):
            return items[0]
        return nodes.Tuple(items, (start, cursor.last_end))

    # Names and structs

    def _name(self) -> nodes.Expression:
        cursor = self.cursor
        token = cursor.token
        if token.text == "lambda" and cursor.ahead() == "name" and not cursor.begins_line(1):
            raise cursor.fault("there is no 'lambda'", "write a closure: |x| x + 1.0")
        cursor.advance()
        if cursor.word == "{" and cursor.structs and self._begins_fields(token):
            return self._struct(nodes.Ident(token.text, token.span))
        return nodes.Name(token.text, token.span)

    def _begins_fields(self, name: Token) -> bool:
        """Return whether the next brace begins a struct's fields."""
        cursor = self.cursor
        if cursor.begins_line():
            return False
        first, second = cursor.ahead(), cursor.ahead(2)
        if first in ("name", "bad"):
            return second in _AFTER_FIELD or name.text[:1].isupper()
        return first == "}" or name.text[:1].isupper()

    def _struct(self, name: nodes.Ident) -> nodes.StructLiteral:
        fields = self.lists.read(self._field_value, "fields")
        return nodes.StructLiteral(name, fields, (name.span[0], self.cursor.last_end))

    def _field_value(self) -> nodes.FieldValue:
        cursor = self.cursor
        name = cursor.name("the name of a field")
        if cursor.word == "=":
            cursor.expected("':' behind the name of a field", f"write {name.text}: value")
            cursor.advance()
        elif cursor.word == "name" and cursor.ahead() == ":":
            cursor.expected("':' behind the name of a field", f"write {name.text}: value")
            cursor.advance()
            cursor.advance()
        elif not cursor.accept(":"):
            if cursor.word not in (",", "}"):
                raise cursor.expected("':' behind the name of a field", f"write {name.text}: value")
            return nodes.FieldValue(name, nodes.Name(name.text, name.span), short=True)
        value = cursor.attempt(self._expression, cursor.skip_element)
        return nodes.FieldValue(name, value or nodes.Invalid((cursor.last_end, cursor.last_end)))

    # Closures

    def _closure(self) -> nodes.Closure:
        cursor = self.cursor
        start, both = cursor.token.start, cursor.word == "||"
        cursor.advance()
        parameters: list[nodes.Parameter] = []
        while not both and not cursor.accept("|"):
            name = cursor.name("a parameter, or '|'")
            parameters.append(nodes.Parameter(name, self.types.type() if cursor.accept(":") else None))
            if not cursor.accept(",") and cursor.word != "|":
                raise cursor.expected("',' or '|'", "a closure is written |a, b| f(a, b)")
        body = self._expression()
        return nodes.Closure(parameters, body, (start, body.span[1]))

    # Branches

    def condition(self, word: str) -> nodes.Expression:
        """Read what stands between ``word`` and a block, in which no struct's fields begin.

        Raises:
            Fault: It is no expression, or no block follows.
        """
        cursor = self.cursor
        outer, cursor.structs = cursor.structs, False
        found = self._expression()
        if cursor.word == "=":
            help_ = "compare with '=='"
            cursor.report("'=' gives a variable a value", cursor.token.span, help_)
            cursor.advance()
            found = nodes.Invalid((found.span[0], self._expression().span[1]))
        if cursor.word == "{" and cursor.ahead() == "name" and cursor.ahead(2) == ":":
            help_ = f"put it in parentheses: {word} (a == P {{ x: b }}) {{ ... }}"
            cursor.fault(f"a struct between {word} and its block", help_)
            self.lists.read(self._field_value, "fields")
        cursor.structs = outer
        if cursor.word != "{":
            cursor.lacking.append(cursor.token.start)
            raise cursor.expected(f"'{{' behind the condition of {word}", f"write {word} c {{ ... }}")
        return found

    def branch(self) -> nodes.If:
        """Read an ``if``; what follows it in turn is a level deeper each."""
        cursor = self.cursor
        depth = cursor.depth
        opened: list[tuple[int, nodes.Expression, nodes.Block]] = []
        otherwise: nodes.Block | nodes.If | None = None
        while True:
            start = cursor.advance().start
            cursor.deeper()
            condition = self.condition("if")
            opened.append((start, condition, self._block()))
            token = cursor.token
            if cursor.word == "name" and token.text in _ELSE_IF:
                cursor.report(f"there is no '{token.text}'", token.span, "write else if")
                continue
            if not cursor.accept("else"):
                break
            if cursor.word == "if":
                continue
            if cursor.word != "{":
                cursor.lacking.append(token.start)
                raise cursor.expected("'{' behind else", "write else { ... }")
            otherwise = self._block()
            break
        for start, condition, then in reversed(opened):
            otherwise = nodes.If(condition, then, otherwise, (start, cursor.last_end))
        cursor.depth = depth
        assert isinstance(otherwise, nodes.If), "at least one has been read"
        return otherwise
