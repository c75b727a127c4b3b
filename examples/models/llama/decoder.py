"""A decoder that remembers what it has read: the compiled function, and the keys and values of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from examples.models.llama.config import Config, ModelError
from examples.models.llama.network import advance
from examples.models.llama.weights import DTYPES, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

#: How many tokens are read at once; code is made for each of these, and what is read is filled up to one.
_COUNTS = (1, 16, 64, 256)
#: Reading one token takes as long as so many of a few: until then, weights are what is waited for.
_FEW = 12
#: For how many tokens there is room at first; it is doubled as often as it takes.
_LEAST_ROOM = 256


class Decoder:
    """A model and the text that it has read so far.

    Attributes:
        config: The size of the model.
        position: How many tokens it has read.
    """

    def __init__(self, config: Config, params: Any) -> None:
        """Hold a model that has read nothing."""
        self.config, self.position = config, 0
        self._params = {name: params[name] for name in ("layers", "norm", "output")}
        self._embedding = params["embedding"]
        # Keys and values are kept as matrices of bf16 are multiplied, and else in f32.
        narrow = getattr(params["layers"][0]["key"], "dtype", None) == DTYPES["bf16"]
        self._dtype = DTYPES["bf16" if narrow else "f32"]
        waves = config.base ** (-np.arange(0, config.depth, 2) / config.depth)
        self._waves = waves / np.asarray(params["factors"], np.float64) / config.stretch
        self._caches = self._empty(min(_LEAST_ROOM, config.context))

    def read(self, tokens: Sequence[int]) -> Any:
        """Read tokens, one or more, and return the logits of what follows the last one, f32[vocabulary].

        Raises:
            ModelError: There is no token, one that the model does not have, or no room for them.
        """
        if not tokens:
            raise ModelError("there is nothing to read: give at least one token")
        if not all(0 <= token < self.config.vocabulary for token in tokens):
            raise ModelError(f"a token is none of the {self.config.vocabulary} of the model")
        if self.position + len(tokens) > self.config.context:
            raise ModelError(
                f"{self.position + len(tokens)} tokens do not fit: the model is for {self.config.context}"
            )
        self._make_room(self.position + len(tokens))
        logits = None
        while tokens:
            count = _piece(len(tokens))
            logits, tokens = self._read(tokens[:count], count), tokens[count:]
        return logits

    def rewind(self, position: int) -> None:
        """Forget what has been read from a position on."""
        self.position = min(self.position, position)

    def _read(self, tokens: Sequence[int], count: int) -> Any:
        filled = np.zeros(count, np.int32)
        filled[: len(tokens)] = tokens
        angles = np.arange(self.position, self.position + count)[:, None] * self._waves
        turns = np.stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
        past, last = np.int32(self.position), np.int32(len(tokens) - 1)
        rows = rows_of(self._embedding, filled)
        logits, added = advance(
            self._params, self._caches, rows, np.asarray(past), np.asarray(last), turns, config=self.config
        )
        end = self.position + len(tokens)
        for cache, new in zip(self._caches, added, strict=True):
            cache[:, :, self.position : end] = new[:, :, : len(tokens)]
        self.position = end
        return logits

    def _empty(self, room: int) -> list[Any]:
        shape = (2, self.config.groups, room, self.config.depth)
        return [np.zeros(shape, self._dtype) for _ in range(self.config.layers)]

    def _make_room(self, count: int) -> None:
        room = self._caches[0].shape[2]
        if count <= room:
            return
        while room < count:
            room = min(2 * room, self.config.context)
        before, self._caches = self._caches, self._empty(room)
        for new, old in zip(self._caches, before, strict=True):
            new[:, :, : self.position] = old[:, :, : self.position]


def _piece(tokens: int) -> int:
    """Return how many tokens the next piece has room for: that with the least work for each one read."""
    return min(_COUNTS, key=lambda count: (max(count, _FEW) / min(count, tokens), -count))
