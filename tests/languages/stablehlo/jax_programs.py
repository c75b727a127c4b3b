"""Writes what the tests without jax read: StableHLO texts, arguments, and what jax gives for them.

python tests/languages/stablehlo/jax_programs.py        # where jax is installed
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax_functions import CASES
from jax_transformer import forward, loss, parameters
from recorded import PATH, Recorded, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Functions whose gradient our own `differentiate` makes, too.
DIFFERENTIATED = ("sin", "hypot", "std", "cumsum", "take", "pad", "matmul", "logsumexp", "gelu", "attention")


def functions() -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Yield every function that import is tested with: its name, itself, and its arguments."""
    for name, case in CASES.items():
        yield name, case.with_gradient(), case.arguments
    tree, tokens = parameters()
    yield "transformer", forward, (tree, tokens)
    yield "transformer_loss", jax.value_and_grad(loss), (_shortened(tree), tokens)


def scalars() -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Yield the functions to differentiate, which give one number."""
    for name in DIFFERENTIATED:
        case = CASES[name]
        yield name, lambda *given, case=case: case.scalar(*given)[0], case.arguments
    tree, tokens = parameters()
    yield "transformer_loss", loss, (_shortened(tree), tokens)


def _shortened(tree: Any) -> Any:
    """Return parameters whose table of positions is as long as the text that the loss looks at."""
    return {**tree, "posembed": tree["posembed"][:-1]}


def recorded(name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Recorded:
    """Return what jax makes of a function, and what that gives."""
    jitted = jax.jit(function, keep_unused=True)
    return Recorded(name, jitted.lower(*arguments).as_text(), leaves(arguments), leaves(jitted(*arguments)))


def leaves(tree: Any) -> list[Any]:
    """Return the arrays that a tree is made of."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def differentiated(name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Recorded:
    """Return what jax makes of a function that gives a number, and its gradient."""
    program = recorded(f"gradient of {name}", function, arguments)
    flat, tree = jax.tree.flatten(arguments)
    floats = [index for index, leaf in enumerate(flat) if leaf.dtype.kind == "f"]

    def of_leaves(*given: Any) -> Any:
        return function(*jax.tree.unflatten(tree, given))

    gradient = jax.jit(jax.grad(of_leaves, argnums=floats))(*flat)
    return Recorded(program.name, program.text, program.arguments, [*program.results, *leaves(gradient)])


if __name__ == "__main__":
    write(PATH, [*(recorded(*each) for each in functions()), *(differentiated(*each) for each in scalars())])
