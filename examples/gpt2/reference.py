"""GPT-2 in numpy, and its gradients by hand: what the programs are held to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from examples.gpt2.model import EPSILON, Config, shapes

if TYPE_CHECKING:
    from collections.abc import Mapping

Array = np.ndarray[Any, np.dtype[Any]]
Weights = dict[str, Array]


def random_weights(config: Config, seed: int = 0) -> Weights:
    """Return weights as GPT-2 starts from: normal with deviation 0.02, gains 1 and shifts 0."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, shape in shapes(config).items():
        if name.endswith(".g"):
            found[name] = np.ones(shape, np.float32)
        elif name.endswith(".b"):
            found[name] = np.zeros(shape, np.float32)
        else:
            found[name] = rng.standard_normal(shape, np.float32) * np.float32(0.02)
    return found


def _norm(x: Array, gain: Array, shift: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    deviation = np.sqrt((centred * centred).mean(-1, keepdims=True) + EPSILON)
    return np.asarray(centred / deviation * gain + shift)


def softmax(z: Array) -> Array:
    """Return the softmax over the last axis."""
    exponentials = np.exp(z - z.max(-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(-1, keepdims=True))


def gelu(x: Array) -> Array:
    """Return GPT-2's approximation of GELU."""
    return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


def logits(config: Config, weights: Mapping[str, Array], tokens: Array) -> Array:
    """Return the logits [length, vocabulary] after each token, in the dtype of the weights."""
    length = len(tokens)
    x = weights["wte"][tokens] + weights["wpe"][:length]
    hidden = np.triu(np.full((length, length), True), 1)
    for layer in range(config.layers):
        w = {name: weights[f"h{layer}.{name}"] for name in LAYER_NAMES}
        mixed = _norm(x, w["ln_1.g"], w["ln_1.b"]) @ w["qkv.w"] + w["qkv.b"]
        parts = mixed.reshape(length, 3, config.heads, config.depth).transpose(1, 2, 0, 3)
        q, k, v = parts
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(config.depth).astype(x.dtype)
        shares = softmax(np.where(hidden, -np.inf, scores).astype(x.dtype))
        attended = (shares @ v).transpose(1, 0, 2).reshape(length, config.width)
        x = x + attended @ w["proj.w"] + w["proj.b"]
        inner = gelu(_norm(x, w["ln_2.g"], w["ln_2.b"]) @ w["fc.w"] + w["fc.b"])
        x = x + inner @ w["out.w"] + w["out.b"]
    return np.asarray(_norm(x, weights["ln_f.g"], weights["ln_f.b"]) @ weights["wte"].T)


LAYER_NAMES = (
    *("ln_1.g", "ln_1.b", "qkv.w", "qkv.b", "proj.w", "proj.b"),
    *("ln_2.g", "ln_2.b", "fc.w", "fc.b", "out.w", "out.b"),
)


def loss(config: Config, weights: Mapping[str, Array], tokens: Array, targets: Array) -> float:
    """Return the mean cross-entropy of the targets."""
    z = logits(config, weights, tokens)
    z = z - z.max(-1, keepdims=True)
    chosen = z[np.arange(len(targets)), targets]
    return float((np.log(np.exp(z).sum(-1)) - chosen).mean())


def decoded(config: Config, weights: Mapping[str, Array], token: int, steps: int) -> Array:
    """Return the likeliest continuation, computed anew from all tokens at each step."""
    tokens = [token]
    for _ in range(steps):
        tokens.append(int(logits(config, weights, np.array(tokens))[-1].argmax()))
    return np.array(tokens[1:], np.int32)
