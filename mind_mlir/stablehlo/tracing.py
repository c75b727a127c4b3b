"""`from_jax`: what a Python function does with arrays, as jax sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir import border
from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.stablehlo.importing import from_stablehlo

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.module import Module


@public
def from_jax(function: Callable[..., Any], *examples: Any) -> Module:
    """Return what ``function`` does with arguments of the types of ``examples``, as a module.

    Its function ``main`` takes the arrays that the arguments are made of (`jax.tree.leaves`), in order, and
    returns those of the result.

    Args:
        function: What `jax.jit` takes.
        examples: Arrays, or trees of them; `jax.ShapeDtypeStruct` does as well.

    Raises:
        UnsupportedError: E7003, jax is not installed; E7001, it does what cannot be read.
        TypeError: ``function`` cannot be called.
    """
    if not callable(function):
        border.reject("function", "a function that jax can trace", function)
    try:
        import jax  # noqa: PLC0415 -- only here, and only where somebody asks
    except ImportError:
        raise UnsupportedError(
            Diagnostic("E7003", "jax is not installed", help="run: pip install jax")
        ) from None
    jitted = function if hasattr(function, "lower") else jax.jit(function, keep_unused=True)
    return from_stablehlo(jitted.lower(*examples).as_text(), name="<jax>")
