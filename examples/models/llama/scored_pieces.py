"""Pieces with scores, as SentencePiece has them: Llama 1 and 2, Mistral, TinyLlama."""

from __future__ import annotations

import heapq
import re
from typing import TYPE_CHECKING

from examples.models.llama.config import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
_BYTE = re.compile(r"<0x([0-9A-F]{2})>\Z")


class ScoredPieces:
    """A vocabulary of pieces, of which the pair with the best score is joined first."""

    def __init__(self, words: Sequence[str], scores: Sequence[float], *, spaced: bool) -> None:
        """Hold a vocabulary; ``spaced`` says whether texts begin with a space that is not there.

        Raises:
            ModelError: There is not a score for each piece.
        """
        if len(scores) != len(words):
            raise ModelError(f"the vocabulary has {len(words)} pieces and {len(scores)} scores")
        self._words, self._scores, self._spaced = words, scores, spaced
        self._tokens = {word: number for number, word in enumerate(words)}
        found = ((_BYTE.match(word), number) for number, word in enumerate(words))
        self._bytes = {int(match[1], 16): number for match, number in found if match}
        self._of_tokens = {number: byte for byte, number in self._bytes.items()}

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text; characters without a piece are bytes, or else nothing."""
        if not text:
            return []
        parts: list[str] = list((" " + text if self._spaced else text).replace(" ", _SPACE))
        after = [*range(1, len(parts)), -1]
        before = [*range(-1, len(parts) - 1)]
        waiting: list[tuple[float, int, int, str]] = []

        def note(left: int, right: int) -> None:
            """Put a pair in line where it is a piece; of equal scores the left one comes first."""
            joined = parts[left] + parts[right] if left >= 0 and right >= 0 else ""
            if joined in self._tokens:
                heapq.heappush(waiting, (-self._scores[self._tokens[joined]], left, right, joined))

        for left in range(len(parts) - 1):
            note(left, left + 1)
        while waiting:
            _, left, right, joined = heapq.heappop(waiting)
            if after[left] != right or parts[left] + parts[right] != joined:
                continue  # one of the two has been joined with another meanwhile
            parts[left], parts[right] = joined, ""
            after[left] = after[right]
            if after[right] >= 0:
                before[after[right]] = left
            after[right] = -1
            note(before[left], left)
            note(left, after[left])
        return [token for part in parts if part for token in self._of(part)]

    def bytes_of(self, token: int) -> bytes:
        """Return what a token stands for."""
        byte = self._of_tokens.get(token)
        return bytes([byte]) if byte is not None else self._words[token].replace(_SPACE, " ").encode()

    def _of(self, part: str) -> list[int]:
        token = self._tokens.get(part)
        if token is not None:
            return [token]
        return [self._bytes[byte] for byte in part.encode() if byte in self._bytes]
