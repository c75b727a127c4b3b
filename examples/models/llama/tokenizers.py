"""Texts as tokens: bytes, or the vocabulary that a GGUF file has."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Any, Protocol

from examples.models.llama.byte_pairs import BytePairs
from examples.models.llama.config import ModelError
from examples.models.llama.scored_pieces import ScoredPieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Pieces(Protocol):
    """A vocabulary: texts to tokens, and tokens to bytes."""

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""

    def bytes_of(self, token: int) -> bytes:
        """Return what a token stands for."""


class Bytes:
    """A token for each byte."""

    def encode(self, text: str) -> list[int]:
        """Return the bytes of a text."""
        return list(text.encode())

    def bytes_of(self, token: int) -> bytes:
        """Return the byte, or nothing for a token that is none."""
        return bytes([token]) if token < 256 else b""


class Tokenizer:
    """A vocabulary, and the tokens of it that begin and end texts.

    Attributes:
        begin: The token that a text begins with; None for none.
        ends: Those that it ends with.
        special: Tokens that no text is made of, by what they are called.
    """

    def __init__(
        self, pieces: Pieces, begin: int | None, ends: Iterable[int], special: Mapping[str, int] | None = None
    ) -> None:
        self._pieces, self.begin, self.ends, self.special = pieces, begin, frozenset(ends), special or {}

    def encode(self, text: str, *, begins: bool = True) -> list[int]:
        """Return the tokens of a text, behind the one that a text begins with."""
        start = [self.begin] if begins and self.begin is not None else []
        return [*start, *self._pieces.encode(text)]

    def decode(self, tokens: Iterable[int]) -> Iterator[str]:
        """Yield the text of each token; characters of several tokens come with the last of them."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        unspoken = {*self.special.values(), self.begin, *self.ends}
        for token in tokens:
            yield "" if token in unspoken else decoder.decode(self._pieces.bytes_of(token))
        yield decoder.decode(b"", final=True)


def byte_tokenizer() -> Tokenizer:
    """Return the tokenizer of models with random weights: bytes, then the begin and end of texts."""
    return Tokenizer(Bytes(), 256, [257])


#: What types of tokens mean that no text is made of them: control, and user-defined ones.
_CONTROL, _USER_DEFINED = 3, 4
#: Tokens that end what a model says in a chat.
_ENDS = ("<|eot_id|>", "<|im_end|>", "<|end|>", "<|end_of_text|>", "<|endoftext|>")


def tokenizer_of(metadata: Mapping[str, Any]) -> Tokenizer:
    """Return the tokenizer that a GGUF file describes.

    Raises:
        ModelError: It has none, or one of another kind.
    """
    kind, words = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.tokens")
    if not isinstance(words, list) or not all(isinstance(each, str) for each in words):
        raise ModelError("the file has no vocabulary (tokenizer.ggml.tokens)")
    types = metadata.get("tokenizer.ggml.token_type", [1] * len(words))
    pieces: Pieces
    if kind == "gpt2":
        pre = metadata.get("tokenizer.ggml.pre", "default")
        pieces = BytePairs(words, metadata.get("tokenizer.ggml.merges", []), pre)
    elif kind == "llama":
        scores = metadata.get("tokenizer.ggml.scores", [])
        spaced = metadata.get("tokenizer.ggml.add_space_prefix", True)
        pieces = ScoredPieces(words, scores, spaced=spaced)
    else:
        raise ModelError(f"the tokenizer is of the kind {kind!r}; 'gpt2' and 'llama' are known")
    special = {
        word: number
        for number, (word, type_) in enumerate(zip(words, types, strict=False))
        if type_ in (_CONTROL, _USER_DEFINED)
    }
    begin = metadata.get("tokenizer.ggml.bos_token_id")
    if not metadata.get("tokenizer.ggml.add_bos_token", kind == "llama"):
        begin = None
    ends = {special[word] for word in _ENDS if word in special}
    if "tokenizer.ggml.eos_token_id" in metadata:
        ends.add(metadata["tokenizer.ggml.eos_token_id"])
    return Tokenizer(pieces, begin, ends, special)
