"""The open functions, regions and blocks while Core IR text is read."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from mind_mlir.builders.flow_rules import after_terminator, missing_terminator
from mind_mlir.ir.module import Block, CoreOperation, Function, Parameter, Terminator
from mind_mlir.ir.regions import MAX_NESTING
from mind_mlir.languages.core.grammar import OUTPUTS_KEYWORDS
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.languages.core.syntax import Closing
    from mind_mlir.languages.core.tokens import Statement
    from mind_mlir.languages.text.cursor import Token
    from mind_mlir.languages.text.report import Report, Span


@dataclass(slots=True)
class OpenBlock:
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
class OpenBody:
    """An open body between two braces: that of a function, or a region of an operation.

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
    block: OpenBlock | None = None


@dataclass(slots=True)
class Bodies:
    """The bodies that are open, one within the other, and the functions that have been closed."""

    report: Report
    functions: list[Function] = field(default_factory=list)
    _stack: list[OpenBody] = field(default_factory=list)
    #: Bodies that are open beyond the greatest depth; what stands in them is passed over.
    _too_deep: int = 0
    #: Whether statements outside of functions have been reported since the last function began.
    _lost: bool = False

    def __bool__(self) -> bool:
        return bool(self._stack)

    @property
    def innermost(self) -> OpenBody:
        """Return the body that was opened last."""
        return self._stack[-1]

    def passes_over(self, statement: Statement) -> bool:
        """Return whether a statement stands too deep to be read; if so, it is passed over."""
        if not self._too_deep:
            return False
        statement.finish()
        self._too_deep += (statement.last.kind == "OPEN") - (statement.first.kind == "CLOSE")
        return True

    def open(self, body: OpenBody) -> None:
        """Let a body begin."""
        if len(self._stack) > MAX_NESTING:
            self._too_deep = 1
            message = f"syntax error: regions nest more than {MAX_NESTING} deep"
            help_text = "move what is inside into a function, and call it"
            self.report.add("E1101", message, body.opening, help_text)
        else:
            self._stack.append(body)

    def close(self, closing: Closing) -> None:
        """Let the body end that was opened last."""
        if not self._stack:
            if not self._lost:
                self._lost = True
                message = "syntax error: this '}' closes nothing"
                raise self.report.error("E1101", message, closing.brace.span, "remove it")
            return
        self.end_block()
        body = self._stack.pop()
        if body.is_function:
            if not body.has_blocks:
                message, help_text = "syntax error: a function has a block", "write ^entry: and a return"
                raise self.report.error("E1101", message, body.opening, help_text)
            if body.function is not None and not self.report.findings.total:
                self.functions.append(replace(body.function, blocks=tuple(body.blocks)))
        elif body.operation is not None and not self.report.findings.total:
            block = self._stack[-1].block
            assert block is not None, "the operation stands in a block"
            block.operations.append(replace(body.operation, regions=tuple(body.blocks)))

    def close_all(self, head: Token) -> None:
        """Close the function that is open where another one begins."""
        self._too_deep = 0
        self._lost = False
        if not self._stack:
            return
        bodies, self._stack = self._stack, []
        if bodies[0].braced:
            self._lost = True  # the brace that is missing may follow
            self._not_closed(bodies, head.span, "another function")

    def finish(self, end: int) -> None:
        """Close what the text leaves open at its ``end``."""
        if self._stack and self._stack[0].braced:
            self._not_closed(self._stack, (max(end - 1, 0), end), "the end of the text")

    def block(self, statement: Statement) -> OpenBlock:
        """Return the block that a statement stands in; reports a label that is missing."""
        body = self._stack[-1]
        if body.block is None:
            body.block = OpenBlock("", None, flagged=True)
            body.has_blocks = True
            message = "syntax error: a statement stands in a block, which begins with a label"
            label = "^entry:" if body.is_function else "^body:"
            help_text = f"write a label in front of it, such as {label}"
            self.report.add("E1101", message, statement.first.span, help_text)
        return body.block

    def end_block(self) -> None:
        """Take what has been read of the block that is open, if one is."""
        body = self._stack[-1]
        block, body.block = body.block, None
        if block is None:
            return
        if block.ended is None and not block.flagged and block.span is not None:
            wanted = "return, br or cond_br" if body.is_function else "yield"
            self.report.say(lambda place: missing_terminator(block.label, place, wanted, None), block.span)
        if block.terminator is not None and not self.report.findings.total:
            place = self.report.locate(block.span) if block.span else None
            body.blocks.append(
                Block(tuple(block.operations), block.terminator, block.parameters, block.label, place)
            )

    def not_after_end(self, block: OpenBlock, statement: Statement) -> None:
        """Report a statement behind the terminator of its block: the first one of them."""
        if block.ended is None or block.flagged:
            return
        block.flagged = True
        ended = " ".join(self.report.source.text[slice(*block.ended)].split())
        self.report.say(lambda place: after_terminator(block.label, ended[:80], place), statement.span)

    def outside(self, statement: Statement) -> None:
        """Report a statement outside of functions: the first one of those in a row."""
        if self._lost:
            return
        self._lost = True
        message = "syntax error: this stands outside of the functions"
        help_text = "in a text with functions, all statements stand in one"
        if statement.first.text in OUTPUTS_KEYWORDS:
            help_text = "a function names its results in its return: return %0"
        raise self.report.error("E1101", message, statement.span, help_text)

    def _not_closed(self, bodies: list[OpenBody], found: Span, what: str) -> None:
        notes = [f"the function at {self.report.locate(bodies[0].opening)} is not closed"]
        if len(bodies) > 1:
            notes.append(f"nor are the regions of the operation at {self.report.locate(bodies[-1].opening)}")
        message = f"syntax error: expected '}}', found {what}"
        help_text = "functions do not stand in functions; close it with '}'"
        self.report.add("E1101", message, found, help_text, tuple(notes))
