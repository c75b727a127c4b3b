"""Characters that a `.mind` text may not hold (E1002), and what was meant by them."""

from __future__ import annotations

import unicodedata

#: Quotation marks that begin no string -> what ends what stands between them.
QUOTES = {"'": "'", "`": "`", "\u201c": "\u201d", "\u201e": "\u201c", "\u2018": "\u2019", "\u00ab": "\u00bb"}
_NAMES = "names are letters, digits and underscores, and do not begin with a digit"
_HELP = {
    "#": "comments begin with //",
    "@": "the product of matrices is matmul(a, b)",
    "?": "write if c { a } else { b }",
    "~": "write ! for truth values",
    "$": "names are written without $",
    "\\": "statements go on in the next line without \\",
    "\ufeff": "leave the byte order mark out",
}
#: Signs of mathematics, and what a keyboard has for them.
_SIGNS = {
    **dict.fromkeys("\u2212\u2013\u2014\u2010\u2011", "-"),
    **dict.fromkeys("\u00d7\u00b7\u22c5\u2217", "*"),
    **dict.fromkeys("\u00f7\u2215\u2044", "/"),
    "\u2264": "<=",
    "\u2265": ">=",
    "\u2260": "!=",
    "\u2192": "->",
    "\u00ac": "!",
    "\u2227": "&&",
    "\u2228": "||",
    "\u037e": ";",
}
_SYMBOLS = frozenset("-+*/<>=!,;:.()[]{}|")


def meant(character: str) -> str | None:
    """Return the symbol of the language that ``character`` looks like, if there is one."""
    if character.isascii():
        return None
    found = _SIGNS.get(character) or unicodedata.normalize("NFKC", character)
    return found if found in _SYMBOLS or character in _SIGNS else None


def shown(character: str) -> str:
    """Return ``character`` as messages name it."""
    code = f"U+{ord(character):04X}"
    if not character.isprintable():
        return code
    if character == "'":
        return '"\'"'
    return f"'{character}'" if character.isascii() else f"'{character}' ({code})"


def advice(character: str) -> str:
    """Return what to write instead of ``character``."""
    if character in QUOTES:
        return 'strings stand between double quotes: "text"'
    sign = meant(character)
    return f"write '{sign}'" if sign else _HELP.get(character, _NAMES)
