"""Refuse texts that nest too deeply: MLIR's parser recurses without a limit of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, ParseError

if TYPE_CHECKING:
    from mind_mlir.diagnostics import SourceText

#: Brackets that may be open at once: more than twice of what 64 nested regions, the most we take, need.
_MOST_OPEN = 256
#: What may hold brackets that are none, and brackets.
_TOKEN = re.compile(r'"(?:[^"\\\n]++|\\.)*+"|//[^\n]*+|->|[](){}<>[]')


def check_nesting(source: SourceText) -> None:
    """Refuse a text that nests so deeply that reading it could take more stack than there is.

    Raises:
        ParseError: E1101, at the bracket that is too many.
    """
    depth = 0
    for token in _TOKEN.finditer(source.text):
        character = token[0]
        if character in ")}>]":
            depth -= depth > 0
        elif len(character) == 1:
            depth += 1
        if depth > _MOST_OPEN:
            raise ParseError(
                Diagnostic(
                    "E1101",
                    f"syntax error: more than {_MOST_OPEN} brackets are open",
                    source.locate(token.start(), token.end()),
                    help="the program is to be StableHLO, as text or as a portable artifact",
                )
            )
