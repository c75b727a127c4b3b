"""A place in the words of a text, and what is wrong up to there."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic
from mind_mlir.frozen import FrozenDict
from mind_mlir.surface.syntax.nodes import Ident

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.diagnostics import SourceText
    from mind_mlir.surface.syntax.tokens import Token

#: How deep expressions, blocks and types may stand in one another.
MAX_NESTING = 64
#: Words that a statement or an item begins with.
BEGINNINGS = frozenset(("let", "return", "while", "for", "fn", "struct", "export", "import", "type"))
#: Words that begin nothing but items, where they stand at the beginning of a line.
ITEMS = frozenset(("fn", "struct", "export", "import", "type"))
_OPENING = {"(": ")", "[": "]", "{": "}"}


class Fault(Exception):  # noqa: N818 -- a signal that never reaches a user
    """Ends the reading of a statement in which something has been reported."""


class Cursor:
    """Goes through the words of a text, comments left out.

    Attributes:
        source: The text.
        tokens: Its words.
        token: The word that comes next.
        findings: What is wrong so far.
    """

    def __init__(self, source: SourceText, tokens: list[Token], findings: list[Diagnostic]) -> None:
        self.source = source
        self.tokens = [token for token in tokens if token.kind != "comment"]
        self.findings = findings
        self.token = self.tokens[0]
        self._place = 0
        self._depth = 0
        self._cut = any(finding.code == "E1006" for finding in findings)

    def at(self, text: str) -> bool:
        """Return whether the next word is the symbol or keyword ``text``."""
        token = self.token
        return token.text == text and token.kind in ("symbol", "keyword")

    def advance(self) -> Token:
        """Go on by a word, and return it."""
        token = self.token
        if self._place + 1 < len(self.tokens):
            self._place += 1
            self.token = self.tokens[self._place]
        return token

    def take(self, text: str) -> Token | None:
        """Go on where the next word is ``text``, and return it."""
        return self.advance() if self.at(text) else None

    def peek(self, ahead: int = 1) -> Token:
        """Return a word behind the next one."""
        return self.tokens[min(self._place + ahead, len(self.tokens) - 1)]

    @property
    def last_end(self) -> int:
        """Return where the word before the next one ends."""
        return self.tokens[self._place - 1].end if self._place else 0

    def expect(self, text: str, what: str, help_: str | None = None) -> Token:
        """Go on by ``text``, which must come next; ``what`` says where it is wanted."""
        token = self.take(text)
        if token is None:
            raise self.fault(f"expected '{text}' {what}, found {self.shown()}", help_)
        return token

    def name(self, what: str) -> Ident:
        """Go on by a name, which must come next."""
        token = self.token
        if token.kind in ("name", "bad") and token.text:
            self.advance()
            return Ident(token.text, (token.start, token.end))
        help_ = (
            f"'{token.text}' is a word of the language: choose another name"
            if token.kind == "keyword"
            else None
        )
        raise self.fault(f"expected {what}, found {self.shown()}", help_)

    def shown(self, token: Token | None = None) -> str:
        """Return a word as messages call it."""
        token = token or self.token
        if token.kind == "end":
            return "the end of the file"
        if token.kind == "bad":
            return f"'{self.source.text[token.start : token.end][:20]}'"
        return f"'{token.text}'" if len(token.text) <= 20 else f"'{token.text[:20]}...'"

    def report(
        self,
        message: str,
        start: int,
        end: int,
        help_: str | None = None,
        code: str = "E1101",
        **context: object,
    ) -> None:
        """Record a finding; behind a comment that is not closed, nothing is missing at the end."""
        if self._cut and self.token.kind == "end":
            return
        place = self.source.locate(start, end)
        self.findings.append(Diagnostic(code, message, place, (), help_, context=FrozenDict(context)))

    @property
    def behind_bad(self) -> bool:
        """Return whether the word before the next one is bad, which is reported."""
        return self._place > 0 and self.tokens[self._place - 1].kind == "bad"

    def fault(self, message: str, help_: str | None = None) -> Fault:
        """Record a finding at the next word, unless that is bad, and return what ends the statement."""
        token = self.token
        if token.kind != "bad":
            self.report(message, token.start, max(token.end, token.start + 1), help_)
        return Fault()

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Go a level deeper; too deep is E1109."""
        self.deeper()
        try:
            yield
        finally:
            self._depth -= 1

    def deeper(self) -> None:
        """Begin a level, which `higher` ends."""
        if self._depth >= MAX_NESTING:
            token = self.token
            message = f"more than {MAX_NESTING} levels stand in one another"
            last = self.findings[-1] if self.findings else None
            line, _ = self.source.index.locate(token.start)
            if last and last.code == "E1109" and last.location and last.location.line == line:
                raise Fault
            self.report(
                message, token.start, token.end, "name parts with let, or make functions of them", "E1109"
            )
            raise Fault
        self._depth += 1

    def higher(self, levels: int = 1) -> None:
        """End levels that `deeper` began."""
        self._depth -= levels

    @property
    def depth(self) -> int:
        """Return the number of levels; set it back where a fault has left some."""
        return self._depth

    @depth.setter
    def depth(self, value: int) -> None:
        self._depth = value

    def begins_line(self, token: Token | None = None) -> bool:
        """Return whether a word is the first one of its line."""
        start = (token or self.token).start
        text = self.source.text
        while start and text[start - 1] in " \t\r":
            start -= 1
        return start == 0 or text[start - 1] == "\n"

    def at_margin(self) -> bool:
        """Return whether the next word is an item's first one, at the beginning of a line."""
        token = self.token
        return token.text in ITEMS and token.kind == "keyword" and self._in_column_one(token)

    def _in_column_one(self, token: Token) -> bool:
        return token.start == 0 or self.source.text[token.start - 1] == "\n"

    def skip_statement(self) -> None:
        """Go to where the next statement begins, or to the brace that ends the block."""
        self._skip(";", BEGINNINGS)

    def skip_element(self) -> None:
        """Go to the comma or the bracket behind an element of a list."""
        self._skip("", frozenset())

    def _skip(self, end: str, beginnings: frozenset[str]) -> None:
        """Go behind ``end``, or to a word of ``beginnings``, or to what closes what is open around."""
        opened: list[str] = []
        while self.token.kind != "end":
            token = self.token
            if token.kind == "keyword" and self._begins(token, beginnings, opened):
                return
            if token.kind == "symbol":
                text = token.text
                if text == end and "}" not in opened:
                    self.advance()
                    return
                if _ends_list(text, opened) if not end else text == "}" and text not in opened:
                    return
                _follow(text, opened)
            self.advance()

    def _begins(self, token: Token, beginnings: frozenset[str], opened: list[str]) -> bool:
        inside = "}" in opened
        return self.at_margin() or (token.text in beginnings and not inside and self.begins_line())


def _ends_list(text: str, opened: list[str]) -> bool:
    """Return whether ``text`` ends an element of the list that is being read."""
    if text == "}":
        return text not in opened
    return not opened and text in (",", ";", ")", "]")


def _follow(text: str, opened: list[str]) -> None:
    """Note what ``text`` opens or closes."""
    if text in _OPENING:
        opened.append(_OPENING[text])
    elif text in opened:
        while opened.pop() != text:
            pass
