"""Tokens, and the cursor with which every reader goes through them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, NoReturn

if TYPE_CHECKING:
    from mind_mlir.languages.text.report import Span


class Token(NamedTuple):
    """One token: what it is, its text, and where it begins and ends in the source."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        """Return where it stands."""
        return self.start, self.end


def token_pattern(*tables: dict[str, str], flags: int = 0) -> re.Pattern[str]:
    """Return the expression that matches one token of any of the kinds, the first that fits.

    Args:
        tables: The kinds of tokens and the expressions that match them, in order. The kind of a match is its
            `lastgroup`.
        flags: Those of `re`.
    """
    kinds = [item for table in tables for item in table.items()]
    return re.compile("|".join([f"(?P<{kind}>{expression})" for kind, expression in kinds]), flags)


class Cursor:
    """A place in the tokens of a text.

    A language says in its own class where tokens come from (`advance`) and how a message words what does not
    belong there (`expected`).

    Attributes:
        token: The token that comes next.
        word: What it is compared by: its text or its kind, as the language wants it.
    """

    __slots__ = ("token", "word")

    token: Token
    word: str

    def advance(self) -> Token:
        """Go behind the next token, and return it."""
        raise NotImplementedError

    def expected(self, what: str, help_: str | None = None) -> Exception:
        """Return what ends the reading of what the next token does not belong to."""
        raise NotImplementedError

    def accept(self, *words: str) -> Token | None:
        """Take the next token if it is one of ``words``."""
        return self.advance() if self.word in words else None

    def expect(self, word: str, help_: str | None = None) -> Token:
        """Take the next token, which must be ``word``."""
        return self.accept(word) or self.fail(f"'{word}'", help_)

    def fail(self, what: str = "", help_: str | None = None) -> NoReturn:
        """End the reading of what the next token does not belong to."""
        raise self.expected(what, help_)

    def separated(self, closing: str, *, trailing: bool = True) -> Iterator[None]:
        """Yield before each element of a list, up to ``closing``, which is taken.

        Commas stand between the elements and, where ``trailing`` ones are allowed, perhaps behind the last.
        """
        if self.accept(closing):
            return
        yield
        while self.accept(","):
            if trailing and self.accept(closing):
                return
            yield
        if not self.accept(closing):
            self.fail("','")
