"""Chats: what was said, as the texts that models were trained on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from examples.models.llama.tokenizers import Tokenizer


class Format(NamedTuple):
    """The way in which a turn of a chat is written.

    Attributes:
        marks: Tokens that a vocabulary has where a model knows the format.
        turn: What a person says, with what the model's answer begins with.
        after: What follows an answer.
    """

    marks: tuple[str, ...]
    turn: str
    after: str


_FORMATS = (
    Format(
        ("<|start_header_id|>", "<|eot_id|>"),
        "<|start_header_id|>user<|end_header_id|>\n\n{said}<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
        "<|eot_id|>",
    ),
    Format(
        ("<|im_start|>", "<|im_end|>"),
        "<|im_start|>user\n{said}<|im_end|>\n<|im_start|>assistant\n",
        "<|im_end|>\n",
    ),
    Format((), "User: {said}\nAssistant:", "\n"),
)


class Chat:
    """The turns of a chat as tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Hold a vocabulary; its tokens say which format a model knows."""
        self._tokenizer, self._begun = tokenizer, False
        self._format = next(each for each in _FORMATS if set(each.marks) <= tokenizer.special.keys())

    def turn(self, said: str) -> list[int]:
        """Return the tokens that come before the model's next answer."""
        before = self._format.after if self._begun else ""
        pieces = self._format.turn.split("{said}")
        tokens = [*self._tokens(before + pieces[0]), *self._tokenizer.encode(said, begins=False)]
        tokens += self._tokens(pieces[1])
        begin = self._tokenizer.begin
        start = [] if self._begun or begin is None else [begin]
        self._begun = True
        return [*start, *tokens]

    def _tokens(self, text: str) -> list[int]:
        """Return the tokens of a text of ours, in which names of tokens stand for these."""
        special = self._tokenizer.special
        pattern = "|".join(re.escape(word) for word in special if word in text)
        found: list[int] = []
        for part in re.split(f"({pattern})", text) if pattern else [text]:
            if part in special:
                found.append(special[part])
            elif part:
                found += self._tokenizer.encode(part, begins=False)
        return found
