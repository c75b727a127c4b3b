"""Reads the items of a file: imports, structs, aliases, functions (surface.md, "Programs")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.cursor import Fault, MindCursor, TooDeep
from mind_mlir.languages.mind.syntax.lists import ListReader
from mind_mlir.languages.mind.syntax.statements import StatementReader
from mind_mlir.languages.mind.syntax.types import TypeReader

if TYPE_CHECKING:
    from mind_mlir.diagnostics import SourceText
    from mind_mlir.diagnostics.findings import Findings
    from mind_mlir.languages.text.cursor import Token

_FUNCTION = "write fn f(x: f32) -> f32 { ... }"
_EXPORTED = frozenset(("fn", "struct", "type"))


class ItemReader:
    """Reads a file, with parts that share one cursor."""

    def __init__(self, source: SourceText, tokens: Sequence[Token], findings: Findings) -> None:
        self.cursor = MindCursor(source, tokens, findings)
        self.lists = ListReader(self.cursor)
        self.types = TypeReader(self.cursor, self.lists)
        self.statements = StatementReader(self.cursor, self.lists, self.types, self.function)

    def program(self) -> nodes.SourceFile:
        """Read all of it; this raises nothing."""
        cursor = self.cursor
        items: list[nodes.Item] = []
        while cursor.word != "end":
            first = cursor.token
            try:
                self._item(items)
            except (Fault, TooDeep):
                cursor.depth, cursor.structs = 0, True
                if cursor.token is first:
                    cursor.advance()
                cursor.skip_item()
        return nodes.SourceFile(items, (0, len(cursor.source.text)))

    def _item(self, items: list[nodes.Item]) -> None:
        cursor = self.cursor
        first = cursor.token
        word = self.statements.foreign_word() if cursor.word == "name" else cursor.word
        exported = word == "export"
        if exported:
            cursor.advance()
            word = self.statements.foreign_word() if cursor.word == "name" else cursor.word
            if word not in _EXPORTED:
                raise cursor.expected(
                    "fn, struct or type behind export", "write export fn f() -> f32 { ... }"
                )
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
            items.append(self.statements.let())
        elif not cursor.accept(";"):
            raise self._no_item()

    def _no_item(self) -> Fault:
        """Report what is no item, and return what ends the reading of it."""
        cursor = self.cursor
        if cursor.word == "}":
            return cursor.fault("this '}' closes nothing", "leave it out, or add the '{' that is missing")
        span = (cursor.token.start, max(cursor.token.end, cursor.token.start + 1))
        if not cursor.silent():
            help_ = f"statements stand in functions: {_FUNCTION}"
            cursor.report(f"expected fn, struct, type, let or import, found {cursor.shown()}", span, help_)
        return Fault()

    # Functions

    def function(self) -> nodes.Statement:
        """Read a function in a block."""
        found = self._function(self.cursor.token.start, exported=False)
        return found if found.name.text else nodes.Evaluate(nodes.Invalid(found.span), found.span)

    def _function(self, start: int, *, exported: bool) -> nodes.Function:
        """Read a function, whose name is empty where it is missing; its body is read whatever its head is.

        Raises:
            Fault: It has no name, and no body either.
        """
        cursor = self.cursor
        cursor.advance()
        name = self._function_name()
        parameters, result = self._signature()
        head = (start, cursor.last_end)
        body = self._body()
        return nodes.Function(name, parameters, result, body, exported, head, (start, cursor.last_end))

    def _function_name(self) -> nodes.Ident:
        cursor = self.cursor
        if cursor.word == "(":
            cursor.expected("the name of the function", _FUNCTION)
            return nodes.Ident("", (cursor.token.start, cursor.token.start))
        return cursor.name("the name of the function")

    def _signature(self) -> tuple[list[nodes.Parameter], nodes.Type | None]:
        cursor = self.cursor
        parameters: list[nodes.Parameter] = []
        depth = cursor.depth
        result: nodes.Type | None = None
        try:
            if cursor.word != "(":
                raise cursor.expected("'(' behind the name of the function", _FUNCTION)
            self.lists.read(self._parameter, "parameters", into=parameters)
            if cursor.word in (":", "=>"):
                cursor.expected("'->' before the type of the result", "write -> T { ... }")
                cursor.advance()
                if cursor.begins_line() or cursor.word == "{":
                    return parameters, nodes.Invalid((cursor.last_end, cursor.last_end))
                return parameters, self.types.type()
            if cursor.accept("->"):
                result = self.types.type()
        except Fault:
            cursor.depth = depth
            result = nodes.Invalid((cursor.last_end, cursor.last_end))
            while cursor.word not in ("{", "}", ";", "end") and not cursor.at_margin():
                cursor.advance()
        return parameters, result

    def _body(self) -> nodes.Block:
        cursor = self.cursor
        depth = cursor.depth
        if cursor.word != "{":
            cursor.lacking.append(cursor.token.start)
            cursor.expected("'->' or '{' behind the parameters", _FUNCTION)
            if cursor.begins_line() and not cursor.at_margin():
                return self.statements.unopened()
            while cursor.word not in ("{", "}", "end") and not cursor.at_margin():
                cursor.advance()
        if cursor.word != "{":
            cursor.accept("}")
            return self._no_body()
        try:
            return self.statements.block()
        except TooDeep:
            if depth:
                raise
            cursor.depth, cursor.structs = 0, True
            cursor.skip_item()
            return self._no_body()

    def _no_body(self) -> nodes.Block:
        cursor = self.cursor
        span = (cursor.last_end, cursor.last_end)
        return nodes.Block([], nodes.Invalid(span), span)

    def _parameter(self) -> nodes.Parameter:
        cursor = self.cursor
        if cursor.word in ("&", "*"):
            raise cursor.fault(f"there is no '{cursor.word}'", "leave it out")
        if cursor.token.text == "mut" and cursor.ahead() == "name":
            cursor.report("there is no 'mut'", cursor.token.span, "leave it out")
            cursor.advance()
        if cursor.word == "(":
            cursor.expected("the name of a parameter", _FUNCTION)
            cursor.advance()
        if cursor.word == "name" and cursor.ahead() in (",", ")", "{", "->", "="):
            name = cursor.name("the name of a parameter")
            help_ = f"write {name.text}: f32, or {name.text}: Tensor<f32, [n]>"
            cursor.report(f"parameter {name.text} has no type", name.span, help_)
            return nodes.Parameter(name, nodes.Invalid(name.span))
        name = self.types.declared("a parameter", _FUNCTION)
        found = nodes.Parameter(name, self._declared_type())
        if cursor.word == "=":
            cursor.fault("parameters have no defaults", "give the argument in each call")
            cursor.advance()
            self.statements.expressions.expression()
        return found

    def _declared_type(self) -> nodes.Type:
        """Read the type of a parameter or a field; where it is wrong, the name is declared nevertheless."""
        cursor = self.cursor
        start = cursor.token.start
        if cursor.word == ":":
            cursor.expected("a type")
            cursor.advance()
        found = cursor.attempt(self.types.type, cursor.skip_element)
        return found or nodes.Invalid((start, max(start, cursor.last_end)))

    # Other items

    def _struct_item(self, first: Token, *, exported: bool) -> nodes.Struct:
        cursor = self.cursor
        cursor.advance()
        name = cursor.name("the name of the struct")
        if cursor.word != "{":
            cursor.lacking.append(cursor.token.start)
            raise cursor.expected("'{' behind the name of the struct", "write struct P { w: f32 }")
        fields = self.lists.read(self._field_type, "fields")
        cursor.accept(";")
        return nodes.Struct(name, fields, exported, (first.start, cursor.last_end))

    def _field_type(self) -> nodes.FieldType:
        name = self.types.declared("a field", "write struct P { w: f32 }")
        return nodes.FieldType(name, self._declared_type())

    def _alias(self, first: Token, *, exported: bool) -> nodes.Alias:
        cursor = self.cursor
        cursor.advance()
        name = cursor.name("the name of the type")
        depth = cursor.depth
        try:
            if not cursor.accept("="):
                cursor.fail("'=' behind the name", "write type Matrix = Tensor<f32, [2, 2]>;")
            type_ = self.types.type()
            return nodes.Alias(name, type_, exported, self.statements.end(first.start))
        except Fault:
            cursor.depth = depth
            cursor.skip_statement(first)
            span = (first.start, cursor.last_end)
            return nodes.Alias(name, nodes.Invalid(span), exported, span)

    def _import(self) -> list[nodes.Import]:
        cursor = self.cursor
        first = cursor.advance()
        path = [cursor.name("the name of a module")]
        found: list[list[nodes.Ident]] = []
        while cursor.word in ("::", "."):
            if cursor.word == ".":
                cursor.expected("'::'", "modules and names stand between '::': import diff::grad;")
            cursor.advance()
            if cursor.word == "{":
                names = self.lists.read(lambda: cursor.name("a name"), "names")
                found = [[*path, name] for name in names]
                break
            path.append(cursor.name("a name"))
        end, skip = self.statements.end, cursor.skip_statement
        span = cursor.attempt(lambda: end(first.start), lambda: skip(first)) or (first.start, cursor.last_end)
        return [nodes.Import(each, span) for each in found or [path]]
