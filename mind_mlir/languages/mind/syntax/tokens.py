"""The words of a `.mind` text (surface.md, "Lexical")."""

from __future__ import annotations

from typing import Literal, TypeAlias

KEYWORDS = frozenset(
    (
        *("fn", "let", "return", "if", "else", "while", "for", "in"),
        *("import", "export", "struct", "type", "true", "false"),
    )
)

#: ``bad`` is what holds a character that stands nowhere, which has been reported; ``end`` follows the last.
Kind: TypeAlias = Literal["name", "keyword", "number", "string", "symbol", "comment", "bad", "end"]
