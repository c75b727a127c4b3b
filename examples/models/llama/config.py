"""The sizes of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class ModelError(Exception):
    """A model, or what is asked of one, that cannot be run; the message says why."""


@dataclass(frozen=True)
class Config:
    """The size of a model and the constants that it computes with.

    Attributes:
        layers: How many layers there are.
        width: The width of the residual stream.
        hidden: The width within the gated part of a layer.
        heads: How many heads queries have.
        groups: How many heads keys and values have; each serves ``heads / groups`` of the queries.
        depth: The width of a head.
        vocabulary: How many tokens there are.
        context: For how many positions the model is made.
        epsilon: What is added to the mean square that a norm divides by.
        base: The base of the wave lengths of rotary positions.
        stretch: What positions are divided by.
    """

    layers: int
    width: int
    hidden: int
    heads: int
    groups: int
    depth: int
    vocabulary: int
    context: int
    epsilon: float = 1e-5
    base: float = 10000.0
    stretch: float = 1.0

    def __post_init__(self) -> None:
        if self.heads % self.groups or self.depth % 2:
            raise ModelError(f"{self.heads} heads of width {self.depth} cannot share {self.groups} keys")

    @property
    def weights(self) -> int:
        """Return how many numbers the model has."""
        attention = 2 * self.width * self.depth * (self.heads + self.groups)
        return (
            self.layers * (attention + 3 * self.width * self.hidden + 2 * self.width)
            + 2 * self.vocabulary * self.width
            + self.width
        )


#: Sizes for random weights, of which the largest is that of TinyLlama. The vocabulary of the first is bytes.
SIZES = {
    "tiny": Config(2, 64, 160, 4, 2, 16, 258, 512),
    "100M": Config(12, 640, 1792, 10, 5, 64, 32000, 2048),
    "300M": Config(22, 1024, 2816, 16, 8, 64, 32000, 2048),
    "1.1B": Config(22, 2048, 5632, 32, 4, 64, 32000, 2048),
}


def config_of(metadata: Mapping[str, Any], vocabulary: int) -> Config:
    """Return the size of a model whose GGUF file has ``metadata``, and an embedding of so many tokens.

    Raises:
        ModelError: It is of another kind, or something is not said.
    """
    kind = metadata.get("general.architecture")
    if kind != "llama":
        raise ModelError(f"the model is of the architecture {kind!r}, and this decoder is of 'llama'")
    scaling = metadata.get("llama.rope.scaling.type", "none")
    if scaling not in ("none", "linear"):
        raise ModelError(f"positions are scaled in the way '{scaling}', which this decoder does not know")
    if metadata.get("llama.expert_count", 0):
        raise ModelError("the model has experts, which this decoder does not have")
    heads, width = _count(metadata, "attention.head_count"), _count(metadata, "embedding_length")
    depth = _count(metadata, "attention.key_length", width // heads)
    turned = _count(metadata, "rope.dimension_count", depth)
    if turned != depth:
        raise ModelError(f"{turned} of {depth} numbers of a head are turned, and this decoder turns all")
    return Config(
        layers=_count(metadata, "block_count"),
        width=width,
        hidden=_count(metadata, "feed_forward_length"),
        heads=heads,
        groups=_count(metadata, "attention.head_count_kv", heads),
        depth=depth,
        vocabulary=vocabulary,
        context=_count(metadata, "context_length"),
        epsilon=float(metadata.get("llama.attention.layer_norm_rms_epsilon", 1e-5)),
        base=float(metadata.get("llama.rope.freq_base", 10000.0)),
        stretch=float(metadata.get("llama.rope.scaling.factor", 1.0)) if scaling == "linear" else 1.0,
    )


def _count(metadata: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = metadata.get(f"llama.{name}", default)
    if type(value) is not int or value < 1:
        raise ModelError(f"the file does not say what llama.{name} is")
    return value
