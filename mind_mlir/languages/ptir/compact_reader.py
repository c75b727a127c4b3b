"""Reads programs from the compact text (ptir-formats.md, "Compact text")."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from mind_mlir.diagnostics import Location, ParseError, SourceText
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.languages.ptir.compact_clauses import data_of, read_items
from mind_mlir.languages.ptir.compact_literals import read_dense
from mind_mlir.languages.ptir.compact_writer import default_entry, numbers_of
from mind_mlir.languages.ptir.program import Function, Instruction, Operation, Region, TupleElement, ValueRef
from mind_mlir.languages.ptir.reading import clip
from mind_mlir.languages.ptir.regions import region_results
from mind_mlir.languages.ptir.schema import OperationForm, compact_names
from mind_mlir.languages.ptir.text import Spans, TextReader
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.types import ValueType
    from mind_mlir.languages.ptir.program import Operand, Program
    from mind_mlir.languages.text.cursor import Token

_STARTS = re.compile(r"^[ \t]*(?=%[\w.]+[ \t]*=|(?:return|yield|func|region|hints)\b|\})", re.M)
_DEFINITIONS = re.compile(r"^[ \t]*(?=func\b|region\b)", re.M)


def read_compact(source: SourceText) -> Program:
    """Return the program that a compact text spells.

    Raises:
        ParseError: Everything that is wrong with it, in source order.
    """
    return _CompactReader(source).read()


@dataclass(frozen=True, slots=True)
class _Read:
    """An operand as it is written: a value, and which of its elements."""

    token: Token
    index: int | None = None


class _Statement(NamedTuple):
    """An instruction whose values have no numbers yet."""

    result: Token
    operation: Operation
    operands: tuple[_Read | TensorLiteral, ...]
    output: ValueType
    location: Location


@dataclass(slots=True)
class _BracedContents:
    """The contents of the braces of a function or a region."""

    hints: Any = None
    statements: list[_Statement] = field(default_factory=list)
    given: list[_Read] | None = None
    given_place: Location | None = None


class _CompactReader(TextReader):
    """Reads one text."""

    def program(self) -> Program | None:
        """Return the program, or what can be read of it; None where that is nothing."""
        entry, place = self._head()
        self.definitions("", self._function, self._region, _DEFINITIONS)
        if entry is None:
            entry = default_entry([function.name for function in self.functions])
        if entry is None and self.report.findings.total:
            return None
        return self.fail("a function") if entry is None else self.checked(entry, place)

    def _head(self) -> tuple[str | None, Location | None]:
        """Read what may stand before the functions; return the entry and where it is named."""
        if self.accept("spec_version"):
            token = self.kind("STRING", "the version in quotes")
            place = self.located(token.start)
            self.check_version(self.string(token.text, token), place)
        if not self.accept("entry"):
            return None, None
        start = self.token.start
        return self.name(), self.located(start)

    def _function(self) -> Function:
        before, start = self.report.findings.total, self.advance().start
        name = self.name()
        parameters = self._parameters()
        results = self._results()
        where = self.located(start)
        body = self._body("return")
        given = body.given or []
        if body.given is None and before == self.report.findings.total:
            self.fail("'return' at the end of the function")
        for read in given:
            if read.index is not None:
                message = "a function returns values, no elements of tuples"
                self.report.add("E1101", message, read.token.span)
        if len(given) != len(results) and before == self.report.findings.total:
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
        before, start = self.report.findings.total, self.advance().start
        number = self.region_number()
        parameters = self._parameters()
        results = self._results()
        where = self.located(start)
        body = self._body("yield")
        tokens = [token for token, _ in parameters]
        for index, token in enumerate(tokens):
            if token.text[1:].isdigit() and int(token.text[1:]) != index:
                message = f"parameter {index} of a region is %{index}, or has a name"
                self.report.add("E1101", message, token.span)
        read = [read.token for read in body.given or ()]
        numbers = self._numbers(tokens, body.statements, read, [token.text[1:] for token in tokens])
        instructions = tuple(_numbered(body.statements, numbers))
        if body.given is not None and before == self.report.findings.total:
            given = [_operand(read, numbers) for read in body.given]
            if given != region_results(instructions, results):
                self._wrong_count(
                    body, "a region yields its last instructions, in order, one for each result"
                )
        types = tuple(type_ for _, type_ in parameters)
        return Region(number, types, instructions, tuple(results), _names(numbers), where)

    def _wrong_count(self, body: _BracedContents, message: str) -> None:
        assert body.given_place is not None, "it is there where values are given"
        self.report.add("E1101", message, body.given_place.offsets)

    def _parameters(self) -> list[tuple[Token, ValueType]]:
        self.expect("(")
        found: list[tuple[Token, ValueType]] = []
        for _ in self.separated(")", trailing=False):
            token = self._value_token()
            self.expect(":")
            found.append((token, self.value_type()))
        return found

    def _results(self) -> list[ValueType]:
        self.expect("->")
        return self.types(")") if self.accept("(") else [self.value_type()]

    def _body(self, last: str) -> _BracedContents:
        """Read from one brace to the other."""
        self.expect("{")
        body = _BracedContents()
        while not self.accept("}"):
            try:
                self._statement(body, last)
            except ParseError as fault:
                self.recover(fault, _STARTS)
                if self.word in ("", "func", "region"):
                    break
        return body

    def _statement(self, body: _BracedContents, last: str) -> None:
        if body.given is not None:
            self.fail("'}'", f"'{last}' ends the body")
        start = self.token.start
        if self.accept(last):
            body.given = []
            while self.token.kind == "VALUE":
                body.given.append(self._value())
                if not self.accept(","):
                    break
            body.given_place = self.located(start)
        elif self.word == "hints" and last == "return" and not body.statements and body.hints is None:
            self.advance()
            body.hints = self.json()
        elif self.token.kind == "VALUE":
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
            help_ = "names are those of the contract, such as dot_general or reduce_max"
            raise self.unknown_operation(name, compact_names(), help_)
        form, word = found
        operands: list[_Read | TensorLiteral] = []
        operation: Operation | None
        if form.literal is None:
            if self.token.kind == "VALUE" or self.word == "dense":
                operands = self._operands()
            operation = self._clauses(form, word, name)
        else:
            if self.word != "dense":
                self.fail("a literal, such as dense<f32, 2>[1.0, 2.0]")
            operation = Operation(form.name, None, FrozenDict({form.fields[0].name: read_dense(self)}))
            if self.accept(","):
                operands = self._operands()
        self.expect("->")
        output = self.value_type()
        if operation is None:
            return None
        return _Statement(result, operation, tuple(operands), output, self.located(result.start))

    def _operands(self) -> list[_Read | TensorLiteral]:
        found: list[_Read | TensorLiteral] = []
        while True:
            found.append(read_dense(self) if self.word == "dense" else self._value())
            if not self.accept(","):
                return found

    def _clauses(self, form: OperationForm, word: str | None, name: Token) -> Operation | None:
        spans: Spans = {(): name.span}
        data: dict[str, Any] = {}
        if form.variant is None and form.kind is not None:
            data[form.kind.name] = word
        fields = {one.short or one.name: one for one in form.fields} | {one.name: one for one in form.fields}
        while self.token.kind == "WORD":
            clause = self.advance()
            self.expect("[")
            items = read_items(self)
            one = fields.get(clause.text)
            key = one.name if one else clause.text
            spans[(form.name, key)] = (clause.start, self.end)
            if key in data:
                message = f"'{clause.text}' is given twice"
                self.report.add("E1103", message, clause.span, operation=name.text)
            data[key] = data_of(one, items, (form.name, key), spans) if one else None
        written: Any = form.name if not form.fields and not data else {form.name: data}
        if form.variant is not None:
            written = {form.name: form.variant}
            for key in data:
                message = f"'{clip(key)}' is no field of {name.text}, which has none"
                self.report.add("E1103", message, spans[(form.name, key)], operation=name.text)
        return self.operation(written, spans)

    # Values.

    def _value_token(self) -> Token:
        token = self.kind("VALUE", "a value, such as %x or %0")
        if token.text[1:].isdigit():
            self.identifier(token.text[1:], token)
        return token

    def _value(self) -> _Read:
        token = self._value_token()
        # An element follows at once: a word and a bracket are a clause.
        if self.text[token.end : token.end + 1] != "[":
            return _Read(token)
        self.advance()
        return _Read(token, self.element_number())

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
