"""Reads the function form of Core IR text (core-ir-text.md, spelling 3).

    func @main(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {
    ^entry:
      %p = ...
      cond_br %p, ^then(%x), ^done
    ...
    }

Before: a source. After: a module of profile core-functions. As for flat text, nothing is verified beyond what
the in-memory IR cannot hold, and statements are read one by one: of what stands around the one that is read,
only a stack of bodies is kept, those of a function and of the operations whose regions are open.

Ids: numbers stay as written; names get, in order of definition, the smallest numbers that their function does
not spell (`FunctionIds`). The entry's parameters stand in the head of the function; what callers name them is
their spelling without the ``%``, or the string in ``%0 {name="a b"}: type``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import ParseError
from mind_mlir.diagnostics.source import Spans
from mind_mlir.ir.module import Function, Functions, Module
from mind_mlir.ir.profiles import CORE_FUNCTIONS
from mind_mlir.languages.core.function_bodies import Bodies, Body, OpenBlock
from mind_mlir.languages.core.function_parts import PartReader
from mind_mlir.languages.core.function_report import Report, spans
from mind_mlir.languages.core.grammar import OUTPUTS_KEYWORDS, parse_statement
from mind_mlir.languages.core.lexer import Lexer
from mind_mlir.languages.core.syntax import (
    Alias,
    BranchSyntax,
    Closing,
    Definition,
    Exit,
    Head,
    Label,
    Outputs,
)
from mind_mlir.languages.core.tokens import HEAD

if TYPE_CHECKING:
    from mind_mlir.diagnostics import SourceText
    from mind_mlir.diagnostics.findings import Findings
    from mind_mlir.languages.core.syntax import Syntax
    from mind_mlir.languages.core.tokens import Statement

_HEAD_HELP = "a function begins with func @main(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {"


def read_functions(source: SourceText, findings: Findings) -> Module:
    """Return the module of functions that ``source`` spells.

    Raises:
        ParseError: Everything that is wrong with the text, in source order.
    """
    report = Report(source, findings)
    bodies = Bodies(report)
    reader = _Reader(report, bodies)
    lexer = Lexer(source, findings, functions=True)
    for statement in lexer.statements():
        reader.read(statement)
        lexer.in_body = bool(bodies)
    bodies.finish(len(source.text))
    if findings.total:
        raise ParseError(findings.in_source_order())
    return Module(Functions(bodies.functions), CORE_FUNCTIONS.name)


@dataclass(slots=True)
class _Reader:
    """Takes the statements of one source, one by one."""

    report: Report
    _bodies: Bodies
    _parts: PartReader = field(init=False)

    def __post_init__(self) -> None:
        self._parts = PartReader(self.report)

    def read(self, statement: Statement) -> None:
        """Take one statement; what is wrong with it goes to the findings."""
        if statement.first.type not in HEAD and self._bodies.passes_over(statement):
            return
        syntax = parse_statement(statement, self.report.source, self.report.findings, functions=True)
        try:
            if syntax is None:
                self._recover(statement)
            else:
                self._take(syntax, statement)
        except ParseError as error:
            self.report.findings.extend(error.diagnostics)
            self._recover(statement)

    def _take(self, syntax: Syntax, statement: Statement) -> None:
        if isinstance(syntax, Head):
            self._begin_function(syntax, statement)
        elif isinstance(syntax, Closing):
            self._bodies.close(syntax)
        elif not self._bodies:
            self._bodies.outside(statement)
        elif isinstance(syntax, Label):
            self._begin_block(syntax)
        elif isinstance(syntax, Outputs):
            self._refuse_outputs(syntax)
        else:
            block = self._bodies.block(statement)
            if isinstance(syntax, Alias):
                self._bodies.not_after_end(block, statement)
                self._parts.check_alias(syntax)
            elif isinstance(syntax, Definition):
                self._bodies.not_after_end(block, statement)
                self._define(syntax, block)
            else:
                self._end(syntax, block, statement)

    def _recover(self, statement: Statement) -> None:
        """Let a statement in error begin and end what it would, so that one mistake is reported once."""
        first = statement.first
        span = (first.start_pos, first.end_pos)
        if first.type in HEAD:
            self._bodies.close_all(first)
            self._bodies.open(Body(span, is_function=True, braced=statement.last.type == "OPEN"))
            self._parts.begin_function(first.start_pos)
        elif not self._bodies:
            return
        elif statement.last.type in ("OPEN", "_LBRACE"):  # the second one where a bracket is not closed
            self._bodies.open(Body(span, is_function=False))
        elif first.type == "LABEL" or _lacks_caret(statement):
            body = self._bodies.innermost
            if body.block is None or body.block.span != span:
                self._bodies.end_block()
                body.has_blocks = True
                body.block = OpenBlock(first.text.removeprefix("^"), span)
        elif first.type in ("BR", "COND_BR", "EXIT") and (block := self._bodies.innermost.block):
            block.ended = block.ended or span

    def _begin_function(self, head: Head, statement: Statement) -> None:
        self._bodies.close_all(statement.first)
        self._parts.begin_function(statement.first.start_pos)
        public = head.visibility is None or head.visibility.text != "internal"
        span = (head.name.start_pos, head.name.end_pos)
        body = Body(span, is_function=True)
        self._bodies.open(body)
        try:
            types = [self._parts.operations.type_at(*found) for found in spans(head.types)]
            body.parameters = self._parts.parameters(head.parameters, exported=public)
        except ParseError as error:
            self.report.findings.extend(error.diagnostics)
            return
        name = self._parts.label(head.name)
        places = Spans.of(self.report.source, head.types) if types else ()
        body.function = Function(name, (), public, tuple(types), self.report.locate(span), places)

    def _begin_block(self, label: Label) -> None:
        self._bodies.end_block()
        body = self._bodies.innermost
        is_entry = body.is_function and not body.has_blocks
        span = (label.name.start_pos, label.name.end_pos)
        name = self._parts.label(label.name)
        body.has_blocks = True
        body.block = OpenBlock(name, span, body.parameters)
        body.parameters = ()
        if not is_entry:
            body.block.parameters = self._parts.parameters(label.parameters, exported=None)
        elif label.parameters.offsets:
            start, end = label.parameters.offsets[0], label.parameters.offsets[-1]
            message = "syntax error: the first block takes its parameters from the head of the function"
            self.report.fail("E1101", message, (start, end), (), _HEAD_HELP)

    def _define(self, definition: Definition, block: OpenBlock) -> None:
        start, end = definition.result.start_pos, definition.result.end_pos
        if self._parts.ids.redefined:
            for span in [(start, end), *spans(definition.others)]:
                self._parts.not_redefined(span)
        operation = self._parts.operations.read(definition, self._parts.value_at(start, end))
        if definition.opens:
            self._bodies.open(Body((start, definition.types[-1]), is_function=False, operation=operation))
        elif not self.report.findings.total:
            block.operations.append(operation)

    def _end(self, syntax: BranchSyntax | Exit, block: OpenBlock, statement: Statement) -> None:
        self._bodies.not_after_end(block, statement)
        span = (statement.first.start_pos, statement.last.end_pos)
        block.ended = span
        block.terminator = self._parts.terminator(syntax, self.report.locate(span))

    def _refuse_outputs(self, outputs: Outputs) -> None:
        span = (outputs.keyword.start_pos, outputs.keyword.end_pos)
        if (word := outputs.keyword.text[:40]) not in OUTPUTS_KEYWORDS:
            message = f"syntax error: expected '^{word}:', found '{word}:'"
            self.report.fail("E1101", message, span, (), "the label of a block begins with ^")
        message = "syntax error: a function has no outputs line"
        self.report.fail("E1101", message, span, (), "a function names its results in its return: return %0")


def _lacks_caret(statement: Statement) -> bool:
    first, second = statement.first, statement.second
    looks_so = first.type == "WORD" and second is not None and second.type == "_COLON"
    return looks_so and first.text not in OUTPUTS_KEYWORDS
