"""jax: `jax.jit` on XLA's CPU backend; its threads are set by the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
from jax import lax

from benchmarks.peers.peer import Prepared
from benchmarks.peers.references import HEADS, SEQUENCE, WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.peers.workloads import Array, Workload


def _layer_norm(x: Any, g: Any, b: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * g + b


def _attention(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax((q * 0.125) @ k.swapaxes(-1, -2), -1) @ v


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
    "perceptron": _perceptron,
    "gradients": _gradients,
    "gather": lambda tab, idx: tab[idx],
    "scatter": lambda g, idx: jnp.zeros((50000, 256), jnp.float32).at[idx].add(g),
    "block": _block,
}


def _convolution(stride: int) -> Callable[[Any, Any], Any]:
    layout = ("NHWC", "HWIO", "NHWC")
    return lambda x, w: lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=layout)


class JaxPeer:
    """jax."""

    versions: Mapping[str, str] = {"jax": jax.__version__, "jaxlib": jaxlib.__version__}

    def prepare(self, workload: Workload) -> Prepared:
        """See `Peer`."""
        arguments = jax.block_until_ready([jax.device_put(array) for array in workload.inputs().values()])
        jitted = jax.jit(_FUNCTIONS.get(workload.kind) or _convolution(workload.stride))
        if workload.kind == "gradients":
            return Prepared(lambda: jax.block_until_ready(jitted(*arguments)), _arrays, None, True)
        return Prepared(lambda: jitted(*arguments).block_until_ready(), _arrays, None, True)


def _arrays(result: Any) -> list[Array]:
    return [np.asarray(each) for each in (result if isinstance(result, tuple) else (result,))]


def peer(_name: str, _threads: int) -> JaxPeer:
    """Return the peer, warm."""
    jax.jit(lambda x: x - 3)(np.ones(17, np.float32)).block_until_ready()
    return JaxPeer()
