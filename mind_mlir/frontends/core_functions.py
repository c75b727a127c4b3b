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

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from mind_mlir.core.flow_rules import after_terminator, missing_terminator
from mind_mlir.diagnostics import Diagnostic, ParseError
from mind_mlir.diagnostics.source import Spans
from mind_mlir.frontends.core_function_ids import FunctionIds
from mind_mlir.frontends.core_grammar import OUTPUTS_KEYWORDS, parse_statement
from mind_mlir.frontends.core_lexer import HEAD, Lexer
from mind_mlir.frontends.core_operations import OperationReader
from mind_mlir.frontends.core_syntax import (
    Alias,
    BranchSyntax,
    Closing,
    Definition,
    Exit,
    Head,
    Integers,
    Label,
    Outputs,
)
from mind_mlir.ir.module import (
    Block,
    Branch,
    CondBranch,
    Function,
    Functions,
    Module,
    Parameter,
    Return,
    Target,
    Yield,
)
from mind_mlir.ir.regions import MAX_NESTING
from mind_mlir.profiles import CORE_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.diagnostics import Location, SourceText
    from mind_mlir.diagnostics.findings import Findings
    from mind_mlir.frontends.core_lexer import Statement, Token
    from mind_mlir.frontends.core_syntax import Parameters, Syntax, TargetSyntax
    from mind_mlir.ir.module import CoreOperation, Terminator, ValueId

    Span: TypeAlias = tuple[int, int]

#: Names of functions and blocks that are remembered.
_KEPT_LABELS = 1 << 12
_HEAD_HELP = "a function begins with func @main(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {"


def read_functions(source: SourceText, findings: Findings) -> Module:
    """Return the module of functions that ``source`` spells.

    Raises:
        ParseError: Everything that is wrong with the text, in source order.
    """
    reader = _Reader(source, findings)
    lexer = Lexer(source, findings, functions=True)
    for statement in lexer.statements():
        reader.read(statement)
        lexer.in_body = reader.in_body
    reader.finish(len(source.text))
    if findings.total:
        raise ParseError(findings.in_source_order())
    return Module(Functions(reader.functions), CORE_FUNCTIONS.name)


@dataclass(slots=True)
class _OpenBlock:
    """A block that is being read.

    Attributes:
        label: Its label, and where that stands; no place where the label is missing.
        span: See there.
        ended: Where its terminator stands, if it has one.
        flagged: Whether its end has been found wrong.
    """

    label: str
    span: Span | None
    parameters: tuple[Parameter, ...] = ()
    operations: list[CoreOperation] = field(default_factory=list)
    terminator: Terminator | None = None
    ended: Span | None = None
    flagged: bool = False


@dataclass(slots=True)
class _Body:
    """What stands between two braces.

    Attributes:
        opening: Where the function is named, or the operation begins.
        function: The function, still without blocks; None for regions, and for a function in error.
        operation: The operation that the regions belong to; None for a function, and for one in error.
        parameters: Those of the function, until its entry takes them.
        braced: Whether the opening brace is there; if not, nobody misses the other one.
    """

    opening: Span
    is_function: bool
    function: Function | None = None
    operation: CoreOperation | None = None
    parameters: tuple[Parameter, ...] = ()
    blocks: list[Block] = field(default_factory=list)
    has_blocks: bool = False
    braced: bool = True
    block: _OpenBlock | None = None


