"""Gradients of functions of Python: `grad`, `value_and_grad` and `vjp`."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.runtime.staged import StagedFunction
from mind_mlir.runtime.staged_method import StagedMethod
from mind_mlir.support import argument_checks
from mind_mlir.tracing.jit import JitFunction, unbound

if TYPE_CHECKING:
    from mind_mlir.runtime.open_function import OpenFunction
    from mind_mlir.runtime.staged_gradient import GradientFunction, Pullback

P = ParamSpec("P")
R = TypeVar("R")

#: The attribute of a function that keeps what it is compiled as.
_KNOWN = "__mind_mlir_jit__"


@public
def grad(function: Callable[P, R], argnums: Any = 0) -> GradientFunction[P, Any]:
    """Return the function of the same arguments that returns gradients of ``function``.

    It is compiled, as by `mind_mlir.jit`, and may be differentiated again. Within a function that is traced,
    it becomes part of that, and ``function`` may read arrays around it.

    Args:
        function: A function that returns one float, of rank 0.
        argnums: The argument to differentiate with respect to, by its place or name; a tuple for several,
            whose gradients come as a tuple. Of a container of arrays, the gradient is such a container.

    Returns:
        A function. Its call raises, beside what a call of ``function`` does, an `AutodiffError`: E5005, an
        argument of ``argnums`` holds no floats; E5103, the result is not one float; or as
        `mind_mlir.differentiate`.

    Raises:
        TypeError: ``function`` cannot be called, or ``argnums`` is not of the type above.
        ValueError: ``argnums`` names no parameter, or a static one.
    """
    return cast("GradientFunction[P, Any]", staged_function(function).grad(argnums))


@public
def value_and_grad(function: Callable[P, R], argnums: Any = 0) -> GradientFunction[P, tuple[R, Any]]:
    """Return the function that returns a pair of what ``function`` does, and gradients; as `grad`."""
    return cast("GradientFunction[P, tuple[R, Any]]", staged_function(function).value_and_grad(argnums))


@public
def vjp(function: Callable[..., R], /, *args: Any, **kwargs: Any) -> tuple[R, Pullback]:
    """Return what ``function`` returns for arguments, and a function from cotangents of that to theirs.

    Args:
        function: A function of arrays and containers of arrays.
        args: Its arguments.
        kwargs: Arguments by name, which have no cotangents.

    Returns:
        The result, and a function that takes its cotangent, in the form of the result, and returns a tuple
        with the cotangent of each of ``args``, in the form of that; None for one that holds no floats.

    Raises:
        TypeError: ``function`` cannot be called; or as its call.
    """
    return staged_function(function).vjp(*args, **kwargs)


def staged_function(function: object) -> StagedFunction | StagedMethod[..., Any] | OpenFunction[..., Any]:
    """Return a function as one that is compiled, the same each time."""
    # An `OpenFunction`, too, has gradients of its own; few programs load one.
    if isinstance(function, (StagedFunction, StagedMethod)) or hasattr(type(function), "value_and_grad"):
        return cast("StagedFunction", function)
    plain, subject = unbound(function)
    if subject is not None:
        made = staged_function(plain)
        assert isinstance(made, StagedFunction), "functions are bound once"
        return StagedMethod(made, subject)
    if not callable(function):
        argument_checks.reject("function", "callable", function)
    if not isinstance(function, FunctionType):
        return JitFunction(function)
    known = function.__dict__.get(_KNOWN)
    # What wraps another function may have taken over its attributes.
    if not isinstance(known, JitFunction) or known.__wrapped__ is not function:
        known = function.__dict__[_KNOWN] = JitFunction(function)
    return known
