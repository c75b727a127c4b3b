"""Weights of the decoder: from a GGUF file under llama.cpp's names, or random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

import mind_mlir
from examples.models.llama.config import Config, ModelError, config_of

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The weights that a dtype is asked for with.
DTYPES: dict[str, Any] = {"f32": np.dtype(np.float32), "bf16": np.dtype(ml_dtypes.bfloat16)}
#: What a layer's weights are called here and in files.
_NAMES = {
    "attention_norm": "attn_norm",
    "query": "attn_q",
    "key": "attn_k",
    "value": "attn_v",
    "attention_output": "attn_output",
    "gated_norm": "ffn_norm",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
}


def layer_shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a layer's weights, by name."""
    queries, keys = config.heads * config.depth, config.groups * config.depth
    return {
        "attention_norm": (config.width,),
        "query": (queries, config.width),
        "key": (keys, config.width),
        "value": (keys, config.width),
        "attention_output": (config.width, queries),
        "gated_norm": (config.width,),
        "gate": (config.hidden, config.width),
        "up": (config.hidden, config.width),
        "down": (config.width, config.hidden),
    }


def read_weights(weights: Mapping[str, Any], metadata: Mapping[str, Any], dtype: Any) -> tuple[Config, Any]:
    """Return the size and the weights of a model in a GGUF file.

    Args:
        weights: What `mind_mlir.load_weights` has mapped.
        metadata: What the file says else.
        dtype: What matrices are multiplied as; None for as they are in the file.

    Raises:
        ModelError: A tensor is missing, of another shape, or one that this decoder does not know.
    """
    if "token_embd.weight" not in weights:
        raise ModelError("the file has no token_embd.weight, so it is no language model of llama.cpp")
    config = config_of(metadata, weights["token_embd.weight"].shape[0])
    table = (config.vocabulary, config.width)
    dtype = dtype or _usual(weights.get("blk.0.attn_q.weight", None))
    known = {"token_embd.weight", "output_norm.weight", "output.weight", "rope_freqs.weight"}

    def take(name: str, shape: tuple[int, ...]) -> Any:
        known.add(name)
        if name not in weights:
            raise ModelError(f"the file has no tensor '{name}'")
        if weights[name].shape != shape:
            raise ModelError(f"'{name}' has shape {list(weights[name].shape)}, expected {list(shape)}")
        return multiplied(weights[name], dtype if len(shape) == 2 else DTYPES["f32"])

    layers = [
        {
            name: take(f"blk.{number}.{_NAMES[name]}.weight", shape)
            for name, shape in layer_shapes(config).items()
        }
        for number in range(config.layers)
    ]
    embedding = take("token_embd.weight", table)
    output = take("output.weight", table) if "output.weight" in weights else embedding
    norm = take("output_norm.weight", (config.width,))
    factors = np.ones(config.depth // 2, np.float32)
    if "rope_freqs.weight" in weights:
        factors = take("rope_freqs.weight", factors.shape)
    if others := sorted(weights.keys() - known):
        raise ModelError(f"the model has '{others[0]}' and {len(others) - 1} more, which this decoder lacks")
    return config, {
        "embedding": embedding,
        "layers": layers,
        "norm": norm,
        "output": output,
        "factors": factors,
    }


def _usual(weight: Any) -> Any:
    """Return what a file's matrices are multiplied as: bf16 where they are that, else f32."""
    return DTYPES["bf16" if getattr(weight, "dtype", None) == DTYPES["bf16"] else "f32"]


def multiplied(weight: Any, dtype: Any) -> Any:
    """Return a weight as products read it: as the file has it where that is of the dtype, else a copy."""
    if isinstance(weight, mind_mlir.QuantizedWeights):
        weight = weight.dequantized()
    return weight if weight.dtype == dtype else weight.astype(dtype)


def random_weights(config: Config, dtype: Any, seed: int = 0) -> Any:
    """Return random weights, with which activations keep their size."""
    random = np.random.default_rng(seed)

    def matrix(shape: tuple[int, ...]) -> Any:
        values = random.standard_normal(shape, np.float32)
        values *= shape[1] ** -0.5
        return values.astype(dtype, copy=False)

    def layer() -> dict[str, Any]:
        return {
            name: matrix(shape) if len(shape) == 2 else np.ones(shape, np.float32)
            for name, shape in layer_shapes(config).items()
        }

    table = (config.vocabulary, config.width)
    return {
        "embedding": matrix(table),
        "layers": [layer() for _ in range(config.layers)],
        "norm": np.ones(config.width, np.float32),
        "output": matrix(table),
        "factors": np.ones(config.depth // 2, np.float32),
    }
