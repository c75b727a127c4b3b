"""Reads programs from the display text (ptir-formats.md, "Display text")."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from mind_mlir.languages.ptir.display_data import Spans, read_data, read_struct
from mind_mlir.languages.ptir.display_hints import HINT, read_hints
from mind_mlir.languages.ptir.operation_reading import InstructionValues
from mind_mlir.languages.ptir.program import (
    Function,
    Instruction,
    Operation,
    Program,
    Region,
    TupleElement,
    ValueRef,
)
from mind_mlir.languages.ptir.reading import clip
from mind_mlir.languages.ptir.regions import region_results
from mind_mlir.languages.ptir.rules import check_functions, check_regions, wrong_version
from mind_mlir.languages.ptir.schema import forms
from mind_mlir.languages.ptir.text import TextReader, Unreadable, read_whole
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Location, SourceText
    from mind_mlir.ir.types import ValueType
    from mind_mlir.languages.ptir.program import Operand

_STARTS = re.compile(
    r"^[ \t]*(?=%[0-9]+[ \t]*[:=]|(?:params|body|results|hints)[ \t]*:|func\b|region\b|\})", re.M
)
_VERSION = re.compile(r"\(\s*+spec_version\s*+=\s*+(?:\"(?P<quoted>[^\"\n]*+)\"\s*+|(?P<bare>[^\")\n]*+))\)")


def read_display(source: SourceText) -> Program:
    """Return the program that a display text shows.

    Raises:
        ParseError: Everything that is wrong with it, in source order.
    """
    reader = _DisplayReader(source)
    return read_whole(reader, reader.program)


@dataclass(slots=True)
class _DisplayReader(TextReader):
    """Reads one text."""

    _functions: list[Function] = field(default_factory=list)
    _regions: list[Region] = field(default_factory=list)

    def program(self) -> Program:
        """Return the program, or what can be read of it."""
        self.expect("program")
        start = self.peek().start
        entry = self.name()
        entry_place = self.located(start)
        if self.at("("):
            self._version()
        self.expect("{")
        while not self.accept("}"):
            try:
                if self.at("func"):
                    self._functions.append(self._function())
                elif self.at("region"):
                    self._regions.append(self._region())
                else:
                    self.fail("'func', 'region' or '}'")
            except Unreadable as fault:
                self.findings.add(fault.finding)
                self.depth = 0  # what was being read is left
                self.recover(_STARTS)
                if self.peek().kind == "END":
                    break
        if self.peek().kind != "END":
            self.fail("the end of the text")
        if not self.findings.total:
            check_functions(self._functions, entry, self.findings, entry_place)
        check_regions(self._regions, self.findings)
        return Program(tuple(self._functions), tuple(self._regions), entry)

    def _version(self) -> None:
        start = self.peek().start
        found = _VERSION.match(self.source.text, start)
        if found is None:
            self.fail("(spec_version = ptir.v0.4)")
        self.go_to(found.end())
        group = "bare" if found["quoted"] is None else "quoted"
        version = found[group].rstrip()
        start = found.start(group)
        if finding := wrong_version(version, self.source.locate(start, start + len(version))):
            self.findings.add(finding)

    def _function(self) -> Function:
        start = self.take().start
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
        before, start = self.findings.total, self.take().start
        number = self.region()
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
        given, intact = region_results(body, types), self.findings.total == before
        for index, (value, _, place) in enumerate(results):
            if intact and value is not None and (given is None or value != given[index]):
                self._report("the results of a region are its last instructions, in order", place)
        return Region(number, tuple(type_ for _, type_, _ in parameters), tuple(body), types, location=where)

    def _report(self, message: str, place: Location) -> None:
        start, end = place.offsets
        self.findings.add(self.finding("E1101", message, start, end, "write what the JSON would have"))

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
        return read_hints(self, self._body) if self.at(HINT) else self.json()

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
        while self.peek().kind == "VALUE" or (may_omit_values and self.at(":")):
            start = self.peek().start
            value: Operand | None = None
            if prefix and self.accept(f"%{prefix}{len(found)}"):
                value = None if may_omit_values else ValueRef(len(found))
            elif not self.at(":"):
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
        while self.peek().kind == "VALUE":
            try:
                if instruction := self._instruction():
                    found.append(instruction)
            except Unreadable as fault:
                self.findings.add(fault.finding)
                self.depth = 0  # what was being read is left
                self.recover(_STARTS)
        return found

    def _instruction(self) -> Instruction | None:
        token = self.take()
        id_ = self._number_of(token.text, token)
        self.expect("=")
        operation = self._operation()
        operands: list[Operand] = []
        if self.accept("("):
            while not self.accept(")"):
                if operands:
                    self.expect(",")
                operands.append(self._operand())
        self.expect("->")
        output = self.value_type()
        if operation is None:
            return None
        return Instruction(id_, operation, tuple(operands), output, self.located(token.start))

    def _operation(self) -> Operation | None:
        name = self.kind("WORD", "the name of an operation")
        if name.text not in forms():
            suggestion = "" if self.findings.full else did_you_mean(name.text, forms())
            message = f"unknown operation '{clip(name.text)}'{suggestion}"
            help_text = "names are those of the contract, such as DotGeneral"
            facts = {"operation": name.text, "suggestion": suggestion}
            raise Unreadable(self.finding("E1102", message, name.start, name.end, help_text, **facts))
        form = forms()[name.text].get(None)
        spans: Spans = {}
        data: Any = name.text
        if form is None or form.fields:
            start = self.peek().start
            if form is not None and self.at("{"):
                payload: Any = read_struct(self, (name.text,), spans)
            else:
                self.expect("(")
                payload = read_data(self, (name.text,), spans)
                self.expect(")")
            spans[()] = (name.start, self.end)
            spans.setdefault((name.text,), (start, self.end))
            data = {name.text: payload}
        return self._checked(data, spans)

    def _checked(self, data: Any, spans: Spans) -> Operation | None:
        values = InstructionValues()
        operation = values.operation(data, ())
        self._report_problems(values, spans)
        return None if values.problems else operation

    def _report_problems(self, values: InstructionValues, spans: Spans) -> None:
        for problem in values.problems:
            path = problem.path
            while path not in spans and path:
                path = path[:-1]
            span = problem.span or spans.get(path, (self.end - 1, self.end))
            self.findings.add(
                self.finding(problem.code, problem.message, *span, problem.help, **problem.context)
            )

    def _operand(self) -> Operand:
        if self.peek().kind == "VALUE":
            return self._value()
        if self.at("literal"):
            self._refuse_literal()
        if not self.at("Literal") and not self.at("TensorLiteral"):
            self.fail("an operand, such as %0, %0[1] or TensorLiteral { ... }")
        spans: Spans = {}
        data = read_data(self, (), spans)
        values = InstructionValues()
        literal = values.literal(data, ())
        self._report_problems(values, spans)
        return literal

    def _refuse_literal(self) -> NoReturn:
        """Refuse ``literal(dtype=F32, shape=2x3)``, which the producer prints for a literal operand."""
        start = self.take().start
        if self.accept("("):
            while not self.accept(")") and self.peek().kind != "END":
                self.take()
        message = "the elements of this literal are not in the text"
        help_text = "the producer's display text leaves them out: have it write the program as JSON"
        raise Unreadable(self.finding("E1101", message, start, self.end, help_text))

    def _value(self) -> ValueRef | TupleElement:
        token = self.kind("VALUE", "a value, such as %0")
        number = self._number_of(token.text, token)
        if not self.accept("["):
            return ValueRef(number)
        index = self.kind("NUMBER", "the number of an element")
        if not index.text.isdigit():
            self.go_to(index.start)
            self.fail("the number of an element")
        self.expect("]")
        return TupleElement(number, self.identifier(index.text, index))

    def _number_of(self, text: str, token: Any) -> int:
        if not text[1:].isdigit():
            self.go_to(token.start)
            self.fail("the number of a value, such as %0")
        return self.identifier(text[1:], token)
