"""Functions that append to the trace that runs, and run by themselves where there is none.

Outside of a function that is traced, a function is compiled for the dtypes and shapes of its arguments, once,
and run: so its results are those of a larger program, to the last bit.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Mapping
from itertools import takewhile
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.attributes import frozen
from mind_mlir.numpy.documentation import described
from mind_mlir.ops.registry import by_opcode
from mind_mlir.runtime.staged_values import STAGE, StagedValue
from mind_mlir.support import argument_checks
from mind_mlir.tracing.conversion import as_array, weak_dtype
from mind_mlir.tracing.jit import JitFunction
from mind_mlir.tracing.trace import Trace

P = ParamSpec("P")
R = TypeVar("R")

_ARRAYS = {np.ndarray}

#: For so many dtypes and shapes a function is kept that has been compiled by itself.
_MAX_SIGNATURES = 256


def spelled(*opcodes: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function out of what appends operations with numpy's arguments for them.

    Args:
        opcodes: The operations that it is for; the first one documents it.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        made = cast("Any", callable_anywhere(function))
        made.__doc__ = described(by_opcode()[opcodes[0]], function.__doc__)
        made.opcodes = opcodes
        return cast("Callable[P, R]", made)

    return decorate


def callable_anywhere(function: Callable[P, R]) -> Callable[P, R]:
    """Return ``function``, which appends operations, as one that runs by itself where nothing is traced.

    Its parameters that are annotated as arrays are arguments of what is compiled; the others are part of it.
    """
    run: Callable[..., Any] = function
    signature = inspect.signature(function)
    arrays = [name for name, each in signature.parameters.items() if "ArrayLike" in str(each.annotation)]
    places = [
        each.replace(kind=each.POSITIONAL_OR_KEYWORD, default=each.empty)
        for each in takewhile(
            lambda each: each.annotation.startswith("ArrayLike"), signature.parameters.values()
        )
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]

    @functools.cache
    def jitted() -> JitFunction[..., Any]:
        static = [name for name in signature.parameters if name not in arrays]
        return JitFunction(function, static=static, max_signatures=_MAX_SIGNATURES)

    @functools.cache
    def of_arrays(count: int) -> JitFunction[..., Any]:
        """Return the function of its first arrays alone, calls of which are native."""

        def first(*args: Any) -> Any:
            return run(*args)

        facts: Any = first
        facts.__name__ = function.__name__
        facts.__signature__ = inspect.Signature(places[:count])
        return JitFunction(first, max_signatures=_MAX_SIGNATURES)

    @public
    @functools.wraps(function)
    def anywhere(*args: Any, **kwargs: Any) -> Any:
        if isinstance(STAGE.get(), Trace):
            return run(*args, **kwargs)
        if not kwargs and 0 < len(args) <= len(places) and {*map(type, args)} == _ARRAYS:
            return of_arrays(len(args))(*args)
        bound = bind(function.__name__, signature, args, kwargs)
        for name, value in bound.arguments.items():
            parameter = signature.parameters[name]
            if name not in arrays:
                bound.arguments[name] = _hashable(value)
            elif parameter.annotation == "Sequence[ArrayLike]" or parameter.kind is parameter.VAR_POSITIONAL:
                several = argument_checks.items(value, name, "a sequence of arrays")
                bound.arguments[name] = tuple(map(_argument, several))
            else:
                bound.arguments[name] = _argument(value)
        return jitted()(*bound.args, **bound.kwargs)

    anywhere.__module__ = "mind_mlir.numpy"
    return cast("Callable[P, R]", anywhere)


def defined_in(module: Mapping[str, Any]) -> list[str]:
    """Return the functions of this kind that a module defines, by its globals."""
    made = {name: getattr(each, "__wrapped__", None) for name, each in module.items()}
    return sorted(
        name for name, each in made.items() if getattr(each, "__module__", "") == module["__name__"]
    )


def bind(
    name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> inspect.BoundArguments:
    """Return the arguments of a call by the parameters of the function called ``name``.

    Raises:
        TypeError: They do not fit.
    """
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}() {error}; it is {name}{signature}") from None


def _argument(array: Any) -> Any:
    """Return an argument as a function that is compiled takes it: lists of numbers are arrays."""
    is_one = array is None or isinstance(array, StagedValue) or weak_dtype(array) is not None
    return array if is_one else as_array(array)


def _hashable(value: Any) -> Hashable:
    """Return an argument that is no array as part of a key; what is none is refused when it is looked at."""
    found = frozen(value)
    return value if found is None else found
