"""A function of whole arrays as one that each rank runs on its parts.

Each operation computes the part of its letters (`OpDef.dims`) that moves the fewest bytes: of its operands,
to what it needs, and of its results, to how these are to be divided. What has no letters is computed by all
ranks alike. Sums of parts are made when they are needed: what adds them, or sums them further, comes before.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from mind_mlir.ir.attributes import Attributes
from mind_mlir.ir.module import Block, CoreOperation, Parameter, Result, Return, Yield
from mind_mlir.ir.names import NO_NAMES
from mind_mlir.ir.types import TensorType
from mind_mlir.ops.dims import WHOLE, Dims
from mind_mlir.ops.region_flow import flow_of
from mind_mlir.passes.partition.choices import OperationParts, assigned, choice_of
from mind_mlir.passes.partition.moves import Parting, bytes_of, count_of, local_type, steps, whole
from mind_mlir.passes.partition.propagation import SHARD
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mind_mlir.ir.module import Function, Terminator, ValueId
    from mind_mlir.passes.partition.moves import Axes
    from mind_mlir.passes.partition.propagation import Divisions, Link


class _Part(NamedTuple):
    """A value of the new function: its id, and the operations of the block that has it."""

    id: ValueId
    operations: list[CoreOperation]


class Rewriting:
    """Writes a function anew.

    Attributes:
        notes: What is said of the new values: how they are divided, and what collectives send.
    """

    def __init__(self, function: Function, divisions: Divisions, *, local: bool) -> None:
        self._function, self._divisions, self._local = function, divisions, local
        self._mesh, self._types = divisions.mesh, divisions.types
        self._ids = count()
        #: What the new function has of each value of the old one, by layout.
        self._parts: dict[ValueId, dict[Parting, _Part]] = {}
        self._operations: list[CoreOperation] = []
        self._reads: Counter[ValueId] = Counter()
        #: Values of a block that one operation of it alone reads, which adds them.
        self._added: set[ValueId] = set()
        self.notes: dict[ValueId, str] = {}

    def function(self) -> Function:
        """Return the new function."""
        entry = self._function.entry
        self._look(entry)
        parameters = []
        for parameter in entry.parameters:
            value = parameter.value_id
            made = self._parameter(parameter, self._outside(value))
            parameters.append(replace(made, name=parameter.name))
        block = self._block(entry, parameters, [self._outside(each) for each in entry.terminator.operands])
        types = None
        if self._function.result_types is not None:
            types = tuple(
                [
                    local_type(self._mesh, self._types[value], self._outside(value))
                    for value in entry.terminator.operands
                ]
            )
        return replace(self._function, blocks=(block,), result_types=types, notes=self.notes)

    def _outside(self, value: ValueId) -> Axes:
        """Return how an argument or a result is divided for who calls the function."""
        return self._divisions.of(value) if self._local else whole(self._types[value].rank).dims

    def _look(self, block: Block) -> None:
        """Count who reads what, and find what is only read where it is added."""
        made: set[ValueId] = set()
        for operation in block.operations:
            link = self._divisions.rules.get(operation.value_id)
            self._reads.update(operation.operands)
            if link is not None and link.dims is not None and link.dims.adds:
                self._added.update(made.intersection(operation.operands))
            for region in operation.regions:
                self._look(region)
            made.update(operation.result_ids)
        self._reads.update(block.terminator.operands)

    def _parameter(self, parameter: Parameter, dims: Axes) -> Parameter:
        value = next(self._ids)
        layout = Parting(dims)
        self._parts[parameter.value_id] = {layout: _Part(value, self._operations)}
        type_ = local_type(self._mesh, self._types[parameter.value_id], dims)
        self.notes[value] = str(layout)
        return Parameter(value, type_, parameter.location, origin=parameter.label)

    def _block(self, block: Block, parameters: Sequence[Parameter], targets: Sequence[Axes]) -> Block:
        for operation in block.operations:
            deliver()
            self._operation(operation)
        ends = [
            self._arrive(value, dims, block.terminator)
            for value, dims in zip(block.terminator.operands, targets, strict=True)
        ]
        end = block.terminator
        assert isinstance(end, (Return, Yield)), "blocks of structured form do not branch"
        terminator = replace(end, operands=tuple(ends), names=NO_NAMES)
        return replace(
            block, operations=tuple(self._operations), terminator=terminator, parameters=tuple(parameters)
        )

    # Values

    def _nearest(self, value: ValueId, dims: Axes) -> tuple[int, Parting]:
        """Return how many bytes are sent to have a value divided so, and from which layout."""
        type_ = self._types[value]
        return min(
            [
                (bytes_of(self._mesh, type_, layout, dims), number, layout)
                for number, layout in enumerate(self._parts[value])
            ]
        )[::2]

    def _arrive(self, value: ValueId, dims: Axes, reader: CoreOperation | Terminator) -> ValueId:
        """Return a value divided so; what makes that of it comes behind what has made the value."""
        found = self._parts[value].get(Parting(dims))
        if found is not None:
            return found.id
        _, source = self._nearest(value, dims)
        part = self._parts[value][source]
        like = reader if isinstance(reader, CoreOperation) else None
        for step in steps(self._mesh, self._types[value], source, dims):
            known = self._parts[value].get(step.layout)
            if known is None:
                new = next(self._ids)
                part.operations.append(
                    CoreOperation(
                        new,
                        step.opcode,
                        (part.id,),
                        Attributes.of(step.attributes),
                        step.type,
                        None if like is None else like.source,
                        origin=None if like is None else like.label,
                    )
                )
                sent = (
                    f"{step.layout}; each rank sends {step.sent:,} bytes" if step.sent else str(step.layout)
                )
                self.notes[new] = sent
                known = self._parts[value][step.layout] = _Part(new, part.operations)
            part = known
        return part.id

    # Operations

    def _operation(self, operation: CoreOperation) -> None:
        if operation.regions:
            self._with_regions(operation)
            return
        if operation.opcode == SHARD:
            self._arrive(operation.operands[0], self._divisions.of(operation.value_id), operation)
            self._parts[operation.value_id] = self._parts[operation.operands[0]]
            return
        link = self._divisions.rules.get(operation.value_id)
        choice, local = self._alike(operation), Dims((), ()).local
        if link is not None and link.dims is not None:
            choice, local = self._added_up(operation, link) or self._best(operation, link), link.dims.local
        read = [
            self._parts[value][layout].id if layout.partial else self._arrive(value, layout.dims, operation)
            for value, layout in zip(operation.operands, choice.operands, strict=True)
        ]
        results = self._results(operation, choice.results)
        attributes = {**operation.attributes, **local(_tensor(results[0]))}
        self._append(operation, read, results, attributes=Attributes.of(attributes))
        for value, layout in zip(operation.result_ids, choice.results, strict=True):
            if layout.kind != "sum" or not layout.partial or not self._waits(value):
                self._arrive(value, self._divisions.of(value), operation)

    def _alike(self, operation: CoreOperation) -> OperationParts:
        """Return that all ranks compute all of an operation."""
        ranks = [self._types[each].rank for each in operation.operands]
        return OperationParts(
            tuple(map(whole, ranks)), tuple([whole(each.rank) for each in operation.result_types])
        )

    def _waits(self, value: ValueId) -> bool:
        """Return whether a sum can wait: what alone reads it makes sums of it."""
        return self._reads[value] == 1 and value in self._added

    def _added_up(self, operation: CoreOperation, link: Link) -> OperationParts | None:
        """Return how sums that are still to be made are added, where nothing is moved for that."""
        layouts = [self._waiting(value) for value in operation.operands]
        first = layouts[0] if layouts else None
        if first is None or link.dims is None or not link.dims.adds:
            return None
        found: dict[str, tuple[str, ...]] = {}
        for layout, letters in zip(layouts, link.dims.operands, strict=True):
            if layout is None or layout.partial != first.partial:
                return None
            for axes, letter in zip(layout.dims, letters, strict=True):
                if (letter == WHOLE and axes) or found.setdefault(letter, axes) != axes:
                    return None
        choice = choice_of(link.dims, found)
        (result,) = choice.results
        if self._size(operation.value_id, result) > sum(map(self._size, operation.operands, choice.operands)):
            return None
        operands = tuple([layout for layout in layouts if layout is not None])
        return OperationParts(operands, (result._replace(partial=(*first.partial, *result.partial)),))

    def _waiting(self, value: ValueId) -> Parting | None:
        known = list(self._parts[value])
        return known[0] if len(known) == 1 and known[0].partial and self._waits(value) else None

    def _size(self, value: ValueId, layout: Parting) -> int:
        return local_type(self._mesh, self._types[value], layout.dims).element_count

    def _best(self, operation: CoreOperation, link: Link) -> OperationParts:
        """Return the way to compute an operation that moves the fewest bytes; of these, in most parts."""
        assert link.dims is not None, "it is the rule of an operation"
        divided = [self._divisions.of(value) for value in link.values]
        by_size = sorted(range(len(divided)), key=lambda at: -self._types[link.values[at]].element_count)
        choices = []
        for first in range(len(divided)):
            found = assigned(self._mesh, operation, link, divided, [first, *by_size])
            choice = choice_of(link.dims, found)
            read = zip(operation.operands, choice.operands, strict=True)
            cost = sum([self._nearest(value, layout.dims)[0] for value, layout in read])
            for value, layout in zip(operation.result_ids, choice.results, strict=True):
                cost += bytes_of(self._mesh, self._types[value], layout, self._divisions.of(value))
            if not cost and [each.dims for each in (*choice.operands, *choice.results)] == divided:
                return choice  # all is as it is wanted
            parts = count_of(self._mesh, [name for axes in found.values() for name in axes])
            choices.append((cost, -parts, first, choice))
        return min(choices)[-1]

    def _with_regions(self, operation: CoreOperation) -> None:
        ends: dict[int | None, list[Axes]] = {
            region: [whole(self._types[value].rank).dims for value in values]
            for region, values in (
                (None, operation.operands),
                *((at, region.terminator.operands) for at, region in enumerate(operation.regions)),
            )
        }
        for flow in flow_of(operation):
            ends[flow.region][flow.first :] = [self._divisions.of(value) for value in flow.into[0]]
        read = [
            self._arrive(value, dims, operation)
            for value, dims in zip(operation.operands, ends[None], strict=True)
        ]
        outside, regions = self._operations, []
        for at, region in enumerate(operation.regions):
            self._operations = []
            parameters = [
                self._parameter(each, self._divisions.of(each.value_id)) for each in region.parameters
            ]
            regions.append(self._block(region, parameters, ends[at]))
        self._operations = outside
        layouts = [Parting(self._divisions.of(value)) for value in operation.result_ids]
        self._append(operation, read, self._results(operation, layouts), regions=tuple(regions))

    def _results(self, operation: CoreOperation, layouts: Iterable[Parting]) -> list[Result]:
        results = []
        for value, layout in zip(operation.result_ids, layouts, strict=True):
            made = Result(next(self._ids), local_type(self._mesh, self._types[value], layout.dims))
            self._parts[value] = {layout: _Part(made.value_id, self._operations)}
            self.notes[made.value_id] = str(layout)
            results.append(made)
        return results

    def _append(
        self, operation: CoreOperation, operands: Sequence[ValueId], results: Sequence[Result], **changes: Any
    ) -> None:
        first, *others = results
        self._operations.append(
            replace(
                operation,
                value_id=first.value_id,
                operands=tuple(operands),
                result_type=first.type,
                others=tuple(others),
                names=NO_NAMES,
                origin=operation.label,
                **changes,
            )
        )


def _tensor(result: Result) -> TensorType:
    assert isinstance(result.type, TensorType), "verified programs have no tuples"
    return result.type
