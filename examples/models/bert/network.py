"""The network: BERT as transformers names its weights, with a head for masked words and one for sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import mind_mlir.numpy as mnp


class ModelError(Exception):
    """A model, a vocabulary or a text that the example cannot use."""


@dataclass(frozen=True)
class Config:
    """The size of a model.

    Attributes:
        layers: How many layers there are.
        width: Numbers of a token.
        hidden: Numbers between the two products of a layer.
        heads: How many heads attention has.
        vocabulary: How many words there are.
        context: How many tokens a text has at most.
        epsilon: What keeps norms from dividing by zero.
    """

    layers: int
    width: int
    hidden: int
    heads: int
    vocabulary: int
    context: int = 512
    epsilon: float = 1e-12


#: Sizes for random weights; the vocabulary is the tokenizer's.
SIZES = {"tiny": (2, 64, 128, 4), "small": (4, 512, 2048, 8), "base": (12, 768, 3072, 12)}
_EMBEDDINGS, _HEAD = "embeddings", "cls.predictions"


def random_weights(config: Config, seed: int = 0) -> dict[str, Any]:
    """Return weights under the names of transformers' ``BertForMaskedLM``, without its prefix ``bert.``."""
    random = np.random.default_rng(seed)
    found: dict[str, Any] = {}

    def matrix(name: str, *shape: int) -> None:
        found[name] = (0.05 * random.standard_normal(shape)).astype(np.float32)

    def layer(name: str, outputs: int, inputs: int) -> None:
        matrix(f"{name}.weight", outputs, inputs)
        found[f"{name}.bias"] = np.zeros(outputs, np.float32)

    def norm(name: str) -> None:
        found[f"{name}.weight"] = np.ones(config.width, np.float32)
        found[f"{name}.bias"] = np.zeros(config.width, np.float32)

    matrix(f"{_EMBEDDINGS}.word_embeddings.weight", config.vocabulary, config.width)
    matrix(f"{_EMBEDDINGS}.position_embeddings.weight", config.context, config.width)
    matrix(f"{_EMBEDDINGS}.token_type_embeddings.weight", 2, config.width)
    norm(f"{_EMBEDDINGS}.LayerNorm")
    for number in range(config.layers):
        name = f"encoder.layer.{number}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            layer(f"{name}.attention.{part}", config.width, config.width)
        norm(f"{name}.attention.output.LayerNorm")
        layer(f"{name}.intermediate.dense", config.hidden, config.width)
        layer(f"{name}.output.dense", config.width, config.hidden)
        norm(f"{name}.output.LayerNorm")
    layer(f"{_HEAD}.transform.dense", config.width, config.width)
    norm(f"{_HEAD}.transform.LayerNorm")
    found[f"{_HEAD}.bias"] = np.zeros(config.vocabulary, np.float32)
    return found


def named(weights: Any) -> dict[str, Any]:
    """Return weights by name, without the prefix ``bert.`` that models with a head have."""
    return {name.removeprefix("bert."): each for name, each in weights.items()}


def config_of(params: Any, given: Any) -> Config:
    """Return the size of a model with ``params``, of which transformers' ``config.json`` says ``given``.

    Raises:
        ModelError: They are not those of BERT.
    """
    layers = 0
    while f"encoder.layer.{layers}.attention.self.query.weight" in params:
        layers += 1
    try:
        vocabulary, width = params[f"{_EMBEDDINGS}.word_embeddings.weight"].shape
        context, _ = params[f"{_EMBEDDINGS}.position_embeddings.weight"].shape
        hidden, _ = params["encoder.layer.0.intermediate.dense.weight"].shape
    except KeyError as error:
        raise ModelError(f"these are no weights of BERT: there is no {error}") from None
    heads = given.get("num_attention_heads", max(1, width // 64))
    if type(heads) is not int or heads < 1 or width % heads:
        raise ModelError(f"{heads!r} heads cannot share {width} numbers")
    if given.get("hidden_act", "gelu") != "gelu":
        raise ModelError(f"the activation is {given['hidden_act']!r}, and this network has 'gelu'")
    epsilon = float(given.get("layer_norm_eps", Config.epsilon))
    return Config(layers, width, hidden, heads, vocabulary, context, epsilon)


def encoded(params: Any, tokens: Any, config: Config) -> Any:
    """Return f32[count, width] for tokens i32[count]."""
    (count,) = tokens.shape
    x = params[f"{_EMBEDDINGS}.word_embeddings.weight"][tokens]
    x = x + params[f"{_EMBEDDINGS}.position_embeddings.weight"][:count]
    x = x + params[f"{_EMBEDDINGS}.token_type_embeddings.weight"][0]
    x = _normalized(params, f"{_EMBEDDINGS}.LayerNorm", x, config)
    for number in range(config.layers):
        name = f"encoder.layer.{number}"
        attended = _layer(params, f"{name}.attention.output.dense", _attended(params, name, x, config))
        x = _normalized(params, f"{name}.attention.output.LayerNorm", x + attended, config)
        inner = _gelu(_layer(params, f"{name}.intermediate.dense", x))
        x = x + _layer(params, f"{name}.output.dense", inner)
        x = _normalized(params, f"{name}.output.LayerNorm", x, config)
    return x


def word_logits(params: Any, tokens: Any, place: Any, config: Config) -> Any:
    """Return f32[vocabulary]: how well each word fits in ``place`` of ``tokens``."""
    x = encoded(params, tokens, config)[place]
    x = _gelu(_layer(params, f"{_HEAD}.transform.dense", x))
    x = _normalized(params, f"{_HEAD}.transform.LayerNorm", x, config)
    return x @ params[f"{_EMBEDDINGS}.word_embeddings.weight"].T + params[f"{_HEAD}.bias"]


def sentence(params: Any, tokens: Any, config: Config) -> Any:
    """Return f32[width], of length 1: the mean of what the tokens have become."""
    mean = encoded(params, tokens, config).mean(axis=0)
    return mean * mnp.rsqrt((mean * mean).sum())


def _layer(params: Any, name: str, x: Any) -> Any:
    return x @ params[f"{name}.weight"].T + params[f"{name}.bias"]


def _normalized(params: Any, name: str, x: Any, config: Config) -> Any:
    gain, shift = params[f"{name}.weight"], params[f"{name}.bias"]
    return mnp.layer_norm(x, gain, shift, epsilon=config.epsilon, feature_axis=-1)


def _gelu(x: Any) -> Any:
    return x * 0.5 * (1 + mnp.erf(x * math.sqrt(0.5)))


def _attended(params: Any, name: str, x: Any, config: Config) -> Any:
    """Return what each token takes from all of them."""
    count, depth = len(x), config.width // config.heads
    q, k, v = (
        _layer(params, f"{name}.attention.self.{part}", x)
        .reshape(count, config.heads, depth)
        .transpose(1, 0, 2)
        for part in ("query", "key", "value")
    )
    scores = q @ k.swapaxes(1, 2) / math.sqrt(depth)
    shares = mnp.exp(scores - scores.max(axis=-1, keepdims=True))
    attended = (shares @ v) / shares.sum(axis=-1, keepdims=True)
    return attended.transpose(1, 0, 2).reshape(count, config.width)
