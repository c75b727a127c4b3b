"""Pickles of functions of Python that are compiled: what a module calls them, or what they are made of.

pickle refers to a function by its name. cloudpickle, which joblib, dask and others use, takes functions of
``__main__`` and local ones apart, as other processes know none of them; but it does so with plain functions
alone. So a plain function is what is pickled: a copy of the one that is compiled, which pickle finds as an
attribute.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from mind_mlir.runtime.staged_pickles import found

if TYPE_CHECKING:
    from mind_mlir.tracing.jit import JitFunction

#: The name of that attribute.
ATTRIBUTE = "plain_function"

#: The functions of which the keys are copies.
_OWNERS: WeakKeyDictionary[Any, JitFunction[..., Any]] = WeakKeyDictionary()


def made_of(function: JitFunction[..., Any], wrapped: Any, *, promotes: bool | None) -> Any:
    """Return what makes a function anew, as its `__reduce__` does."""
    name = str(getattr(function, "__qualname__", function.name))
    module = getattr(function, "__module__", None)
    if module != "__main__" and found(module, name) is function:
        return name
    is_named = (
        isinstance(wrapped, FunctionType) and found(wrapped.__module__, wrapped.__qualname__) is wrapped
    )
    plain = function.plain_function if isinstance(wrapped, FunctionType) and not is_named else wrapped
    return restored, (
        plain,
        function.options,
        tuple(sorted(function.static)),
        function.max_signatures,
        promotes,
    )


def copy_of(owner: JitFunction[..., Any], wrapped: FunctionType) -> FunctionType:
    """Return a copy of the function that ``owner`` compiles, called as an attribute of that."""
    made = FunctionType(
        wrapped.__code__, wrapped.__globals__, wrapped.__name__, wrapped.__defaults__, wrapped.__closure__
    )
    made.__kwdefaults__, made.__module__ = wrapped.__kwdefaults__, wrapped.__module__
    made.__annotations__, made.__doc__ = wrapped.__annotations__, wrapped.__doc__
    made.__qualname__ = f"{wrapped.__qualname__}.{ATTRIBUTE}"
    _OWNERS[made] = owner
    return made


def restored(
    plain: Any, options: Any, static: tuple[str, ...], max_signatures: int, promotes: bool
) -> JitFunction[..., Any]:
    """Return the function that a pickle holds: the one that there is, or another one."""
    from mind_mlir.tracing.jit import JitFunction  # noqa: PLC0415 -- which pickles by these

    known = _OWNERS.get(plain) if isinstance(plain, FunctionType) else None
    if known is not None:
        return known
    if isinstance(plain, FunctionType):
        plain.__qualname__ = plain.__qualname__.removesuffix(f".{ATTRIBUTE}")
    return JitFunction(plain, options, static=static, max_signatures=max_signatures, promotes=promotes)
