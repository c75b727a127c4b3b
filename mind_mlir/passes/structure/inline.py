"""Puts functions in the place of calls of them, where that is small or where there is only one call.

Before: a module in structured form without recursion. After: the same, in which calls of functions of at most
`MAX_INLINED` operations, and of internal functions that are called once, have become the operations of the
function. Callees come first, so what is small is judged with what has been put into it. A call becomes at
most `MAX_INLINED` operations, and a function that is called once moves: the module grows by no more than that
factor.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.analysis.call_graph import CallGraph, callee_of, operations_of
from mind_mlir.interrupts import deliver
from mind_mlir.ir.module import Block, Functions, Return
from mind_mlir.ir.regions import MAX_NESTING, depth_of
from mind_mlir.passes.structure.emission import Emission
from mind_mlir.passes.structure.graph import value_types

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.module import CoreOperation, Function, Module, ValueId
    from mind_mlir.ir.types import TensorType

#: The most operations that take the place of one call.
MAX_INLINED = 16


def inline_calls(module: Module, *, every: bool = False) -> Module:
    """Return a module in structured form with fewer calls; the functions without calls stay in it.

    Args:
        module: The module.
        every: Whether functions of any size take the place of all calls, but where regions would nest too
            deeply. The module may then grow exponentially (`inlined_size`).
    """
    called = Counter(callee for function in module.functions for callee in _calls(function))
    if not called:
        return module
    small: dict[str, _Small] = {}
    done: dict[str, Function] = {}
    for function in CallGraph.of(module.functions).callees_first():
        finished = _Inliner(small).function(function)
        done[function.name] = finished
        once = called[function.name] == 1 and not function.public
        if every or once or sum(1 for _ in operations_of(finished.blocks)) <= MAX_INLINED:
            small[function.name] = _Small(finished)
    if all(done[function.name] is function for function in module.functions):
        return module
    return replace(module, functions=Functions(done[function.name] for function in module.functions))


def inlined_size(module: Module) -> int:
    """Return how many operations the exported functions have with functions in the place of all calls."""
    size: dict[str, int] = {}
    for function in CallGraph.of(module.functions).callees_first():
        called = sum(size[callee] for callee in _calls(function))
        size[function.name] = sum(1 for _ in operations_of(function.blocks)) + called
    return sum(size[function.name] for function in module.functions if function.public)


def _calls(function: Function) -> list[str]:
    return [name for operation in operations_of(function.blocks) if (name := callee_of(operation))]


class _Small:
    """A function whose operations take the place of calls."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.types = value_types(function)
        self.depth = max(map(depth_of, function.entry.operations), default=0)


class _Inliner(Emission):
    """Writes a function anew, with the operations of small callees."""

    def __init__(self, small: Mapping[str, _Small]) -> None:
        super().__init__()
        self.small = small

    def function(self, function: Function) -> Function:
        if not any(callee in self.small for callee in _calls(function)):
            return function
        entry, types = function.entry, value_types(function)
        parameters = [
            replace(self.parameter(parameter), name=parameter.name) for parameter in entry.parameters
        ]
        for operation in entry.operations:
            self.copy(operation, types)
        returned = [self.value(self.now[value], types[value]) for value in entry.terminator.operands]
        block = Block(tuple(self.operations), Return(tuple(returned)), tuple(parameters), entry.label)
        return replace(function, blocks=(block,))

    def copy(self, operation: CoreOperation, types: Mapping[ValueId, TensorType]) -> None:
        small = self.small.get(callee_of(operation) or "")
        if small is None or len(self.scopes) - 1 + small.depth > MAX_NESTING:
            super().copy(operation, types)
            return
        callee = small.function
        deliver()
        arguments = [self.now[value] for value in operation.operands]
        outer, self.now = self.now, {}
        scope = self.scopes[-1].shadowed
        self.scopes[-1].shadowed = []
        for parameter, argument in zip(callee.parameters, arguments, strict=True):
            self.now[parameter.value_id] = argument
        for inlined in callee.entry.operations:
            super().copy(inlined, small.types)
        returned = [self.now[value] for value in callee.entry.terminator.operands]
        self.now, self.scopes[-1].shadowed = outer, scope
        for value, result in zip(operation.result_ids, returned, strict=True):
            self.bind(value, result)
