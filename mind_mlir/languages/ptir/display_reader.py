"""Reads programs from the display text (ptir-formats.md, "Display text").

The producer's text shows the hints of a function, too, of which lists that are empty are left out:

    fused_hint id=0 kind=ElementwiseDag policy=Preferred {
      inputs: [%0, %1]
      exports: [%3]
      attrs:
        tile = I64(8)
      body:
        %2 = ElementwiseUnary(Exp)(%0) -> tensor<F32 x 4>
    }

What is made of them is what the JSON of the same program has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import Location, ParseError, SourceText
from mind_mlir.languages.ptir.display_data import read_data, read_struct
from mind_mlir.languages.ptir.json_writer import instruction_data
from mind_mlir.languages.ptir.operation_reading import InstructionValues
from mind_mlir.languages.ptir.program import Function, Instruction, Region, TupleElement, ValueRef
from mind_mlir.languages.ptir.regions import region_results
from mind_mlir.languages.ptir.schema import forms
from mind_mlir.languages.ptir.text import Spans, TextReader

if TYPE_CHECKING:
    from mind_mlir.ir.types import ValueType
    from mind_mlir.languages.ptir.program import Operand, Operation, Program
    from mind_mlir.languages.text.cursor import Token

_STARTS = re.compile(
    r"^[ \t]*(?=%[0-9]+[ \t]*[:=]|(?:params|body|results|hints)[ \t]*:|func\b|region\b|\})", re.M
)
_VERSION = re.compile(r"\(\s*+spec_version\s*+=\s*+(?:\"(?P<quoted>[^\"\n]*+)\"\s*+|(?P<bare>[^\")\n]*+))\)")


def read_display(source: SourceText) -> Program:
    """Return the program that a display text shows.

    Raises:
        ParseError: Everything that is wrong with it, in source order.
    """
    return _DisplayReader(source).read()


class _DisplayReader(TextReader):
    """Reads one text."""

    def program(self) -> Program:
        """Return the program, or what can be read of it."""
        self.expect("program")
        start = self.token.start
        entry = self.name()
        place = self.located(start)
        if self.word == "(":
            self._version()
        self.expect("{")
        self.definitions("}", self._function, self._region, _STARTS)
        if self.token.kind != "END":
            self.fail("the end of the text")
        return self.checked(entry, place)

    def _version(self) -> None:
        found = _VERSION.match(self.text, self.token.start)
        if found is None:
            self.fail("(spec_version = ptir.v0.4)")
        self.go_to(found.end())
        group = "bare" if found["quoted"] is None else "quoted"
        version, start = found[group].rstrip(), found.start(group)
        self.check_version(version, self.report.locate((start, start + len(version))))

    def _function(self) -> Function:
        start = self.advance().start
        name = self.name()
        where = self.located(start)
        self.expect("{")
        parameters = self._typed("params")
        body = self._body()
        hints = self._hints(None)
        results = self._typed("results")
        hints = self._hints(hints)
        self.expect("}")
        return Function(
            name,
            tuple(type_ for _, type_, _ in parameters),
            tuple(self._own_value(value, place) for value, _, place in parameters),
            tuple(body),
            tuple(type_ for _, type_, _ in results),
            tuple(self._own_value(value, place) for value, _, place in results),
            hints,
            location=where,
        )

    def _region(self) -> Region:
        before, start = self.report.findings.total, self.advance().start
        number = self.region_number()
        where = self.located(start)
        self.expect("{")
        parameters = self._typed("params", "arg")
        body = self._body()
        results = self._typed("results", "res", may_omit_values=True)
        self.expect("}")
        for index, (value, _, place) in enumerate(parameters):
            if value != ValueRef(index):
                self._report(f"parameter {index} of a region is %{index}", place)
        types = tuple(type_ for _, type_, _ in results)
        given, intact = region_results(body, types), self.report.findings.total == before
        for index, (value, _, place) in enumerate(results):
            if intact and value is not None and (given is None or value != given[index]):
                self._report("the results of a region are its last instructions, in order", place)
        return Region(number, tuple(type_ for _, type_, _ in parameters), tuple(body), types, location=where)

    def _report(self, message: str, place: Location) -> None:
        self.report.add("E1101", message, place.offsets, "write what the JSON would have")

    def _own_value(self, value: Operand | None, place: Location) -> int:
        if isinstance(value, ValueRef):
            return value.value
        self._report("a function's parameters and results are values, such as %0", place)
        return 0

    def _hints(self, found: Any) -> Any:
        """Return the hints that stand here, if any: ours behind the results, the producer's before them."""
        if found is not None or not self.accept("hints"):
            return found
        self.expect(":")
        return read_hints(self, self._body) if self.word == HINT else self.json()

    def _typed(
        self, section: str, prefix: str | None = None, *, may_omit_values: bool = False
    ) -> list[tuple[Operand | None, ValueType, Location]]:
        """Read ``section:`` and its lines ``%0 : type``; an empty section may be left out.

        In a region, the producer calls parameters ``%arg0`` and results ``%res0``, by their positions.
        """
        found: list[tuple[Operand | None, ValueType, Location]] = []
        if not self.accept(section):
            return found
        self.expect(":")
        while self.token.kind == "VALUE" or (may_omit_values and self.word == ":"):
            start = self.token.start
            value: Operand | None = None
            if prefix and self.accept(f"%{prefix}{len(found)}"):
                value = None if may_omit_values else ValueRef(len(found))
            elif self.word != ":":
                value = self._value()
            self.expect(":")
            type_ = self.value_type()
            found.append((value, type_, self.located(start)))
        return found

    def _body(self) -> list[Instruction]:
        found: list[Instruction] = []
        if not self.accept("body"):
            return found
        self.expect(":")
        while self.token.kind == "VALUE":
            try:
                if instruction := self._instruction():
                    found.append(instruction)
            except ParseError as fault:
                self.recover(fault, _STARTS)
        return found

    def _instruction(self) -> Instruction | None:
        token = self.advance()
        id_ = self.value_number(token)
        self.expect("=")
        operation = self._operation()
        operands: list[Operand] = []
        if self.accept("("):
            operands = [self._operand() for _ in self.separated(")", trailing=False)]
        self.expect("->")
        output = self.value_type()
        if operation is None:
            return None
        return Instruction(id_, operation, tuple(operands), output, self.located(token.start))

    def _operation(self) -> Operation | None:
        name = self.kind("WORD", "the name of an operation")
        if name.text not in forms():
            help_ = "names are those of the contract, such as DotGeneral"
            raise self.unknown_operation(name, forms(), help_)
        form = forms()[name.text].get(None)
        spans: Spans = {}
        data: Any = name.text
        if form is None or form.fields:
            start = self.token.start
            if form is not None and self.word == "{":
                payload: Any = read_struct(self, (name.text,), spans)
            else:
                self.expect("(")
                payload = read_data(self, (name.text,), spans)
                self.expect(")")
            spans[()] = (name.start, self.end)
            spans.setdefault((name.text,), (start, self.end))
            data = {name.text: payload}
        return self.operation(data, spans)

    def _operand(self) -> Operand:
        if self.token.kind == "VALUE":
            return self._value()
        if self.word == "literal":
            raise self._refused_literal()
        if self.word not in ("Literal", "TensorLiteral"):
            self.fail("an operand, such as %0, %0[1] or TensorLiteral { ... }")
        spans: Spans = {}
        data = read_data(self, (), spans)
        values = InstructionValues()
        literal = values.literal(data, ())
        self.report_problems(values, spans)
        return literal

    def _refused_literal(self) -> ParseError:
        """Refuse ``literal(dtype=F32, shape=2x3)``, which the producer prints for a literal operand."""
        start = self.advance().start
        closed = False
        if self.accept("("):
            while not (closed := self.accept(")") is not None) and self.token.kind != "END":
                self.advance()
        message = "the elements of this literal are not in the text"
        help_ = "the producer's display text leaves them out: have it write the program as JSON"
        fault = self.error("E1101", message, (start, self.end), help_)
        if not closed:
            self.end = self.token.start  # the line that follows goes with it
        return fault

    def _value(self) -> ValueRef | TupleElement:
        token = self.kind("VALUE", "a value, such as %0")
        number = self.value_number(token)
        return TupleElement(number, self.element_number()) if self.accept("[") else ValueRef(number)

    def value_number(self, token: Token) -> int:
        """Return the number of a value, which has no name in this text."""
        if not token.text[1:].isdigit():
            self.unexpected(token, "the number of a value, such as %0")
        return self.identifier(token.text[1:], token)


