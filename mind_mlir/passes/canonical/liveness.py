"""Drops what no result of a function needs: operations, parameters, results, and what loops carry.

A value is needed where something that is needed reads it, and what prints is. So a value that goes around a
loop only to compute itself is not needed, nor is one that a branch yields and nobody reads. A run-time check
of an operation that nothing needs goes with it.
"""

from __future__ import annotations

from dataclasses import field, replace
from itertools import chain, repeat
from typing import TYPE_CHECKING, TypeVar

from mind_mlir.ir.analysis.effects import effects_in, is_effect
from mind_mlir.ir.module import Branch, CondBranch, Return
from mind_mlir.ir.regions import blocks_within
from mind_mlir.ops.region_flow import flow_of, only_read, pairs_of
from mind_mlir.ops.registry import by_opcode
from mind_mlir.passes.canonical.body import FunctionBlocks
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mind_mlir.ir.module import Block, CoreOperation, Function, Target, Terminator, ValueId

T = TypeVar("T")


def prune(code: FunctionBlocks) -> None:
    """Drop what is not needed; the parameters of the entry stay, being the function's."""
    needed = _Needed(code).run()
    entry = code.entry
    kept = {
        label: [body is entry or parameter.value_id in needed for parameter in body.parameters]
        for label, body in code.bodies.items()
    }
    for label, body in code.bodies.items():
        body.operations = _operations(body.operations, needed)
        body.terminator = _terminator(body.terminator, kept)
        if not all(kept[label]):
            body.parameters = _chosen(body.parameters, kept[label])
            code.changed = True


def drop_dead_code(function: Function) -> Function:
    """Return ``function``, in structured form, without what nothing needs; itself where all is needed."""
    (block,) = function.blocks
    code = FunctionBlocks.of(function)
    prune(code)
    operations = tuple(code.entry.operations)
    # What did not change is the same object, which is quickly found equal.
    return (
        function
        if operations == block.operations
        else replace(function, blocks=(replace(block, operations=operations),))
    )


@dataclass(slots=True)
class _Needed:
    """Finds the values that are needed."""

    code: FunctionBlocks
    found: set[ValueId] = field(default_factory=set)
    pending: list[ValueId] = field(default_factory=list)
    #: What else is needed where a value is.
    reasons: dict[ValueId, tuple[ValueId, ...]] = field(default_factory=dict)
    operations: dict[ValueId, CoreOperation] = field(default_factory=dict)

    def run(self) -> set[ValueId]:
        """Return the values that are needed."""
        incoming = self.code.incoming()
        entry = self.code.entry
        for body in self.code.bodies.values():
            edges = incoming[body.label] if body is not entry else []
            for index, parameter in enumerate(body.parameters):
                self.reasons[parameter.value_id] = tuple(edge.arguments[index] for edge in edges)
            self._define(body.operations)
            if isinstance(body.terminator, Return):
                self._add(body.terminator.operands)
            elif isinstance(body.terminator, CondBranch):
                self._add((body.terminator.condition,))
        if entry.parameters:
            self._entry_edges(incoming[entry.label])
        while self.pending:
            value = self.pending.pop()
            self._add(self.reasons.get(value, ()))
            operation = self.operations.get(value)
            if operation is not None:
                self._operation(operation)
        return self.found

    def _entry_edges(self, edges: Iterable[Target]) -> None:
        for edge in edges:  # the parameters of the entry stay, and so does what goes back to them
            self._add(edge.arguments)

    def _define(self, operations: Sequence[CoreOperation]) -> None:
        for operation in operations:
            self.operations.update(dict.fromkeys(operation.result_ids, operation))
            if not operation.regions:
                if is_effect(operation):
                    self._add((operation.value_id,))
                continue
            self._carried(operation)
            inside = [inner for block in blocks_within(operation) for inner in block.operations]
            for inner in inside:
                self.operations.update(dict.fromkeys(inner.result_ids, inner))
                self._carried(inner)
            if any(map(is_effect, inside)):  # what holds it runs, though nothing else may need that
                self._add(effects_in((operation, *inside)))

    def _carried(self, operation: CoreOperation) -> None:
        """Say of what a value becomes that all of it is needed together, and the value with it."""
        for each in flow_of(operation):
            for value, *targets in zip(each.values(operation), *each.into, strict=False):
                for target in targets:
                    self.reasons[target] = (*self.reasons.get(target, ()), value, *targets)

    def _operation(self, operation: CoreOperation) -> None:
        """Add what an operation needs, whichever of its results is needed."""
        self._add(only_read(operation) if operation.regions else operation.operands)
        if operation.regions and by_opcode()[operation.opcode].expand is not None:
            # Its attributes may count its values: nothing of it goes before it is expanded.
            self._add(chain.from_iterable(pairs_of(operation)))

    def _add(self, values: Iterable[ValueId]) -> None:
        for value in values:
            if value not in self.found:
                self.found.add(value)
                self.pending.append(value)


def _operations(operations: Iterable[CoreOperation], needed: set[ValueId]) -> list[CoreOperation]:
    kept = []
    for operation in operations:
        results = operation.result_ids if operation.others else (operation.value_id,)
        if not needed.isdisjoint(results):
            kept.append(_reduced(operation, needed) if operation.regions else operation)
    return kept


def _reduced(operation: CoreOperation, needed: set[ValueId]) -> CoreOperation:
    """Return an operation with regions without what is not needed of it."""
    operands = [True] * len(operation.operands)
    yielded = [[True] * len(region.terminator.operands) for region in operation.regions]
    for each in flow_of(operation):
        kept = operands if each.region is None else yielded[each.region]
        for place, target in enumerate(each.into[0], each.first):
            kept[place] = target in needed
    first, *others = (result for result in operation.results if result.value_id in needed)
    return replace(
        operation,
        value_id=first.value_id,
        result_type=first.type,
        origin=operation.origin if first.value_id == operation.value_id else None,
        operands=tuple(_chosen(operation.operands, operands)),
        others=tuple(others),
        regions=tuple(map(_region, operation.regions, yielded, repeat(needed))),
    )


def _region(region: Block, yielded: Sequence[bool], needed: set[ValueId]) -> Block:
    terminator = region.terminator
    assert not isinstance(terminator, (Branch, CondBranch)), "regions are single blocks"
    return replace(
        region,
        parameters=tuple([each for each in region.parameters if each.value_id in needed]),
        operations=tuple(_operations(region.operations, needed)),
        terminator=replace(terminator, operands=tuple(_chosen(terminator.operands, yielded))),
    )


def _terminator(terminator: Terminator, kept: dict[str, list[bool]]) -> Terminator:
    def target(given: Target) -> Target:
        flags = kept[given.label]
        if all(flags):
            return given
        locations = tuple(_chosen(given.locations, flags)) if len(given.locations) == len(flags) else ()
        return replace(given, arguments=tuple(_chosen(given.arguments, flags)), locations=locations)

    if all(all(kept[to.label]) for to in terminator.targets):
        return terminator
    if isinstance(terminator, Branch):
        return replace(terminator, target=target(terminator.target))
    if isinstance(terminator, CondBranch):
        return replace(terminator, then=target(terminator.then), otherwise=target(terminator.otherwise))
    return terminator


def _chosen(values: Iterable[T], flags: Iterable[bool]) -> list[T]:
    return [value for value, flag in zip(values, flags, strict=True) if flag]
