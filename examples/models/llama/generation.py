"""Models to talk to: what they say, token by token, and how long it takes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import mind_mlir
from examples.models.llama.config import SIZES, Config, ModelError
from examples.models.llama.tokenizers import Tokenizer, byte_tokenizer, tokenizer_of
from examples.models.llama.weights import random_weights, read_weights

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from examples.models.llama.decoder import Decoder
    from examples.models.llama.sampling import Sampling


@dataclass
class Model:
    """A model that is ready to run.

    Attributes:
        name: What it is called.
        config: Its size.
        params: Its weights.
        tokenizer: Its vocabulary.
    """

    name: str
    config: Config
    params: Any = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)

    @property
    def bytes_read(self) -> int:
        """Return how many bytes of weights each step reads."""
        matrices = [each for layer in self.params["layers"] for each in layer.values()]
        return sum(each.nbytes for each in [*matrices, self.params["output"]])


def load_model(source: str, dtype: str | None = None, *, copied: bool = False) -> Model:
    """Return a model: that of a GGUF file, or one with random weights of a size that has a name.

    Weights of a file are ``copied`` to memory, or else read as they are mapped.

    Raises:
        ModelError: It is no model that this decoder runs.
        MindError: The file cannot be read.
    """
    if source in SIZES:
        config = SIZES[source]
        return Model(source, config, random_weights(config, dtype or "f32"), byte_tokenizer())
    if not source.endswith(".gguf"):
        raise ModelError(f"'{source}' is neither a file of GGUF nor one of {', '.join(SIZES)}")
    weights = mind_mlir.load_weights(source)
    config, params = read_weights(weights, weights.metadata, dtype, copied=copied)
    name = str(weights.metadata.get("general.name", source))
    return Model(name, config, params, tokenizer_of(weights.metadata))


@dataclass
class Pace:
    """How quickly a text was read and written.

    Attributes:
        read: How many tokens were read.
        reading: How many seconds that took.
        written: How many tokens were written.
        writing: How many seconds that took.
        ended: Whether the text has come to its end.
    """

    read: int = 0
    reading: float = 0.0
    written: int = 0
    writing: float = 0.0
    ended: bool = False

    def __str__(self) -> str:
        parts = [
            f"{count} tokens {verb}, {count / seconds:.1f} a second"
            for count, seconds, verb in (
                (self.read, self.reading, "read"),
                (self.written, self.writing, "written"),
            )
            if count and seconds
        ]
        return "; ".join(parts)


def generate(
    decoder: Decoder,
    prompt: Sequence[int],
    tokenizer: Tokenizer,
    sampling: Sampling,
    most: int,
    pace: Pace | None = None,
) -> Iterator[int]:
    """Read a prompt behind what the decoder has read, and yield the tokens that follow, at most so many.

    It ends with a token that texts end with, which is not yielded, and where the model has no more room.

    Raises:
        ModelError: The prompt does not fit, or has tokens that the model lacks.
    """
    pace = pace or Pace()
    random = sampling.generator()
    start = time.perf_counter()
    logits = decoder.read(prompt)
    pace.read += len(prompt)
    pace.reading += time.perf_counter() - start
    for _ in range(most):
        token = sampling.draw(logits, random)
        if token in tokenizer.ends:
            pace.ended = True
            return
        yield token
        if decoder.position == decoder.config.context:
            return
        start = time.perf_counter()
        logits = decoder.read([token])
        pace.written += 1
        pace.writing += time.perf_counter() - start
