"""Groups as calls of a function that all equal ones share."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.bindings import ir
from mind_mlir.lowering.schedule.fusion.elements import Known
from mind_mlir.lowering.schedule.fusion.nest import GroupEmitter
from mind_mlir.lowering.schedule.reading.values import constant_value, filler

if TYPE_CHECKING:
    from collections.abc import Hashable

    from mind_mlir.bindings import Attribute, Value
    from mind_mlir.lowering.schedule.emission.emitter import Emitter
    from mind_mlir.lowering.schedule.fusion.group import Group
    from mind_mlir.lowering.schedule.fusion.output import Output
    from mind_mlir.lowering.schedule.fusion.schedule import FusedSchedule
    from mind_mlir.lowering.schedule.reading.view import View
    from mind_mlir.lowering.schedule.sharing.nests import SharedNests
    from mind_mlir.target import Target


def share_group(
    shared: SharedNests, group: Group, outputs: list[Output], schedule: FusedSchedule, target: Target
) -> list[Value] | None:
    """Emit ``group`` as a call, and return the tensors of its outputs, in their order.

    Returns:
        None, with nothing emitted, if it is to be emitted where it stands.
    """
    description = _describe(group, outputs)
    if description is None or not all(
        shared.may_share(view.op, [value for value in description.inputs if value in view.operands])
        for view in group.members
    ):
        return None

    def define(emitter: Emitter, arguments: list[Value]) -> list[Value]:
        given = dict(zip(description.inputs, arguments, strict=True))
        members = [
            dataclasses.replace(view, operands=tuple(given.get(value, value) for value in view.operands))
            for view in group.members
        ]
        places = [group.members.index(output.member) for output in outputs]
        inside = dataclasses.replace(group, members=members)
        constants = {
            value: emitter.constant(value.type, attribute)
            for value, attribute in description.constants.items()
        }
        new = [
            dataclasses.replace(
                output,
                member=members[place],
                destination=emitter.empty(
                    list(output.destination.type.shape), output.destination.type.element_type
                ),
                start=None if output.start is None else constants[output.start],
            )
            for output, place in zip(outputs, places, strict=True)
        ]
        return GroupEmitter(emitter, inside, new, schedule, target).emit(Known(constants))

    types = [output.destination.type for output in outputs]
    return shared.call(description.key, list(description.inputs), types, define)


@dataclasses.dataclass
class _Description:
    """What a group computes, and from what.

    Attributes:
        key: Equal for groups for which the same is emitted.
        inputs: The tensors that it reads.
        constants: Numbers from outside that it uses.
    """

    key: Hashable
    inputs: dict[Value, int]
    constants: dict[Value, Attribute]


def _describe(group: Group, outputs: list[Output]) -> _Description | None:
    """Return the description of ``group``, or None if it depends on more than whole tensors and constants."""
    description = _Description((), {}, {})
    produced = {
        result: (member, number)
        for member, view in enumerate(group.members)
        for number, result in enumerate(view.op.results)
    }
    members: list[Hashable] = []
    for view in group.members:
        operands = _operands(view, produced, description)
        body = _body(view, description)
        if operands is None or body is None:
            return None
        members.append((view.accesses, view.shapes, view.reductions, view.live, operands, body))
    results: list[Hashable] = []
    for output in outputs:
        if output.member.reductions:
            number = None if output.start is None else constant_value(output.start)
            if number is None:
                return None  # starts from what is in a tensor
            description.constants[output.start] = number
        else:
            number = None
        results.append((produced[output.result], output.destination.type, number))
    description.key = (group.extents, group.vector, group.reductions, *members, *results)
    return description


def _operands(
    view: View, produced: dict[Value, tuple[int, int]], description: _Description
) -> Hashable | None:
    """Return which tensors ``view`` reads, the group's own or by number; None if it reads other things."""
    found: list[Hashable] = []
    for number, value in enumerate(view.operands):
        if number >= len(view.inputs):
            if view.used(number) and not view.reductions:
                return None  # updates a tensor
        elif value in produced:
            found.append(produced[value])
        elif view.used(number):
            if not isinstance(value.type, ir.RankedTensorType) or filler(value) is not None:
                return None
            found.append((value.type, description.inputs.setdefault(value, len(description.inputs))))
    return tuple(found)


def _body(view: View, description: _Description) -> Hashable | None:
    """Return what the body of ``view`` computes; None if it uses other values from outside than constants."""
    numbers = {argument: number for number, argument in enumerate(view.body.arguments)}
    found: list[Hashable] = [argument.type for argument in view.body.arguments]
    for operation in view.body.operations:
        op = operation.operation
        operands: list[Hashable] = []
        for operand in op.operands:
            if operand in numbers:
                operands.append(numbers[operand])
                continue
            constant = constant_value(operand)
            if constant is None:
                return None
            description.constants[operand] = constant
            operands.append(constant)
        attributes = tuple((name, op.attributes[name]) for name in op.attributes)
        for result in op.results:
            numbers[result] = len(numbers)
        found.append((op.name, tuple(operands), attributes, *(result.type for result in op.results)))
    return tuple(found)
