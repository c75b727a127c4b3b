"""Findings of the function form of Core IR text, and where they stand."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from mind_mlir.diagnostics import Diagnostic, ParseError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.diagnostics import Location, SourceText
    from mind_mlir.diagnostics.findings import Findings
    from mind_mlir.languages.core.syntax import Integers

#: Where something begins and ends in the text.
Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Report:
    """Says what is wrong with a source: `add` and `say` go on after it, `fail` ends the statement."""

    source: SourceText
    findings: Findings

    def locate(self, span: Span) -> Location:
        """Return a place in the source."""
        return self.source.locate(*span)

    def say(self, finding: Callable[[Location], Diagnostic], span: Span) -> None:
        """Record a finding that others make, too."""
        if self.findings.full:
            self.findings.count()
        else:
            self.findings.add(finding(self.locate(span)))

    def add(
        self, code: str, message: str, span: Span, notes: tuple[str, ...], help_text: str, **context: Any
    ) -> None:
        """Record a finding."""
        facts = MappingProxyType(context)
        self.say(lambda place: Diagnostic(code, message, place, notes, help_text, context=facts), span)

    def fail(
        self, code: str, message: str, span: Span, notes: tuple[str, ...], help_text: str, **context: Any
    ) -> NoReturn:
        """Raise a finding."""
        facts = MappingProxyType(context)
        raise ParseError(Diagnostic(code, message, self.locate(span), notes, help_text, context=facts))


def spans(offsets: Integers) -> list[Span]:
    """Return the places that ``offsets`` are the beginnings and ends of."""
    return list(zip(offsets[::2], offsets[1::2], strict=True))
