"""What is wrong with a text, as plain data that a process hands to another."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Diagnostic, Location, SourceText
    from mind_mlir.languages.text.report import Span


class Related(NamedTuple):
    """Another place that has to do with a finding, and what is said of it."""

    span: Span
    message: str


class TextFinding(NamedTuple):
    """One finding.

    Attributes:
        code: Its code.
        message: One sentence.
        span: Where it is; nowhere is the beginning of the text.
        is_error: Whether it is an error, or a warning.
        notes: Further facts.
        help: What to do about it.
        related: Other places.
    """

    code: str
    message: str
    span: Span
    is_error: bool
    notes: tuple[str, ...]
    help: str | None
    related: tuple[Related, ...]


def findings_of(source: SourceText, diagnostics: Iterable[Diagnostic]) -> list[TextFinding]:
    """Return what was found about a source."""
    places = re.compile(rf"(?:{re.escape(source.name)}:(\d+):(\d+)|\bin line (\d+)\b)")
    found = []
    for each in diagnostics:
        related = tuple(
            Related(_span(source, match), note) for note in each.notes for match in places.finditer(note)
        )
        where = (0, 0) if each.location is None else _offsets(each.location)
        found.append(
            TextFinding(
                each.code, each.message, where, each.severity == "error", each.notes, each.help, related
            )
        )
    return found


def _offsets(location: Location) -> Span:
    start, end = location.offsets
    length = len(location.source.text)
    return min(start, length), min(end, length)


def _span(source: SourceText, match: re.Match[str]) -> Span:
    """Return the place that a note names: a line and a column, or a line."""
    line = min(int(match[1] or match[3]), source.index.count)
    start, end = source.index.span(line)
    if match[2]:
        start = min(start + int(match[2]) - 1, end)
        word = re.compile(r"[%@^]?[\w.]+").match(source.text, start)
        return start, word.end() if word else end
    return start, end
