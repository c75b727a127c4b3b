"""Puts functions in the place of calls of them, where that is small or where there is only one call.

Before: a module in structured form without recursion. After: the same, in which calls of functions of at most
`MAX_INLINED` operations, and of internal functions that are called once, have become the operations of the
function. Callees come first, so what is small is judged with what will be put into it. A call becomes at
most `MAX_INLINED` operations, and a function that is called once moves: the module grows by no more than that
factor.

What takes the place of calls is decided for all functions before anything is written; then each function that
stays is written once, with the functions that its calls give way to, however deep these lie below it: the
work is in proportion to what is written.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.call_graph import CallGraph, callee_of, operations_of
from mind_mlir.ir.module import Block, Functions, Return
from mind_mlir.ir.regions import MAX_NESTING, value_types
from mind_mlir.passes.structure.emission import Emission
from mind_mlir.support.interrupts import deliver
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from mind_mlir.ir.module import CoreOperation, Function, Module, ValueId
    from mind_mlir.ir.types import TensorType
    from mind_mlir.passes.structure.graph import Argument

#: The most operations that take the place of one call.
MAX_INLINED = 16


def inline_calls(module: Module, *, every: bool = False, only: Collection[str] | None = None) -> Module:
    """Return a module in structured form with fewer calls, and without the functions that nothing calls then.

    Args:
        module: The module.
        every: Whether functions of any size take the place of all calls, but where regions would nest too
            deeply. The module may then grow exponentially (`inlined_size`).
        only: The functions that take the place of all calls of them, however large; no others do.
    """
    called = Counter(callee for function in module.functions for callee in _calls(function))
    if not called:
        return module
    plans: dict[str, _Plan] = {}
    small: set[str] = set()
    for function in CallGraph.of(module.functions).callees_first():
        plan = plans[function.name] = _Plan.of(function, plans, small)
        once = called[function.name] == 1 and not function.public
        if (every or once or plan.size <= MAX_INLINED) if only is None else function.name in only:
            small.add(function.name)
    if not any(plan.inlined for plan in plans.values()):
        return module
    written: dict[str, Function] = {}
    pending = [function.name for function in module.functions if function.public]
    while pending:
        name = pending.pop()
        if name not in written:
            written[name] = _Inliner(plans, plans[name]).function()
            pending.extend(_calls(written[name]))
    kept = Functions(written[each.name] for each in module.functions if each.name in written)
    return replace(module, functions=kept)


def inlined_size(module: Module) -> int:
    """Return how many operations the exported functions have with functions in the place of all calls."""
    size: dict[str, int] = {}
    for function in CallGraph.of(module.functions).callees_first():
        called = sum(size[callee] for callee in _calls(function))
        size[function.name] = sum(1 for _ in operations_of(function.blocks)) + called
    return sum(size[function.name] for function in module.functions if function.public)


def _calls(function: Function) -> list[str]:
    return [name for operation in operations_of(function.blocks) if (name := callee_of(operation))]


@dataclass(slots=True)
class _Plan:
    """The plan of a function: the calls to inline in it, and its size after that.

    Attributes:
        function: The function.
        inlined: The calls in it that give way to the operations of what they call, by their first results.
        size: How many operations it then has.
        depth: How deep regions then nest in it.
        types: The types of its values, once they are asked for.
    """

    function: Function
    inlined: frozenset[ValueId]
    size: int
    depth: int
    types: Mapping[ValueId, TensorType] | None = None

    @staticmethod
    def of(function: Function, plans: Mapping[str, _Plan], small: Collection[str]) -> _Plan:
        """Return the plan of a function, given those of the functions that it calls."""
        size, depth, inlined = 0, 0, set()
        pending = [(operation, 0) for operation in function.entry.operations]
        while pending:
            operation, level = pending.pop()
            callee = callee_of(operation) or ""
            if callee in small and level + plans[callee].depth <= MAX_NESTING:
                inlined.add(operation.value_id)
                size += plans[callee].size
                depth = max(depth, level + plans[callee].depth)
                continue
            size += 1
            for region in operation.regions:
                depth = max(depth, level + 1)
                pending.extend((inner, level + 1) for inner in region.operations)
        return _Plan(function, frozenset(inlined), size, depth)

    def types_of_values(self) -> Mapping[ValueId, TensorType]:
        """Return the types of its values."""
        if self.types is None:
            self.types = value_types(self.function.blocks)
        return self.types


@dataclass(slots=True)
class _Entered:
    """A call that is giving way: what is left to write, and what to go back to."""

    call: CoreOperation
    plan: _Plan
    rest: Iterator[CoreOperation]
    outer: tuple[_Plan, dict[ValueId, Argument], list[tuple[ValueId, Argument, bool]]]


class _Inliner(Emission):
    """Writes a function anew, with the operations of what it calls."""

    def __init__(self, plans: Mapping[str, _Plan], plan: _Plan) -> None:
        super().__init__()
        self.plans, self.plan = plans, plan

    def function(self) -> Function:
        function = self.plan.function
        if not self.plan.inlined:
            return function
        entry, types = function.entry, self.plan.types_of_values()
        parameters = [
            replace(self.parameter(parameter), name=parameter.name) for parameter in entry.parameters
        ]
        for operation in entry.operations:
            self.copy(operation, types)
        returned = [self.value(self.now[value], types[value]) for value in entry.terminator.operands]
        block = Block(tuple(self.operations), Return(tuple(returned)), tuple(parameters), entry.label)
        return replace(function, blocks=(block,))

    def copy(self, operation: CoreOperation, types: Mapping[ValueId, TensorType]) -> None:
        if operation.value_id not in self.plan.inlined:
            super().copy(operation, types)
            return
        # Chains of calls may be longer than Python's stack.
        entered = [self._enter(operation)]
        while entered:
            inside = entered[-1]
            for inner in inside.rest:
                if inner.value_id in inside.plan.inlined:
                    entered.append(self._enter(inner))
                    break
                super().copy(inner, inside.plan.types_of_values())
            else:
                self._leave(entered.pop())

    def _enter(self, call: CoreOperation) -> _Entered:
        """Begin with the operations of what is called: its parameters are the arguments."""
        deliver()
        plan = self.plans[callee_of(call) or ""]
        arguments = [self.now[value] for value in call.operands]
        scope = self.scopes[-1]
        entered = _Entered(
            call, plan, iter(plan.function.entry.operations), (self.plan, self.now, scope.shadowed)
        )
        self.plan, scope.shadowed = plan, []
        self.now = {
            parameter.value_id: argument
            for parameter, argument in zip(plan.function.parameters, arguments, strict=True)
        }
        return entered

    def _leave(self, entered: _Entered) -> None:
        returned = [self.now[value] for value in entered.plan.function.entry.terminator.operands]
        self.plan, self.now, self.scopes[-1].shadowed = entered.outer
        for value, result in zip(entered.call.result_ids, returned, strict=True):
            self.bind(value, result)
