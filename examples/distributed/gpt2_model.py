"""GPT-2 as functions that each rank of a mesh ``data=N,model=M`` runs: tensor parallel, the Megatron way.

The ranks along ``model`` divide the heads of attention, the inner columns of the feed-forward layers, and the
rows of the embedding; what goes along the layers, f32[batch, length, width], all of them have. Each attention
and each feed-forward layer ends in one sum over them. Ranks along ``data`` have other sequences of the batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.ir.sharding import Sharding

Weights: TypeAlias = dict[str, Any]
#: The shape and the sharding of each weight, by name.
Table: TypeAlias = dict[str, tuple[tuple[int, ...], str]]

EPSILON = 1e-5
#: What AdamW forgets of gradients and of their squares, keeps from zero, and takes off weights.
_FIRST, _SECOND, _LEAST, _DECAY = 0.9, 0.95, 1e-8, 0.1


@dataclass(frozen=True)
class Gpt:
    """The size of a model, and of the mesh that runs it.

    Attributes:
        layers: How many layers there are.
        width: The width of what goes along them.
        heads: How many heads attention has.
        vocabulary: How many tokens there are; GPT-2's 50,257 and some more, so that ranks can divide them.
        context: How many tokens are seen at once.
        mesh: The ranks.
    """

    layers: int = 12
    width: int = 768
    heads: int = 12
    vocabulary: int = 50304
    context: int = 1024
    mesh: mind_mlir.Mesh = field(default_factory=lambda: mind_mlir.Mesh("data=1,model=1"))

    @property
    def is_divided(self) -> bool:
        """Return whether several ranks have a layer together."""
        return self.mesh.axes["model"] > 1


def table(config: Gpt) -> Table:
    """Return the shape and the sharding of each weight, by name."""
    width, inner, depth = config.width, 4 * config.width, config.width // config.heads
    plain: Table = {"g": ((width,), ""), "b": ((width,), "")}
    found: Table = {"wte": ((config.vocabulary, width), "model"), "wpe": ((config.context, width), "")}
    for layer in range(config.layers):
        found |= {f"{layer}.ln_1.{name}": each for name, each in plain.items()}
        found |= {
            f"{layer}.qkv.w": ((width, 3, config.heads, depth), "*,*,model"),
            f"{layer}.qkv.b": ((3, config.heads, depth), "*,model"),
            f"{layer}.proj.w": ((config.heads, depth, width), "model"),
            f"{layer}.proj.b": ((width,), ""),
        }
        found |= {f"{layer}.ln_2.{name}": each for name, each in plain.items()}
        found |= {
            f"{layer}.fc.w": ((width, inner), "*,model"),
            f"{layer}.fc.b": ((inner,), "model"),
            f"{layer}.out.w": ((inner, width), "model"),
            f"{layer}.out.b": ((width,), ""),
        }
    return found | {f"ln_f.{name}": each for name, each in plain.items()}


def initial(config: Gpt, seed: int = 0) -> Weights:
    """Return weights as GPT-2 begins with, whole: normal with deviation 0.02, gains 1 and shifts 0."""
    random, found = np.random.default_rng(seed), {}
    for name, (shape, _) in table(config).items():
        if name.endswith(".g"):
            found[name] = np.ones(shape, np.float32)
        elif name.endswith(".b"):
            found[name] = np.zeros(shape, np.float32)
        else:
            found[name] = random.standard_normal(shape, np.float32) * np.float32(0.02)
    return found


def loss(weights: Weights, tokens: Any, config: Gpt) -> Any:
    """Return the mean cross-entropy of the tokens of a rank but the first, in nats.

    Args:
        weights: Its parts of the weights.
        tokens: Sequences, i32[batch, length + 1].
        config: The size.
    """
    seen = tokens[:, :-1]
    batch, length = seen.shape
    x = _summed(config, _own_rows(config, weights["wte"], seen)) + weights["wpe"][:length]
    for layer in range(config.layers):
        w = {name.partition(".")[2]: each for name, each in weights.items() if name.startswith(f"{layer}.")}
        x = x + _summed(config, _attention(w, _norm(w, "ln_1", x))) + w["proj.b"]
        hidden = _gelu(_norm(w, "ln_2", x) @ w["fc.w"] + w["fc.b"])
        x = x + _summed(config, hidden @ w["out.w"]) + w["out.b"]
    rows = _norm(weights, "ln_f", x).reshape(batch * length, config.width)
    return _cross_entropy(config, weights["wte"], rows, tokens[:, 1:].reshape(batch * length))


def _summed(config: Gpt, x: Any) -> Any:
    return mind_mlir.all_reduce(x, "model") if config.is_divided else x


def _norm(w: Weights, name: str, x: Any) -> Any:
    return mnp.layer_norm(x, w[f"{name}.g"], w[f"{name}.b"], epsilon=EPSILON, feature_axis=-1)


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1 + mnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def _attention(w: Weights, x: Any) -> Any:
    """Return what the heads of a rank add to the stream."""
    batch, length, width = x.shape
    _, _, heads, depth = w["qkv.w"].shape
    mixed = x @ w["qkv.w"].reshape(width, 3 * heads * depth) + w["qkv.b"].reshape(3 * heads * depth)
    q, k, v = (mixed.reshape(batch, length, 3, heads, depth)[:, :, part] for part in range(3))
    q, k, v = (each.transpose(0, 2, 1, 3) for each in (q, k, v))
    places = mnp.arange(length, dtype=np.int32)
    scores = mnp.where(places[:, None] >= places, q @ k.swapaxes(2, 3) / math.sqrt(depth), -math.inf)
    shares = mnp.exp(scores - mnp.stop_gradient(scores.max(axis=-1, keepdims=True)))
    attended = (shares / shares.sum(axis=-1, keepdims=True)) @ v
    rows = attended.transpose(0, 2, 1, 3).reshape(batch, length, heads * depth)
    return rows @ w["proj.w"].reshape(heads * depth, width)


def _own_places(config: Gpt, wte: Any, tokens: Any) -> tuple[Any, Any]:
    """Return where tokens are among the rows of a rank, and whether they are."""
    count = wte.shape[0]
    places = tokens - mind_mlir.axis_index("model").astype(np.int32) * count
    return places.clip(0, count - 1), (places >= 0) & (places < count)


def _own_rows(config: Gpt, wte: Any, tokens: Any) -> Any:
    """Return the rows of tokens that a rank has; others are zeros."""
    if not config.is_divided:
        return wte[tokens]
    places, are_own = _own_places(config, wte, tokens)
    return mnp.where(are_own[..., None], wte[places], 0)


def _cross_entropy(config: Gpt, wte: Any, rows: Any, targets: Any) -> Any:
    """Return the mean cross-entropy; each rank has the logits of its own tokens."""
    logits = rows @ wte.T
    highest = mnp.stop_gradient(logits).max(axis=-1, keepdims=True)
    if config.is_divided:
        highest = mind_mlir.all_reduce(highest, "model", kind="max")
        places, are_own = _own_places(config, wte, targets)
    else:
        places, are_own = targets, None
    centred = logits - mnp.stop_gradient(highest)
    right = mnp.take_along_axis(centred, places[:, None], axis=-1)[:, 0]
    right = right if are_own is None else mnp.where(are_own, right, 0)
    total = _summed(config, mnp.exp(centred).sum(axis=-1))
    return (mnp.log(total) - _summed(config, right)).mean()


def step(config: Gpt) -> Any:
    """Return a step of AdamW as each rank makes it.

    It takes and returns the weights and both moments; and takes tokens, the rate and the number of the step,
    which is 1 at first, and returns the mean loss before.
    """
    axes = [name for name, size in config.mesh.axes.items() if size > 1]
    shardings = {name: Sharding(spec) for name, (_, spec) in table(config).items()}

    def run(weights: Weights, moments: Any, tokens: Any, rate: Any, number: Any) -> tuple[Any, Any, Any]:
        # Gradients are those of the sum over all ranks: of the mean, where each has its share of it.
        value, slopes = mind_mlir.value_and_grad(lambda w: loss(w, tokens, config) / config.mesh.size)(
            weights
        )
        updated, kept = {}, {}
        for name, slope in slopes.items():
            equal = ",".join(axis for axis in axes if axis not in shardings[name].names)
            whole = mind_mlir.all_reduce(slope, equal) if equal else slope
            first = _FIRST * moments[name][0] + (1 - _FIRST) * whole
            second = _SECOND * moments[name][1] + (1 - _SECOND) * whole * whole
            change = (first / (1 - _FIRST**number)) / (mnp.sqrt(second / (1 - _SECOND**number)) + _LEAST)
            if len(slope.shape) > 1 and not name.endswith(".b"):
                change = change + _DECAY * weights[name]
            updated[name], kept[name] = weights[name] - rate * change, (first, second)
        return mind_mlir.all_reduce(value, ",".join(axes)) if axes else value, updated, kept

    return run
