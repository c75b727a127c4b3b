"""The gradient of GPT-2's loss in numpy, by hand: each step back stands beside the step that it undoes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from examples.gpt2.model import EPSILON, Config
from examples.gpt2.reference import LAYER_NAMES, Array, Weights, gelu, softmax

if TYPE_CHECKING:
    from collections.abc import Mapping


def gradients(config: Config, weights: Mapping[str, Array], tokens: Array, targets: Array) -> Weights:
    """Return the gradient of the mean cross-entropy with respect to each weight."""
    length, width = len(tokens), config.width
    found = {name: np.zeros_like(array) for name, array in weights.items()}
    x = weights["wte"][tokens] + weights["wpe"][:length]
    layers = []
    for layer in range(config.layers):
        w = {name: weights[f"h{layer}.{name}"] for name in LAYER_NAMES}
        step = _Layer(config, w)
        layers.append(step)
        x = step.forward(x)
    normal = _Norm(weights["ln_f.g"], weights["ln_f.b"])
    hidden = normal.forward(x)
    shares = softmax(hidden @ weights["wte"].T)
    shares[np.arange(length), targets] -= 1
    d_logits = shares / length
    found["wte"] += d_logits.T @ hidden
    d_x, found["ln_f.g"], found["ln_f.b"] = normal.backward(d_logits @ weights["wte"])
    for layer in reversed(range(config.layers)):
        d_x, inner = layers[layer].backward(d_x)
        found.update({f"h{layer}.{name}": array for name, array in inner.items()})
    np.add.at(found["wte"], tokens, d_x)
    found["wpe"][:length] += d_x.reshape(length, width)
    return found


class _Norm:
    def __init__(self, gain: Array, shift: Array) -> None:
        self.gain, self.shift = gain, shift

    def forward(self, x: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        self.scale = 1 / np.sqrt((centred * centred).mean(-1, keepdims=True) + EPSILON)
        self.normal = centred * self.scale
        return np.asarray(self.normal * self.gain + self.shift)

    def backward(self, d: Array) -> tuple[Array, Array, Array]:
        inner = d * self.gain
        along = (inner * self.normal).mean(-1, keepdims=True)
        d_x = self.scale * (inner - inner.mean(-1, keepdims=True) - self.normal * along)
        return d_x, (d * self.normal).sum(0), d.sum(0)


class _Layer:
    def __init__(self, config: Config, weights: Weights) -> None:
        self.config, self.w = config, weights
        self.ln_1 = _Norm(weights["ln_1.g"], weights["ln_1.b"])
        self.ln_2 = _Norm(weights["ln_2.g"], weights["ln_2.b"])

    def forward(self, x: Array) -> Array:
        config, w, length = self.config, self.w, len(x)
        self.first = self.ln_1.forward(x)
        mixed = self.first @ w["qkv.w"] + w["qkv.b"]
        self.q, self.k, self.v = mixed.reshape(length, 3, config.heads, config.depth).transpose(1, 2, 0, 3)
        scores = self.q @ self.k.transpose(0, 2, 1) / np.sqrt(config.depth)
        self.shares = softmax(np.where(np.triu(np.full((length, length), True), 1), -np.inf, scores))
        self.attended = (self.shares @ self.v).transpose(1, 0, 2).reshape(length, config.width)
        x = x + self.attended @ w["proj.w"] + w["proj.b"]
        self.second = self.ln_2.forward(x)
        self.inner = self.second @ w["fc.w"] + w["fc.b"]
        self.bent = gelu(self.inner)
        return np.asarray(x + self.bent @ w["out.w"] + w["out.b"])

    def backward(self, d: Array) -> tuple[Array, Weights]:
        config, w, length = self.config, self.w, len(d)
        found = {"out.w": self.bent.T @ d, "out.b": d.sum(0)}
        d_inner = d @ w["out.w"].T * _gelu_slope(self.inner)
        found |= {"fc.w": self.second.T @ d_inner, "fc.b": d_inner.sum(0)}
        d_norm, found["ln_2.g"], found["ln_2.b"] = self.ln_2.backward(d_inner @ w["fc.w"].T)
        d = d + d_norm
        found |= {"proj.w": self.attended.T @ d, "proj.b": d.sum(0)}
        d_heads = (d @ w["proj.w"].T).reshape(length, config.heads, config.depth).transpose(1, 0, 2)
        d_shares = d_heads @ self.v.transpose(0, 2, 1)
        d_scores = self.shares * (d_shares - (d_shares * self.shares).sum(-1, keepdims=True))
        d_scores /= np.sqrt(config.depth)
        d_q, d_k = d_scores @ self.k, d_scores.transpose(0, 2, 1) @ self.q
        parts = [d_q, d_k, self.shares.transpose(0, 2, 1) @ d_heads]
        d_mixed = np.stack(parts).transpose(2, 0, 1, 3).reshape(length, 3 * config.width)
        found |= {"qkv.w": self.first.T @ d_mixed, "qkv.b": d_mixed.sum(0)}
        d_norm, found["ln_1.g"], found["ln_1.b"] = self.ln_1.backward(d_mixed @ w["qkv.w"].T)
        return d + d_norm, found


def _gelu_slope(x: Array) -> Array:
    scale = np.sqrt(2 / np.pi)
    bent = np.tanh(scale * (x + 0.044715 * x**3))
    return np.asarray(0.5 * (1 + bent) + 0.5 * x * (1 - bent**2) * scale * (1 + 3 * 0.044715 * x**2))
