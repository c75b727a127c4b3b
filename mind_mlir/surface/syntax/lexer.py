"""Splits a `.mind` text into words (surface.md, "Lexical").

One regular expression finds every word; what it cannot read is reported (E1002 to E1006) and left out in such
a way that the parser has nothing more to say about it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic
from mind_mlir.frozen import FrozenDict
from mind_mlir.surface.syntax.tokens import KEYWORDS, Token

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.diagnostics import SourceText
    from mind_mlir.surface.syntax.tokens import Kind

_WORD = re.compile(
    r"(?P<blank>\s+)"
    r"|(?P<comment>//[^\n]*|/\*)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<number>(?:0[xX][0-9a-fA-F](?:_?[0-9a-fA-F])*|0[bB][01](?:_?[01])*|0[oO][0-7](?:_?[0-7])*"
    r"|[0-9](?:_?[0-9])*(?:\.(?![.\w])|\.[0-9](?:_?[0-9])*)?(?:[eE][+-]?[0-9](?:_?[0-9])*)?)(?P<rest>[\w.]*))"
    r"|(?P<string>\")"
    r"|(?P<symbol>->|::|==|!=|<=|>=|=>|&&|\|\||\.\.=?|\+=|-=|\*=|/=|\*\*|:=|[-+*/%<>=!&|^~?:;,.(){}\[\]])"
)
_DIGITS = re.compile(r"[0-9]+")
_STRING = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"?')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"'}
#: The largest number that a literal may have: -2^63 is written with its absolute value.
_LARGEST = 2**63
_LONGEST = 40


class Lexer:
    """Reads one text; `tokens` and `findings` are what it is made of."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.tokens: list[Token] = []
        self.findings: list[Diagnostic] = []
        self._rules: dict[str, Callable[[re.Match[str]], int]] = {
            "comment": self._comment,
            "name": self._name,
            "number": self._number,
            "string": self._string,
        }
        self._read()

    def _read(self) -> None:
        text, tokens = self.source.text, self.tokens
        match, rules, end = _WORD.match, self._rules, len(text)
        position = 0
        while position < end:
            found = match(text, position)
            if found is None:
                position = self._wrong(position)
                continue
            kind = found.lastgroup
            if kind == "blank":
                position = found.end()
            elif kind == "symbol":
                position = found.end()
                tokens.append(Token("symbol", found[0], found.start(), position))
            else:
                position = rules["number" if kind == "rest" else str(kind)](found)
        tokens.append(Token("end", "", end, end))

    def _report(self, code: str, message: str, start: int, end: int, help_: str, **context: object) -> None:
        location = self.source.locate(start, end)
        self.findings.append(Diagnostic(code, message, location, (), help_, context=FrozenDict(context)))

    def _add(self, kind: Kind, text: str, start: int, end: int) -> int:
        self.tokens.append(Token(kind, text, start, end))
        return end

    def _comment(self, found: re.Match[str]) -> int:
        text, start = self.source.text, found.start()
        if found[0] != "/*":
            return self._add("comment", found[0], start, found.end())
        close = text.find("*/", start + 2)
        if close < 0:
            self._report("E1006", "this comment is not closed", start, start + 2, "end it with */")
            return len(text)
        return self._add("comment", text[start : close + 2], start, close + 2)

    def _name(self, found: re.Match[str]) -> int:
        start, end = found.span()
        text = self.source.text
        if (end < len(text) and not text[end].isascii()) or not found[0].isidentifier():
            return self._long_name(start)
        word = found[0]
        return self._add("keyword" if word in KEYWORDS else "name", word, start, end)

    def _long_name(self, start: int) -> int:
        """Read a name with characters that regular expressions do not know, or that are wrong."""
        text, end, kept = self.source.text, start, []
        while end < len(text):
            character = text[end]
            if not f"a{character}".isidentifier():
                if not _may_be_meant(character):
                    break
                self._character(end)
            else:
                kept.append(character)
            end += 1
        word = "".join(kept)
        right = len(kept) == end - start and word.isidentifier()
        return self._add("name" if right else "bad", word, start, end)

    def _wrong(self, position: int) -> int:
        """Report characters that stand nowhere; a name that they touch goes with them."""
        text, start = self.source.text, position
        last = self.tokens[-1] if self.tokens else None
        if f"{text[position]}".isidentifier() or _may_be_meant(text[position]):
            return self._long_name(position)
        while position < len(text) and text[position] == text[start]:
            position += 1
        self._character(start, position)
        following = re.compile(r"\w*").match(text, position)
        if last is not None and last.end == start and last.kind in ("name", "bad"):
            self.tokens.pop()
            rest = following[0] if following else ""
            return self._add("bad", last.text + rest, last.start, position + len(rest))
        return self._add("bad", "", start, position)

    def _character(self, position: int, end: int = 0) -> None:
        character = self.source.text[position]
        shown = character if character.isprintable() else f"U+{ord(character):04X}"
        help_ = "names are letters, digits and underscores, and do not begin with a digit"
        if character == "'":
            help_ = 'strings stand between double quotes: "text"'
        elif character == "#":
            help_ = "comments begin with //"
        message = f"'{shown}' may not stand here"
        self._report("E1002", message, position, max(end, position + 1), help_, character=character)

    def _number(self, found: re.Match[str]) -> int:
        start, end = found.span()
        text = self.source.text
        if self.tokens and self.tokens[-1].text == "." and self.tokens[-1].end == start:  # t.0.1
            digits = _DIGITS.match(text, start)
            assert digits is not None, "a number begins with a digit"
            return self._add("number", digits[0], start, digits.end())
        rest = found["rest"]
        if rest.startswith(".."):  # 0..n is no number
            return self._add("number", text[start : end - len(rest)], start, end - len(rest))
        word = found[0]
        if rest or number(word) is None:
            help_ = "write 12, 0xff, 0b101, 0o17, 1_000, 1.5 or 1e-3"
            if not rest:
                help_ = "integers have 64 bits, floats go to 1.7e308"
            self._report(
                "E1005", f"malformed number {word[:_LONGEST]}", start, end, help_, text=word[:_LONGEST]
            )
            return self._add("bad", "", start, end)
        return self._add("number", word, start, end)

    def _string(self, found: re.Match[str]) -> int:
        text, start = self.source.text, found.start()
        read = _STRING.match(text, start)
        assert read is not None, "a string begins with a quote"
        word, end = read[0], read.end()
        if len(word) < 2 or not word.endswith('"') or _ends_in_escape(word):
            self._report("E1003", "this string is not closed", start, end, 'end it with " on the same line')
            return self._add("bad", "", start, end)
        kind: Kind = "string"
        for escape in _ESCAPE.finditer(word):
            if escape[1] not in _ESCAPES:
                kind = "bad"
                at = start + escape.start()
                self._report(
                    *("E1004", f"Invalid escape sequence {escape[0]}", at, at + 2),
                    'the escapes are \\n, \\r, \\t, \\\\ and \\"',
                    escape=escape[0],
                )
        return self._add(kind, word if kind == "string" else "", start, end)


def _ends_in_escape(word: str) -> bool:
    body = word[1:-1]
    return (len(body) - len(body.rstrip("\\"))) % 2 == 1


def _may_be_meant(character: str) -> bool:
    """Return whether a character that no name has may have been meant as one of a name."""
    return not character.isascii() and not character.isspace()


def string(word: str) -> str:
    """Return what a string stands for."""
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), word[1:-1])


def number(word: str) -> int | float | None:
    """Return what a number is worth; None where it is too large."""
    plain = word.replace("_", "")
    if plain[:2].lower() in ("0x", "0b", "0o"):
        value = int(plain, 0) if len(plain) <= 2 * _LONGEST else _LARGEST + 1
        return value if value <= _LARGEST else None
    if plain.isdigit():
        significant = plain.lstrip("0") or "0"
        value = int(significant) if len(significant) <= _LONGEST else _LARGEST + 1
        return value if value <= _LARGEST else None
    found = float(plain)
    return None if found == float("inf") else found
