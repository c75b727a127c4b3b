"""Puts functions that print in the place of all calls of them.

Before: a module. After: the same, in structured form where there were such calls. So nothing need look into
functions to know whether a call has an effect.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.effects import callees_of, printing_functions
from mind_mlir.ir.module import Functions
from mind_mlir.passes.structure.inline import inline_calls
from mind_mlir.passes.structure.module import structure_function

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module


def inline_effects(module: Module) -> Module:
    """Return a module, which has no recursion, without calls of functions that print."""
    if len(module.functions) == 1:
        return module
    printing = printing_functions(module.functions)
    if all(printing.isdisjoint(callees_of(function)) for function in module.functions):
        return module
    structured = replace(module, functions=Functions(tuple(map(structure_function, module.functions))))
    return inline_calls(structured, only=printing)
