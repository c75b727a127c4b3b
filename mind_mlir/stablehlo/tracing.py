"""`from_jax`: what a Python function does with arrays, as jax sees it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from mind_mlir import border
from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.stablehlo.importing import from_stablehlo
from mind_mlir.stablehlo.rules.control import STOP_GRADIENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mind_mlir.ir.module import Module

#: What jax calls the primitive of `jax.lax.stop_gradient`.
_STOPS = "stop_gradient"


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
    return from_stablehlo(_lowered(jitted, examples).as_text(), name="<jax>")


def _lowered(jitted: Any, examples: Sequence[Any]) -> Any:
    """Return what jax lowers ``jitted`` to, with a custom call where gradients stop: jax itself writes nothing.

    Without these calls, `differentiate` would know nothing of the barriers that the function names.
    """
    from jax.extend import core  # noqa: PLC0415 -- as in `from_jax`

    if not hasattr(jitted, "trace"):  # what `jax.pmap` makes can be lowered alone
        return jitted.lower(*examples)
    traced = jitted.trace(*examples)
    if all(equation.primitive.name != _STOPS for equation in _equations(traced.jaxpr, core)):
        return traced.lower()
    import jax  # noqa: PLC0415 -- as in `from_jax`

    marked = jax.jit(core.jaxpr_as_fun(_marked(traced.jaxpr, core, _barrier())), keep_unused=True)
    return marked.lower(*traced.jaxpr.in_avals)


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


def _equations(part: Any, core: Any) -> Iterator[Any]:
    """Yield the equations of whatever jaxprs ``part`` is or holds, those of inner ones too."""
    if isinstance(part, core.ClosedJaxpr):
        yield from _equations(part.jaxpr, core)
    elif isinstance(part, core.Jaxpr):
        for equation in part.eqns:
            yield equation
            yield from _equations(tuple(equation.params.values()), core)
    elif type(part) in (tuple, list):
        for each in part:
            yield from _equations(each, core)


def _marked(part: Any, core: Any, barrier: Any) -> Any:
    """Return ``part`` with ``barrier`` in the place of each `stop_gradient` in the jaxprs that it is or holds."""
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
    return equation.replace(
        params={name: _marked(value, core, barrier) for name, value in equation.params.items()}
    )
