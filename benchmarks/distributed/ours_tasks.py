"""The tasks by this compiler: in one process, plain programs; in several, a rank in each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
from benchmarks.distributed.child import RATE, arguments, factors, serve, tokens
from examples.distributed.gpt2 import state_of, stepper
from examples.distributed.gpt2_model import Gpt, step
from mind_mlir import distributed

if TYPE_CHECKING:
    from collections.abc import Callable

OPTIONS = arguments()


def gpt2() -> Callable[[], object]:
    """Return what makes a step of training: ranks share the batch."""
    mesh = mind_mlir.Mesh({"data": OPTIONS.processes, "model": 1})
    config = replace(Gpt(layers=OPTIONS.layers), mesh=mesh)
    run: Any = mind_mlir.jit(step(config)) if OPTIONS.processes == 1 else stepper(config)
    state, given, number = state_of(config), tokens(OPTIONS), 0

    def advance() -> None:
        nonlocal state, number
        number += 1
        _, *state = run(*state, given, np.float32(RATE), np.float32(number))

    return advance


def multiplied(x: Any, w: Any) -> Any:
    """Return a product."""
    return x @ w


def product() -> Callable[[], object]:
    """Return what multiplies: ranks share the columns."""
    x, w = factors(OPTIONS)
    if OPTIONS.processes == 1:
        plain: Any = mind_mlir.jit(multiplied)
        return lambda: plain(x, w)
    mesh = mind_mlir.Mesh({"model": OPTIONS.processes})
    gather = OPTIONS.task == "gathered product"
    divided: Any = mind_mlir.shard_map(multiplied, mesh, ("", "*,model"), "*,model", gather=gather)
    part = mind_mlir.shard(w, mesh, "*,model")
    return lambda: divided(x, part)


serve(
    OPTIONS,
    distributed.process_index(),
    distributed.barrier,
    gpt2() if OPTIONS.task == "gpt2" else product(),
)
