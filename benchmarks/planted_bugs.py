"""Plants bugs in the compiler, and lets `mind-mlir reduce` find the least of a program that shows each.

    python -m benchmarks.planted_bugs [--seconds 60]

A bug is a wrong numpy rule, which compiled code then differs from, or a lowering that raises. The program is
a network with attention, a loop and its gradient, of some hundred operations. The command fails where of any
bug more than five operations are left.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.ops.registry import by_opcode
from mind_mlir.passes.reduction.errors import reducible_form
from mind_mlir.passes.reduction.parts import operation_count
from mind_mlir.passes.reduction.search import reduced
from mind_mlir.passes.verify import verify
from mind_mlir.support.options import CompileOptions
from mind_mlir.tools.cli.given import random_inputs
from mind_mlir.tools.reducing.outcomes import Failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir import Module

#: The operations whose rules are broken, and which: ``evaluate`` says something else, ``lower`` raises.
BUGS = (
    *((opcode, "evaluate") for opcode in ("Add", "Mul", "Exp", "Sum", "MatMul", "Transpose", "Tanh", "Mean")),
    *((opcode, "evaluate") for opcode in ("Gather", "ScatterAdd", "Concat", "Dot")),
    *(
        (opcode, "lower")
        for opcode in ("Sub", "Div", "Sqrt", "Reduce", "BroadcastTo", "Select", "MatMul", "Tanh")
    ),
)
MOST_LEFT = 5


def network(x: Any, w: Any, v: Any, at: Any) -> Any:
    """Return a number that attention, a norm, a loop and a gather make."""
    scores = (x @ w) @ x.T / np.float32(4)
    shifted = mnp.exp(scores - scores.max(1, keepdims=True))
    mixed = (shifted / shifted.sum(1, keepdims=True)) @ x
    norm = (mixed - mixed.mean(1, keepdims=True)) / mnp.sqrt(mixed.var(1, keepdims=True) + np.float32(1e-5))
    state = mind_mlir.fori_loop(0, 3, lambda _, h: mnp.tanh(h @ w) + np.float32(0.5) * h, norm)
    both = mnp.concatenate([state, mnp.maximum(norm, 0)], axis=1)
    picked = mnp.where(both[at] > 0, both[at], v) * v
    return picked.reshape(-1).sum()


def program() -> Module:
    """Return the network with its gradient, as a module."""
    random = np.random.default_rng(0)
    x, w = random.standard_normal((12, 16)), random.standard_normal((16, 16))
    v, at = random.standard_normal((12, 32)), random.integers(0, 12, 12)
    function = mind_mlir.value_and_grad(network, argnums=(0, 1))
    return mind_mlir.jit(function).lower(*(each.astype(np.float32) for each in (x, w, v)), at).module


def planted(opcode: str, rule: str) -> Callable[[], None]:
    """Break a rule of a record; return what mends it."""
    record = by_opcode()[opcode]
    right = getattr(record, rule)

    def wrong(*given: Any) -> Any:
        if rule == "lower":
            raise RuntimeError("a planted bug")
        value = np.array(right(*given))
        value.flat[:1] += 1
        return value

    object.__setattr__(record, rule, wrong)
    return lambda: object.__setattr__(record, rule, right)


def shown(opcode: str, rule: str, module: Module, seconds: float) -> tuple[str, int, float]:
    """Return what a planted bug shows as, how many operations are left of ``module``, and after how long."""
    start, mend = time.monotonic(), planted(opcode, rule)
    try:
        failure = Failure(module, CompileOptions(), partial(random_inputs, seed=0), 20.0)
        smallest = reduced(module, failure.shows_in, seconds=seconds)
    finally:
        mend()
    return failure.outcome.kind, operation_count(smallest), time.monotonic() - start


def main() -> int:
    """Plant all bugs, and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each may take")
    seconds = parser.parse_args().seconds
    module = reducible_form(verify(program()))
    print(f"{operation_count(module)} operations")
    most = 0
    for opcode, rule in BUGS:
        kind, left, took = shown(opcode, rule, module, seconds)
        print(f"{rule:<9} {opcode:<12} {kind:<15} {left:>3} operations left after {took:5.1f} s", flush=True)
        most = max(most, left if kind != "right" else sys.maxsize)
    return int(most > MOST_LEFT)


if __name__ == "__main__":
    sys.exit(main())
