"""Finds the braces that are missing or left over, by what is indented how, before a text is parsed.

Braces that do not match are found too late by whoever only counts them: at the end of the file. Items begin
in the first column, and a brace that ends a line's block stands below the line's beginning. So each item is
looked at on its own, and the parser is given words in which all braces match.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.languages.text.cursor import Token
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.diagnostics import SourceText

_ITEMS = frozenset(("fn", "struct", "export", "import", "type"))


@dataclass(frozen=True, slots=True)
class Trouble:
    """A brace without another.

    Attributes:
        place: Its offset.
        start, end: Offsets of the item that it stands in.
        message, help: What is said of it.
        left_over: Whether it closes nothing, rather than that it is not closed.
    """

    place: int
    start: int
    end: int
    message: str
    help: str
    left_over: bool


@dataclass(frozen=True, slots=True)
class Mended:
    """Words in which all braces match.

    Attributes:
        words: The words.
        troubles: What had to be done for it.
        certain: Whether something is wrong in any case; else an item may just not be indented as is usual.
    """

    words: list[Token]
    troubles: list[Trouble]
    certain: bool


def mended(source: SourceText, tokens: list[Token]) -> Mended | None:
    """Return words in which all braces match; None where they do.

    Args:
        source: The text.
        tokens: Its words, without comments.
    """
    text = source.text
    open_: list[int] = []
    boundaries = [0]
    sound = True
    level = lowest = 0
    for place, (kind, word, start, _) in enumerate(tokens):
        if kind == "symbol":
            if word == "{":
                level += 1
                open_.append(place)
            elif word == "}":
                level -= 1
                lowest = min(lowest, level)
                if open_:
                    open_.pop()
                else:
                    sound = False
        elif kind == "keyword" and word in _ITEMS and (start == 0 or text[start - 1] == "\n"):
            if open_ and _at_margin(text, tokens, open_[-1] + 1):
                continue  # nothing in this block is indented
            sound = sound and not open_
            open_.clear()
            boundaries.append(place)
    if sound and not open_:
        return None
    found: list[Token] = []
    troubles: list[Trouble] = []
    for first, last in zip(boundaries, [*boundaries[1:], len(tokens) - 1], strict=True):
        words, wrong = _Item(source, tokens, first, last).mended()
        found += words
        troubles += wrong
    return Mended([*found, tokens[-1]], troubles, level != 0 or lowest < 0)


def _at_margin(text: str, tokens: Sequence[Token], place: int) -> bool:
    start = tokens[place].start
    return start == 0 or text[start - 1] == "\n"


class _Item:
    """An item, whose braces may not match."""

    def __init__(self, source: SourceText, tokens: Sequence[Token], first: int, last: int) -> None:
        self._source = source
        self._text = source.text
        self._tokens = tokens
        self._range = range(first, last)
        self._span = (tokens[first].start, tokens[last].start)

    def mended(self) -> tuple[list[Token], list[Trouble]]:
        """Return its words with braces added and left out, and what is wrong."""
        missing, surplus = self._counted()
        if not missing and not surplus:
            return list(self._tokens[self._range.start : self._range.stop]), []
        added, stray = dict.fromkeys(missing, self._range.stop), set(surplus)
        for lines in (True, False):  # where indentation explains what is wrong, it says where
            found = self._indented(lines=lines)
            if len(found[0]) + len(found[1]) == len(missing) + len(surplus):
                added, stray = found
                break
        troubles = [] if self._hides() else [*self._unclosed(added), *self._left_over(stray)]
        return self._words(added, stray), troubles

    def _hides(self) -> bool:
        """Return whether a comment or a string that is not closed may hold braces."""
        for token in self._tokens[self._range.start : self._range.stop]:
            if token.kind == "bad":
                word = self._text[token.start : token.end]
                if word.startswith("/*") or "{" in word or "}" in word:
                    return True
        return False

    def _counted(self) -> tuple[list[int], list[int]]:
        """Return places of braces that nothing closes, and of those that close nothing."""
        open_: list[int] = []
        surplus: list[int] = []
        for place in self._range:
            word = self._word(place)
            if word == "{":
                open_.append(place)
            elif word == "}":
                if open_:
                    open_.pop()
                else:
                    surplus.append(place)
        return open_, surplus

    def _indented(self, *, lines: bool) -> tuple[dict[int, int], set[int]]:
        """Return what `_counted` does, by indentation; with each open brace, before what it should close.

        Args:
            lines: Whether any line that is not deeper than that of a brace ends its block, or a brace alone.
        """
        open_: list[tuple[int, int]] = []
        added: dict[int, int] = {}
        stray: set[int] = set()
        indentation = 0
        for place in self._range:
            column = self._column(place)
            indentation = indentation if column is None else column
            word = self._word(place)
            if lines and column is not None and word not in ("}", ")", "]"):
                while open_ and open_[-1][1] >= column:
                    added[open_.pop()[0]] = place
            if word == "{":
                open_.append((place, indentation))
            elif word == "}":
                while column is not None and open_ and open_[-1][1] > column:
                    added[open_.pop()[0]] = place
                if not open_ or (column is not None and open_[-1][1] < column):
                    stray.add(place)
                else:
                    open_.pop()
        for opening, _ in open_:
            added[opening] = self._range.stop
        return added, stray

    def _word(self, place: int) -> str:
        token = self._tokens[place]
        return token.text if token.kind == "symbol" else ""

    def _column(self, place: int) -> int | None:
        """Return the column of the first word of a line, None of any other."""
        start = self._tokens[place].start
        before = self._tokens[place - 1].end if place else 0
        feed = self._text.rfind("\n", before, start)
        if feed < 0 and place:
            return None
        return start - feed - 1

    def _words(self, added: dict[int, int], stray: set[int]) -> list[Token]:
        """Return the words of the item, with braces added before places and others left out."""
        closing: dict[int, int] = {}
        for place in added.values():
            closing[place] = closing.get(place, 0) + 1
        found: list[Token] = []
        for place in range(self._range.start, self._range.stop + 1):
            end = self._tokens[place - 1].end if place else 0
            found += [Token("symbol", "}", end, end)] * closing.get(place, 0)
            if place not in stray and place < self._range.stop:
                found.append(self._tokens[place])
        return found

    def _unclosed(self, added: dict[int, int]) -> list[Trouble]:
        found = []
        for opening, place in added.items():
            line, _ = self._source.index.locate(self._tokens[place - 1].end)
            help_ = f"add '}}' behind line {line}"
            at = self._tokens[opening].start
            found.append(Trouble(at, *self._span, "this '{' is not closed", help_, left_over=False))
        return found

    def _left_over(self, stray: set[int]) -> list[Trouble]:
        help_ = "leave it out, or add the '{' that is missing"
        # Of several in a row, the first stands for all.
        places = [self._tokens[place].start for place in sorted(stray) if place - 1 not in stray]
        return [Trouble(at, *self._span, "this '}' closes nothing", help_, left_over=True) for at in places]
