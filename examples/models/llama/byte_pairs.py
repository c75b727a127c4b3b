"""Byte-level byte pair encoding, as of GPT-2 and Llama 3."""

from __future__ import annotations

import functools
import itertools
import re
from typing import TYPE_CHECKING

from examples.models.llama.config import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

# Letters are what Python's ``re`` has as words, without digits and the underscore: that counts the few
# numbers that are no digits, such as fractions, among letters.
_LETTER, _OTHER = r"[^\W\d_]", r"(?:[^\s\w]|_)"
#: How a text is cut before pairs are merged, by what llama.cpp calls it.
_GPT2 = rf"'s|'t|'re|'ve|'m|'ll|'d| ?{_LETTER}+| ?\d+| ?{_OTHER}+|\s+(?!\S)|\s+"
_LLAMA3 = (
    rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|(?:[^\r\n\w]|_)?{_LETTER}+|\d{{1,3}}"
    rf"| ?{_OTHER}+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CUTS = {"default": _GPT2, "gpt-2": _GPT2, "llama-bpe": _LLAMA3, "llama3": _LLAMA3, "smollm": _GPT2}


def _alphabet() -> dict[int, str]:
    """Return the character that stands for each byte: itself where it can be seen, else one from 256 on."""
    seen = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in seen]
    return {byte: chr(byte) for byte in seen} | {byte: chr(256 + n) for n, byte in enumerate(others)}


class BytePairs:
    """A vocabulary of byte pair encoding."""

    def __init__(self, words: Sequence[str], merges: Sequence[str], pre: str) -> None:
        """Hold a vocabulary, whose merges are pairs with a space between, the first ones first.

        Raises:
            ModelError: Texts are cut in a way that is not known here, or a byte has no token.
        """
        if pre not in _CUTS:
            known = ", ".join(_CUTS)
            raise ModelError(f"the tokenizer cuts texts in the way '{pre}'; those known are {known}")
        self._words, self._cut = words, re.compile(_CUTS[pre])
        self._tokens = {word: number for number, word in enumerate(words)}
        self._ranks = {tuple(merge.split(" ", 1)): rank for rank, merge in enumerate(merges)}
        self._characters = _alphabet()
        self._bytes = {character: byte for byte, character in self._characters.items()}
        if missing := [each for each in self._characters.values() if each not in self._tokens]:
            raise ModelError(f"the vocabulary has no token for '{missing[0]}'")
        self._merged = functools.lru_cache(maxsize=10_000)(self._merge)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        found: list[int] = []
        for match in self._cut.finditer(text):
            found += self._merged("".join(self._characters[byte] for byte in match[0].encode()))
        return found

    def bytes_of(self, token: int) -> bytes:
        """Return what a token stands for."""
        word = self._words[token]
        known = all(character in self._bytes for character in word)
        return bytes(self._bytes[character] for character in word) if known else word.encode()

    def _merge(self, word: str) -> tuple[int, ...]:
        parts = list(word)
        last = len(self._ranks)
        while len(parts) > 1:
            ranks = [self._ranks.get(pair, last) for pair in itertools.pairwise(parts)]
            best = min(range(len(ranks)), key=ranks.__getitem__)
            if ranks[best] == last:
                break
            parts[best : best + 2] = [parts[best] + parts[best + 1]]
        return tuple(token for part in parts for token in self._known(part))

    def _known(self, part: str) -> list[int]:
        """Return the token of a part, or those of its bytes where a merge has none."""
        token = self._tokens.get(part)
        return [token] if token is not None else [self._tokens[character] for character in part]
