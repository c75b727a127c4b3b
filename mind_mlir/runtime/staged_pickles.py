"""The signatures that a function has been compiled for, as its pickles hold them.

What of a signature other processes may not know stays behind, and is compiled there: objects of a caller's as
static arguments, containers of a class that no module has by its name, and programs that read objects.
"""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Hashable, Iterable, Sequence
from enum import Enum
from functools import lru_cache, partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.runtime.staged_calls import StagedProgram
from mind_mlir.runtime.staged_values import WeakType

if TYPE_CHECKING:
    from mind_mlir.runtime.binding_cache import BindingCache
    from mind_mlir.support.pytrees import Form

#: What static arguments are that travel, and tuples of these.
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.dtype, DType)


def found(module: str | None, name: str) -> object:
    """Return what a module that has been loaded calls by a qualified name; None where there is nothing."""
    return reduce(
        lambda thing, part: getattr(thing, part, None), name.split("."), sys.modules.get(module or "")
    )


def named(module: str, name: str) -> object:
    """Return what a module calls by a qualified name, as pickles do."""
    return reduce(getattr, name.split("."), importlib.import_module(module))


def with_state(function: Any, made: Any, state: Sequence[Any]) -> Any:
    """Return what `__reduce__` does: what makes a function anew, be it its name alone, and then its state."""
    if not state:
        return made
    return (*(made if isinstance(made, tuple) else (named, (function.__module__, made))), state)


def travels(form: Form) -> bool:
    """Return whether other processes know all that a form is made of."""
    return (form.container is None or _is_known(form.container.cls)) and (
        all(_is_plain(value) for _, value in form.fixed) and all(map(travels, form.parts))
    )


def _classes(form: Form) -> set[type]:
    """Return the classes that a form refers to."""
    values = [value if isinstance(value, type) else type(value) for _, value in form.fixed]
    own = {form.container.cls, *values} if form.container else set()
    return own.union(*map(_classes, form.parts))


def _is_known(cls: type) -> bool:
    return cls is type(None) or found(cls.__module__, cls.__qualname__) is cls


def _is_plain(value: object) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return type(value) in (tuple, frozenset) and all(map(_is_plain, value))
    if isinstance(value, (type, Enum)):
        return _is_known(value if isinstance(value, type) else type(value))
    return isinstance(value, np.dtype) or type(value) in _PLAIN


def signatures(programs: Iterable[StagedProgram]) -> list[tuple[Any, ...]]:
    """Return the programs that travel, as a pickle holds them."""
    return [
        (each.signature, each.executable)
        for each in programs
        if each.reads is None and (each.signature is not None or _sign(each))
    ]


def _sign(program: StagedProgram) -> bool:
    """Write down the signature of a program, if it travels: schedulers pickle a function for each call."""
    facts = program.arguments, program.types, program.returned
    if not (travels(program.arguments) and travels(program.returned)):
        return False
    # Pickles of classes of `__main__` are the business of who makes them.
    is_shared = not any(cls.__module__ == "__main__" for form in facts[::2] for cls in _classes(form))
    program.signature = pickle.dumps(facts) if is_shared else facts
    return True


@lru_cache(maxsize=1024)
def _read(signature: bytes) -> tuple[Any, ...]:
    facts: tuple[Any, ...] = pickle.loads(signature)  # noqa: S301 -- a pickle held it
    return facts


def kinds_of(types: Sequence[TensorType]) -> tuple[Hashable, ...]:
    """Return what of arguments of some types decides on the program (see `as_arrays`)."""
    return tuple([each if isinstance(each, WeakType) else (each.dtype.numpy, each.shape) for each in types])


def take_signatures(
    programs: BindingCache[Hashable, list[StagedProgram]], given: Iterable[tuple[Any, ...]]
) -> bool:
    """Take programs that came with a pickle; return whether others were there, which no call runs any more.

    A worker may have the function of another run, or of another sender: what was sent is what runs.
    """
    replaced = False
    for signature, executable in given:
        arguments, types, returned = _read(signature) if isinstance(signature, bytes) else signature
        made = [StagedProgram(executable, arguments, types, returned, None, signature)]
        known = programs.get((arguments, kinds_of(types)), partial(list, made))
        if not any(each.executable.is_same(executable) for each in known):
            known[:], replaced = made, True
    return replaced
