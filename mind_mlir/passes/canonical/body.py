"""A function as the canonicaliser changes it: blocks by label, and values that stand for others.

In the end, values get dense ids in the order of the text, and blocks labels in their order.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from mind_mlir.ir.module import (
    Block,
    Branch,
    CondBranch,
    CoreOperation,
    Function,
    Parameter,
    Result,
    Return,
    Target,
    Yield,
)
from mind_mlir.ops.infer import normal_attributes
from mind_mlir.ops.registry import by_opcode
from mind_mlir.support.interrupts import deliver
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mind_mlir.ir.module import Terminator, ValueId


@dataclass(slots=True, eq=False)
class MutableBlock:
    """One block."""

    label: str
    parameters: list[Parameter]
    operations: list[CoreOperation]
    terminator: Terminator


@dataclass(slots=True)
class FunctionBlocks:
    """The blocks of one function, the entry first.

    Attributes:
        bodies: By label, in reverse postorder after `order`.
        same: What values have turned out to be: always another value.
        changed: Whether a change may make others possible.
    """

    bodies: dict[str, MutableBlock]
    same: dict[ValueId, ValueId] = field(default_factory=dict)
    changed: bool = False

    @classmethod
    def of(cls, function: Function) -> FunctionBlocks:
        """Take a function apart."""
        return cls({b.label: _body(b) for b in function.blocks})

    @property
    def entry(self) -> MutableBlock:
        """Return the first block."""
        return next(iter(self.bodies.values()))

    def replace_value(self, value: ValueId, by: ValueId) -> None:
        """Say that ``value`` is always that of ``by``, which is visible wherever it is."""
        self.same[value] = by
        self.changed = True

    def find(self, value: ValueId) -> ValueId:
        """Return what ``value`` has turned out to be."""
        same = self.same
        root = value
        while root in same:
            root = same[root]
        while value != root:  # so that the next search is short
            same[value], value = root, same[value]
        return root

    def found(self, values: Iterable[ValueId]) -> tuple[ValueId, ...]:
        """Return what ``values`` have turned out to be."""
        return tuple(map(self.find, values)) if self.same else tuple(values)

    def renamed(self, operation: CoreOperation) -> CoreOperation:
        """Return an operation that reads what its operands have turned out to be, in its regions too."""
        if not self.same:
            return operation
        if not operation.regions:
            return self.reading(operation)
        regions = tuple(map(self.read_anew, operation.regions))
        return replace(operation, operands=self.found(operation.operands), regions=regions)

    def read_anew(self, block: Block) -> Block:
        """Return a block whose operations read what their operands have turned out to be."""
        operations = tuple(map(self.renamed, block.operations))
        return replace(block, operations=operations, terminator=self.resolved(block.terminator))

    def reading(self, operation: CoreOperation) -> CoreOperation:
        """Return an operation whose own operands are what they have turned out to be."""
        if all(value not in self.same for value in operation.operands):
            return operation
        return replace(operation, operands=self.found(operation.operands))

    def resolved(self, terminator: Terminator) -> Terminator:
        """Return a terminator that reads what its operands have turned out to be."""
        if all(value not in self.same for value in terminator.operands):
            return terminator
        match terminator:
            case Return() | Yield():
                return replace(terminator, operands=self.found(terminator.operands))
            case Branch():
                return replace(terminator, target=self._target(terminator.target))
            case CondBranch():
                return replace(
                    terminator,
                    condition=self.find(terminator.condition),
                    then=self._target(terminator.then),
                    otherwise=self._target(terminator.otherwise),
                )

    def _target(self, target: Target) -> Target:
        return replace(target, arguments=self.found(target.arguments))

    def incoming(self) -> Mapping[str, list[Target]]:
        """Return the edges to each block."""
        edges: dict[str, list[Target]] = {label: [] for label in self.bodies}
        for body in self.bodies.values():
            for target in body.terminator.targets:
                edges[target.label].append(target)
        return edges

    def order(self) -> None:
        """Put the blocks into reverse postorder, and drop those that nothing reaches any more."""
        entry = self.entry.label
        seen, postorder = {entry}, []
        path = [(entry, iter(self._targets(entry)))]
        while path:
            label, targets = path[-1]
            target = next(targets, None)
            if target is None:
                postorder.append(label)
                path.pop()
            elif target not in seen:
                seen.add(target)
                path.append((target, iter(self._targets(target))))
        self.bodies = {label: self.bodies[label] for label in reversed(postorder)}

    def _targets(self, label: str) -> list[str]:
        # The second one first, so that the first one's blocks come first in the end.
        return [target.label for target in reversed(self.bodies[label].terminator.targets)]


def _body(block: Block) -> MutableBlock:
    return MutableBlock(block.label, list(block.parameters), list(block.operations), block.terminator)


def numbered(code: FunctionBlocks, function: Function, *, ordered: bool = True) -> Function:
    """Return ``code`` as the blocks of ``function``, numbered.

    Values have no names any more, but messages call them what the given function does. Where ``ordered`` says
    so, operands of commutative operations ascend.
    """
    labels = {label: f"b{index}" if index else "entry" for index, label in enumerate(code.bodies)}
    numbering = _Numbering(code, labels, ordered)
    blocks = [
        numbering.block(labels[body.label], body.parameters, body.operations) for body in code.bodies.values()
    ]
    places = {block.label: block.location for block in function.blocks}
    finished = tuple(
        Block(operations, numbering.terminator(body.terminator), parameters, label, places.get(body.label))
        for (label, parameters, operations), body in zip(blocks, code.bodies.values(), strict=True)
    )
    return replace(function, blocks=finished)


@dataclass(slots=True)
class _Numbering:
    code: FunctionBlocks
    labels: dict[str, str]
    ordered: bool
    new: dict[ValueId, ValueId] = field(default_factory=dict)

    def block(
        self, label: str, parameters: Iterable[Parameter], operations: Iterable[CoreOperation]
    ) -> tuple[str, tuple[Parameter, ...], tuple[CoreOperation, ...]]:
        return label, tuple(map(self._parameter, parameters)), tuple(map(self._operation, operations))

    def terminator(self, terminator: Terminator) -> Terminator:
        match terminator:
            case Return(operands, locations):
                return Return(self._read(operands), locations, location=terminator.location)
            case Yield(operands, locations):
                return Yield(self._read(operands), locations, location=terminator.location)
            case Branch(target, location):
                return Branch(self._target(target), location)
            case CondBranch(condition, then, otherwise, location, where):
                value = self.new[self.code.find(condition)]
                return CondBranch(value, self._target(then), self._target(otherwise), location, where)

    def _define(self, value: ValueId) -> ValueId:
        self.new[value] = len(self.new)
        return self.new[value]

    def _read(self, values: Iterable[ValueId]) -> tuple[ValueId, ...]:
        return tuple(self.new[self.code.find(value)] for value in values)

    def _target(self, target: Target) -> Target:
        return Target(
            self.labels[target.label], self._read(target.arguments), target.location, target.locations
        )

    def _parameter(self, parameter: Parameter) -> Parameter:
        value = self._define(parameter.value_id)
        return Parameter(value, parameter.type, parameter.location, parameter.name, origin=parameter.label)

    def _operation(self, operation: CoreOperation) -> CoreOperation:
        deliver()
        record = by_opcode()[operation.opcode]
        operands: Sequence[ValueId] = self._read(operation.operands)
        results = [Result(self._define(result.value_id), result.type) for result in operation.results]
        regions = [self._region(region) for region in operation.regions]
        return CoreOperation.create(
            results[0].value_id,
            operation.opcode,
            sorted(operands) if self.ordered and record.commutative else operands,
            normal_attributes(record, operation.attributes, operation.result_type),
            operation.result_type,
            operation.source,
            origin=operation.label,
            others=results[1:],
            regions=regions,
        )

    def _region(self, region: Block) -> Block:
        label, parameters, operations = self.block(region.label, region.parameters, region.operations)
        return Block(operations, self.terminator(region.terminator), parameters, label, region.location)
