"""Reads Core IR text: the reference encoding, the grammar form and the function form (core-ir-text.md).

    func @main(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {
    ^entry:
      %p = ...
      cond_br %p, ^then(%x), ^done
    ...
    }

A flat text, of one of the first two spellings, is read as the body of a function that it does not write: one
block, which the outputs line ends wherever it stands.

Before: a source. After: a module in which every operation knows where its parts stand; of profile
core-functions where the text has functions, else flat. Nothing is verified beyond what the in-memory IR
cannot hold: an unknown operation, a value defined twice or a wrong type are the verifier's to report. The
findings of a source are collected and raised together. Statements are read one by one, and neither tokens nor
syntax are kept, which take many times the memory of the text: of what stands around a statement, only a stack
of bodies is kept, those of a function and of the operations whose regions are open.

Ids: numbers stay as written; names get numbers that are not spelled, in order of definition: in a flat text
those that follow the greatest one (`FlatIds`), in a function the smallest ones (`FunctionIds`). `%7 = %6`
makes every `%7` mean `%6`, in a flat text every later one. The entry's parameters stand in the head of the
function; what callers name them is their spelling without the ``%``, or the string in ``{name="a b"}``.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Location, ParseError, SourceText
from mind_mlir.diagnostics.source import Spans
from mind_mlir.ir.module import (
    Branch,
    CondBranch,
    Function,
    Functions,
    Module,
    Parameter,
    Return,
    Target,
    Terminator,
    ValueId,
    Yield,
)
from mind_mlir.ir.profiles import CORE_FUNCTIONS, CORE_V1
from mind_mlir.languages.core.bodies import Bodies, OpenBlock, OpenBody
from mind_mlir.languages.core.flat_ids import FlatIds
from mind_mlir.languages.core.grammar import OUTPUTS_KEYWORDS, parse_statement
from mind_mlir.languages.core.lexer import CoreLexer
from mind_mlir.languages.core.operations import OperationReader, name_of
from mind_mlir.languages.core.syntax import Closing, Definition, Exit, Head, Label, Outputs, ValueAlias, spans
from mind_mlir.languages.core.tokens import FUNCTION_LINE, HEAD, Statement
from mind_mlir.languages.text.report import Report
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.languages.core.function_ids import FunctionIds
    from mind_mlir.languages.core.syntax import (
        BranchSyntax,
        Offsets,
        Parameters,
        Syntax,
        TargetSyntax,
        TerminatorSyntax,
    )
    from mind_mlir.languages.text.cursor import Token

_HEAD_HELP = "a function begins with func @main(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {"


def parse(source: SourceText) -> Module:
    """Return the module that ``source`` spells.

    Raises:
        ParseError: Everything that is wrong with the text, in source order (E1xxx; E4005 and E3010 for
            literals that do not fit their type; E4001 and E4002 for aliases; E4111 and E4112 for blocks).
    """
    report = Report(source)
    reader = _SourceReader(report, functions=FUNCTION_LINE.search(source.text) is not None)
    lexer = CoreLexer(report, functions=reader.functions)
    for statement in lexer.statements():
        reader.read(statement)
        lexer.in_body = reader.functions and bool(reader.bodies)
    reader.bodies.finish(len(source.text))
    if report.findings.total:
        raise ParseError(report.findings.in_source_order())
    return reader.module()


class _SourceReader:
    """Takes the statements of one source, one by one.

    Attributes:
        functions: Whether the text has functions; else it is the body of one.
        bodies: Those that are open.
    """

    def __init__(self, report: Report, *, functions: bool) -> None:
        self.functions = functions
        self.bodies = Bodies(report)
        self._report = report
        profile = CORE_FUNCTIONS if functions else CORE_V1
        self._parts = PartReader(report, profile.name, FlatIds(report))
        self._outputs: Outputs | None = None
        if not functions:
            self.bodies.open(OpenBody((0, 0), is_function=True, braced=False, block=OpenBlock("", None)))

    def module(self) -> Module:
        """Return the module of all statements, which are right."""
        if self.functions:
            return Module(Functions(self.bodies.functions), CORE_FUNCTIONS.name)
        block = self.bodies.innermost.block
        assert block is not None, "the block of a flat text does not end before it"
        if self._outputs is None:
            return Module.flat(block.operations, Return(()))
        # Aliases hold wherever they are defined: behind the outputs, too.
        return Module.flat(
            block.operations, Return(*self._parts.values(self._outputs.values), self._parts.ids.names)
        )

    def read(self, statement: Statement) -> None:
        """Take one statement; what is wrong with it goes to the findings."""
        if statement.first.kind not in HEAD and self.bodies.passes_over(statement):
            return
        syntax = parse_statement(statement, self._report, functions=self.functions)
        try:
            if syntax is None:
                self._recover(statement)
            else:
                self._take(syntax, statement)
        except ParseError as error:
            self._report.findings.extend(error.diagnostics)
            self._recover(statement)

    def _take(self, syntax: Syntax, statement: Statement) -> None:
        if isinstance(syntax, Head):
            self._begin_function(syntax, statement)
        elif isinstance(syntax, Closing):
            self.bodies.close(syntax)
        elif not self.bodies:
            self.bodies.outside(statement)
        elif isinstance(syntax, Label):
            self._begin_block(syntax)
        elif isinstance(syntax, Outputs):
            self._take_outputs(syntax)
        else:
            block = self.bodies.block(statement)
            self.bodies.not_after_end(block, statement)
            if isinstance(syntax, ValueAlias):
                self._parts.ids.alias(syntax)
            elif isinstance(syntax, Definition):
                self._define(syntax, block)
            else:
                self._end(syntax, block, statement)

    def _recover(self, statement: Statement) -> None:
        """Let a statement in error begin, end and define what it would: one mistake is reported once."""
        first = statement.first
        if not self.functions:
            self._parts.ids.recover(statement)
        elif first.kind in HEAD:
            self.bodies.close_all(first)
            self.bodies.open(OpenBody(first.span, is_function=True, braced=statement.last.kind == "OPEN"))
            self._begin_ids(first.start)
        elif not self.bodies:
            return
        elif statement.last.kind in ("OPEN", "{"):  # the second one where a bracket is not closed
            self.bodies.open(OpenBody(first.span, is_function=False))
        elif first.kind == "LABEL" or _lacks_caret(statement):
            body = self.bodies.innermost
            if body.block is None or body.block.span != first.span:
                self.bodies.end_block()
                body.has_blocks = True
                body.block = OpenBlock(first.text.removeprefix("^"), first.span)
        elif first.kind in ("BR", "COND_BR", "EXIT") and (block := self.bodies.innermost.block):
            block.ended = block.ended or first.span

    def _begin_ids(self, start: int) -> FunctionIds:
        """Read the ids of the function that begins at ``start``."""
        from mind_mlir.languages.core.function_ids import FunctionIds  # noqa: PLC0415 -- flat texts do without

        self._parts.ids = ids = FunctionIds(self._report, start)
        return ids

    def _begin_function(self, head: Head, statement: Statement) -> None:
        self.bodies.close_all(statement.first)
        ids = self._begin_ids(statement.first.start)
        public = head.visibility is None or head.visibility.text != "internal"
        body = OpenBody(head.name.span, is_function=True)
        self.bodies.open(body)
        try:
            types = [self._parts.operations.type_at(*found) for found in spans(head.types)]
            body.parameters = self._parts.parameters(head.parameters, ids, exported=public)
        except ParseError as error:
            self._report.findings.extend(error.diagnostics)
            return
        name = self._parts.label(head.name)
        places = Spans.of(self._report.source, head.types) if types else ()
        body.function = Function(name, (), public, tuple(types), self._report.locate(head.name.span), places)

    def _begin_block(self, label: Label) -> None:
        ids = self._parts.ids
        if isinstance(ids, FlatIds):
            message = "syntax error: labels and blocks stand in a function"
            help_ = "write a function around them: func @main(%x: tensor<f32[]>) -> (tensor<f32[]>) {"
            raise self._report.error("E1101", message, label.name.span, help_)
        self.bodies.end_block()
        body = self.bodies.innermost
        is_entry = body.is_function and not body.has_blocks
        name = self._parts.label(label.name)
        body.has_blocks = True
        body.block = OpenBlock(name, label.name.span, body.parameters)
        body.parameters = ()
        if not is_entry:
            body.block.parameters = self._parts.parameters(label.parameters, ids, exported=None)
        elif offsets := label.parameters.offsets:
            message = "syntax error: the first block takes its parameters from the head of the function"
            raise self._report.error("E1101", message, (offsets[0], offsets[-1]), _HEAD_HELP)

    def _define(self, definition: Definition, block: OpenBlock) -> None:
        ids = self._parts.ids
        operation = self._parts.operations.read(definition, ids.begin(definition))
        ids.define(operation)
        if definition.opens:
            span = (definition.result.start, definition.types[-1])
            self.bodies.open(OpenBody(span, is_function=False, operation=operation))
        elif not self._report.findings.total:
            block.operations.append(operation)

    def _end(self, syntax: TerminatorSyntax, block: OpenBlock, statement: Statement) -> None:
        block.ended = statement.span
        block.terminator = self._parts.terminator(syntax, self._report.locate(statement.span))

    def _take_outputs(self, outputs: Outputs) -> None:
        word, span = outputs.keyword.text, outputs.keyword.span
        if word not in OUTPUTS_KEYWORDS and self.functions:
            message = f"syntax error: expected '^{word[:40]}:', found '{word[:40]}:'"
            raise self._report.error("E1101", message, span, "the label of a block begins with ^")
        if word not in OUTPUTS_KEYWORDS:
            raise self._report.error("E1101", f"syntax error: expected 'outputs:', found '{word}'", span)
        if self.functions:
            message = "syntax error: a function has no outputs line"
            help_ = "a function names its results in its return: return %0"
            raise self._report.error("E1101", message, span, help_)
        if self._outputs is not None:
            message = "syntax error: a module has one outputs line"
            help_ = "list all outputs on one line: outputs: %0, %1"
            place = self._report.locate(self._outputs.keyword.span)
            raise self._report.error("E1101", message, span, help_, (f"the first is at {place}",))
        self._outputs = outputs


def _lacks_caret(statement: Statement) -> bool:
    first, second = statement.first, statement.second
    looks_so = first.kind == "WORD" and second is not None and second.kind == ":"
    return looks_so and first.text not in OUTPUTS_KEYWORDS


#: Names of functions and blocks that are remembered.
_KEPT_LABELS = 1 << 12


@dataclass(slots=True)
class PartReader:
    """Reads the parts of statements.

    Attributes:
        report: What is wrong goes there.
        profile: The profile that says how operations are spelled.
        ids: Those of the function that is being read.
        operations: Reads operations and types.
    """

    report: Report
    profile: str
    ids: FlatIds | FunctionIds
    operations: OperationReader = field(init=False)
    _labels: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.operations = OperationReader(self.report, self.value_at, lambda: self.ids.names, self.profile)

    def parameters(
        self, parameters: Parameters, ids: FunctionIds, *, exported: bool | None
    ) -> tuple[Parameter, ...]:
        """Return parameters: of an exported or an internal function, or (None) of a block."""
        text, offsets, names = self.report.source.text, parameters.offsets, ids.names
        found: list[Parameter] = []
        for index in range(len(offsets) // 4):
            start, end, type_start, type_end = offsets[4 * index : 4 * index + 4]
            attributes = parameters.attributes.get(index)
            if attributes is not None and not exported:
                what = "an internal function" if exported is False else "a block"
                message = f"the parameters of {what} have no names for callers"
                raise self.report.error("E1103", message, (start, type_end), "remove the braces")
            if ids.redefined:
                ids.not_redefined((start, end))
            type_ = self.operations.type_at(type_start, type_end)
            name = None
            if exported:
                name = self.operations.argument_name(attributes) if attributes else text[start + 1 : end]
            place = self.report.locate((start, type_end))
            found.append(Parameter(ids.of(text[start:end]), type_, place, name, names))
        return tuple(found)

    def terminator(self, syntax: BranchSyntax | Exit, location: Location) -> Terminator:
        """Return the terminator that ends a block."""
        if isinstance(syntax, Exit):
            kind = Return if syntax.keyword.text == "return" else Yield
            return kind(*self.values(syntax.values), self.ids.names, location)
        targets = [self._target(target) for target in syntax.targets]
        if syntax.condition is None:
            return Branch(targets[0], location)
        span = syntax.condition.span
        return CondBranch(self.value_at(*span), targets[0], targets[1], location, self.report.locate(span))

    def _target(self, target: TargetSyntax) -> Target:
        label, place = self.label(target.name), self.report.locate(target.name.span)
        values, places = self.values(target.values)
        return Target(label, values, place, places, self.ids.names)

    def label(self, name: Token) -> str:
        """Return the name of a function or a block: one string, not a copy for each place."""
        text = name_of(name)
        if len(self._labels) >= _KEPT_LABELS:
            self._labels.clear()
        return self._labels.setdefault(text, text)

    def value_at(self, start: int, end: int) -> ValueId:
        """Return the value whose id stands at a place."""
        return self.ids.of(self.report.source.text[start:end])

    def values(self, offsets: Offsets) -> tuple[tuple[ValueId, ...], Spans | tuple[()]]:
        """Return the values whose ids stand at places, and these; they may add to the names."""
        found = tuple(map(self.value_at, offsets[::2], offsets[1::2]))
        return found, Spans.of(self.report.source, offsets) if offsets else ()
