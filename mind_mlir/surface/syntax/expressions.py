"""Reads expressions, types and patterns (surface.md, "Programs", "Types")."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from mind_mlir.diagnostics.suggestions import did_you_mean
from mind_mlir.surface.syntax import lexer, nodes
from mind_mlir.surface.syntax.cursor import Cursor, Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mind_mlir.surface.syntax.tokens import Token

_T = TypeVar("_T")

#: How tightly operators bind; those of one level go from left to right.
_LEVELS = {
    "||": 1,
    "&&": 2,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 3),
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
}
_COMPARISON = 3
#: Operators of other languages, and what to write instead.
_FOREIGN = {
    "%": "there is no remainder of a division: import tensor::remainder; and call remainder(a, b)",
    "**": "call power(a, b)",
    "&": "write && for truth values",
    "|": "write || for truth values",
    "^": "call power(a, b), or xor(a, b)",
    "~": "write ! for truth values",
    "?": "write if c { a } else { b }",
    "..": "write range(a, b)",
    "..=": "write range(a, b + 1)",
    "=>": "write if and else",
    ":=": "write let x = value;",
    "=": "compare with '=='",
}
_WORDS = {"and": "&&", "or": "||", "not": "!"}


class ExpressionReader(Cursor):
    """Reads expressions, types and patterns."""

    #: Whether ``{`` behind a name begins a struct's fields: not where a block must follow.
    structs: bool = True

    def block(self) -> nodes.Block:
        """Read a block; the reader of statements does."""
        raise NotImplementedError

    def expression(self, level: int = 1) -> nodes.Expression:
        """Read an expression whose operators bind at least as tightly as ``level`` says."""
        self.deeper()
        try:
            left = self._operand()
            while True:
                token = self.token
                bound = _LEVELS.get(token.text, 0) if token.kind == "symbol" else 0
                if bound < level or not bound:
                    if self._foreign_operator(token):
                        left = nodes.Invalid((left.span[0], self.last_end))
                        continue
                    return left
                self.advance()
                right = self.expression(bound + 1)
                span = (left.span[0], right.span[1])
                left = nodes.Binary(token.text, left, right, (token.start, token.end), span)
                if (
                    bound == _COMPARISON
                    and _LEVELS.get(self.token.text) == _COMPARISON
                    and self.token.kind == "symbol"
                ):
                    raise self.fault("comparisons do not follow one another", "write a < b && b < c")
        finally:
            self.higher()

    def _foreign_operator(self, token: Token) -> bool:
        """Report an operator that the language does not have, and read past it and its operand."""
        if token.kind == "bad" and not token.text and not self.begins_line():
            self.advance()
            if self._begins_expression():
                self.expression(5)
            return True
        if token.kind == "name" and token.text in _WORDS and token.text != "not" and not self.begins_line():
            self.report(
                f"'{token.text}' is no operator", token.start, token.end, f"write {_WORDS[token.text]}"
            )
            self.advance()
            self.expression(3)
            return True
        if token.kind != "symbol" or token.text not in _FOREIGN or token.text == "=":
            return False
        if token.text == "|" and not self.structs:
            return False
        self.report(f"there is no operator '{token.text}'", token.start, token.end, _FOREIGN[token.text])
        self.advance()
        if self._begins_expression():
            self.expression(5)
        return True

    def _begins_expression(self) -> bool:
        token = self.token
        if token.kind in ("name", "number", "string", "bad"):
            return True
        return (
            token.text in ("(", "[", "{", "-", "!", "|", "||", "if", "true", "false") and token.kind != "end"
        )

    def _operand(self) -> nodes.Expression:
        """Read an operand: prefixes, what they stand before, and what follows it in turn."""
        signs: list[Token] = []
        while self.token.kind == "symbol" and self.token.text in ("-", "!", "+", "&", "*"):
            token = self.advance()
            if token.text in ("-", "!"):
                signs.append(token)
                self.deeper()
            else:
                self.report(f"'{token.text}' is no sign", token.start, token.end, "leave it out")
        found = self._followed(self._primary())
        for token in reversed(signs):
            span = (token.start, found.span[1])
            found = nodes.Unary(token.text, found, (token.start, token.end), span)
        self.higher(len(signs))
        return found

    def _followed(self, found: nodes.Expression) -> nodes.Expression:
        """Read calls, indices and fields behind ``found``."""
        levels = 0
        start = found.span[0]
        while self.token.kind == "symbol" and self.token.text in ("(", "[", ".", "::"):
            if self.token.text in ("(", "[") and self.begins_line():
                break  # a tuple or a list on a line of its own, after a semicolon that is missing
            self.deeper()
            levels += 1
            opening = self.advance()
            if opening.text == "(":
                arguments = self._listed(self._argument, opening, ")")
                found = nodes.Call(found, arguments, (start, self.last_end))
            elif opening.text == "[":
                items = self._listed(self._item, opening, "]")
                if not items:
                    self.report(
                        "an index is missing", opening.start, self.last_end, "write x[0] or x[0:2, :]"
                    )
                    found = nodes.Invalid((start, self.last_end))
                else:
                    found = nodes.Index(found, items, (start, self.last_end))
            elif opening.text == "::":
                self.report(
                    "'::' stands in imports alone",
                    opening.start,
                    opening.end,
                    "import the name, and write it alone",
                )
                name = self.name("a name")
                found = nodes.Name(name.text, name.span)
            else:
                found = nodes.Field(found, self._field(), (start, self.last_end))
        self.higher(levels)
        return found

    def _field(self) -> nodes.Ident:
        token = self.token
        if token.kind == "number" and token.text.isdigit():
            self.advance()
            return nodes.Ident(token.text, (token.start, token.end))
        return self.name("the name of a field")

    def _listed(self, element: Callable[[], _T], opening: Token, closing: str) -> list[_T]:
        """Read elements between commas up to ``closing``; a wrong one costs no other."""
        outer, self.structs = self.structs, True
        found: list[_T] = []
        try:
            while not self.at(closing):
                depth = self.depth
                try:
                    found.append(element())
                except Fault:
                    self.depth = depth
                    self.skip_element()
                    if not self.at(",") and not self.at(closing):
                        raise
                    found.append(self._invalid_element(element))
                if self.take(",") is None and not self.at(closing):
                    self._not_closed(opening, closing)
                    break
            else:
                self.advance()
        finally:
            self.structs = outer
        return found

    def _invalid_element(self, element: Callable[[], _T]) -> _T:
        """Return what stands for an element that could not be read."""
        invalid = nodes.Invalid((self.last_end, self.last_end))
        made: object = nodes.Argument(invalid) if element == self._argument else invalid
        return made  # type: ignore[return-value]  # an element of the kind that ``element`` reads

    def _not_closed(self, opening: Token, closing: str) -> None:
        """Report what stands where a comma or ``closing`` is missing; go on behind it where that is plain."""
        token = self.token
        if token.kind == "bad":
            raise Fault
        ends = (
            token.kind == "end"
            or token.text in (";", "}", "{")
            or (token.kind == "keyword" and token.text != "if")
        )
        if (ends or self.begins_line()) and self.behind_bad:  # a string without an end has taken it along
            return
        if ends or self.begins_line():
            self.report(
                f"this '{opening.text}' is not closed",
                opening.start,
                opening.end,
                f"add '{closing}' behind its last element",
            )
            if not ends:
                raise Fault
            return
        raise self.fault(
            f"expected ',' or '{closing}', found {self.shown()}",
            f"separate elements with commas, and end them with '{closing}'",
        )

    def _argument(self) -> nodes.Argument:
        if self.token.kind == "name" and self.peek().text == "=" and self.peek().kind == "symbol":
            name = self.name("a name")
            self.advance()
            return nodes.Argument(self.expression(), name)
        return nodes.Argument(self.expression())

    def _item(self) -> nodes.Expression | nodes.Slice:
        start = self.token.start
        first = None if self.at(":") or self.at("::") else self.expression()
        if not self.at(":") and not self.at("::"):
            assert first is not None, "what is no slice is an expression"
            return first
        second = third = None
        if not self.take("::"):
            self.advance()
            second = None if self._ends_item() else self.expression()
            if self.take(":") and not self._ends_item():
                third = self.expression()
        elif not self._ends_item():
            third = self.expression()
        return nodes.Slice(first, second, third, (start, self.last_end))

    def _ends_item(self) -> bool:
        return self.token.kind == "symbol" and self.token.text in (",", "]", ":")

    def _primary(self) -> nodes.Expression:
        token = self.token
        span = (token.start, token.end)
        if token.kind == "name":
            return self._named(token)
        if token.kind == "number":
            self.advance()
            value = lexer.number(token.text)
            assert value is not None, "the lexer has read it"
            return nodes.Number(value, token.text, span)
        if token.kind == "string":
            self.advance()
            return nodes.String(lexer.string(token.text), token.text, span)
        if token.kind == "bad":
            self.advance()
            if not token.text and self._begins_expression() and not self.begins_line():
                return self._primary()
            return nodes.Invalid(span)
        if token.kind == "end" or token.text not in self._openers():
            help_ = _FOREIGN.get(token.text)
            if token.kind == "keyword":
                help_ = f"{token.text} is a word of the language, and no expression"
            raise self.fault(f"expected an expression, found {self.shown()}", help_)
        return self._openers()[token.text]()

    def _openers(self) -> Mapping[str, Callable[[], nodes.Expression]]:
        """Return what reads an expression that begins with a word of the language."""
        return {
            "true": self._bool,
            "false": self._bool,
            "(": self._parenthesised,
            "[": self._list,
            "|": self._closure,
            "||": self._closure,
            "if": self.branch,
            "{": self.block,
        }

    def _bool(self) -> nodes.Bool:
        token = self.advance()
        return nodes.Bool(token.text == "true", (token.start, token.end))

    def _list(self) -> nodes.List:
        opening = self.advance()
        return nodes.List(self._listed(self.expression, opening, "]"), (opening.start, self.last_end))

    def _named(self, token: Token) -> nodes.Expression:
        if (
            token.text == "not"
            and self.peek().kind in ("name", "keyword")
            and not self.begins_line(self.peek())
        ):
            self.report("'not' is no operator", token.start, token.end, "write !")
            self.advance()
            return self._primary()
        self.advance()
        if self.structs and self.at("{") and self._begins_fields():
            return self._struct(nodes.Ident(token.text, (token.start, token.end)))
        return nodes.Name(token.text, (token.start, token.end))

    def _begins_fields(self) -> bool:
        first, second = self.peek(), self.peek(2)
        if first.text == "}" and first.kind == "symbol":
            return not self.begins_line(self.token)
        return first.kind in ("name", "bad") and second.kind == "symbol" and second.text in (":", ",", "}")

    def _struct(self, name: nodes.Ident) -> nodes.StructLiteral:
        opening = self.advance()
        fields = self._listed(self._field_value, opening, "}")
        good = [each for each in fields if isinstance(each, nodes.FieldValue)]
        return nodes.StructLiteral(name, good, (name.span[0], self.last_end))

    def _field_value(self) -> nodes.FieldValue:
        name = self.name("the name of a field")
        if self.take(":"):
            return nodes.FieldValue(name, self.expression())
        if self.at("="):
            raise self.fault(
                "expected ':' behind the name of a field, found '='", f"write {name.text}: value"
            )
        return nodes.FieldValue(name, nodes.Name(name.text, name.span), short=True)

    def _parenthesised(self) -> nodes.Expression:
        opening = self.advance()
        single = False

        def item() -> nodes.Expression:
            nonlocal single
            found = self.expression()
            single = not self.at(",")
            return found

        items = self._listed(item, opening, ")")
        if len(items) == 1 and single:
            return items[0]
        return nodes.Tuple(items, (opening.start, self.last_end))

    def _closure(self) -> nodes.Closure:
        opening = self.advance()
        parameters: list[nodes.Parameter] = []
        while opening.text == "|" and not self.take("|"):
            name = self.name("a parameter, or |")
            parameters.append(nodes.Parameter(name, self.type() if self.take(":") else None))
            if not self.take(",") and not self.at("|"):
                raise self.fault(
                    f"expected ',' or '|', found {self.shown()}", "a closure is written |a, b| f(a, b)"
                )
        body = self.expression()
        return nodes.Closure(parameters, body, (opening.start, body.span[1]))

    def condition(self, word: str) -> nodes.Expression:
        """Read what stands between ``if`` or ``while`` and the block, in which no struct begins."""
        outer, self.structs = self.structs, False
        try:
            found = self.expression()
            if self.at("="):
                token = self.token
                self.report("'=' gives a variable a value", token.start, token.end, "compare with '=='")
                self.advance()
                self.expression()
                return nodes.Invalid(found.span)
        finally:
            self.structs = outer
        if not self.at("{"):
            raise self.fault(
                f"expected '{{' behind the condition of {word}, found {self.shown()}",
                f"write {word} c {{ ... }}",
            )
        return found

    def branch(self) -> nodes.If:
        """Read an ``if``; what follows it in turn is a level deeper each."""
        opened: list[tuple[int, nodes.Expression, nodes.Block]] = []
        otherwise: nodes.Block | nodes.If | None = None
        while True:
            start = self.advance().start
            self.deeper()
            condition = self.condition("if")
            opened.append((start, condition, self.block()))
            if self.token.kind == "name" and self.token.text in ("elif", "elsif", "elseif"):
                token = self.token
                self.report(
                    f"'{token.text}' is no word of the language", token.start, token.end, "write else if"
                )
                continue
            if not self.take("else"):
                break
            if not self.at("if"):
                if not self.at("{"):
                    raise self.fault(f"expected '{{' behind else, found {self.shown()}", "write else { ... }")
                otherwise = self.block()
                break
        for start, condition, then in reversed(opened):
            otherwise = nodes.If(condition, then, otherwise, (start, self.last_end))
        self.higher(len(opened))
        assert isinstance(otherwise, nodes.If), "at least one has been read"
        return otherwise

    # Types and patterns

    def type(self) -> nodes.Type:
        """Read a type."""
        token = self.token
        with self.nested():
            if self.take("("):
                return self._tuple_type(token)
            if token.text == "Tensor" and self.peek().text == "<":
                self.advance()
                return self._tensor(token.start)
            name = self.name("a type")
            if self.at("<"):
                near = did_you_mean(name.text, ["Tensor"])
                message = f"there is no type {name.text}<...>{near}"
                help_ = "only tensors have an element type and extents: Tensor<f32, [2, 3]>"
                self.report(message, *name.span, help_, "E2202", name=name.text)
                return nodes.Invalid(self._tensor(token.start).span)
            if self.at("["):
                raise self.fault(
                    "a tensor's type has another form",
                    f"write Tensor<{name.text if name.text != 'Tensor' else 'f32'}, [2, 3]>",
                )
            return nodes.NamedType(name, name.span)

    def _tuple_type(self, opening: Token) -> nodes.Type:
        single = False

        def item() -> nodes.Type:
            nonlocal single
            found = self.type()
            single = not self.at(",")
            return found

        items = self._listed(item, opening, ")")
        return (
            items[0] if len(items) == 1 and single else nodes.TupleType(items, (opening.start, self.last_end))
        )

    def _tensor(self, start: int) -> nodes.Tensor:
        self.advance()
        dtype = self.name("an element type")
        form = "a tensor's type is written Tensor<f32, [2, 3]>"
        self.expect(",", "behind the element type", form)
        opening = self.expect("[", "before the extents", form)
        dimensions = self._listed(self._dimension, opening, "]")
        self._close_angle(form)
        good = [each for each in dimensions if isinstance(each, (nodes.Ident, nodes.Number))]
        return nodes.Tensor(dtype, good, (start, self.last_end))

    def _close_angle(self, form: str) -> None:
        if self.at(">="):  # the type of a let, which ends just before its =
            token = self.token
            self.tokens[self._place : self._place + 1] = [
                token._replace(text=">", end=token.start + 1),
                token._replace(text="=", start=token.start + 1),
            ]
            self.token = self.tokens[self._place]
        self.expect(">", "behind the extents", form)

    def _dimension(self) -> nodes.Ident | nodes.Number:
        token = self.token
        if token.kind == "number":
            self.advance()
            return nodes.Number(lexer.number(token.text) or 0, token.text, (token.start, token.end))
        if token.text in ("-", "?", "*", "_"):
            raise self.fault(
                f"expected an extent, found {self.shown()}",
                "write a number, or a name that stands for any extent",
            )
        return self.name("an extent: a number or a name")

    def pattern(self) -> nodes.Pattern:
        """Read a name, or a tuple of patterns."""
        opening = self.token
        if not self.take("("):
            return self.name("a name")
        with self.nested():
            items = self._listed(self.pattern, opening, ")")
        known = [
            each if isinstance(each, (nodes.Ident, nodes.TuplePattern)) else nodes.Ident("_")
            for each in items
        ]
        return nodes.TuplePattern(known, (opening.start, self.last_end))
