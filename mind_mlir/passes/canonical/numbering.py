"""Gives the values of a function dense ids in the order of its text, and its blocks labels in their order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mind_mlir.ir.module import Terminator, ValueId
    from mind_mlir.passes.canonical.body import Code


def numbered(code: Code, function: Function, *, ordered: bool = True) -> Function:
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
    code: Code
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
