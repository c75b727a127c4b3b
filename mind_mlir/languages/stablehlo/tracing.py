"""`from_jax`: what a Python function does with arrays, as jax sees it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.languages.stablehlo.importing import from_stablehlo
from mind_mlir.languages.stablehlo.rules.control import STOP_GRADIENT
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module

#: What jax calls the primitive of `jax.lax.stop_gradient`.
_STOPS = "stop_gradient"


@public
def from_jax(function: Callable[..., Any], *examples: Any) -> Module:
    """Return what ``function`` does with arguments of the types of ``examples``, as a module.

    Its function ``main`` takes the arrays that the arguments are made of (`jax.tree.leaves`), in order, and
    returns those of the result.

    Args:
        function: What `jax.jit` takes, or what it returns: arguments that it is told are static are none of
            the module's, all others are, used or not.
        examples: Arrays, or trees of them; `jax.ShapeDtypeStruct` does as well.

    Raises:
        UnsupportedError: E7003, jax is not installed; E7001, it does what cannot be read.
        TypeError: ``function`` cannot be called.
    """
    if not callable(function):
        argument_checks.reject("function", "a function that jax can trace", function)
    try:
        import jax  # noqa: PLC0415 -- only here, and only where somebody asks
    except ImportError:
        raise UnsupportedError(
            Diagnostic("E7003", "jax is not installed", help="run: pip install jax")
        ) from None
    # What is jitted already would drop the arguments that it does not use, were it lowered itself.
    traced = (function if hasattr(function, "trace") else jax.jit(function)).trace(*examples).jaxpr
    marked = jax.jit(_with_barriers(traced), keep_unused=True)
    shapes = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in traced.in_avals]
    return from_stablehlo(marked.lower(*shapes).as_text(), name="<jax>")


def _with_barriers(traced: Any) -> Callable[..., Any]:
    """Return the function that ``traced`` is, with a custom call where gradients stop: jax writes nothing.

    Without these calls `differentiate` would know nothing of the barriers that a function names.
    """
    from jax.extend import core  # noqa: PLC0415 -- as in `from_jax`

    function: Callable[..., Any] = core.jaxpr_as_fun(_marked(traced, core, _barrier()))
    return function


@cache
def _barrier() -> Any:
    """Return the primitive that stands for jax's own `stop_gradient`, and is lowered to a custom call."""
    from jax.extend.core import Primitive  # noqa: PLC0415 -- as in `from_jax`
    from jax.ffi import ffi_lowering  # noqa: PLC0415 -- as in `from_jax`
    from jax.interpreters.mlir import register_lowering  # noqa: PLC0415 -- as in `from_jax`

    barrier = Primitive(STOP_GRADIENT)
    barrier.def_abstract_eval(lambda operand: operand)
    register_lowering(barrier, ffi_lowering(STOP_GRADIENT))
    return barrier


def _marked(part: Any, core: Any, barrier: Any) -> Any:
    """Return ``part`` with ``barrier`` for each `stop_gradient` in the jaxprs that it is or holds."""
    if isinstance(part, core.ClosedJaxpr):
        return part.replace(jaxpr=_marked(part.jaxpr, core, barrier))
    if isinstance(part, core.Jaxpr):
        return part.replace(eqns=[_marked_equation(equation, core, barrier) for equation in part.eqns])
    if type(part) in (tuple, list):
        return type(part)(_marked(each, core, barrier) for each in part)
    return part


def _marked_equation(equation: Any, core: Any, barrier: Any) -> Any:
    if equation.primitive.name == _STOPS:
        return equation.replace(primitive=barrier)
    inner = {name: _marked(value, core, barrier) for name, value in equation.params.items()}
    return equation.replace(params=inner)
