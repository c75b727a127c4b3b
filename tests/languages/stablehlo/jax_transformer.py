"""A small transformer in plain jax, its parameters a tree as flax lays them out; needs jax."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_LAYERS, _HEADS, _WIDTH, _TOKENS, _WORDS = 2, 2, 8, 6, 11


def parameters(seed: int = 3) -> Any:
    """Return the parameters, a tree of arrays, and a batch of tokens."""
    random = np.random.default_rng(seed)

    def normal(*shape: int) -> Any:
        return (random.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)

    def dense(inputs: int, outputs: int) -> Any:
        return {"kernel": normal(inputs, outputs), "bias": normal(outputs)}

    def norm() -> Any:
        return {"scale": np.ones(_WIDTH, np.float32), "bias": np.zeros(_WIDTH, np.float32)}

    def block() -> Any:
        return {
            "LayerNorm_0": norm(),
            "SelfAttention_0": {"qkv": dense(_WIDTH, 3 * _WIDTH), "out": dense(_WIDTH, _WIDTH)},
            "LayerNorm_1": norm(),
            "MlpBlock_0": {"Dense_0": dense(_WIDTH, 4 * _WIDTH), "Dense_1": dense(4 * _WIDTH, _WIDTH)},
        }

    tree = {
        "Embed_0": {"embedding": normal(_WORDS, _WIDTH)},
        "posembed": normal(_TOKENS, _WIDTH),
        **{f"Block_{index}": block() for index in range(_LAYERS)},
        "LayerNorm_0": norm(),
    }
    return tree, random.integers(0, _WORDS, (2, _TOKENS)).astype(np.int32)


def _dense(tree: Any, x: Any) -> Any:
    return x @ tree["kernel"] + tree["bias"]


def _norm(tree: Any, x: Any) -> Any:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-6) * tree["scale"] + tree["bias"]


def _attention(tree: Any, x: Any) -> Any:
    split = _dense(tree["qkv"], x).reshape(*x.shape[:2], 3, _HEADS, _WIDTH // _HEADS)
    query, key, value = (split[:, :, index] for index in range(3))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(_WIDTH // _HEADS)
    mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, jnp.finfo(scores.dtype).min))
    return _dense(tree["out"], jnp.einsum("bhqk,bkhd->bqhd", weights, value).reshape(x.shape))


def forward(tree: Any, tokens: Any) -> Any:
    """Return the logits of each next token, of the extents batch, tokens and words."""
    embedding = tree["Embed_0"]["embedding"]
    x = embedding[tokens] + tree["posembed"]
    for index in range(_LAYERS):
        block = tree[f"Block_{index}"]
        x = x + _attention(block["SelfAttention_0"], _norm(block["LayerNorm_0"], x))
        mlp = block["MlpBlock_0"]
        x = x + _dense(mlp["Dense_1"], jax.nn.gelu(_dense(mlp["Dense_0"], _norm(block["LayerNorm_1"], x))))
    return _norm(tree["LayerNorm_0"], x) @ embedding.T


def loss(tree: Any, tokens: Any) -> Any:
    """Return the mean cross entropy of each next token."""
    logits = jax.nn.log_softmax(forward(tree, tokens[:, :-1]))
    return -jnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1).mean()
