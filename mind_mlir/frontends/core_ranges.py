"""Reads the ranges of the grammar form's Slice: ``[0:2, 0:3:2]``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, ParseError

if TYPE_CHECKING:
    from mind_mlir.frontends.core_lexer import Token
    from mind_mlir.frontends.positions import Positions

_RANGE = re.compile(r"\s*([-+]?[0-9]{1,20})\s*:\s*([-+]?[0-9]{1,20})\s*(?::\s*([-+]?[0-9]{1,20})\s*)?\Z")

Ranges = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def is_ranges(token: Token) -> bool:
    """Return whether a LIST token holds ranges rather than numbers."""
    return ":" in token.text


def read_ranges(token: Token, positions: Positions) -> Ranges:
    """Return the starts, ends and steps of a list of ranges; a step left out is 1.

    Raises:
        ParseError: E1101 where an element is not ``start:end`` or ``start:end:step``.
    """
    base = token.start_pos + 1
    parsed: list[tuple[int, int, int]] = []
    for part in token.text[1:-1].split(","):
        match = _RANGE.match(part)
        if match is None:
            location = positions.locate(base, base + max(1, len(part)))
            message = (
                f"syntax error: expected a range start:end or start:end:step, found '{part.strip()[:40]}'"
            )
            raise ParseError(Diagnostic("E1101", message, location, (), "write the ranges as [0:2, 0:3:2]"))
        parsed.append((int(match[1]), int(match[2]), int(match[3] or 1)))
        base += len(part) + 1
    return tuple(p[0] for p in parsed), tuple(p[1] for p in parsed), tuple(p[2] for p in parsed)
