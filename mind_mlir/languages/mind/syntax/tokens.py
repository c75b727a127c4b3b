"""The words of a `.mind` text, and what numbers and strings are worth (surface.md, "Lexical")."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

KEYWORDS = frozenset(
    (
        *("fn", "let", "return", "if", "else", "while", "for", "in"),
        *("import", "export", "struct", "type", "true", "false"),
    )
)

#: ``bad`` is what holds a character that stands nowhere, which has been reported; ``end`` follows the last.
Kind: TypeAlias = Literal["name", "keyword", "number", "string", "symbol", "comment", "bad", "end"]


#: A backslash and what follows it.
ESCAPE = re.compile(r"\\(.)", re.DOTALL)
#: What may follow a backslash -> what it stands for.
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"'}
_BASES = {"0x": 16, "0b": 2, "0o": 8}
#: The largest number that a literal may have: -2^63 is written with its absolute value.
_LARGEST = 2**63
#: Digits beyond which no integer has 64 bits, in base 2.
_LONGEST = 66


def string(word: str) -> str:
    """Return what a string stands for; an unknown escape, which is reported, for its second character."""
    return ESCAPE.sub(lambda found: ESCAPES.get(found[1], found[1]), word[1:-1])


def number(word: str) -> int | float | None:
    """Return what a well-formed number is worth; None where it is too large."""
    plain = word.replace("_", "")
    base = _BASES.get(plain[:2].lower())
    if base is None and not plain.isdigit():
        found = float(plain)
        return None if found == float("inf") else found
    digits = (plain[2:] if base else plain).lstrip("0") or "0"
    if len(digits) > _LONGEST:
        return None
    value = int(digits, base or 10)
    return value if value <= _LARGEST else None
