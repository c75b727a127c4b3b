"""The workloads as functions of jax, for the frameworks that compile these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.peers.references import HEADS, SEQUENCE, WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from benchmarks.peers.workloads import Workload


def _layer_norm(x: Any, g: Any, b: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * g + b


def _attention(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax((q * 0.125) @ k.swapaxes(-1, -2), -1) @ v


def _causal(q: Any, k: Any, v: Any) -> Any:
    scores = (q * 0.125) @ k.swapaxes(-1, -2)
    below = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jax.nn.softmax(jnp.where(below, scores, -jnp.inf), -1) @ v


def _depthwise(x: Any, w: Any) -> Any:
    channels, layout = w.shape[-1], ("NHWC", "HWIO", "NHWC")
    filters = w[:, :, None, :]
    return lax.conv_general_dilated(
        x, filters, (1, 1), "SAME", dimension_numbers=layout, feature_group_count=channels
    )


def _heat(start: Any, rate: Any) -> Any:
    def step(state: Any) -> Any:
        now, count, _ = state
        neighbours = (now[:-2, 1:-1] + now[2:, 1:-1]) + (now[1:-1, :-2] + now[1:-1, 2:])
        change = jnp.pad(rate * (neighbours - 4 * now[1:-1, 1:-1]), 1)
        return now + change, count + 1, (change * change).sum()

    def moving(state: Any) -> Any:
        return (state[2] > 1e-12) & (state[1] < 5000)

    now, count, _ = lax.while_loop(moving, step, (start, jnp.int64(0), jnp.float64(jnp.inf)))
    return now, count


def _training(data: Any, labels: Any, weights: Any, rate: Any) -> Any:
    def step(number: Any, state: Any) -> Any:
        now, momentum = state
        first = number % 4 * 16
        x, y = lax.dynamic_slice_in_dim(data, first, 16), lax.dynamic_slice_in_dim(labels, first, 16)
        slope = (1 / (1 + jnp.exp(-(x @ now))) - y) @ x / 16
        momentum = 0.9 * momentum - rate * slope
        return now + momentum, momentum

    weights, _ = lax.fori_loop(0, 20, step, (weights, jnp.zeros_like(weights)))
    z = data @ weights
    return weights, (jnp.log(1 + jnp.exp(z)) - labels * z).mean()


def _perceptron(x: Any, *parameters: Any) -> Any:
    for place in range(0, len(parameters), 2):
        x = x @ parameters[place] + parameters[place + 1]
        x = x if place + 2 == len(parameters) else jax.nn.relu(x)
    return x


def _gradients(x: Any, t: Any, *parameters: Any) -> Any:
    def loss(given: Any) -> Any:
        return ((_perceptron(x, *given) - t) ** 2).mean()

    value, slopes = jax.value_and_grad(loss)(parameters)
    return (value, *slopes)


def _block(x: Any, g1: Any, b1: Any, wa: Any, ba: Any, *rest: Any) -> Any:
    wp, bp, g2, b2, wf, bf, wo, bo = rest
    mixed = _layer_norm(x, g1, b1) @ wa + ba
    heads = (1, SEQUENCE, HEADS, WIDTH // HEADS)
    q, k, v = (part.reshape(heads).transpose(0, 2, 1, 3) for part in jnp.split(mixed, 3, -1))
    scores = (q @ k.swapaxes(-1, -2)) * 0.125
    scores = jnp.where(jnp.tril(jnp.ones((SEQUENCE, SEQUENCE), bool)), scores, -1e30)
    attended = (jax.nn.softmax(scores, -1) @ v).transpose(0, 2, 1, 3).reshape(1, SEQUENCE, WIDTH)
    x = x + (attended @ wp + bp)
    return x + (jax.nn.gelu(_layer_norm(x, g2, b2) @ wf + bf, approximate=True) @ wo + bo)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "scalar": lambda x: x * 2 + 1,
    "product": lambda a, b: a @ b,
    "chain": lambda x, a, b, c: jnp.maximum(x * a + b, 0) * jnp.exp(-c * x) + x,
    "softmax": lambda x: jax.nn.softmax(x, -1),
    "layer_norm": _layer_norm,
    "sum_axis0": lambda x: x.sum(0),
    "sum_axis1": lambda x: x.sum(1),
    "mean": lambda x: x.mean(),
    "transpose": lambda x: x.T,
    "attention": _attention,
    "causal": _causal,
    "depthwise": _depthwise,
    "perceptron": _perceptron,
    "gradients": _gradients,
    "gather": lambda tab, idx: tab[idx],
    "scatter": lambda g, idx: jnp.zeros((50000, 256), jnp.float32).at[idx].add(g),
    "block": _block,
    "heat": _heat,
    "training": _training,
}


def _convolution(stride: int) -> Callable[[Any, Any], Any]:
    layout = ("NHWC", "HWIO", "NHWC")
    return lambda x, w: lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=layout)


def jax_function(workload: Workload) -> Callable[..., Any]:
    """Return the function that computes ``workload``."""
    return _FUNCTIONS.get(workload.kind) or _convolution(workload.stride)


def precision(workload: Workload) -> AbstractContextManager[Any]:
    """Return the context in which ``workload`` keeps its dtypes: jax makes f64 f32 unless it is told."""
    kept: AbstractContextManager[Any] = jax.enable_x64(workload.kind in ("heat", "training"))
    return kept
