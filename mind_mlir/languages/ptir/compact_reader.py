"""Reads programs from the compact text (ptir-formats.md, "Compact text")."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.languages.ptir.compact_data import Spans, data_of
from mind_mlir.languages.ptir.compact_items import read_items
from mind_mlir.languages.ptir.compact_literals import read_dense
from mind_mlir.languages.ptir.compact_values import numbers_of
from mind_mlir.languages.ptir.compact_writer import default_entry
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
from mind_mlir.languages.ptir.schema import compact_names
from mind_mlir.languages.ptir.text import TextReader, Token, Unreadable, read_whole
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mind_mlir.diagnostics import Location, SourceText
    from mind_mlir.ir.types import ValueType
    from mind_mlir.languages.ptir.program import Operand
    from mind_mlir.languages.ptir.schema import Form

_STARTS = re.compile(r"^[ \t]*(?=%[\w.]+[ \t]*=|(?:return|yield|func|region|hints)\b|\})", re.M)


def read_compact(source: SourceText) -> Program:
    """Return the program that a compact text spells.

    Raises:
        ParseError: Everything that is wrong with it, in source order.
    """
    reader = _CompactReader(source)
    return read_whole(reader, reader.program)


@dataclass(frozen=True, slots=True)
class _Read:
    """An operand as it is written: a value, and which of its elements."""

    token: Token
    index: int | None = None


@dataclass(frozen=True, slots=True)
class _Statement:
    """An instruction whose values have no numbers yet."""

    result: Token
    operation: Operation
    operands: tuple[_Read | TensorLiteral, ...]
    output: ValueType
    location: Location


@dataclass(slots=True)
class _Body:
    """The contents of the braces of a function or a region."""

    hints: Any = None
    statements: list[_Statement] = field(default_factory=list)
    given: list[_Read] | None = None
    given_place: Location | None = None


@dataclass(slots=True)
class _CompactReader(TextReader):
    """Reads one text."""

    _functions: list[Function] = field(default_factory=list)
    _regions: list[Region] = field(default_factory=list)

    def program(self) -> Program | None:
        """Return the program, or what can be read of it; None where that is nothing."""
        entry, entry_place = self._head()
        while self.peek().kind != "END":
            try:
                if self.at("func"):
                    self._functions.append(self._function())
                elif self.at("region"):
                    self._regions.append(self._region())
                else:
                    self.fail("'func' or 'region'")
            except Unreadable as fault:
                self.findings.add(fault.finding)
                self.recover(re.compile(r"^[ \t]*(?=func\b|region\b)", re.M))
        if entry is None:
            entry = default_entry([function.name for function in self._functions])
        if entry is None and self.findings.total:
            return None
        if entry is None:
            self.fail("a function")
        if not self.findings.total:
            check_functions(self._functions, entry, self.findings, entry_place)
        check_regions(self._regions, self.findings)
        return Program(tuple(self._functions), tuple(self._regions), entry)

    def _head(self) -> tuple[str | None, Location | None]:
        """Read what may stand before the functions; return the entry and where it is named."""
        if self.accept("spec_version"):
            token = self.kind("STRING", "the version in quotes")
            place = self.located(token.start)
            if finding := wrong_version(self.string(token.text, token), place):
                self.findings.add(finding)
        if not self.accept("entry"):
            return None, None
        start = self.peek().start
        return self.name(), self.located(start)

    def _function(self) -> Function:
        before, start = self.findings.total, self.take().start
        name = self.name()
        parameters = self._parameters()
        results = self._results()
        where = self.located(start)
        body = self._body("return")
        given = body.given or []
        if body.given is None and before == self.findings.total:
            self.fail("'return' at the end of the function")
        for read in given:
            if read.index is not None:
                message = "a function returns values, no elements of tuples"
                self.findings.add(self.finding("E1101", message, read.token.start, read.token.end))
        if len(given) != len(results) and before == self.findings.total:
            self._wrong_count(body, f"@{clip(name)} returns {len(results)} values, found {len(given)}")
        tokens = [token for token, _ in parameters]
        numbers = self._numbers(tokens, body.statements, [read.token for read in given])
        return Function(
            name,
            tuple(type_ for _, type_ in parameters),
            tuple(numbers[token.text[1:]] for token in tokens),
            tuple(_numbered(body.statements, numbers)),
            tuple(results),
            tuple(numbers[read.token.text[1:]] for read in given),
            body.hints,
            names=_names(numbers),
            location=where,
        )

    def _region(self) -> Region:
        before, start = self.findings.total, self.take().start
        number = self.region()
        parameters = self._parameters()
        results = self._results()
        where = self.located(start)
        body = self._body("yield")
        tokens = [token for token, _ in parameters]
        for index, token in enumerate(tokens):
            if token.text[1:].isdigit() and int(token.text[1:]) != index:
                message = f"parameter {index} of a region is %{index}, or has a name"
                self.findings.add(self.finding("E1101", message, token.start, token.end))
        read = [read.token for read in body.given or ()]
        numbers = self._numbers(tokens, body.statements, read, [token.text[1:] for token in tokens])
        instructions = tuple(_numbered(body.statements, numbers))
        if body.given is not None and before == self.findings.total:
            given = [_operand(read, numbers) for read in body.given]
            if given != region_results(instructions, results):
                self._wrong_count(
                    body, "a region yields its last instructions, in order, one for each result"
                )
        types = tuple(type_ for _, type_ in parameters)
        return Region(number, types, instructions, tuple(results), _names(numbers), where)

    def _wrong_count(self, body: _Body, message: str) -> None:
        assert body.given_place is not None, "it is there where values are given"
        start, end = body.given_place.offsets
        self.findings.add(self.finding("E1101", message, start, end))

    def _parameters(self) -> list[tuple[Token, ValueType]]:
        self.expect("(")
        found: list[tuple[Token, ValueType]] = []
        while not self.accept(")"):
            if found:
                self.expect(",")
            token = self._value_token()
            self.expect(":")
            found.append((token, self.value_type()))
        return found

    def _results(self) -> list[ValueType]:
        self.expect("->")
        if not self.accept("("):
            return [self.value_type()]
        found: list[ValueType] = []
        while not self.accept(")"):
            if found:
                self.expect(",")
            found.append(self.value_type())
        return found

    def _body(self, last: str) -> _Body:
        """Read from one brace to the other."""
        self.expect("{")
        body = _Body()
        while not self.accept("}"):
            try:
                self._statement(body, last)
            except Unreadable as fault:
                self.findings.add(fault.finding)
                self.recover(_STARTS)
                if self.peek().kind == "END" or self.at("func") or self.at("region"):
                    break
        return body

    def _statement(self, body: _Body, last: str) -> None:
        if body.given is not None:
            self.fail("'}'", f"'{last}' ends the body")
        start = self.peek().start
        if self.at(last):
            self.take()
            body.given = []
            while self.peek().kind == "VALUE":
                body.given.append(self._value())
                if not self.accept(","):
                    break
            body.given_place = self.located(start)
        elif self.at("hints") and last == "return" and not body.statements and body.hints is None:
            self.take()
            body.hints = self.json()
        elif self.peek().kind == "VALUE":
            if statement := self._instruction():
                body.statements.append(statement)
        else:
            self.fail(f"an instruction such as %1 = exp %0 -> tensor<f32>, '{last}' or '}}'")

    def _instruction(self) -> _Statement | None:
        result = self._value_token()
        self.expect("=")
        name = self.kind("WORD", "the name of an operation")
        found = compact_names().get(name.text)
        if found is None:
            suggestion = "" if self.findings.full else did_you_mean(name.text, compact_names())
            message = f"unknown operation '{clip(name.text)}'{suggestion}"
            help_text = "names are those of the contract, such as dot_general or reduce_max"
            facts = {"operation": name.text, "suggestion": suggestion}
            raise Unreadable(self.finding("E1102", message, name.start, name.end, help_text, **facts))
        form, word = found
        literal = None
        if form.literal is not None:
            if not self.at("dense"):
                self.fail("a literal, such as dense<f32, 2>[1.0, 2.0]")
            literal = read_dense(self)
        operands = self._operands(more=literal is not None and self.accept(","), first=literal is None)
        fields = {} if literal is None else {form.fields[0].name: literal}
        operation = (
            self._clauses(form, word, name)
            if literal is None
            else Operation(form.name, None, FrozenDict(fields))
        )
        self.expect("->")
        output = self.value_type()
        if operation is None:
            return None
        return _Statement(result, operation, tuple(operands), output, self.located(result.start))

    def _operands(self, *, more: bool, first: bool) -> list[_Read | TensorLiteral]:
        found: list[_Read | TensorLiteral] = []
        if not more and not (first and (self.peek().kind == "VALUE" or self.at("dense"))):
            return found
        while True:
            found.append(read_dense(self) if self.at("dense") else self._value())
            if not self.accept(","):
                return found

    def _clauses(self, form: Form, word: str | None, name: Token) -> Operation | None:
        spans: Spans = {(): (name.start, name.end)}
        data: dict[str, Any] = {}
        if form.variant is None and form.kind is not None:
            data[form.kind.name] = word
        fields = {form.short(one): one for one in form.fields} | {one.name: one for one in form.fields}
        while self.peek().kind == "WORD":
            clause = self.take()
            self.expect("[")
            items = read_items(self)
            one = fields.get(clause.text)
            key = one.name if one else clause.text
            spans[(form.name, key)] = (clause.start, self.end)
            if key in data:
                message = f"'{clause.text}' is given twice"
                facts = {"operation": name.text}
                self.findings.add(self.finding("E1103", message, clause.start, clause.end, **facts))
            data[key] = data_of(one, items, (form.name, key), spans) if one else None
        values = InstructionValues()
        written: Any = form.name if not form.fields and not data else {form.name: data}
        if form.variant is not None:
            written = {form.name: form.variant}
            for key in data:
                message = f"'{clip(key)}' is no field of {name.text}, which has none"
                self.findings.add(
                    self.finding("E1103", message, *spans[(form.name, key)], operation=name.text)
                )
        operation = values.operation(written, ())
        for problem in values.problems:
            path = problem.path
            while path not in spans:
                path = path[:-1]
            span = spans[path]
            self.findings.add(
                self.finding(problem.code, problem.message, *span, problem.help, **problem.context)
            )
        return None if values.problems else operation

    # Values.

    def _value_token(self) -> Token:
        token = self.kind("VALUE", "a value, such as %x or %0")
        if token.text[1:].isdigit():
            self.identifier(token.text[1:], token)
        return token

    def _value(self) -> _Read:
        token = self._value_token()
        # An element follows at once: a word and a bracket are a clause.
        if self.source.text[token.end : token.end + 1] != "[":
            return _Read(token)
        self.expect("[")
        index = self.kind("NUMBER", "the number of an element")
        if not index.text.isdigit():
            self.go_to(index.start)
            self.fail("the number of an element")
        self.expect("]")
        return _Read(token, self.identifier(index.text, index))

    def _numbers(
        self,
        parameters: Iterable[Token],
        statements: Sequence[_Statement],
        given: Iterable[Token],
        fixed: Sequence[str] = (),
    ) -> dict[str, int]:
        defined = [token.text[1:] for token in (*parameters, *(s.result for s in statements))]
        used = [read.token.text[1:] for s in statements for read in s.operands if isinstance(read, _Read)]
        return numbers_of(defined, (*used, *(token.text[1:] for token in given)), fixed)


def _numbered(statements: Iterable[_Statement], numbers: dict[str, int]) -> Iterable[Instruction]:
    for s in statements:
        operands = tuple([_operand(read, numbers) for read in s.operands])
        yield Instruction(numbers[s.result.text[1:]], s.operation, operands, s.output, s.location)


def _operand(read: _Read | TensorLiteral, numbers: dict[str, int]) -> Operand:
    if isinstance(read, TensorLiteral):
        return read
    number = numbers[read.token.text[1:]]
    return ValueRef(number) if read.index is None else TupleElement(number, read.index)


def _names(numbers: dict[str, int]) -> FrozenDict[int, str]:
    return FrozenDict({number: name for name, number in numbers.items() if not name.isdigit()})
