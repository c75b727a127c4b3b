"""Reads `.mind` programs, reporting everything that is wrong with their text at once (surface.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mind_mlir.surface.syntax import nodes
from mind_mlir.surface.syntax.cursor import Fault
from mind_mlir.surface.syntax.lexer import Lexer
from mind_mlir.surface.syntax.statements import StatementReader

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Diagnostic, SourceText
    from mind_mlir.surface.syntax.tokens import Token


@dataclass(frozen=True, slots=True)
class Reading:
    """What has been read.

    Attributes:
        program: The syntax tree of all that is well-formed.
        findings: What is not (E1002 to E1006, E1101, E1109), in source order.
        tokens: The words of the text, comments among them.
    """

    program: nodes.Program
    findings: tuple[Diagnostic, ...]
    tokens: tuple[Token, ...]


def read(source: SourceText) -> Reading:
    """Read a text; whatever it is, this raises nothing."""
    words = Lexer(source)
    reader = _ProgramReader(source, words.tokens, words.findings)
    program = reader.program()
    places = [(finding.location, finding) for finding in reader.findings]
    ordered = sorted(places, key=lambda each: (each[0].line, each[0].column) if each[0] else (0, 0))
    return Reading(program, tuple(finding for _, finding in ordered), tuple(words.tokens))


class _ProgramReader(StatementReader):
    """Reads the items of a file."""

    def program(self) -> nodes.Program:
        """Read all of it."""
        items: list[nodes.Item] = []
        while self.token.kind != "end":
            place = self.token
            try:
                self._item_into(items)
            except Fault:
                self.depth, self.structs = 0, True
                if self.token is place:
                    self.advance()
                self._skip_item()
        return nodes.Program(items, (0, len(self.source.text)))

    def _skip_item(self) -> None:
        """Go to where the next item begins."""
        self.skip_statement()
        while self.take("}"):
            pass

    def _item_into(self, items: list[nodes.Item]) -> None:
        if self.take(";"):
            return
        exported = self.take("export")
        token = self.token
        start = exported.start if exported else token.start
        if token.text == "fn" and token.kind == "keyword":
            items.append(self.function(start, exported=exported is not None))
        elif token.text == "struct" and token.kind == "keyword":
            items.append(self._struct_item(start, exported=exported is not None))
        elif token.text == "type" and token.kind == "keyword":
            items.append(self._alias(start, exported=exported is not None))
        elif exported:
            raise self.fault(
                f"expected fn, struct or type behind export, found {self.shown()}", "write export fn f() ..."
            )
        elif token.text == "import" and token.kind == "keyword":
            items.extend(self._import())
        elif token.text == "let" and token.kind == "keyword":
            items.append(self.let())
        elif token.text == "}":
            raise self.fault("this '}' closes nothing", "leave it out, or add the '{' that is missing")
        else:
            self._foreign_word()
            raise self.fault(
                f"expected fn, struct, type, let or import, found {self.shown()}",
                "statements stand in functions: fn main() -> f32 { ... }",
            )

    def function(self, start: int | None = None, *, exported: bool = False) -> nodes.Function:
        """Read a function; what is wrong with its head leaves its body alone."""
        begin = self.token.start if start is None else start
        self.advance()
        name = self.name("the name of the function")
        parameters: list[nodes.Parameter] = []
        result: nodes.Type | None = None
        depth, found = self.depth, len(self.findings)
        try:
            opening = self.expect("(", "behind the name of the function", "write fn f(x: f32) -> f32 { ... }")
            parameters = [
                each
                for each in self._listed(self._parameter, opening, ")")
                if isinstance(each, nodes.Parameter)
            ]
            if self.at(":"):
                raise self.fault("expected '->' before the type of the result, found ':'", "write -> T")
            if self.take("->"):
                result = self.type()
            elif len(self.findings) > found:
                result = nodes.Invalid((self.last_end, self.last_end))
            if not self.at("{"):
                raise self.fault(
                    f"expected '->' or '{{' behind the parameters, found {self.shown()}", "write -> T { ... }"
                )
        except Fault:
            self.depth = depth
            result = nodes.Invalid((self.last_end, self.last_end))
            while not self.at("{") and self.token.kind != "end" and not self.at_margin():
                self.advance()
            if not self.at("{"):
                raise
        head = (begin, self.last_end)
        body = self.block()
        return nodes.Function(name, parameters, result, body, exported, head, (begin, self.last_end))

    def _parameter(self) -> nodes.Parameter:
        name = self.name("the name of a parameter")
        typed = self.take(":") is not None
        if not typed and self.token.kind == "name" and not self.begins_line():
            token = self.token
            help_ = f"write {name.text}: {token.text}"
            self.report(
                f"expected ':' behind {name.text}, found {self.shown()}", token.start, token.end, help_
            )
            typed = True
        if typed:
            depth = self.depth
            try:
                return nodes.Parameter(name, self.type())
            except Fault:
                self.depth = depth
                self.skip_element()
                return nodes.Parameter(name, nodes.Invalid((self.last_end, self.last_end)))
        self.report(
            f"parameter {name.text} has no type",
            *name.span,
            f"write {name.text}: f32, or {name.text}: Tensor<f32, [n]>",
        )
        return nodes.Parameter(name, nodes.Invalid(name.span))

    def _struct_item(self, start: int, *, exported: bool) -> nodes.Struct:
        self.advance()
        name = self.name("the name of the struct")
        opening = self.expect("{", "behind the name of the struct", "write struct P { w: f32 }")
        fields = self._listed(self._field_type, opening, "}")
        self.take(";")
        good = [each for each in fields if isinstance(each, nodes.FieldType)]
        return nodes.Struct(name, good, exported, (start, self.last_end))

    def _field_type(self) -> nodes.FieldType:
        name = self.name("the name of a field")
        if not self.take(":"):
            raise self.fault(
                f"expected ':' behind {name.text}, found {self.shown()}", f"write {name.text}: f32"
            )
        return nodes.FieldType(name, self.type())

    def _alias(self, start: int, *, exported: bool) -> nodes.Alias:
        self.advance()
        name = self.name("the name of the type")
        self.expect("=", "behind the name", "write type Matrix = Tensor<f32, [2, 2]>;")
        return nodes.Alias(name, self.type(), exported, self._end(start))

    def _import(self) -> list[nodes.Import]:
        start = self.advance().start
        path = [self.name("the name of a module")]
        found: list[list[nodes.Ident]] = []
        while self.take("::"):
            if self.at("{"):
                opening = self.advance()
                names = self._listed(lambda: self.name("a name"), opening, "}")
                found = [[*path, name] for name in names if isinstance(name, nodes.Ident)]
                break
            path.append(self.name("a name"))
        if self.at("."):
            raise self.fault("expected '::' in an import, found '.'", "write import diff::grad;")
        span = self._end(start)
        return [nodes.Import(each, span) for each in found or [path]]
