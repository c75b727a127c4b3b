"""A place in the words of a text, and what is wrong up to there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from mind_mlir.languages.mind.syntax.nodes import MAX_NESTING, Ident, Span
from mind_mlir.languages.text import cursor
from mind_mlir.languages.text.report import Report

if TYPE_CHECKING:
    from mind_mlir.diagnostics import SourceText
    from mind_mlir.diagnostics.findings import Findings
    from mind_mlir.languages.text.cursor import Token

_T = TypeVar("_T")

#: Words that a statement or an item begins with, and no expression.
BEGINNINGS = frozenset(("let", "return", "while", "for", "fn", "struct", "export", "import", "type"))
#: Words that an item begins with.
ITEMS = frozenset(("fn", "struct", "export", "import", "type", "let"))
_OPENING = {"(": ")", "[": "]", "{": "}"}
_SHOWN = 20
#: Characters of a line in which its beginning is looked for: a longer one counts as indented.
_LINE = 1000


class Fault(Exception):  # noqa: N818 -- a signal that never reaches a user
    """Ends the reading of what cannot be read; it has been reported."""


class MindCursor(cursor.Cursor):
    """Goes through the words of a text.

    Attributes:
        source: The text.
        tokens: Its words without comments; the last one is of kind ``end``.
        token: The word that comes next.
        word: The same for comparing: the text of a symbol or a keyword, the kind of any other.
        last_end: Where the word before it ends.
        depth: How many levels are open.
        structs: Whether ``{`` behind a name may begin a struct's fields: not where a block must follow.
    """

    def __init__(self, source: SourceText, tokens: Sequence[Token], findings: Findings) -> None:
        self.source = source
        self.tokens = list(tokens)
        self._report = Report(source, findings)
        self.place = 0
        self.last_end = 0
        self.depth = 0
        self.structs = True
        #: Where a missing ``{`` has been reported, and what nests too deep: whose braces need not match.
        self.lacking: list[int] = []
        self.abandoned: list[int] = []
        self._words = [text if kind in ("symbol", "keyword") else kind for kind, text, _, _ in self.tokens]
        self.token = self.tokens[0]
        self.word = self._words[0]
        self._reported = -1
        self._cut = any(
            kind == "bad" and source.text.startswith("/*", start) for kind, _, start, _ in self.tokens
        )

    # Going on

    def advance(self) -> Token:
        """Go on by a word, and return it."""
        token = self.token
        if self.word != "end":
            self.last_end = token.end
            place = self.place = self.place + 1
            self.token = self.tokens[place]
            self.word = self._words[place]
        return token

    def ahead(self, number: int = 1) -> str:
        """Return the word behind the next one, or one further on, as `word` has it."""
        return self._words[min(self.place + number, len(self._words) - 1)]

    def divide(self) -> None:
        """Go on by the first character of the next word, which is a symbol of two."""
        token = self.token
        self.last_end = token.start + 1
        self.token = token._replace(text=token.text[1:], start=token.start + 1)
        self.tokens[self.place] = self.token
        self.word = self._words[self.place] = self.token.text

    def begins_line(self, ahead: int = 0) -> bool:
        """Return whether the next word, or one behind it, is the first one of its line."""
        place = min(self.place + ahead, len(self.tokens) - 1)
        before = self.tokens[place - 1].end if place else 0
        return place == 0 or self.source.text.find("\n", before, self.tokens[place].start) >= 0

    def at_margin(self) -> bool:
        """Return whether the next word begins an item in the first column."""
        return self.word in ITEMS and self.column() == 0

    def column(self, offset: int | None = None) -> int:
        """Return how far from the beginning of its line the next word stands, or what is at ``offset``."""
        start = self.token.start if offset is None else offset
        return start - self.source.text.rfind("\n", max(0, start - _LINE), start) - 1

    # What is wrong

    def shown(self) -> str:
        """Return the next word as messages call it."""
        if self.word == "end":
            return "the end of the file"
        text = self.token.text or self.source.text[self.token.start : self.token.end]
        return f"'{text}'" if len(text) <= _SHOWN else f"'{text[:_SHOWN]}...'"

    def report(
        self,
        message: str,
        span: Span,
        help_: str | None = None,
        *,
        code: str = "E1101",
        **context: object,
    ) -> None:
        """Record a finding; a second one in the same place is a consequence of the first."""
        if span[0] != self._reported:
            self._reported = span[0]
            self._report.add(code, message, span, help_, **context)

    def silent(self) -> bool:
        """Return whether what is wrong here follows from a word that has been reported."""
        if self.word == "bad":
            return True
        # A string that is not closed takes the rest of its line with it, a comment that of the file.
        if self._cut and self.token.start >= len(self.source.text):
            return True
        return self.place > 0 and self._words[self.place - 1] == "bad" and self.begins_line()

    def expected(self, what: str, help_: str | None = None) -> Fault:
        """Report that ``what`` should stand here, and return what ends the reading of what cannot do without.

        Where the next word stands in another line, the place is the end of this one.
        """
        if not self.silent():
            found, span = self.shown(), self.token.span
            if self.place and (self.word == "end" or self.begins_line()):
                span = (self.last_end, self.last_end + 1)
                found = found if self.word == "end" else "the end of the line"
            self.report(f"expected {what}, found {found}", span, help_)
        return Fault()

    def fault(self, message: str, help_: str | None = None) -> Fault:
        """Report the next word, and return what ends the reading of the statement that it stands in."""
        if not self.silent():
            self.report(message, (self.token.start, max(self.token.end, self.token.start + 1)), help_)
        return Fault()

    def name(self, what: str) -> Ident:
        """Go on by a name, which must come next."""
        token = self.token
        if token.text and self.word in ("name", "bad"):
            self.advance()
            return Ident(token.text, token.span)
        help_ = None
        if token.kind == "keyword" and not self.begins_line():
            help_ = f"'{token.text}' is a word of the language: choose another name"
        raise self.expected(what, help_)

    # Levels

    def attempt(self, read: Callable[[], _T], skip: Callable[[], None]) -> _T | None:
        """Return what ``read`` does; where it ends in a fault, skip what it was to read, and return None."""
        depth = self.depth
        try:
            return read()
        except Fault:
            self.depth, self.structs = depth, True
            skip()
            return None

    def deeper(self) -> None:
        """Begin a level."""
        if self.depth >= MAX_NESTING:
            message = f"more than {MAX_NESTING} levels stand in one another"
            span = (self.token.start, max(self.token.end, self.token.start + 1))
            self.report(message, span, "name parts with let, or make functions of them", code="E1109")
            self.abandoned.append(span[0])
            raise TooDeep
        self.depth += 1

    # Where to go on

    def skip_statement(self, first: Token | None = None) -> None:
        """Go to where the next statement begins, or to the brace that ends the block.

        Without a semicolon, that is at a word that begins statements alone, behind a block that ends its
        line, or in a line that is indented like that of ``first``, with which the statement began.
        """
        margin = -1 if first is None else self.column(first.start)
        opened = _Opened()
        while self.word != "end":
            word = self.word
            inside = opened.count("}")
            if word == "}" and not inside:
                return
            begins = word in BEGINNINGS or (word in ("name", "if") and self.column() <= margin)
            if begins and not inside and self.begins_line():
                return
            opened.follow(word)
            self.advance()
            if word == ";" and not inside:
                return
            if word == "}" and not opened and self.begins_line():
                return

    def skip_element(self) -> None:
        """Go to the comma or the bracket behind an element of a list."""
        opened = _Opened()
        while self.word != "end":
            word = self.word
            inside = opened.count("}")
            if (word == "}" and not inside) or (not opened and word in (",", ";", ")", "]")):
                return
            if word in BEGINNINGS and not inside and self.begins_line():
                return
            opened.follow(word)
            self.advance()

    def skip_to(self, closing: str) -> None:
        """Go behind ``closing``, or to what ends a statement before it."""
        opened = _Opened()
        while self.word not in (";", "{", "}", "end"):
            word = self.word
            if not opened and word in (closing, ")", "]"):
                self.accept(closing)
                return
            opened.follow(word)
            self.advance()

    def skip_item(self) -> None:
        """Go to where the next item begins, which is in the first column unless nothing is open."""
        opened = _Opened()
        while self.word != "end" and not self.at_margin():
            if self.word in ITEMS and not opened and self.begins_line():
                return
            opened.follow(self.word)
            self.advance()


class TooDeep(Exception):  # noqa: N818 -- a signal that never reaches a user
    """Ends the reading of an item that nests too deep; it has been reported."""


class _Opened:
    """Brackets that are open, by what closes them."""

    def __init__(self) -> None:
        self._stack: list[str] = []
        self._counts = dict.fromkeys(_OPENING.values(), 0)

    def __len__(self) -> int:
        return len(self._stack)

    def count(self, closing: str) -> int:
        return self._counts[closing]

    def follow(self, word: str) -> None:
        """Note what ``word`` opens or closes; what is not closed within ends with what is around it."""
        if word in _OPENING:
            self._stack.append(_OPENING[word])
            self._counts[_OPENING[word]] += 1
        elif self._counts.get(word):
            while True:
                last = self._stack.pop()
                self._counts[last] -= 1
                if last == word:
                    return
