"""Renders diagnostics: for people, as short lines, or as JSON lines.

    error[E3001]: Broadcasting failed at dimension 1: 3 against 4
      --> model.ir:3:16
       |
     3 | %2 = Add (%0, %1) : tensor<f32[2, 3]>
       |               ^^
       |
       = note: left shape [2, 3]
       = help: extents must be equal, or one of them 1

    1 error

No character of a source or a message that could act on a terminal is written raw.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mind_mlir.diagnostics.codes import phase_of
from mind_mlir.diagnostics.display import Excerpt, clipped, excerpt, visible, well_formed
from mind_mlir.diagnostics.findings import MORE, limited

if TYPE_CHECKING:
    from mind_mlir.diagnostics.model import Diagnostic
    from mind_mlir.diagnostics.source import Location

Format: TypeAlias = Literal["human", "short", "json"]
FORMATS: tuple[Format, ...] = ("human", "short", "json")

#: Cells of a source line that are shown; longer lines are cut around the span.
_LINE_CELLS = 100
#: Findings that an uncaught error shows.
_TRACEBACK_FINDINGS = 20
#: What words are painted with.
RED, YELLOW, BLUE, BOLD, RESET = "\x1b[1;31m", "\x1b[1;33m", "\x1b[1;34m", "\x1b[1m", "\x1b[0m"


def render(diagnostics: Iterable[Diagnostic], format: Format = "human", color: bool = False) -> str:  # noqa: A002 -- the names of the command-line options
    """Return ``diagnostics`` as text that ends with a line feed; the empty string where there are none.

    Args:
        diagnostics: What was found, in the order to show it.
        format: ``human`` shows the source with carets, ``short`` is one line each,
            ``json`` one object a line: phase, code, severity, message, span, notes, help, context.
        color: Whether the human and short forms may use ANSI colours.
    """
    found = tuple(diagnostics)
    if not found:
        return ""
    if format == "json":
        return "".join(f"{to_json(diagnostic)}\n" for diagnostic in found)
    paint = _paint if color else _plain_text
    if format == "short":
        return "".join(f"{_short(diagnostic, paint)}\n" for diagnostic in found)
    blocks = [_human(diagnostic, paint) for diagnostic in found]
    return "\n\n".join([*blocks, summary(found)]) + "\n"


def traceback_text(diagnostics: Sequence[Diagnostic], *, color: bool = False) -> str:
    """Return what an uncaught error shows: the human form of the first few findings."""
    paint = _paint if color else _plain_text
    blocks = [_human(diagnostic, paint) for diagnostic in limited(diagnostics, _TRACEBACK_FINDINGS)]
    if len(diagnostics) > 1:
        blocks.append(summary(diagnostics))
    return "\n\n".join(blocks)


def summary(diagnostics: Sequence[Diagnostic]) -> str:
    """Return the count of what was found, for example ``2 errors and 1 warning``."""
    warnings = sum(diagnostic.severity == "warning" for diagnostic in diagnostics)
    omitted = sum(diagnostic.context["omitted"] - 1 for diagnostic in diagnostics if diagnostic.code == MORE)
    errors = len(diagnostics) - warnings + omitted
    parts = [
        f"{count:,} {noun}{'s' if count > 1 else ''}"
        for count, noun in ((errors, "error"), (warnings, "warning"))
        if count
    ]
    return " and ".join(parts)


def to_json(diagnostic: Diagnostic) -> str:
    """Return one diagnostic as a JSON object on one line."""
    location = diagnostic.location
    span = location and {
        "file": location.source.name,
        "line": location.line,
        "column": location.column,
        "length": location.length,
    }
    fields = {
        "phase": phase_of(diagnostic.code),
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "span": span,
        "notes": list(diagnostic.notes),
        "help": diagnostic.help,
        "context": diagnostic.context,
    }
    return json.dumps(_json_value(fields))


def _short(diagnostic: Diagnostic, paint: Any) -> str:
    place = f"{visible(str(diagnostic.location))}: " if diagnostic.location else ""
    return place + _title(diagnostic, paint)


def _title(diagnostic: Diagnostic, paint: Any) -> str:
    style = RED if diagnostic.severity == "error" else YELLOW
    label = paint(f"{diagnostic.severity}[{diagnostic.code}]", style)
    return f"{label}{paint(f': {clipped(diagnostic.message)}', BOLD)}"


def _human(diagnostic: Diagnostic, paint: Any) -> str:
    lines = [_title(diagnostic, paint)]
    location = diagnostic.location
    number = str(location.line) if location else ""
    gutter = " " * (len(number) + 1)
    bar = paint(f"{gutter}|", BLUE)
    if location is not None:
        lines.append(f"{paint(gutter[1:] + '-->', BLUE)} {visible(str(location))}")
        if location.line <= location.source.index.count:
            shown = _excerpt(location)
            style = RED if diagnostic.severity == "error" else YELLOW
            carets = " " * shown.start + paint("^" * shown.length, style)
            lines += [bar, f"{paint(f'{number} |', BLUE)} {shown.text}", f"{bar} {carets}"]
    remarks = [("note", note) for note in diagnostic.notes]
    if diagnostic.help is not None:
        remarks.append(("help", diagnostic.help))
    if remarks and location is not None:
        lines.append(bar)
    for label, text in remarks:
        lines.append(f"{paint(f'{gutter}=', BLUE)} {paint(f'{label}:', BOLD)} {clipped(text)}")
    return "\n".join(lines)


def _excerpt(location: Location) -> Excerpt:
    """Return the line of ``location`` as shown; only its neighbourhood is copied from the source."""
    text = location.source.text
    start, end = location.source.index.span(location.line)
    end -= text.endswith("\r", start, end)
    first = min(start + location.column - 1, end)
    low, high = max(start, first - _LINE_CELLS - 1), min(end, first + 2 * _LINE_CELLS + 1)
    return excerpt(text[low:high], first - low + 1, location.length, _LINE_CELLS)


def _paint(text: str, style: str) -> str:
    return f"{style}{text}{RESET}"


def _plain_text(text: str, style: str) -> str:
    return text


def _json_value(value: Any) -> Any:
    """Return a fact of a diagnostic as JSON holds it; what JSON does not know becomes text."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {well_formed(str(key)): _json_value(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_json_value(item) for item in value]
    return str(getattr(value, "core_name", value))  # a dtype, whose module loads numpy
