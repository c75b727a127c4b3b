"""Reads the items of a file: imports, structs, aliases, functions (surface.md, "Programs")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.cursor import Fault, TooDeep
from mind_mlir.languages.mind.syntax.statements import StatementReader

if TYPE_CHECKING:
    from mind_mlir.languages.mind.syntax.tokens import Token

_FUNCTION = "write fn f(x: f32) -> f32 { ... }"
_EXPORTED = frozenset(("fn", "struct", "type"))


class ItemReader(StatementReader):
    """Reads a file."""

    def program(self) -> nodes.Program:
        """Read all of it; this raises nothing."""
        items: list[nodes.Item] = []
        while self.word != "end":
            first = self.token
            try:
                self._item(items)
            except (Fault, TooDeep):
                self.depth, self.structs = 0, True
                if self.token is first:
                    self.advance()
                self.skip_item()
        return nodes.Program(items, (0, len(self.source.text)))

    def _item(self, items: list[nodes.Item]) -> None:
        first = self.token
        word = self._foreign() if self.word == "name" else self.word
        exported = word == "export"
        if exported:
            self.advance()
            word = self._foreign() if self.word == "name" else self.word
            if word not in _EXPORTED:
                raise self.expected("fn, struct or type behind export", "write export fn f() -> f32 { ... }")
        if word == "fn":
            function = self._function(first.start, exported=exported)
            items += [function] if function.name.text else []
        elif word == "struct":
            items.append(self._struct_item(first, exported=exported))
        elif word == "type":
            items.append(self._alias(first, exported=exported))
        elif word == "import":
            items.extend(self._import())
        elif word == "let":
            items.append(self.let())
        elif not self.take(";"):
            raise self._no_item()

    def _foreign(self) -> str:
        return self.foreign_word()

    def _no_item(self) -> Fault:
        """Report what is no item, and return what ends the reading of it."""
        if self.word == "}":
            return self.fault("this '}' closes nothing", "leave it out, or add the '{' that is missing")
        span = (self.token.start, max(self.token.end, self.token.start + 1))
        if not self.silent():
            help_ = f"statements stand in functions: {_FUNCTION}"
            self.report(f"expected fn, struct, type, let or import, found {self.shown()}", span, help_)
        return Fault()

    # Functions

    def function(self) -> nodes.Statement:
        """Read a function in a block."""
        found = self._function(self.token.start, exported=False)
        return found if found.name.text else nodes.Evaluate(nodes.Invalid(found.span), found.span)

    def _function(self, start: int, *, exported: bool) -> nodes.Function:
        """Read a function, whose name is empty where it is missing; its body is read whatever its head is.

        Raises:
            Fault: It has no name, and no body either.
        """
        self.advance()
        name = self._function_name()
        parameters, result = self._signature()
        head = (start, self.last_end)
        body = self._body()
        return nodes.Function(name, parameters, result, body, exported, head, (start, self.last_end))

    def _function_name(self) -> nodes.Ident:
        if self.word == "(":
            self.expected("the name of the function", _FUNCTION)
            return nodes.Ident("", (self.token.start, self.token.start))
        return self.name("the name of the function")

    def _signature(self) -> tuple[list[nodes.Parameter], nodes.Type | None]:
        parameters: list[nodes.Parameter] = []
        depth = self.depth
        result: nodes.Type | None = None
        try:
            if self.word != "(":
                raise self.expected("'(' behind the name of the function", _FUNCTION)
            self.listed(self._parameter, "parameters", into=parameters)
            if self.word in (":", "=>"):
                self.expected("'->' before the type of the result", "write -> T { ... }")
                self.advance()
                if self.begins_line() or self.word == "{":
                    return parameters, nodes.Invalid((self.last_end, self.last_end))
                return parameters, self.type()
            if self.take("->"):
                result = self.type()
        except Fault:
            self.depth = depth
            result = nodes.Invalid((self.last_end, self.last_end))
            while self.word not in ("{", "}", ";", "end") and not self.at_margin():
                self.advance()
        return parameters, result

    def _body(self) -> nodes.Block:
        depth = self.depth
        if self.word != "{":
            self.lacking.append(self.token.start)
            self.expected("'->' or '{' behind the parameters", _FUNCTION)
            if self.begins_line() and not self.at_margin():
                return self.unopened()
            while self.word not in ("{", "}", "end") and not self.at_margin():
                self.advance()
        if self.word != "{":
            self.take("}")
            return self._no_body()
        try:
            return self.block()
        except TooDeep:
            if depth:
                raise
            self.depth, self.structs = 0, True
            self.skip_item()
            return self._no_body()

    def _no_body(self) -> nodes.Block:
        span = (self.last_end, self.last_end)
        return nodes.Block([], nodes.Invalid(span), span)

    def _parameter(self) -> nodes.Parameter:
        if self.word in ("&", "*"):
            raise self.fault(f"there is no '{self.word}'", "leave it out")
        if self.token.text == "mut" and self.ahead() == "name":
            self.report("there is no 'mut'", (self.token.start, self.token.end), "leave it out")
            self.advance()
        if self.word == "(":
            self.expected("the name of a parameter", _FUNCTION)
            self.advance()
        if self.word == "name" and self.ahead() in (",", ")", "{", "->", "="):
            name = self.name("the name of a parameter")
            help_ = f"write {name.text}: f32, or {name.text}: Tensor<f32, [n]>"
            self.report(f"parameter {name.text} has no type", name.span, help_)
            return nodes.Parameter(name, nodes.Invalid(name.span))
        name = self.declared("a parameter", _FUNCTION)
        found = nodes.Parameter(name, self._declared_type())
        if self.word == "=":
            self.fault("parameters have no defaults", "give the argument in each call")
            self.advance()
            self.expression()
        return found

    def _declared_type(self) -> nodes.Type:
        """Read the type of a parameter or a field; where it is wrong, the name is declared nevertheless."""
        start, depth = self.token.start, self.depth
        if self.word == ":":
            self.expected("a type")
            self.advance()
        try:
            return self.type()
        except Fault:
            self.depth = depth
            self.skip_element()
            return nodes.Invalid((start, max(start, self.last_end)))

    # Other items

    def _struct_item(self, first: Token, *, exported: bool) -> nodes.Struct:
        self.advance()
        name = self.name("the name of the struct")
        if self.word != "{":
            self.lacking.append(self.token.start)
            raise self.expected("'{' behind the name of the struct", "write struct P { w: f32 }")
        fields = self.listed(self._field_type, "fields")
        self.take(";")
        return nodes.Struct(name, fields, exported, (first.start, self.last_end))

    def _field_type(self) -> nodes.FieldType:
        name = self.declared("a field", "write struct P { w: f32 }")
        return nodes.FieldType(name, self._declared_type())

    def _alias(self, first: Token, *, exported: bool) -> nodes.Alias:
        self.advance()
        name = self.name("the name of the type")
        depth = self.depth
        try:
            self.expect("=", "behind the name", "write type Matrix = Tensor<f32, [2, 2]>;")
            type_ = self.type()
            return nodes.Alias(name, type_, exported, self.end(first.start))
        except Fault:
            self.depth = depth
            self.skip_statement(first)
            span = (first.start, self.last_end)
            return nodes.Alias(name, nodes.Invalid(span), exported, span)

    def _import(self) -> list[nodes.Import]:
        first = self.advance()
        path = [self.name("the name of a module")]
        found: list[list[nodes.Ident]] = []
        while self.word in ("::", "."):
            if self.word == ".":
                self.expected("'::'", "modules and names stand between '::': import diff::grad;")
            self.advance()
            if self.word == "{":
                names = self.listed(lambda: self.name("a name"), "names")
                found = [[*path, name] for name in names]
                break
            path.append(self.name("a name"))
        try:
            span = self.end(first.start)
        except Fault:
            self.skip_statement(first)
            span = (first.start, self.last_end)
        return [nodes.Import(each, span) for each in found or [path]]
