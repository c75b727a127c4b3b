"""Texts as tokens: words, or the longest pieces of them that a vocabulary has (WordPiece)."""

from __future__ import annotations

import string
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

from examples.models.bert.network import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PADDING, UNKNOWN, BEGIN, END, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
#: What a piece begins with that goes on with a word, and the longest word that is taken apart.
_GOES_ON, _LONGEST = "##", 100


class Tokenizer:
    """A vocabulary of words and pieces of words, whose letters are small and without accents."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self._numbers = {word: number for number, word in enumerate(self.words)}
        missing = [word for word in (UNKNOWN, BEGIN, END, MASK) if word not in self._numbers]
        if missing:
            raise ModelError(f"the vocabulary has no {', '.join(missing)}")
        self.mask = self._numbers[MASK]

    def encode(self, text: str) -> list[int]:
        """Return the numbers of a text's tokens, with those for its beginning and its end."""
        pieces = [piece for word in _words(text) for piece in self._pieces(word)]
        return [self._numbers[piece] for piece in (BEGIN, *pieces, END)]

    def _pieces(self, word: str) -> list[str]:
        """Return a word as the longest pieces, from its beginning on, that there are."""
        if word in self._numbers:
            return [word]
        found: list[str] = []
        rest = word if len(word) <= _LONGEST else ""
        while rest:
            before = _GOES_ON if found else ""
            ends = range(len(rest), 0, -1)
            end = next((end for end in ends if before + rest[:end] in self._numbers), 0)
            if not end:
                return [UNKNOWN]
            found.append(before + rest[:end])
            rest = rest[end:]
        return found or [UNKNOWN]


def read_vocabulary(path: str | Path) -> Tokenizer:
    """Return the tokenizer of a file with a word on each line."""
    return Tokenizer(Path(path).read_text("utf-8").splitlines())


def letters() -> Tokenizer:
    """Return a tokenizer of single letters, figures and marks, for models with random weights."""
    single = string.ascii_lowercase + string.digits
    pieces = [_GOES_ON + letter for letter in single]
    return Tokenizer([PADDING, UNKNOWN, BEGIN, END, MASK, *string.punctuation, *single, *pieces])


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text, and its punctuation marks one by one."""
    for part in text.replace(MASK, f" {MASK} ").split():
        if part == MASK:
            yield part
            continue
        word = ""
        for letter in unicodedata.normalize("NFD", part.lower()):
            kind = unicodedata.category(letter)
            if kind == "Mn":
                continue  # an accent
            if kind.startswith("P") or letter in string.punctuation:
                yield from filter(None, (word, letter))
                word = ""
            else:
                word += letter
        yield from filter(None, (word,))
