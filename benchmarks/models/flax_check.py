"""What becomes of a network of flax: forward, gradients and a step of an optimiser, and times."""

from __future__ import annotations

import time
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import mind_mlir
from benchmarks.models.judging import absent, compared, stage_of
from benchmarks.models.outcome import RIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from benchmarks.models.child import Request
    from benchmarks.models.outcome import Stage

#: Large beside gradients that are nothing but rounding: Adam would make steps of them as long as of others.
_EPSILON = 1e-2


def check(request: Request, say: Callable[..., None]) -> None:
    """Build a network, and say what became of each stage."""
    try:
        file, _, function = request.entry.architecture.partition(".")
        module, args = getattr(import_module(f"benchmarks.models.networks.{file}"), function)(
            **request.entry.settings(real=request.real)
        )
        variables = enlivened(jax.jit(module.init)(jax.random.key(0), *args))
        # What a process does once is in nobody's time: jax has compiled by now.
        mind_mlir.compile(mind_mlir.from_jax(jnp.sin, jnp.ones(3)))
        say(parameters=sum(each.size for each in jax.tree.leaves(variables.get("params", {}))))
    except Exception as error:
        say(forward=absent(error))
        return
    run = _stage(say, {"forward": slice(None)}, request, module.apply, (variables, *args))
    if request.narrow:
        given = jax.tree.map(partial(_cast, dtype=jnp.bfloat16), (variables, *args))
        _stage(say, {"bf16": slice(None)}, request, module.apply, given)
    if request.gradients and request.entry.trains:
        _training(say, request, module, variables, args)
    if run is not None and request.peers:
        _times(say, request.threads, *run)


def _training(say: Callable[..., None], request: Request, module: Any, variables: Any, args: Any) -> None:
    """Compare loss, gradients and one step, all of which are one function."""
    learner = module.clone(training=True) if hasattr(module, "training") else module
    others = {name: each for name, each in variables.items() if name != "params"}
    optimiser = optax.adam(1e-2, eps=_EPSILON)

    def loss(params: Any, *given: Any) -> Any:
        results, updates = learner.apply({"params": params, **others}, *given, mutable=list(others))
        leaves = [each for each in jax.tree.leaves(results) if jnp.issubdtype(each.dtype, jnp.floating)]
        return sum(
            (each * jnp.sin(1.0 + jnp.arange(each.size)).reshape(each.shape)).mean() for each in leaves
        ), updates

    def step(params: Any, state: Any, *given: Any) -> Any:
        (value, updates), slopes = jax.value_and_grad(loss, has_aux=True)(params, *given)
        changes, state = optimiser.update(slopes, state, params)
        return (value, slopes), (optax.apply_updates(params, changes), state, updates)

    params = variables["params"]
    count = 1 + len(jax.tree.leaves(params))
    parts = {"gradients": slice(0, count), "step": slice(count, None)}
    _stage(say, parts, request, step, (params, optimiser.init(params), *args))


def _stage(
    say: Callable[..., None],
    parts: Mapping[str, slice],
    request: Request,
    function: Callable[..., Any],
    args: Sequence[Any],
) -> Any:
    """Compare a function, whose results belong to stages by ``parts``.

    Returns:
        Ours, the arrays that it takes, jax's, and what that takes; None where something is not right.
    """
    first = next(iter(parts))
    jitted = jax.jit(function)
    try:
        start = time.perf_counter()
        theirs = jitted.lower(*args).compile()
        expected = _arrays(theirs(*args))
        seconds = {"jax": time.perf_counter() - start}
    except Exception as error:
        say(**{first: absent(error)})
        return None
    given = [np.asarray(each) for each in jax.tree.leaves(tuple(args))]
    try:
        start = time.perf_counter()
        compiled = mind_mlir.compile(mind_mlir.from_jax(function, *args), threads=request.threads)
        results = compiled(*given)
        seconds = {"ours": time.perf_counter() - start, **seconds}
    except Exception as error:
        say(**{first: stage_of(error)})
        return None
    if first == "forward" and "jax" in request.peers:
        say(compile_seconds=seconds)
    found = list(results) if isinstance(results, (list, tuple)) else [results]

    def exact() -> list[NDArray[Any]]:
        # In bf16, f32 is exact enough: networks may keep parts of f32, which no other float would fit.
        wide = jnp.float32 if first == "bf16" else jnp.float64
        with jax.enable_x64(first != "bf16"):
            return _arrays(jax.jit(function)(*jax.tree.map(partial(_cast, dtype=wide), tuple(args))))

    stages = {name: _compared(found, expected, exact, part) for name, part in parts.items()}
    say(**stages)
    right = all(stage.state == RIGHT for stage in stages.values())
    return (compiled, given, theirs, args) if right else None


def _compared(
    found: list[NDArray[Any]],
    expected: list[NDArray[Any]],
    exact: Callable[[], list[NDArray[Any]]],
    part: slice,
) -> Stage:
    return compared(found[part], expected[part], lambda: exact()[part])


def _times(say: Callable[..., None], threads: int, compiled: Any, given: Any, theirs: Any, args: Any) -> None:
    from benchmarks.models.timing import by_turns  # noqa: PLC0415 -- only where times are wanted

    calls = {"ours": lambda: compiled(*given), "jax": lambda: jax.block_until_ready(theirs(*args))}
    say(**by_turns(calls, threads))


def enlivened(variables: Any) -> Any:
    """Return variables of which none is as it starts: zero, or one."""
    draws = np.random.default_rng(0)

    def moved(path: Any, leaf: Any) -> Any:
        small = draws.standard_normal(leaf.shape) * 0.1
        if leaf.ndim > 1 or not jnp.issubdtype(leaf.dtype, jnp.floating):
            return leaf
        name = str(path[-1].key)
        return leaf + jnp.asarray(np.abs(small) if name == "var" else small, leaf.dtype)

    return jax.tree_util.tree_map_with_path(moved, variables)


def _arrays(results: Any) -> list[NDArray[Any]]:
    return [np.asarray(each) for each in jax.tree.leaves(results)]


def _cast(leaf: Any, dtype: Any) -> Any:
    """Return an array of numbers of another float, or of integers as they are."""
    return jnp.asarray(leaf, dtype if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else None)
