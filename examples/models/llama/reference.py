"""The decoder in plain numpy, without a cache: the oracle of the compiled one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from examples.models.llama.config import Config


def logits_of(params: Any, tokens: Any, config: Config) -> Any:
    """Return logits f64[count, vocabulary] of tokens from the first position on, computed in f64."""
    count = len(tokens)
    embedding = np.asarray(params["embedding"])
    x = embedding[np.asarray(tokens)].astype(np.float64)
    factors = np.asarray(params["factors"], np.float64)
    waves = config.base ** (-np.arange(0, config.depth, 2) / config.depth) / factors
    turns = np.exp(1j * (np.arange(count) / config.stretch)[:, None] * waves)
    seen = np.tril(np.ones((count, count), bool))
    for layer in params["layers"]:
        weights = {name: np.asarray(each, np.float64) for name, each in layer.items()}
        inner = _normalized(x, weights["attention_norm"], config)
        shape = (count, -1, config.depth)
        q = _turned((inner @ weights["query"].T).reshape(shape), turns)
        k = _turned((inner @ weights["key"].T).reshape(shape), turns)
        v = (inner @ weights["value"].T).reshape(shape)
        shared = config.heads // config.groups
        k, v = np.repeat(k, shared, axis=1), np.repeat(v, shared, axis=1)
        scores = np.einsum("thd,chd->htc", q, k) / np.sqrt(config.depth)
        scores = np.where(seen, scores, -np.inf)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        attended = np.einsum("htc,chd->thd", shares, v).reshape(count, -1)
        x = x + attended @ weights["attention_output"].T
        inner = _normalized(x, weights["gated_norm"], config)
        gate = inner @ weights["gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (inner @ weights["up"].T)) @ weights["down"].T
    final = _normalized(x, np.asarray(params["norm"], np.float64), config)
    return final @ np.asarray(params["output"], np.float64).T


def _normalized(x: Any, gain: Any, config: Config) -> Any:
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + config.epsilon) * gain


def _turned(x: Any, turns: Any) -> Any:
    """Return pairs of neighbours as complex numbers, times those of the angles."""
    turned = (x[..., ::2] + 1j * x[..., 1::2]) * turns[:, None, :]
    return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)
