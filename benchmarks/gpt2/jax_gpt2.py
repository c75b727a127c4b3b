"""GPT-2 by jax: jitted functions, and a scan that decodes."""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.gpt2.timing import STEPS, report, task
from examples.gpt2.model import EPSILON

GIVEN = task()
CONFIG = GIVEN.config


def norm(w: Any, name: str, x: Any) -> Any:
    """Apply a layer norm."""
    centred = x - x.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + EPSILON)
    return centred * scale * w[f"{name}.g"] + w[f"{name}.b"]


def affine(w: Any, name: str, x: Any) -> Any:
    """Apply a product and a bias."""
    return x @ w[f"{name}.w"] + w[f"{name}.b"]


def heads(w: Any, layer: int, x: Any) -> Any:
    """Return queries, keys and values of a layer, each [heads, length, depth]."""
    mixed = affine(w, f"h{layer}.qkv", norm(w, f"h{layer}.ln_1", x))
    return mixed.reshape(len(x), 3, CONFIG.heads, CONFIG.depth).transpose(1, 2, 0, 3)


def attention(q: Any, k: Any, v: Any, seen: Any) -> Any:
    """Return what each query sees of the values."""
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(CONFIG.depth).astype(np.float32)
    return jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), -1) @ v


def after(w: Any, layer: int, x: Any, attended: Any) -> Any:
    """Return what a layer makes of its input and of what it attends to."""
    x = x + affine(w, f"h{layer}.proj", attended.transpose(1, 0, 2).reshape(len(x), CONFIG.width))
    inner = jax.nn.gelu(affine(w, f"h{layer}.fc", norm(w, f"h{layer}.ln_2", x)), approximate=True)
    return x + affine(w, f"h{layer}.out", inner)


def logits(w: Any, tokens: Any) -> Any:
    """Return the logits after each token."""
    length = len(tokens)
    x = w["wte"][tokens] + w["wpe"][:length]
    seen = jnp.tril(jnp.ones((length, length), bool))
    for layer in range(CONFIG.layers):
        q, k, v = heads(w, layer, x)
        x = after(w, layer, x, attention(q, k, v, seen))
    return norm(w, "ln_f", x) @ w["wte"].T


def loss(w: Any, tokens: Any, targets: Any) -> Any:
    """Return the mean cross-entropy."""
    rows = jax.nn.log_softmax(logits(w, tokens))
    return -rows[jnp.arange(len(targets)), targets].mean()


def decode(w: Any, token: Any) -> Any:
    """Return the tokens that follow."""
    shape = (CONFIG.layers, CONFIG.heads, STEPS, CONFIG.depth)

    def step(carry: Any, place: Any) -> Any:
        token, keys, values = carry
        x = w["wte"][token][None] + w["wpe"][place][None]
        seen = jnp.arange(STEPS) <= place
        for layer in range(CONFIG.layers):
            q, k, v = heads(w, layer, x)
            keys = jax.lax.dynamic_update_slice(keys, k[None], (layer, 0, place, 0))
            values = jax.lax.dynamic_update_slice(values, v[None], (layer, 0, place, 0))
            x = after(w, layer, x, attention(q, keys[layer], values[layer], seen))
        following = (norm(w, "ln_f", x) @ w["wte"].T).argmax().astype(jnp.int32)
        return (following, keys, values), following

    start = (token, jnp.zeros(shape), jnp.zeros(shape))
    return jax.lax.scan(step, start, jnp.arange(STEPS))[1]


def main() -> None:
    """Compile the three functions and time them."""
    weights = {name: jnp.asarray(array) for name, array in GIVEN.weights.items()}
    tokens, targets, token = jnp.asarray(GIVEN.tokens), jnp.asarray(GIVEN.targets), jnp.int32(1)
    start = time.perf_counter()
    forward = jax.jit(logits).lower(weights, tokens).compile()
    train = jax.jit(jax.value_and_grad(loss)).lower(weights, tokens, targets).compile()
    decoding = jax.jit(decode).lower(weights, token).compile()
    made = time.perf_counter() - start
    report(
        made,
        lambda: forward(weights, tokens).block_until_ready(),
        lambda: jax.block_until_ready(train(weights, tokens, targets)),
        lambda: decoding(weights, token).block_until_ready(),
    )


main()
