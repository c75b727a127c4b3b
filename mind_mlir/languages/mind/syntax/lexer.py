"""Splits a `.mind` text into words (surface.md, "Lexical").

One regular expression finds every word; what it cannot read is reported (E1002 to E1006) and becomes a word
of kind ``bad``, or the word that was meant, so that the parser has nothing more to say about it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING

from mind_mlir.languages.mind.syntax.tokens import ESCAPE, ESCAPES, KEYWORDS, Kind, number
from mind_mlir.languages.text.cursor import Token, token_pattern
from mind_mlir.languages.text.report import Report

if TYPE_CHECKING:
    from mind_mlir.diagnostics import SourceText
    from mind_mlir.diagnostics.findings import Findings

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


# A separator stands between two digits. What touches a number behind it makes it malformed.
_WORD = token_pattern(
    {
        "blank": r"\s+",
        "comment": r"//[^\n]*|/\*",
        "name": r"[^\W\d]\w*",
        "number": r"(?:0[xX][0-9a-fA-F](?:_?[0-9a-fA-F])*|0[bB][01](?:_?[01])*|0[oO][0-7](?:_?[0-7])*"
        r"|[0-9](?:_?[0-9])*(?:\.(?![.\w])|\.[0-9](?:_?[0-9])*)?(?:[eE][+-]?[0-9](?:_?[0-9])*)?)(?P<rest>[\w.]*)",
        "string": r"\"",
        "symbol": r"->|::|==|!=|<=|>=|=>|&&|\|\||\.\.=?|\+=|-=|\*=|/=|\*\*|:=|[-+*/%<>=!&|^:;,.(){}\[\]]",
    }
)
_DIGITS = re.compile(r"[0-9]+")
_STRING = re.compile(r'"(?:[^"\\\n]|\\[^\n])*(?:(")|\\)?')
_REST = re.compile(r"\w*")
#: Characters of a malformed number that messages show.
_SHOWN = 40
#: How far the second quotation mark of a pair is looked for.
_QUOTED = 200


class Lexer:
    """Reads one text.

    Attributes:
        tokens: Its words.
    """

    def __init__(self, source: SourceText, findings: Findings) -> None:
        self.tokens: list[Token] = []
        self._source = source
        self._report = Report(source, findings)
        self._rules: dict[str, Callable[[re.Match[str]], int]] = {
            "comment": self._comment,
            "name": self._name,
            "number": self._number,
            "string": self._string,
        }
        self._read()

    def _read(self) -> None:
        text, tokens = self._source.text, self.tokens
        match, rules, end = _WORD.match, self._rules, len(text)
        position = 0
        while position < end:
            found = match(text, position)
            if found is None:
                position = self._foreign(position)
                continue
            kind = found.lastgroup
            if kind == "blank":
                position = found.end()
            elif kind == "symbol":
                position = found.end()
                word = found[0]
                tokens.append(Token("symbol", word, position - len(word), position))
                if word == ".":
                    position = self._part(position)
            else:
                position = rules[str(kind)](found)
        tokens.append(Token("end", "", end, end))

    def _character(self, start: int, end: int) -> None:
        character = self._source.text[start]
        message = f"{shown(character)} may not stand here"
        self._report.add("E1002", message, (start, end), advice(character), character=character)

    def _add(self, kind: Kind, text: str, start: int, end: int) -> int:
        self.tokens.append(Token(kind, text, start, end))
        return end

    def _comment(self, found: re.Match[str]) -> int:
        text, start = self._source.text, found.start()
        if found[0] != "/*":
            return self._add("comment", found[0], start, found.end())
        close = text.find("*/", start + 2)
        if close < 0:
            self._report.add("E1006", "this comment is not closed", (start, start + 2), "end it with */")
            return self._add("bad", "", start, len(text))
        return self._add("comment", text[start : close + 2], start, close + 2)

    # Names, and characters that stand nowhere

    def _name(self, found: re.Match[str]) -> int:
        start, end = found.span()
        text, word = self._source.text, found[0]
        if (end < len(text) and not text[end].isascii()) or not word.isidentifier():
            return self._long_name(start)
        return self._add("keyword" if word in KEYWORDS else "name", word, start, end)

    def _long_name(self, start: int) -> int:
        """Read a name with characters that regular expressions do not know, or that are wrong."""
        text, end, kept, wrong = self._source.text, start, [], -1
        while end < len(text):
            character = text[end]
            if f"a{character}".isidentifier():
                kept.append(character)
            elif character.isascii() or character.isspace() or meant(character) or character in QUOTES:
                break
            elif wrong < 0:
                wrong = end
            end += 1
        word = "".join(kept)
        if wrong < 0 and not word.isidentifier():  # it begins with a digit of another script
            wrong = start
        if wrong >= 0:
            self._character(wrong, wrong + 1)
            return self._add("bad", word, start, end)
        return self._add("keyword" if word in KEYWORDS else "name", word, start, end)

    def _foreign(self, start: int) -> int:
        """Report characters that stand nowhere; a name that they touch goes with them."""
        text = self._source.text
        character = text[start]
        if character == "#":
            end = text.find("\n", start)
            self._character(start, start + 1)
            return self._add("comment", "", start, end if end >= 0 else len(text))
        if character in QUOTES:
            return self._quoted(start, QUOTES[character])
        sign = meant(character)
        if sign:
            self._character(start, start + 1)
            return self._add("symbol", sign, start, start + 1)
        if not character.isascii():
            return self._long_name(start)
        end = start
        while end < len(text) and text[end] == character:
            end += 1
        self._character(start, end)
        last = self.tokens[-1] if self.tokens else None
        if last is not None and last.end == start and last.kind in ("name", "bad"):
            self.tokens.pop()
            following = _REST.match(text, end)
            rest = following[0] if following else ""
            return self._add("bad", last.text + rest, last.start, end + len(rest))
        return self._add("bad", "", start, end)

    def _quoted(self, start: int, closing: str) -> int:
        """Report a quotation mark that begins no string; what it quotes goes with it."""
        text = self._source.text
        self._character(start, start + 1)
        limit = start + _QUOTED
        feed = text.find("\n", start + 1, limit)
        close = text.find(closing, start + 1, feed if feed >= 0 else limit)
        return self._add("bad", "", start, close + 1 if close >= 0 else start + 1)

    # Numbers and strings

    def _part(self, start: int) -> int:
        """Read the number of a tuple's part behind a point: ``t.0.1`` are two of them, and no float."""
        digits = _DIGITS.match(self._source.text, start)
        return self._add("number", digits[0], start, digits.end()) if digits else start

    def _number(self, found: re.Match[str]) -> int:
        start, end = found.span()
        text, word, rest = self._source.text, found[0], found["rest"]
        if rest.startswith(".."):  # 0..n is no number
            end -= len(rest)
            word, rest = text[start:end], ""
        if rest[-1:] in ("e", "E") and text[end : end + 1] in ("+", "-") and word[0:2].lower() != "0x":
            end += 1
            word = text[start:end]
        if not rest and number(word) is not None:
            return self._add("number", word, start, end)
        help_ = "write 12, 0xff, 0b101, 0o17, 1_000, 1.5 or 1e-3"
        if not rest:
            help_ = "integers have 64 bits, floats go to 1.7e308"
        elif rest.isidentifier() and not rest.startswith("_") and not word.startswith("0"):
            help_ = f"between a number and a name stands an operator: {found[0][: -len(rest)]} * {rest}"
        short = word if len(word) <= _SHOWN else f"{word[:_SHOWN]}..."
        self._report.add("E1005", f"malformed number {short}", (start, end), help_, text=short)
        return self._add("bad", "", start, end)

    def _string(self, found: re.Match[str]) -> int:
        start = found.start()
        read = _STRING.match(self._source.text, start)
        assert read is not None, "a string begins with a quote"
        word, end = read[0], read.end()
        if not read[1]:
            self._report.add(
                "E1003", "this string is not closed", (start, end), 'end it with " on the same line'
            )
            return self._add("bad", "", start, end)
        kind: Kind = "string"
        for escape in ESCAPE.finditer(word):
            if escape[1] not in ESCAPES:
                kind = "bad"
                at, help_ = start + escape.start(), 'the escapes are \\n, \\r, \\t, \\\\ and \\"'
                message = f"Invalid escape sequence {escape[0]}"
                self._report.add("E1004", message, (at, at + 2), help_, escape=escape[0])
        return self._add(kind, word if kind == "string" else "", start, end)
