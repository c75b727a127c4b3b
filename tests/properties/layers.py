"""Networks as functions of Python: blocks of convolutions, attention with masks, gates, losses and steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import mind_mlir
import mind_mlir.numpy as np
from mind_mlir.ir.types import DType, TensorType

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from mind_mlir import Module

Layer: TypeAlias = "Callable[[Any, dict[str, Any]], Any]"


class Network:
    """A network in the making.

    Attributes:
        types: The types of its weights and masks, by name.
        layers: What it does, one after the other.
        shape: The shape of what the layers so far give.
    """

    def __init__(self, rng: Random, shape: tuple[int, ...]) -> None:
        self.types: dict[str, TensorType] = {}
        self.layers: list[Layer] = []
        self.shape = shape
        self._rng = rng

    def weight(self, *shape: int, dtype: DType = DType.F32) -> str:
        """Return the name of another weight, or mask."""
        name = f"w{len(self.types)}"
        self.types[name] = TensorType(dtype, shape)
        return name

    def activation(self) -> Callable[[Any], Any]:
        """Return some function of elements."""
        functions: list[Callable[[Any], Any]] = [
            *(np.tanh, np.relu, np.logistic),
            lambda x: x * np.logistic(x),
            lambda x: np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0))),
            lambda x: np.clip(x, -1.0, 1.0),
            lambda x: 0.5 * x * (1.0 + np.erf(x * 0.7071)),
        ]
        return self._rng.choice(functions)

    def normalised(self) -> None:
        """Add a normalisation of rows, or of everything but features."""
        axes = (len(self.shape) - 1,) if self._rng.random() < 0.6 else tuple(range(len(self.shape) - 1))
        scale = self.weight(self.shape[-1])

        def layer(x: Any, w: dict[str, Any]) -> Any:
            centred = x - np.mean(x, axis=axes, keepdims=True)
            return centred * np.rsqrt(np.mean(centred * centred, axis=axes, keepdims=True) + 1e-3) * w[scale]

        self.layers.append(layer)

    def dense(self, width: int) -> None:
        """Add a product with weights, a bias and an activation."""
        weight, bias, act = self.weight(self.shape[-1], width), self.weight(width), self.activation()
        self.layers.append(lambda x, w: act(x @ w[weight] + w[bias]))
        self.shape = (*self.shape[:-1], width)

    def gated(self) -> None:
        """Add a gate beside what is there already."""
        depth = self.shape[-1]
        one, other, act = self.weight(depth, depth), self.weight(depth, depth), self.activation()
        self.layers.append(lambda x, w: x + act(x @ w[one]) * (x @ w[other]))

    def dropped(self) -> None:
        """Add a mask of elements."""
        mask = self.weight(*self.shape, dtype=DType.I1)
        self.layers.append(lambda x, w: np.where(w[mask], x / 0.75, 0.0))

    def convolved(self) -> None:
        """Add a convolution, an activation, and some pooling."""
        _, height, width, depth = self.shape
        extent, out = self._rng.choice([1, 3]), self._rng.choice([4, 8])
        weight, act = self.weight(extent, extent, depth, out), self.activation()
        pools = self._rng.random() < 0.5 and min(height, width) >= 4
        window = {"window_dims": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding_low": [0] * 4}
        window |= {"padding_high": [0] * 4, "base_dilation": [1] * 4, "window_dilation": [1] * 4}

        def layer(x: Any, w: dict[str, Any]) -> Any:
            y = act(np.conv2d(x, w[weight], strides=[1, 1], padding="same"))
            return np.reduce_window(y, reduce="Max", **window) if pools else y

        self.layers.append(layer)
        self.shape = (self.shape[0], *((height // 2, width // 2) if pools else (height, width)), out)

    def attended(self) -> None:
        """Add attention, whose scores are hidden by masks as frameworks write them."""
        batch, length, depth = self.shape
        parts = [self.weight(depth, depth) for _ in range(4)]
        kind = self._rng.choice(["none", "causal", "full", "keys", "queries", "dead"])
        shapes = {"full": (length, length), "keys": (batch, 1, length), "queries": (batch, length)}
        mask = self.weight(*shapes.get(kind, (length, length)), dtype=DType.I1)

        def layer(x: Any, w: dict[str, Any]) -> Any:
            q, k, v = (x @ w[each] for each in parts[:3])
            scores = q @ np.swapaxes(k, -1, -2) * (depth**-0.5)
            if kind == "causal":
                places = np.arange(length)
                scores = np.where(np.expand_dims(places, 1) >= places, scores, -np.inf)
            elif kind in ("full", "keys"):
                scores = np.where(w[mask], scores, -1e9)
            elif kind == "queries":
                scores = np.where(np.expand_dims(w[mask], -1), scores, -1e9)
            elif kind == "dead":  # rows in which nothing is seen give zeros
                scores = np.where(w[mask], scores, -1e9)
                seen = np.any(scores > -1e8, axis=-1, keepdims=True)
            weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
            weights = weights / np.sum(weights, axis=-1, keepdims=True)
            if kind == "dead":
                weights = np.where(seen, weights, 0.0)
            return x + (weights @ v) @ w[parts[3]]

        self.layers.append(layer)

    def __call__(self, x: Any, weights: dict[str, Any]) -> Any:
        """Return what the layers give."""
        for layer in self.layers:
            x = layer(x, weights)
        return x


def layers(rng: Random) -> Module:
    """Return a network, its loss and gradient, or a step of training."""
    batch = rng.choice([1, 2, 4])
    image = (batch, rng.choice([6, 9, 16]), rng.choice([8, 16]), rng.choice([1, 3]))
    rows = (batch, rng.choice([7, 16, 33]), rng.choice([8, 16]))
    network = Network(rng, rng.choice([image, rows, rows]))
    given = network.shape
    blocks: list[Callable[[], None]] = [network.gated, network.normalised, network.dropped]
    for _ in range(rng.randint(1, 3) if len(given) == 4 else 0):
        network.convolved()
        rng.choice(blocks)()
    if len(given) == 4:
        flat = (batch, network.shape[1] * network.shape[2], network.shape[3])
        network.layers.append(lambda x, _: np.reshape(x, flat))
        network.shape = flat
    for _ in range(rng.randint(1, 3)):
        rng.choice([network.attended, network.attended, *blocks])()
    network.dense(rng.choice([8, 16]))
    mask = network.weight(*network.shape[:-1], dtype=DType.I1)

    def loss(weights: dict[str, Any], x: Any, masks: dict[str, Any]) -> Any:
        y = network(x, weights | masks)
        shifted = y - np.max(y, axis=-1, keepdims=True)
        logs = shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))
        seen = np.where(masks[mask], logs[..., 0], 0.0)
        return -np.sum(seen) / np.maximum(np.sum(np.astype(masks[mask], np.float32)), 1.0)

    def step(weights: dict[str, Any], x: Any, masks: dict[str, Any]) -> Any:
        value, slopes = mind_mlir.value_and_grad(loss)(weights, x, masks)
        norm = sum(np.sum(each * each) for each in slopes.values())
        least = np.minimum(1.0, 1.0 / np.sqrt(norm + 1e-6))
        return value, {name: weights[name] - 0.1 * least * each for name, each in slopes.items()}

    forms: list[Callable[..., Any]] = [lambda weights, x, masks: network(x, weights | masks)]
    forms += [mind_mlir.value_and_grad(loss), step, step]
    weights = {name: type_ for name, type_ in network.types.items() if type_.dtype is not DType.I1}
    masks = {name: type_ for name, type_ in network.types.items() if type_.dtype is DType.I1}
    function = mind_mlir.jit(rng.choice(forms))
    return function.lower(weights, TensorType(DType.F32, given), masks).module
