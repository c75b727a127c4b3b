"""Drops what no result of a function needs: operations, parameters, results, and what loops carry.

A value is needed where something that is needed reads it. So a value that goes around a loop only to compute
itself is not needed, nor is one that a branch yields and nobody reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from mind_mlir.ir.module import Branch, CondBranch, Return
from mind_mlir.ir.regions import blocks_within

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mind_mlir.ir.module import Block, CoreOperation, Target, Terminator, ValueId
    from mind_mlir.passes.canonical.body import Code

T = TypeVar("T")


def prune(code: Code) -> None:
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


@dataclass(slots=True)
class _Needed:
    """Finds the values that are needed."""

    code: Code
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
                self._operation(operation, value)
        return self.found

    def _entry_edges(self, edges: Iterable[Target]) -> None:
        for edge in edges:  # the parameters of the entry stay, and so does what goes back to them
            self._add(edge.arguments)

    def _define(self, operations: Sequence[CoreOperation]) -> None:
        for operation in operations:
            self.operations.update(dict.fromkeys(operation.result_ids, operation))
            if not operation.regions:
                continue
            for block in blocks_within(operation):
                for inner in block.operations:
                    self.operations.update(dict.fromkeys(inner.result_ids, inner))
                    self._carried(inner)
            self._carried(operation)

    def _carried(self, operation: CoreOperation) -> None:
        if operation.opcode != "While":
            return
        condition, body = operation.regions
        for parameter, *values in zip(
            condition.parameters, operation.operands, body.terminator.operands, strict=True
        ):
            self.reasons[parameter.value_id] = tuple(values)
        for parameter, value in zip(body.parameters, condition.terminator.operands[1:], strict=True):
            self.reasons[parameter.value_id] = (value,)

    def _operation(self, operation: CoreOperation, value: ValueId) -> None:
        """Add what an operation needs for one of its results."""
        index = operation.result_ids.index(value) if operation.others else 0
        if operation.opcode == "While":
            yielded = operation.regions[0].terminator.operands
            self._add((yielded[0], yielded[1 + index]))
            return
        self._add(operation.operands)
        for region in operation.regions:
            yielded = region.terminator.operands
            self._add(yielded[index : index + 1] if operation.opcode == "Cond" else yielded)

    def _add(self, values: Iterable[ValueId]) -> None:
        for value in values:
            if value not in self.found:
                self.found.add(value)
                self.pending.append(value)


def _operations(operations: Iterable[CoreOperation], needed: set[ValueId]) -> list[CoreOperation]:
    kept = []
    for operation in operations:
        if operation.others:
            results = [value in needed for value in operation.result_ids]
        else:
            results = [operation.value_id in needed]
        if any(results):
            kept.append(_reduced(operation, results, needed) if operation.regions else operation)
    return kept


def _reduced(operation: CoreOperation, results: Sequence[bool], needed: set[ValueId]) -> CoreOperation:
    """Return an operation with regions without what is not needed of it."""
    if operation.opcode == "Cond":
        regions = [_region(region, results, needed) for region in operation.regions]
        return _with_results(operation, results, operation.operands, regions)
    if operation.opcode != "While":
        regions = [
            _region(region, [True] * len(region.terminator.operands), needed) for region in operation.regions
        ]
        return replace(operation, regions=tuple(regions))
    condition, body = operation.regions
    initial = [parameter.value_id in needed for parameter in condition.parameters]
    carried = [
        result or parameter.value_id in needed
        for result, parameter in zip(results, body.parameters, strict=True)
    ]
    regions = [
        replace(
            _region(condition, [True, *carried], needed),
            parameters=tuple(_chosen(condition.parameters, initial)),
        ),
        replace(_region(body, initial, needed), parameters=tuple(_chosen(body.parameters, carried))),
    ]
    return _with_results(operation, carried, _chosen(operation.operands, initial), regions)


def _with_results(
    operation: CoreOperation, kept: Sequence[bool], operands: Sequence[ValueId], regions: Sequence[Block]
) -> CoreOperation:
    first, *others = _chosen(operation.results, kept)
    is_first = first.value_id == operation.value_id
    return replace(
        operation,
        value_id=first.value_id,
        result_type=first.type,
        origin=operation.origin if is_first else None,
        operands=tuple(operands),
        others=tuple(others),
        regions=tuple(regions),
    )


def _region(region: Block, yielded: Sequence[bool], needed: set[ValueId]) -> Block:
    terminator = region.terminator
    assert not isinstance(terminator, (Branch, CondBranch)), "regions are single blocks"
    operands = tuple(_chosen(terminator.operands, yielded))
    operations = tuple(_operations(region.operations, needed))
    return replace(region, operations=operations, terminator=replace(terminator, operands=operands))


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
