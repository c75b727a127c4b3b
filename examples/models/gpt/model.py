"""The model: a transformer that predicts the next byte, its loss, and one step of training."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import mind_mlir
import mind_mlir.numpy as mnp


@dataclass(frozen=True)
class Config:
    """The size of a model; its tokens are bytes.

    Attributes:
        layers: How many layers there are.
        width: The width of the residual stream.
        heads: How many heads attention has.
        context: How many bytes it sees.
    """

    layers: int = 4
    width: int = 128
    heads: int = 4
    context: int = 64


#: How many tokens there are: the bytes.
VOCABULARY = 256
#: What Adam forgets of gradients and of their squares, and what keeps it from dividing by zero.
_FIRST, _SECOND, _LEAST = 0.9, 0.99, 1e-8
_DECAY = 0.1


def initial(config: Config, seed: int = 0) -> dict[str, Any]:
    """Return weights to begin with, f32, by name."""
    random = np.random.default_rng(seed)
    width = config.width

    def matrix(rows: int, columns: int, scale: float = 1.0) -> Any:
        return (random.standard_normal((rows, columns)) * scale * rows**-0.5).astype(np.float32)

    found = {"bytes": matrix(VOCABULARY, width), "places": matrix(config.context, width)}
    for layer in range(config.layers):
        shrunk = (2 * config.layers) ** -0.5  # what is added to the stream keeps its size together
        found |= {
            f"{layer}.attention.gain": np.ones(width, np.float32),
            f"{layer}.attention.heads": matrix(width, 3 * width),
            f"{layer}.attention.out": matrix(width, width, shrunk),
            f"{layer}.inner.gain": np.ones(width, np.float32),
            f"{layer}.inner.in": matrix(width, 4 * width),
            f"{layer}.inner.out": matrix(4 * width, width, shrunk),
        }
    return found | {"gain": np.ones(width, np.float32), "out": matrix(width, VOCABULARY, 0.1)}


def logits(params: Any, tokens: Any, config: Config) -> Any:
    """Return f32[batch, count, 256] for tokens i32[batch, count]."""
    batch, count = tokens.shape
    x = params["bytes"][tokens] + params["places"][:count]
    places = mnp.arange(count, dtype=np.int32)
    seen = places[:, None] >= places[None, :]
    for layer in range(config.layers):
        given = {name.split(".", 1)[1]: each for name, each in params.items() if name.startswith(f"{layer}.")}
        heads = _normalized(x, given["attention.gain"]) @ given["attention.heads"]
        heads = heads.reshape(batch, count, 3, config.heads, config.width // config.heads)
        q, k, v = (heads[:, :, part].transpose(0, 2, 1, 3) for part in range(3))
        scores = mnp.where(seen, q @ k.swapaxes(2, 3) / math.sqrt(q.shape[3]), -math.inf)
        shares = mnp.exp(scores - mnp.stop_gradient(scores.max(axis=-1, keepdims=True)))
        attended = (shares @ v) / shares.sum(axis=-1, keepdims=True)
        x = x + attended.transpose(0, 2, 1, 3).reshape(batch, count, config.width) @ given["attention.out"]
        inner = mnp.relu(_normalized(x, given["inner.gain"]) @ given["inner.in"])
        x = x + inner @ given["inner.out"]
    return _normalized(x, params["gain"]) @ params["out"]


def _normalized(x: Any, gain: Any) -> Any:
    return x * mnp.rsqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5) * gain


def loss(params: Any, tokens: Any, config: Config) -> Any:
    """Return the mean cross-entropy of each byte but the first, in nats, of i32[batch, count + 1]."""
    found = logits(params, tokens[:, :-1], config)
    centred = found - mnp.stop_gradient(found.max(axis=-1, keepdims=True))
    right = mnp.take_along_axis(centred, tokens[:, 1:, None], axis=-1)[..., 0]
    return (mnp.log(mnp.exp(centred).sum(axis=-1)) - right).mean()


@mind_mlir.jit(static_argnames="config")
def evaluate(params: Any, tokens: Any, *, config: Config) -> Any:
    """Return the loss."""
    return loss(params, tokens, config)


@mind_mlir.jit(static_argnames="config")
def train(params: Any, moments: Any, tokens: Any, rate: Any, number: Any, *, config: Config) -> Any:
    """Return the loss, and weights and moments after a step of Adam, whose number is 1 at first."""
    value, slopes = mind_mlir.value_and_grad(lambda given: loss(given, tokens, config))(params)
    updated, kept = {}, {}
    for name, slope in slopes.items():
        first = _FIRST * moments[name][0] + (1 - _FIRST) * slope
        second = _SECOND * moments[name][1] + (1 - _SECOND) * slope * slope
        step = (first / (1 - _FIRST**number)) / (mnp.sqrt(second / (1 - _SECOND**number)) + _LEAST)
        if len(slope.shape) == 2:
            step = step + _DECAY * params[name]
        updated[name], kept[name] = params[name] - rate * step, (first, second)
    return value, updated, kept


@mind_mlir.jit(static_argnames="config")
def following(params: Any, tokens: Any, last: Any, *, config: Config) -> Any:
    """Return the logits of what follows byte number ``last`` of tokens i32[count], f32[256]."""
    return logits(params, tokens[None], config)[0][last]
