"""Reads Core IR text: the reference encoding and the grammar form (core-ir-text.md, spellings 1 and 2).

Before: a source. After: a flat module in which every operation knows where its parts stand. Nothing is
verified beyond what the in-memory IR cannot hold: an unknown operation, a value defined twice or a wrong type
are the verifier's to report. All findings of a source are collected and raised together.

Ids: numbers stay as written; names get the numbers that follow the greatest one, in order of definition, then
of use, and every operation holds them. `%7 = %6` makes every later `%7` mean `%6`. An outputs line may stand
anywhere, once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from mind_mlir.diagnostics import Diagnostic, ParseError, UnsupportedError
from mind_mlir.frontends.core_grammar import OUTPUTS_KEYWORDS, Alias, Definition, Outputs, parse_statement
from mind_mlir.frontends.core_lexer import Lexer
from mind_mlir.frontends.core_operations import OperationReader
from mind_mlir.frontends.positions import Positions
from mind_mlir.frozen import FrozenDict
from mind_mlir.ir.module import Module, Return

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.diagnostics import Location, SourceText
    from mind_mlir.frontends.core_lexer import Statement, Token
    from mind_mlir.ir.module import CoreOperation, ValueId

#: A value whose name begins with one of these is a number.
_NUMERIC = "-0123456789"
_FUNCTION_FORM = re.compile(r"^[ \t]*(?:(?:internal|public|export)[ \t]+)?func[ \t]+@[^\n]*", re.M)


def parse(source: SourceText) -> Module:
    """Return the flat module that ``source`` spells.

    Raises:
        ParseError: Everything that is wrong with the text, in source order (E1xxx; E4005 and E3010 for
            literals that do not fit their type; E4001 and E4002 for aliases).
        UnsupportedError: E7001, the text is in function form.
    """
    positions = Positions(source)
    if function := _FUNCTION_FORM.search(source.text):
        raise UnsupportedError(_function_form(positions.locate(*function.span())))
    lexer = Lexer(positions)
    statements = lexer.statements()
    reader = _ModuleReader(positions, _number_values(statements), lexer.diagnostics)
    for statement in statements:
        reader.read(statement)
    if reader.diagnostics:
        raise ParseError(sorted(reader.diagnostics, key=_source_order))
    return Module.flat(reader.operations, reader.outputs())


def _number_values(statements: list[Statement]) -> dict[str, ValueId]:
    """Return the id of every value as spelled; operations define first, then aliases and nothing."""
    ids: dict[str, ValueId] = {}
    definitions: list[str] = []
    uses: list[str] = []
    for statement in statements:
        for index, token in enumerate(statement.tokens):
            if token.type != "VALUE":
                continue
            text = token.text[1:]
            if text[0] in _NUMERIC:
                if len(text) <= 20:  # the lexer has reported a longer one
                    ids[token.text] = int(text)
            else:
                (uses if index or _is_alias(statement) else definitions).append(token.text)
    fresh = max(ids.values(), default=-1) + 1
    for name in (*definitions, *uses):
        if name not in ids:
            ids[name] = fresh
            fresh += 1
    return ids


def _is_alias(statement: Statement) -> bool:
    tokens = statement.tokens
    return len(tokens) > 2 and tokens[1].type == "_EQUAL" and tokens[2].type == "VALUE"


def _names(ids: Mapping[str, ValueId]) -> FrozenDict[ValueId, str]:
    """Return what values are called that have names."""
    return FrozenDict({value: text[1:] for text, value in ids.items() if text[1] not in _NUMERIC})


@dataclass(slots=True)
class _ModuleReader:
    """Collects the operations, aliases and outputs of one source."""

    positions: Positions
    ids: dict[str, ValueId]
    diagnostics: list[Diagnostic]
    operations: list[CoreOperation] = field(default_factory=list)
    _operation_reader: OperationReader = field(init=False)
    _defined: dict[ValueId, Token] = field(default_factory=dict)
    _aliases: dict[ValueId, ValueId] = field(default_factory=dict)
    _outputs: Outputs | None = None

    _names: FrozenDict[ValueId, str] = field(init=False)

    def __post_init__(self) -> None:
        self._names = _names(self.ids)
        self._operation_reader = OperationReader(self.positions, self._resolve, self._names)

    def read(self, statement: Statement) -> None:
        """Take one statement; what is wrong with it goes to the diagnostics."""
        if statement.broken:
            self._define_anyway(statement)
            return
        try:
            syntax = parse_statement(statement, self.positions)
            match syntax:
                case Definition():
                    self._define(syntax)
                case Alias():
                    self._alias(syntax)
                case Outputs():
                    self._set_outputs(syntax)
        except ParseError as error:
            self.diagnostics += error.diagnostics
            self._define_anyway(statement)

    def outputs(self) -> Return:
        """Return the module's outputs; aliases hold wherever they are defined."""
        if self._outputs is None:
            return Return(())
        tokens = self._outputs.values
        return Return(tuple(map(self._resolve, tokens)), tuple(map(self._locate, tokens)), self._names)

    def _define_anyway(self, statement: Statement) -> None:
        """Count what a statement in error defines as defined, so that one mistake is reported once."""
        tokens = statement.tokens
        if len(tokens) > 1 and tokens[0].type == "VALUE" and tokens[1].type == "_EQUAL":
            value = self.ids.get(tokens[0].text)
            if value is not None:
                self._defined.setdefault(value, tokens[0])

    def _resolve(self, token: Token) -> ValueId:
        value = self.ids[token.text]
        return self._aliases.get(value, value)

    def _locate(self, token: Token) -> Location:
        return self.positions.locate(token.start_pos, token.end_pos)

    def _define(self, definition: Definition) -> None:
        value = self.ids[definition.result.text]
        if value in self._aliases:
            self._defined_twice(value, definition.result)
        self._defined.setdefault(value, definition.result)
        self.operations.append(self._operation_reader.read(definition, value))

    def _alias(self, alias: Alias) -> None:
        value, target = self.ids[alias.result.text], self.ids[alias.target.text]
        if value in self._defined:
            self._defined_twice(value, alias.result)
        if target not in self._defined:
            self._fail(
                "E4001",
                f"{alias.target.text} has no definition before this alias",
                alias.target,
                (),
                "define the value first",
                operand=target,
            )
        self._defined[value] = alias.result
        self._aliases[value] = self._aliases.get(target, target)

    def _defined_twice(self, value: ValueId, again: Token) -> NoReturn:
        """Report what the verifier cannot see: an alias leaves no operation behind."""
        first = self._locate(self._defined[value])
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


def _source_order(diagnostic: Diagnostic) -> tuple[int, int]:
    location = diagnostic.location
    return (location.line, location.column) if location else (0, 0)


def _function_form(location: Location) -> Diagnostic:
    return Diagnostic(
        "E7001",
        "the function form of Core IR is not supported",
        location,
        ("this text declares functions, which are outside profile core-v1",),
        "write a flat module: Input instructions, operations, and one 'outputs:' line",
    )
