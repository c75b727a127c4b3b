"""Weights of the decoder: from a GGUF file under llama.cpp's names, or random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

import mind_mlir
from examples.models.llama.config import Config, ModelError, config_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: The dtypes of matrices that are not quantised, and all that may be asked for.
DTYPES: dict[str, Any] = {"f32": np.dtype(np.float32), "bf16": np.dtype(ml_dtypes.bfloat16)}
QUANTIZED = ("Q8_0", "Q4_0")
FORMS = (*DTYPES, *QUANTIZED)
#: Arrays in one piece of memory begin at multiples of so many bytes.
_APART = 64
#: What a layer's weights are called here and in files.
FILE_NAMES = {
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


def read_weights(
    weights: Mapping[str, Any], metadata: Mapping[str, Any], dtype: str | None, *, copied: bool = False
) -> tuple[Config, Any]:
    """Return the size and the weights of a model in a GGUF file.

    Args:
        weights: What `mind_mlir.load_weights` has mapped.
        metadata: What the file says else.
        dtype: One of `FORMS`, which matrices are multiplied in; None for as they are in the file.
        copied: Whether matrices are copied to memory of their own, in large pages, which is read faster than
            a map of a file in small ones.

    Raises:
        ModelError: A tensor is missing, of another shape, or one that this decoder does not know.
    """
    if "token_embd.weight" not in weights:
        raise ModelError("the file has no token_embd.weight, so it is no language model of llama.cpp")
    config = config_of(metadata, weights["token_embd.weight"].shape[0])
    table = (config.vocabulary, config.width)
    known = {"token_embd.weight", "output_norm.weight", "output.weight", "rope_freqs.weight"}

    copies = _Copies(weights.values()) if copied else None

    def take(name: str, shape: tuple[int, ...]) -> Any:
        known.add(name)
        if name not in weights:
            raise ModelError(f"the file has no tensor '{name}'")
        if weights[name].shape != shape:
            raise ModelError(f"'{name}' has shape {list(weights[name].shape)}, expected {list(shape)}")
        found = multiplied(weights[name], dtype if len(shape) == 2 else "f32")
        return copies.copy(found) if copies else found

    layers = [
        {
            name: take(f"blk.{number}.{FILE_NAMES[name]}.weight", shape)
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


def multiplied(weight: Any, dtype: Any) -> Any:
    """Return a weight as products read it: as the file has it where that is as it should be, else a copy.

    Without a ``dtype``, f16 becomes f32, and everything else stays as it is.
    """
    is_quantized = isinstance(weight, mind_mlir.QuantizedWeights)
    if dtype is None:
        return weight if is_quantized or weight.dtype in DTYPES.values() else weight.astype(np.float32)
    if is_quantized:
        if dtype == weight.kind:
            return weight
        weight = weight.dequantized()
    if dtype in QUANTIZED:
        return mind_mlir.QuantizedWeights.of(weight, dtype)
    return weight if weight.dtype == DTYPES[dtype] else weight.astype(DTYPES[dtype])


class _Copies:
    """Copies of weights in one piece of memory, which is large enough to lie in large pages."""

    def __init__(self, weights: Iterable[Any]) -> None:
        self._free = np.empty(sum(each.nbytes + _APART for each in weights), np.uint8)

    def copy(self, weight: Any) -> Any:
        if isinstance(weight, mind_mlir.QuantizedWeights):
            return mind_mlir.QuantizedWeights(self.copy(weight.blocks), weight.kind)
        if weight.nbytes + _APART > self._free.nbytes:  # it is of another dtype than in the file
            return weight.copy()
        first = -self._free.ctypes.data % _APART
        place = self._free[first : first + weight.nbytes].view(weight.dtype).reshape(weight.shape)
        place[...] = weight
        self._free = self._free[first + weight.nbytes :]
        return place


def rows_of(weight: Any, rows: Any) -> Any:
    """Return some rows of a matrix, f32."""
    if isinstance(weight, mind_mlir.QuantizedWeights):
        return mind_mlir.QuantizedWeights(weight.blocks[rows], weight.kind).dequantized()
    return weight[rows].astype(np.float32)


def random_weights(config: Config, dtype: str, seed: int = 0) -> Any:
    """Return random weights in one of `FORMS`, with which activations keep their size."""
    random = np.random.default_rng(seed)

    def matrix(shape: tuple[int, ...]) -> Any:
        values = random.standard_normal(shape, np.float32)
        values *= shape[1] ** -0.5
        return multiplied(values, dtype)

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
