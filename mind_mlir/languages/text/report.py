"""Findings about one text, and where in it they stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, TypeAlias

from mind_mlir.diagnostics import Diagnostic, Location, ParseError, SourceText
from mind_mlir.diagnostics.findings import Findings
from mind_mlir.support.lazy_dataclass import dataclass

#: Where something begins and ends in a text.
Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Report:
    """Says what is wrong with a source: `add` lets its reader go on, `error` ends what is being read.

    Findings beyond the first ones are only counted, and have no words.
    """

    source: SourceText
    findings: Findings = field(default_factory=Findings)

    def locate(self, span: Span) -> Location:
        """Return a place in the source."""
        return self.source.locate(*span)

    def say(self, finding: Callable[[Location], Diagnostic], span: Span) -> None:
        """Record a finding that others make, too."""
        if self.findings.full:
            self.findings.count()
        else:
            self.findings.add(finding(self.source.locate(*span)))

    def add(
        self,
        code: str,
        message: str,
        span: Span,
        help_: str | None = None,
        notes: tuple[str, ...] = (),
        /,
        **context: Any,
    ) -> None:
        """Record a finding; ``context`` are its facts."""
        self.say(lambda place: Diagnostic(code, message, place, notes, help_, context=context), span)

    def error(
        self,
        code: str,
        message: str,
        span: Span,
        help_: str | None = None,
        notes: tuple[str, ...] = (),
        /,
        **context: Any,
    ) -> ParseError:
        """Return a finding as what ends the reading of a statement, whose reader records it."""
        if self.findings.full:
            return ParseError(Diagnostic(code, ""))
        return ParseError(Diagnostic(code, message, self.source.locate(*span), notes, help_, context=context))
