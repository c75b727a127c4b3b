"""The canonical form of a module of functions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.call_graph import CallGraph
from mind_mlir.ir.module import Functions
from mind_mlir.passes.canonical.body import Code
from mind_mlir.passes.canonical.liveness import prune
from mind_mlir.passes.canonical.numbering import numbered
from mind_mlir.passes.canonical.simplify import simplify

if TYPE_CHECKING:
    from mind_mlir.ir.module import Function, Module


def canonical_functions(module: Module) -> Module:
    """Return the canonical form of a verified module of functions."""
    return reachable(replace(module, functions=Functions(map(canonical_function, module.functions))))


def canonical_function(function: Function) -> Function:
    """Return the canonical form of a verified function.

    Rounds go on as long as they find something that may lead to more: a few, unless loops nest deeply.
    """
    code = Code.of(function)
    while True:
        code.changed = False
        simplify(code)
        _resolve(code)
        prune(code)
        if not code.changed:
            return numbered(code, function)


def _resolve(code: Code) -> None:
    for body in code.bodies.values():
        body.terminator = code.resolved(body.terminator)
        body.operations = [code.renamed(operation) for operation in body.operations]


def reachable(module: Module) -> Module:
    """Return a module without the functions that no exported one calls, directly or not."""
    graph = CallGraph.of(module.functions)
    pending = [function.name for function in module.functions if function.public]
    reached = set(pending)
    while pending:
        for callee in graph.calls[pending.pop()]:
            if callee not in reached:
                reached.add(callee)
                pending.append(callee)
    if len(reached) == len(module.functions):
        return module
    kept = Functions(function for function in module.functions if function.name in reached)
    return replace(module, functions=kept)
