"""The decoder as one compiled function: some tokens after others, whose keys and values are at hand.

The keys and values of earlier tokens are only read, those of the new ones are returned, and who calls adds
them to the others: so nothing of the size of the cache is copied, whether there is one new token or many.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    from examples.models.llama.config import Config


@mind_mlir.jit(static_argnames="config")
def advance(params: Any, caches: Any, x: Any, past: Any, last: Any, turns: Any, *, config: Config) -> Any:
    """Return what follows tokens, and their keys and values.

    Args:
        params: The weights, as `examples.models.llama.weights` has them, without the embedding.
        caches: Keys and values of earlier tokens of each layer, f32 or bf16[2, groups, room, depth].
        x: The new ones, f32[count, width]: rows of the embedding.
        past: How many earlier ones there are, i32[]; the rest of the room is not looked at.
        last: Of which of the new tokens the logits are wanted, i32[].
        turns: Cosines and sines of the angles of the new positions, f32[2, count, depth / 2].
        config: The size of the model.

    Returns:
        Logits f32[vocabulary], and for each layer [2, groups, count, depth].
    """
    added = []
    for layer, cache in zip(params["layers"], caches, strict=True):
        q, k, v = _heads(layer, normalized(x, layer["attention_norm"], config), turns, config, cache.dtype)
        attended = _attention(q, k, v, cache, past, config)
        x = x + product(attended, layer["attention_output"])
        inner = normalized(x, layer["gated_norm"], config)
        gate = product(inner, layer["gate"])
        x = x + product(gate * mnp.logistic(gate) * product(inner, layer["up"]), layer["down"])
        added.append(mnp.stack([k, v]))
    final = normalized(x[last][None], params["norm"], config)
    return product(final, params["output"])[0], added


def product(x: Any, weight: Any) -> Any:
    """Return rows f32[count, inputs] times weights [outputs, inputs], f32; products are summed in f32.

    Quantised weights are read as they lie, and the rows rounded to 8 bits, a scale for each 32, as llama.cpp
    does it.
    """
    if isinstance(weight, mind_mlir.QuantizedWeights):
        kind: Any = weight.kind.lower()
        return mnp.quantized_matmul(x, weight.blocks, format=kind, activations="int8")
    return mnp.dot_general(
        x.astype(weight.dtype), weight, contract_lhs=(1,), contract_rhs=(1,), out_dtype=np.float32
    )


def normalized(x: Any, gain: Any, config: Config) -> Any:
    """Return rows divided by their root mean square, times a gain."""
    return x * mnp.rsqrt((x * x).mean(axis=-1, keepdims=True) + config.epsilon) * gain


def _heads(layer: Any, x: Any, turns: Any, config: Config, dtype: Any) -> tuple[Any, Any, Any]:
    """Return queries [groups, heads of a group * count, depth], keys and values [groups, count, depth]."""
    count, shared = x.shape[0], config.heads // config.groups
    q = product(x, layer["query"]).reshape(count, config.heads, config.depth)
    k, v = (product(x, layer[name]).reshape(count, config.groups, config.depth) for name in ("key", "value"))
    q = _turned(q, turns).reshape(count, config.groups, shared, config.depth).transpose(1, 2, 0, 3)
    k = _turned(k, turns).transpose(1, 0, 2)
    q = q.reshape(config.groups, shared * count, config.depth)
    return q.astype(dtype), k.astype(dtype), v.transpose(1, 0, 2).astype(dtype)


def _turned(x: Any, turns: Any) -> Any:
    """Return x[count, heads, depth], whose pairs of neighbours are turned by the angles of their position."""
    pairs = x.reshape(*x.shape[:2], x.shape[2] // 2, 2)
    cosines, sines = turns[0][:, None, :], turns[1][:, None, :]
    a, b = pairs[..., 0], pairs[..., 1]
    return mnp.stack([a * cosines - b * sines, a * sines + b * cosines], axis=-1).reshape(x.shape)


def _attention(q: Any, k: Any, v: Any, cache: Any, past: Any, config: Config) -> Any:
    """Return what each query sees of values, earlier ones and its own and those before it: f32[count, ...].

    Both parts share one softmax: the greatest score of either is taken off all.
    """
    groups, rows, depth = q.shape
    count, room, shared = k.shape[1], cache.shape[2], config.heads // config.groups
    earlier = _scores(q, cache[0])
    earlier = mnp.where(mnp.arange(room, dtype=np.int32) < past, earlier, -math.inf)
    own = _scores(q, k).reshape(groups, shared, count, count)
    places = mnp.arange(count, dtype=np.int32)
    own = mnp.where(places[:, None] >= places[None, :], own, -math.inf).reshape(groups, rows, count)
    most = mnp.maximum(earlier.max(axis=-1, keepdims=True), own.max(axis=-1, keepdims=True))
    earlier, own = mnp.exp(earlier - most), mnp.exp(own - most)
    total = earlier.sum(axis=-1, keepdims=True) + own.sum(axis=-1, keepdims=True)
    seen = (_mixed(earlier, cache[1]) + _mixed(own, v)) / total
    seen = seen.reshape(groups, shared, count, depth).transpose(2, 0, 1, 3)
    return seen.reshape(count, config.heads * depth)


def _scores(q: Any, k: Any) -> Any:
    found = mnp.dot_general(
        q, k, batch_lhs=(0,), batch_rhs=(0,), contract_lhs=(2,), contract_rhs=(2,), out_dtype=np.float32
    )
    return found * (1 / math.sqrt(q.shape[2]))


def _mixed(shares: Any, values: Any) -> Any:
    return mnp.dot_general(
        shares.astype(values.dtype),
        values,
        batch_lhs=(0,),
        batch_rhs=(0,),
        contract_lhs=(2,),
        contract_rhs=(1,),
        out_dtype=np.float32,
    )