HINT = "fused_hint"


def read_hints(reader: TextReader, body: Callable[[], Iterable[Instruction]]) -> list[Any]:
    """Return the hints that begin here; ``body`` reads the section of that name."""
    found = []
    while reader.accept(HINT):
        number = reader.identifier(*_assigned(reader, "id", "NUMBER", "a number"))
        kind, _ = _assigned(reader, "kind", "WORD", "the kind of the hint")
        policy, _ = _assigned(reader, "policy", "WORD", "a policy")
        reader.expect("{")
        inputs, exports = _values(reader, "inputs"), _values(reader, "exports")
        attrs = _attributes(reader)
        held = [instruction_data(instruction) for instruction in body()]
        reader.expect("}")
        parts = {"inputs": inputs, "exports": exports, "body": held, "attrs": attrs}
        found.append({"id": number, "kind": kind, "policy": policy, **parts})
    return found


def _assigned(reader: TextReader, name: str, kind: str, what: str) -> tuple[str, Token]:
    reader.expect(name)
    reader.expect("=")
    token = reader.kind(kind, what)
    if kind == "NUMBER" and not token.text.isdigit():
        reader.unexpected(token, what)
    return token.text, token


def _values(reader: TextReader, section: str) -> list[int]:
    if not reader.accept(section):
        return []
    reader.expect(":")
    reader.expect("[")
    found: list[int] = []
    for _ in reader.separated("]", trailing=False):
        token = reader.kind("VALUE", "a value, such as %0")
        if not token.text[1:].isdigit():
            reader.unexpected(token, "the number of a value, such as %0")
        found.append(reader.identifier(token.text[1:], token))
    return found


def _attributes(reader: TextReader) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if not reader.accept("attrs"):
        return found
    reader.expect(":")
    while reader.word not in ("body", "}"):
        name = reader.kind("WORD", "the name of an attribute").text
        reader.expect("=")
        found[name] = read_data(reader, (name,), {})
    return found
