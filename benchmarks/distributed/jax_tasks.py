"""The tasks by jax: arrays divided over a mesh, of which each process has a device; gloo connects them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from benchmarks.distributed.child import RATE, arguments, factors, serve, tokens

if TYPE_CHECKING:
    from collections.abc import Callable

OPTIONS = arguments()
WIDTH, HEADS, VOCABULARY, CONTEXT = 768, 12, 50304, 1024
EPSILON = 1e-5


def initial() -> dict[str, Any]:
    """Return weights to begin with."""
    random = np.random.default_rng(0)
    shapes = {"wte": (VOCABULARY, WIDTH), "wpe": (CONTEXT, WIDTH), "ln_f.g": (WIDTH,), "ln_f.b": (WIDTH,)}
    for layer in range(OPTIONS.layers):
        matrices = {"qkv": (WIDTH, 3 * WIDTH), "proj": (WIDTH, WIDTH)}
        matrices |= {"fc": (WIDTH, 4 * WIDTH), "out": (4 * WIDTH, WIDTH)}
        shapes |= {f"{layer}.{name}.w": shape for name, shape in matrices.items()}
        shapes |= {f"{layer}.{name}.b": shape[1:] for name, shape in matrices.items()}
        shapes |= {f"{layer}.{norm}.{part}": (WIDTH,) for norm in ("ln_1", "ln_2") for part in "gb"}
    return {
        name: random.standard_normal(shape, np.float32) * np.float32(0.02) + np.float32(name.endswith(".g"))
        for name, shape in shapes.items()
    }


def norm(w: Any, name: str, x: Any) -> Any:
    """Apply a layer norm."""
    centred = x - x.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + EPSILON)
    return centred * scale * w[f"{name}.g"] + w[f"{name}.b"]


def affine(w: Any, name: str, x: Any) -> Any:
    """Apply a product and a bias."""
    return x @ w[f"{name}.w"] + w[f"{name}.b"]


def loss(w: Any, given: Any) -> Any:
    """Return the mean cross-entropy."""
    seen = given[:, :-1]
    batch, length = seen.shape
    x = w["wte"][seen] + w["wpe"][:length]
    mask = jnp.tril(jnp.ones((length, length), bool))
    for layer in range(OPTIONS.layers):
        mixed = affine(w, f"{layer}.qkv", norm(w, f"{layer}.ln_1", x))
        q, k, v = mixed.reshape(batch, length, 3, HEADS, WIDTH // HEADS).transpose(2, 0, 3, 1, 4)
        scores = jnp.where(mask, q @ k.swapaxes(2, 3) / np.float32(np.sqrt(WIDTH // HEADS)), -jnp.inf)
        attended = jax.nn.softmax(scores, -1) @ v
        x = x + affine(w, f"{layer}.proj", attended.transpose(0, 2, 1, 3).reshape(batch, length, WIDTH))
        inner = jax.nn.gelu(affine(w, f"{layer}.fc", norm(w, f"{layer}.ln_2", x)), approximate=True)
        x = x + affine(w, f"{layer}.out", inner)
    rows = jax.nn.log_softmax(norm(w, "ln_f", x) @ w["wte"].T)
    return -jnp.take_along_axis(rows, given[:, 1:, None], -1).mean()


def step(w: Any, moments: Any, given: Any, number: Any) -> tuple[Any, Any, Any]:
    """Make a step of AdamW."""
    value, slopes = jax.value_and_grad(loss)(w, given)
    first = {name: 0.9 * moments[0][name] + 0.1 * slope for name, slope in slopes.items()}
    second = {name: 0.95 * moments[1][name] + 0.05 * slope * slope for name, slope in slopes.items()}
    moved = {}
    for name in w:
        change = first[name] / (1 - 0.9**number) / (jnp.sqrt(second[name] / (1 - 0.95**number)) + 1e-8)
        moved[name] = w[name] - RATE * (change + (0.1 * w[name] if name.endswith(("w", "e")) else 0))
    return value, moved, (first, second)


def gpt2(mesh: Any) -> Callable[[], object]:
    """Return what makes a step of training: devices share the batch."""
    everywhere, divided = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("x",)))
    state: Any = _placed((initial(), ({}, {})), everywhere)
    zeros = {name: jnp.zeros_like(each) for name, each in state[0].items()}
    state = (state[0], (zeros, dict(zeros)))
    given = _placed(tokens(OPTIONS), divided)
    run, number = jax.jit(step, donate_argnums=(0,)), 0

    def advance() -> None:
        nonlocal state, number
        number += 1
        value, *state = run(*state, given, jnp.float32(number))
        jax.block_until_ready((value, state))

    return advance


def product(mesh: Any) -> Callable[[], object]:
    """Return what multiplies: devices share the columns."""
    everywhere = NamedSharding(mesh, PartitionSpec())
    columns = NamedSharding(mesh, PartitionSpec(None, "x"))
    x, w = factors(OPTIONS)
    given = _placed(x, everywhere), _placed(w, columns)
    result = everywhere if OPTIONS.task == "gathered product" else columns
    run = jax.jit(jnp.matmul, out_shardings=result)
    return lambda: run(*given).block_until_ready()


def _placed(tree: Any, sharding: Any) -> Any:
    """Return arrays that all processes have whole, divided."""

    def place(array: Any) -> Any:
        return jax.make_array_from_callback(array.shape, sharding, lambda where: array[where])

    return jax.tree_util.tree_map(place, tree)


if OPTIONS.processes > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"localhost:{OPTIONS.port}", OPTIONS.processes, OPTIONS.rank)
devices = Mesh(np.array(jax.devices()), ("x",))
serve(
    OPTIONS,
    OPTIONS.rank,
    (lambda: multihost_utils.sync_global_devices("turn")) if OPTIONS.processes > 1 else list,
    gpt2(devices) if OPTIONS.task == "gpt2" else product(devices),
)