@dataclass(slots=True)
class _Reader:
    """Collects the functions of one source."""

    source: SourceText
    findings: Findings
    functions: list[Function] = field(default_factory=list)
    _bodies: list[_Body] = field(default_factory=list)
    #: Bodies that are open beyond the greatest depth; what stands in them is passed over.
    _too_deep: int = 0
    #: Whether statements outside of functions have been reported since the last function began.
    _lost: bool = False
    _ids: FunctionIds = field(init=False)
    _operations: OperationReader = field(init=False)
    _labels: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ids = FunctionIds("", 0)
        self._operations = OperationReader(
            self.source, self._value_at, lambda: self._ids.names, CORE_FUNCTIONS.name
        )

    @property
    def in_body(self) -> bool:
        """Return whether a body is open."""
        return bool(self._bodies)

    def read(self, statement: Statement) -> None:
        """Take one statement; what is wrong with it goes to the findings."""
        if self._too_deep and statement.first.type not in HEAD:
            statement.finish()
            self._too_deep += (statement.last.type == "OPEN") - (statement.first.type == "CLOSE")
            return
        syntax = parse_statement(statement, self.source, self.findings, functions=True)
        try:
            if syntax is None:
                self._recover(statement)
            else:
                self._take(syntax, statement)
        except ParseError as error:
            self.findings.extend(error.diagnostics)
            self._recover(statement)

    def finish(self, end: int) -> None:
        """Close what the text leaves open at its ``end``."""
        if self._bodies and self._bodies[0].braced:
            self._not_closed(self._bodies, (max(end - 1, 0), end), "the end of the text")

    # Statements.

    def _take(self, syntax: Syntax, statement: Statement) -> None:
        if isinstance(syntax, Head):
            self._begin_function(syntax, statement)
        elif isinstance(syntax, Closing):
            self._close(syntax)
        elif not self._bodies:
            self._outside(statement)
        elif isinstance(syntax, Label):
            self._begin_block(syntax)
        elif isinstance(syntax, Outputs):
            self._refuse_outputs(syntax)
        else:
            block = self._block(statement)
            if isinstance(syntax, Alias):
                self._not_after_end(block, statement)
                self._check_alias(syntax)
            elif isinstance(syntax, Definition):
                self._not_after_end(block, statement)
                self._define(syntax, block)
            else:
                self._end(syntax, block, statement)

    def _recover(self, statement: Statement) -> None:
        """Let a statement in error begin and end what it would, so that one mistake is reported once."""
        first = statement.first
        span = (first.start_pos, first.end_pos)
        if first.type in HEAD:
            self._close_all(first)
            self._open(_Body(span, is_function=True, braced=statement.last.type == "OPEN"))
            self._set_ids(first.start_pos)
        elif not self._bodies:
            return
        elif statement.last.type in ("OPEN", "_LBRACE"):  # the second one where a bracket is not closed
            self._open(_Body(span, is_function=False))
        elif first.type == "LABEL" or _lacks_caret(statement):
            body = self._bodies[-1]
            if body.block is None or body.block.span != span:
                self._end_block()
                body.has_blocks = True
                body.block = _OpenBlock(first.text.removeprefix("^"), span)
        elif first.type in ("BR", "COND_BR", "EXIT") and (block := self._bodies[-1].block):
            block.ended = block.ended or span

    def _begin_function(self, head: Head, statement: Statement) -> None:
        self._close_all(statement.first)
        self._set_ids(statement.first.start_pos)
        public = head.visibility is None or head.visibility.text != "internal"
        span = (head.name.start_pos, head.name.end_pos)
        body = _Body(span, is_function=True)
        self._open(body)
        try:
            types = [self._operations.type_at(*found) for found in _spans(head.types)]
            body.parameters = self._parameters(head.parameters, exported=public)
        except ParseError as error:
            self.findings.extend(error.diagnostics)
            return
        name = self._shared(self._operations.string(head.name))
        places = Spans.of(self.source, head.types) if types else ()
        body.function = Function(name, (), public, tuple(types), self._locate(span), places)

    def _begin_block(self, label: Label) -> None:
        self._end_block()
        body = self._bodies[-1]
        is_entry = body.is_function and not body.has_blocks
        span = (label.name.start_pos, label.name.end_pos)
        name = self._operations.string(label.name)
        body.has_blocks = True
        body.block = _OpenBlock(self._shared(name), span, body.parameters)
        body.parameters = ()
        if not is_entry:
            body.block.parameters = self._parameters(label.parameters, exported=None)
        elif label.parameters.offsets:
            start, end = label.parameters.offsets[0], label.parameters.offsets[-1]
            message = "syntax error: the first block takes its parameters from the head of the function"
            self._fail("E1101", message, (start, end), (), _HEAD_HELP)

    def _define(self, definition: Definition, block: _OpenBlock) -> None:
        start, end = definition.result.start_pos, definition.result.end_pos
        if self._ids.redefined:
            for span in [(start, end), *_spans(definition.others)]:
                self._not_redefined(span)
        operation = self._operations.read(definition, self._value_at(start, end))
        if definition.opens:
            self._open(_Body((start, definition.types[-1]), is_function=False, operation=operation))
        elif not self.findings.total:
            block.operations.append(operation)

    def _check_alias(self, alias: Alias) -> None:
        """Report what the verifier cannot see: an alias leaves no operation behind."""
        self._not_redefined((alias.result.start_pos, alias.result.end_pos))
        self._ids.of(alias.result.text)
        target = alias.target.text
        span = (alias.target.start_pos, alias.target.end_pos)
        if alias.result.text in self._ids.circular:
            message, help_text = f"{alias.result.text} stands for itself", "name the value that it stands for"
            self._fail("E4001", message, span, (), help_text, operand=target)
        if target in self._ids.undefined:
            message = f"{target} has no definition in this function"
            self._fail("E4001", message, span, (), "define the value, or correct the id", operand=target)

    def _not_redefined(self, span: Span) -> None:
        """Report a second definition of an alias, or an alias that is a second definition."""
        spelled = self.source.text[slice(*span)]
        first = self._ids.redefined.get(spelled)
        if first is None or first == span[0]:
            return
        place = self.source.locate(first, first + len(spelled))
        self._fail(
            "E4002",
            f"{spelled} is defined twice",
            span,
            (f"the first definition is at {place}",),
            "give one of the two another id",
            id=spelled,
            places=(str(place), str(self._locate(span))),
        )

    def _end(self, syntax: BranchSyntax | Exit, block: _OpenBlock, statement: Statement) -> None:
        self._not_after_end(block, statement)
        span = (statement.first.start_pos, statement.last.end_pos)
        block.ended = span
        block.terminator = self._terminator(syntax, self._locate(span))

    def _terminator(self, syntax: BranchSyntax | Exit, location: Location) -> Terminator:
        if isinstance(syntax, Exit):
            kind = Return if syntax.keyword.text == "return" else Yield
            values = self._values(syntax.values)  # which may add to the names
            return kind(values, self._places(syntax.values), self._ids.names, location)
        targets = [self._target(target) for target in syntax.targets]
        if syntax.condition is None:
            return Branch(targets[0], location)
        span = (syntax.condition.start_pos, syntax.condition.end_pos)
        return CondBranch(self._value_at(*span), targets[0], targets[1], location, self._locate(span))

    def _target(self, target: TargetSyntax) -> Target:
        label = self._shared(self._operations.string(target.name))
        place = self._locate((target.name.start_pos, target.name.end_pos))
        values = target.values
        return Target(label, self._values(values), place, self._places(values), self._ids.names)

    def _close(self, closing: Closing) -> None:
        if not self._bodies:
            if not self._lost:
                self._lost = True
                span = (closing.brace.start_pos, closing.brace.end_pos)
                self._fail("E1101", "syntax error: this '}' closes nothing", span, (), "remove it")
            return
        self._end_block()
        body = self._bodies.pop()
        if body.is_function:
            if not body.has_blocks:
                message, help_text = "syntax error: a function has a block", "write ^entry: and a return"
                self._fail("E1101", message, body.opening, (), help_text)
            if body.function is not None and not self.findings.total:
                self.functions.append(replace(body.function, blocks=tuple(body.blocks)))
        elif body.operation is not None and not self.findings.total:
            block = self._bodies[-1].block
            assert block is not None, "the operation stands in a block"
            block.operations.append(replace(body.operation, regions=tuple(body.blocks)))

    # Bodies and blocks.

    def _open(self, body: _Body) -> None:
        if len(self._bodies) > MAX_NESTING:
            self._too_deep = 1
            message = f"syntax error: regions nest more than {MAX_NESTING} deep"
            help_text = "move what is inside into a function, and call it"
            self._add("E1101", message, body.opening, (), help_text)
        else:
            self._bodies.append(body)

    def _block(self, statement: Statement) -> _OpenBlock:
        """Return the block that a statement stands in; reports a label that is missing."""
        body = self._bodies[-1]
        if body.block is None:
            body.block = _OpenBlock("", None, flagged=True)
            body.has_blocks = True
            span = (statement.first.start_pos, statement.first.end_pos)
            message = "syntax error: a statement stands in a block, which begins with a label"
            label = "^entry:" if body.is_function else "^body:"
            self._add("E1101", message, span, (), f"write a label in front of it, such as {label}")
        return body.block

    def _end_block(self) -> None:
        """Take what has been read of the block that is open, if one is."""
        body = self._bodies[-1]
        block, body.block = body.block, None
        if block is None:
            return
        if block.ended is None and not block.flagged and block.span is not None:
            wanted = "return, br or cond_br" if body.is_function else "yield"
            self._say(lambda place: missing_terminator(block.label, place, wanted, None), block.span)
        if block.terminator is not None and not self.findings.total:
            place = self._locate(block.span) if block.span else None
            body.blocks.append(
                Block(tuple(block.operations), block.terminator, block.parameters, block.label, place)
            )

    def _not_after_end(self, block: _OpenBlock, statement: Statement) -> None:
        """Report a statement behind the terminator of its block: the first one of them."""
        if block.ended is None or block.flagged:
            return
        block.flagged = True
        span = (statement.first.start_pos, statement.last.end_pos)
        ended = " ".join(self.source.text[slice(*block.ended)].split())
        self._say(lambda place: after_terminator(block.label, ended[:80], place), span)

    def _close_all(self, head: Token) -> None:
        """Close the function that is open where another one begins."""
        self._too_deep = 0
        self._lost = False
        if not self._bodies:
            return
        bodies, self._bodies = self._bodies, []
        if bodies[0].braced:
            self._lost = True  # the brace that is missing may follow
            self._not_closed(bodies, (head.start_pos, head.end_pos), "another function")

    def _not_closed(self, bodies: list[_Body], found: Span, what: str) -> None:
        notes = [f"the function at {self._locate(bodies[0].opening)} is not closed"]
        if len(bodies) > 1:
            notes.append(f"nor are the regions of the operation at {self._locate(bodies[-1].opening)}")
        message = f"syntax error: expected '}}', found {what}"
        help_text = "functions do not stand in functions; close it with '}'"
        self._add("E1101", message, found, tuple(notes), help_text)

    def _outside(self, statement: Statement) -> None:
        """Report a statement outside of functions: the first one of those in a row."""
        if self._lost:
            return
        self._lost = True
        first, last = statement.first, statement.last
        message = "syntax error: this stands outside of the functions"
        help_text = "in a text with functions, all statements stand in one"
        if first.text in OUTPUTS_KEYWORDS:
            help_text = "a function names its results in its return: return %0"
        self._fail("E1101", message, (first.start_pos, last.end_pos), (), help_text)

    def _refuse_outputs(self, outputs: Outputs) -> None:
        span = (outputs.keyword.start_pos, outputs.keyword.end_pos)
        if (word := outputs.keyword.text[:40]) not in OUTPUTS_KEYWORDS:
            message = f"syntax error: expected '^{word}:', found '{word}:'"
            self._fail("E1101", message, span, (), "the label of a block begins with ^")
        message = "syntax error: a function has no outputs line"
        self._fail("E1101", message, span, (), "a function names its results in its return: return %0")

    # Parts.

    def _set_ids(self, start: int) -> None:
        self._ids = FunctionIds(self.source.text, start)

    def _parameters(self, parameters: Parameters, *, exported: bool | None) -> tuple[Parameter, ...]:
        """Return parameters: of an exported or an internal function, or (None) of a block."""
        text, offsets, names = self.source.text, parameters.offsets, self._ids.names
        found: list[Parameter] = []
        for index in range(len(offsets) // 4):
            start, end, type_start, type_end = offsets[4 * index : 4 * index + 4]
            attributes = parameters.attributes.get(index)
            if attributes is not None and not exported:
                what = "an internal function" if exported is False else "a block"
                message = f"the parameters of {what} have no names for callers"
                self._fail("E1103", message, (start, type_end), (), "remove the braces")
            if self._ids.redefined:
                self._not_redefined((start, end))
            type_ = self._operations.type_at(type_start, type_end)
            name = None
            if exported:
                name = self._operations.argument_name(attributes) if attributes else text[start + 1 : end]
            place = self._locate((start, type_end))
            found.append(Parameter(self._ids.of(text[start:end]), type_, place, name, names))
        return tuple(found)

    def _shared(self, name: str) -> str:
        """Return the one string of a name, not a copy for each place."""
        if len(self._labels) >= _KEPT_LABELS:
            self._labels.clear()
        return self._labels.setdefault(name, name)

    def _value_at(self, start: int, end: int) -> ValueId:
        return self._ids.of(self.source.text[start:end])

    def _values(self, offsets: Integers) -> tuple[ValueId, ...]:
        return tuple(map(self._value_at, offsets[::2], offsets[1::2]))

    def _places(self, offsets: Integers) -> Spans | tuple[()]:
        return Spans.of(self.source, offsets) if offsets else ()

    def _locate(self, span: Span) -> Location:
        return self.source.locate(*span)

    def _say(self, finding: Callable[[Location], Diagnostic], span: Span) -> None:
        """Record a finding that others make, too."""
        if self.findings.full:
            self.findings.count()
        else:
            self.findings.add(finding(self._locate(span)))

    def _add(
        self, code: str, message: str, span: Span, notes: tuple[str, ...], help_text: str, **context: Any
    ) -> None:
        facts = MappingProxyType(context)
        self._say(lambda place: Diagnostic(code, message, place, notes, help_text, context=facts), span)

    def _fail(
        self, code: str, message: str, span: Span, notes: tuple[str, ...], help_text: str, **context: Any
    ) -> NoReturn:
        facts = MappingProxyType(context)
        raise ParseError(Diagnostic(code, message, self._locate(span), notes, help_text, context=facts))


def _lacks_caret(statement: Statement) -> bool:
    first, second = statement.first, statement.second
    looks_so = first.type == "WORD" and second is not None and second.type == "_COLON"
    return looks_so and first.text not in OUTPUTS_KEYWORDS


def _spans(offsets: Integers) -> list[Span]:
    return list(zip(offsets[::2], offsets[1::2], strict=True))
