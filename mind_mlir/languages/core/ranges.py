"""Reads the ranges of the grammar form's Slice: ``[0:2, 0:3:2]``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, ParseError
from mind_mlir.languages.core.tokens import MAX_ELEMENTS

if TYPE_CHECKING:
    from mind_mlir.diagnostics import SourceText
    from mind_mlir.languages.core.tokens import Token

_RANGE = re.compile(r"\s*([-+]?[0-9]{1,20})\s*:\s*([-+]?[0-9]{1,20})\s*(?::\s*([-+]?[0-9]{1,20})\s*)?\Z")

Ranges = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def is_ranges(token: Token) -> bool:
    """Return whether a LIST token holds ranges rather than numbers."""
    return ":" in token.text


def read_ranges(token: Token, source: SourceText) -> Ranges:
    """Return the starts, ends and steps of a list of ranges; a step left out is 1.

    Raises:
        ParseError: E1101 where an element is not ``start:end`` or ``start:end:step``; E1103 for more than
            `MAX_ELEMENTS` of them.
    """
    base = token.start_pos + 1
    parsed: list[tuple[int, int, int]] = []
    parts = token.text[1:-1].split(",", MAX_ELEMENTS)
    if len(parts) > 1 and not parts[-1].strip():
        parts.pop()  # a list may end in a comma
    if len(parts) > MAX_ELEMENTS:
        location = source.locate(token.start_pos, token.end_pos)
        raise ParseError(Diagnostic("E1103", f"the list has more than {MAX_ELEMENTS:,} ranges", location))
    for part in parts:
        match = _RANGE.match(part)
        if match is None:
            location = source.locate(base, base + max(1, len(part)))
            message = (
                f"syntax error: expected a range start:end or start:end:step, found '{part.strip()[:40]}'"
            )
            raise ParseError(Diagnostic("E1101", message, location, (), "write the ranges as [0:2, 0:3:2]"))
        parsed.append((int(match[1]), int(match[2]), int(match[3] or 1)))
        base += len(part) + 1
    return tuple(p[0] for p in parsed), tuple(p[1] for p in parsed), tuple(p[2] for p in parsed)
