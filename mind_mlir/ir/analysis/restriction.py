"""The part of a module that some of its functions need."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.call_graph import CallGraph
from mind_mlir.ir.entry import entry_function
from mind_mlir.ir.module import Functions

if TYPE_CHECKING:
    from mind_mlir.ir.module import Function, Module


def restricted(module: Module, *names: str | None) -> Module:
    """Return what functions need of ``module``, as the only ones exported; with None, all of it.

    The module need not be well-formed.

    Raises:
        VerificationError: There is no such function (E2002), or it is not exported (E2101).
        TypeError: A name is neither a string nor None.
    """
    if any(name is None for name in names):
        return module
    chosen = {entry_function(module, name).name for name in names}
    if len(module.functions) == 1:
        return module
    needed = CallGraph.of(module.functions).reached(chosen)
    functions = [
        function if function.name in chosen else _internalized(function)
        for function in module.functions
        if function.name in needed
    ]
    if len(functions) == len(module.functions) and all(map(operator.is_, functions, module.functions)):
        return module
    return replace(module, functions=Functions(functions))


def _internalized(function: Function) -> Function:
    """Return a function that is not exported; its parameters are no arguments of callers any more."""
    if not function.public:
        return function
    if not function.blocks:
        return replace(function, public=False)
    entry, *others = function.blocks
    parameters = tuple(replace(parameter, name=None) for parameter in entry.parameters)
    return replace(function, public=False, blocks=(replace(entry, parameters=parameters), *others))
