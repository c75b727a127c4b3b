"""Applies patterns to the operations of a function, in one sweep from the first one to the last.

What an operation reads has been simplified before it is looked at, and what a pattern emits is simplified
before it is used: so one sweep finds nearly all. A pattern that depends on who else reads a value may fit
only after another one has done its work, for which sweeps repeat until nothing changes.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.effects import is_effect
from mind_mlir.ir.types import TensorType
from mind_mlir.passes.canonical.body import FunctionBlocks
from mind_mlir.passes.simplify.known import Known
from mind_mlir.passes.simplify.rewrite import Rewrite
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mind_mlir.ir.module import Block, CoreOperation, Function, ValueId
    from mind_mlir.passes.simplify.pattern import Rule

#: More sweeps than any function has been seen to take; each may be the last.
MOST_SWEEPS = 16
#: Is told which rule found what takes the place of which operation, where anybody looks.
_observer: ContextVar[Callable[[Rule, CoreOperation], object] | None] = ContextVar("_observer", default=None)


@contextmanager
def observed(observer: Callable[[Rule, CoreOperation], object]) -> Iterator[None]:
    """Let ``observer`` see meanwhile which rules find what takes the place of which operations."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def rewritten(function: Function, rules: Mapping[str, tuple[Rule, ...]]) -> Function:
    """Return ``function``, in structured form, with all that ``rules`` say; itself where they say nothing."""
    for _ in range(MOST_SWEEPS):
        changed = _Sweep(function, rules).run()
        if changed is function:
            break
        function = changed
    return function


class _Sweep:
    """One sweep."""

    def __init__(self, function: Function, rules: Mapping[str, tuple[Rule, ...]]) -> None:
        self._function = function
        self._rules = rules
        self._known = Known(function)
        self._code = FunctionBlocks({})
        #: The lists of operations that are being filled, the innermost one last.
        self._blocks: list[list[CoreOperation]] = []

    def run(self) -> Function:
        (block,) = self._function.blocks
        changed = self._block(block)
        if not self._code.same:
            return self._function
        return replace(self._function, blocks=(_without_dead(changed, set()),))

    def _block(self, block: Block) -> Block:
        operations: list[CoreOperation] = []
        self._blocks.append(operations)
        for operation in block.operations:
            deliver()
            self._visit(operation)
        self._blocks.pop()
        terminator = self._code.resolved(block.terminator)
        return replace(block, operations=tuple(operations), terminator=terminator)

    def _visit(self, given: CoreOperation) -> None:
        operation = self._code.reading(given)
        if operation.regions:
            regions = tuple([self._block(region) for region in operation.regions])
            operation = replace(operation, regions=regions)
            self._blocks[-1].append(operation)
            return
        found = self._simplified(operation)
        if found is None:
            self._append(operation)
            return
        assert self._known.types[found] == operation.result_type, "a pattern keeps the type of the result"
        self._code.replace_value(operation.value_id, found)
        self._known.count((found,), self._known.uses.pop(operation.value_id, 0))
        self._release(operation)

    def _simplified(self, operation: CoreOperation) -> ValueId | None:
        """Return what takes the place of an operation that is not part of the function, or is about to go."""
        rules = self._rules.get(operation.opcode)
        if rules is None or operation.others:
            return None
        type_ = operation.result_type
        if not isinstance(type_, TensorType) or 0 in type_.shape:  # there is nothing to gain
            return None
        rewrite = Rewrite(operation, self._known, self._emitted)
        for rule in rules:
            found = rule(rewrite)
            if found is not None:
                observer = _observer.get()
                if observer is not None:
                    observer(rule, operation)
                return found
        return None

    def _emitted(self, operation: CoreOperation) -> ValueId:
        self._known.types[operation.value_id] = operation.result_type
        self._known.count(operation.operands)
        found = self._simplified(operation)
        if found is None:
            self._append(operation)
            return operation.value_id
        self._release(operation)
        return found

    def _append(self, operation: CoreOperation) -> None:
        self._blocks[-1].append(operation)
        self._known.enter(operation)

    def _release(self, operation: CoreOperation) -> None:
        """Count the operands of an operation as read once less, and those of what nothing reads any more."""
        uses, makers = self._known.uses, self._known.makers
        pending = list(operation.operands)
        while pending:
            value = pending.pop()
            uses[value] -= 1
            if uses[value] == 0 and value in makers:
                pending += makers[value].operands


def _without_dead(block: Block, live: set[ValueId]) -> Block:
    """Return ``block`` without operations of one result and without regions that nothing reads.

    Args:
        block: The block.
        live: What is read behind it; what it reads itself is added.
    """
    live.update(block.terminator.operands)
    kept: list[CoreOperation] = []
    for operation in reversed(block.operations):
        if operation.regions:
            regions = tuple([_without_dead(region, live) for region in operation.regions])
            kept.append(replace(operation, regions=regions))
        elif operation.others or operation.value_id in live or is_effect(operation):
            kept.append(operation)
        else:
            continue
        live.update(operation.operands)
    return replace(block, operations=tuple(reversed(kept)))
