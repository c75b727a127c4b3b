"""Reads Core IR text: the reference encoding and the grammar form (core-ir-text.md, spellings 1 and 2).

A text with functions is in function form, which `core_functions` reads.

Before: a source. After: a flat module in which every operation knows where its parts stand. Nothing is
verified beyond what the in-memory IR cannot hold: an unknown operation, a value defined twice or a wrong type
are the verifier's to report. The findings of a source are collected and raised together. Statements are read
one by one, and neither tokens nor syntax are kept: they take many times the memory of the text.

Ids: numbers stay as written; names get the numbers that follow the greatest one, in order of definition (one
that is used before, which the verifier refuses, at its use), and every operation holds them. `%7 = %6` makes
every later `%7` mean `%6`. An outputs line may stand anywhere, once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from mind_mlir.diagnostics import Diagnostic, ParseError
from mind_mlir.diagnostics.findings import Findings
from mind_mlir.diagnostics.source import Spans
from mind_mlir.ir.module import Module, Return
from mind_mlir.ir.profiles import CORE_V1
from mind_mlir.languages.core.grammar import OUTPUTS_KEYWORDS, parse_statement
from mind_mlir.languages.core.lexer import Lexer
from mind_mlir.languages.core.names import Aliases, Ids
from mind_mlir.languages.core.operations import OperationReader
from mind_mlir.languages.core.syntax import Alias, Definition, Outputs
from mind_mlir.languages.core.tokens import FUNCTION_LINE, LONGEST_VALUE, VALUE

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Location, SourceText
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.languages.core.tokens import Statement, Token

_VALUE = re.compile(VALUE)


def parse(source: SourceText) -> Module:
    """Return the module that ``source`` spells: of profile core-functions where it has functions, else flat.

    Raises:
        ParseError: Everything that is wrong with the text, in source order (E1xxx; E4005 and E3010 for
            literals that do not fit their type; E4001 and E4002 for aliases; E4111 and E4112 for blocks).
    """
    findings = Findings()
    if FUNCTION_LINE.search(source.text):
        from mind_mlir.languages.core.functions import read_functions  # noqa: PLC0415 -- flat texts do without

        return read_functions(source, findings)
    reader = _ModuleReader(source, findings)
    for statement in Lexer(source, findings).statements():
        reader.read(statement)
    if findings.total:
        raise ParseError(findings.in_source_order())
    return Module.flat(reader.operations, reader.outputs())


@dataclass(slots=True)
class _ModuleReader:
    """Collects the operations, aliases and outputs of one source."""

    source: SourceText
    findings: Findings
    operations: list[CoreOperation] = field(default_factory=list)
    _ids: Ids = field(init=False)
    _operation_reader: OperationReader = field(init=False)
    #: What first defines each value that is no alias: an operation, or the statement in error at an offset.
    _defined: dict[ValueId, CoreOperation | int] = field(default_factory=dict)
    _aliases: Aliases = field(default_factory=Aliases)
    _outputs: Outputs | None = None

    def __post_init__(self) -> None:
        self._ids = Ids(self.source.text)
        self._operation_reader = OperationReader(
            self.source, self._value_at, lambda: self._ids.names, CORE_V1.name
        )

    def read(self, statement: Statement) -> None:
        """Take one statement; what is wrong with it goes to the findings."""
        syntax = parse_statement(statement, self.source, self.findings)
        try:
            match syntax:
                case None:
                    self._define_anyway(statement)
                case Definition():
                    self._define(syntax)
                case Alias():
                    self._alias(syntax)
                case Outputs():
                    self._set_outputs(syntax)
                case _:
                    self._fail(
                        "E1101",
                        "syntax error: labels and blocks stand in a function",
                        statement.first,
                        (),
                        "write a function around them: func @main(%x: tensor<f32[]>) -> (tensor<f32[]>) {",
                    )
        except ParseError as error:
            self.findings.extend(error.diagnostics)
            self._define_anyway(statement)

    def outputs(self) -> Return:
        """Return the module's outputs; aliases hold wherever they are defined."""
        if self._outputs is None:
            return Return(())
        offsets = self._outputs.values
        values = tuple(map(self._value_at, offsets[::2], offsets[1::2]))
        return Return(values, Spans.of(self.source, offsets), self._ids.names)

    def _define_anyway(self, statement: Statement) -> None:
        """Count what a statement in error defines as defined, so that one mistake is reported once."""
        first, second = statement.first, statement.second
        if first.type != "VALUE" or second is None or second.type != "_EQUAL":
            return
        if len(first.text) <= LONGEST_VALUE or not first.text[1:].lstrip("-").isdigit():
            self._defined.setdefault(self._ids.of(first.text), first.start_pos)

    def _value_at(self, start: int, end: int) -> ValueId:
        return self._aliases.resolve(self._ids.of(self.source.text[start:end]))

    def _locate(self, token: Token) -> Location:
        return self.source.locate(token.start_pos, token.end_pos)

    def _definition(self, value: ValueId) -> Location:
        """Return where a value is first defined."""
        first = self._aliases.start(value) if value in self._aliases else self._defined[value]
        if isinstance(first, int):
            start = first
        else:
            assert first.location is not None, "it has been read from a text"
            start = first.location.offsets[0]
        found = _VALUE.match(self.source.text, start)
        assert found is not None, "a definition begins with the value"
        return self.source.locate(*found.span())

    def _define(self, definition: Definition) -> None:
        value = self._ids.of(definition.result.text)
        if value in self._aliases:
            self._defined_twice(value, definition.result)
        operation = self._operation_reader.read(definition, value)
        for defined in operation.result_ids:
            self._defined.setdefault(defined, operation)
        self.operations.append(operation)

    def _alias(self, alias: Alias) -> None:
        target = self._ids.of(alias.target.text)
        if target not in self._defined and target not in self._aliases:
            self._fail(
                "E4001",
                f"{alias.target.text} has no definition before this alias",
                alias.target,
                (),
                "define the value first",
                operand=target,
            )
        value = self._ids.of_alias(alias.result.text)
        if value in self._defined or value in self._aliases:
            self._defined_twice(value, alias.result)
        self._aliases.add(value, self._aliases.resolve(target), alias.result.start_pos)

    def _defined_twice(self, value: ValueId, again: Token) -> NoReturn:
        """Report what the verifier cannot see: an alias leaves no operation behind."""
        first = self._definition(value)
        self._fail(
            "E4002",
            f"{again.text} is defined twice",
            again,
            (f"the first definition is at {first}",),
            "give one of the two another id",
            id=value,
            places=(str(first), str(self._locate(again))),
        )

    def _set_outputs(self, outputs: Outputs) -> None:
        if outputs.keyword.text not in OUTPUTS_KEYWORDS:
            self._fail(
                "E1101", f"syntax error: expected 'outputs:', found '{outputs.keyword.text}'", outputs.keyword
            )
        if self._outputs is not None:
            place = self._locate(self._outputs.keyword)
            self._fail(
                "E1101",
                "syntax error: a module has one outputs line",
                outputs.keyword,
                (f"the first is at {place}",),
                "list all outputs on one line: outputs: %0, %1",
            )
        self._outputs = outputs

    def _fail(
        self,
        code: str,
        message: str,
        token: Token,
        notes: tuple[str, ...] = (),
        help_text: str | None = None,
        **context: Any,
    ) -> NoReturn:
        raise ParseError(
            Diagnostic(
                code, message, self._locate(token), notes, help_text, context=MappingProxyType(context)
            )
        )
