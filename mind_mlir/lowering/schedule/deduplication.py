"""Nests that a program repeats, emitted once.

The first few nests of a kind are emitted where they stand. From then on a private function computes them, and
each is a call: the time that later stages take for a nest, they take once. A kind is described by a key, made
from what is to be emitted rather than from what has been.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.constants import IN_PLACE
from mind_mlir.lowering.schedule.emission.decision import Choice
from mind_mlir.lowering.schedule.emission.emitter import Emitter
from mind_mlir.lowering.schedule.fusion.nests.elements import Known
from mind_mlir.lowering.schedule.fusion.row_programs.row_nest import emit_nest
from mind_mlir.lowering.schedule.linalg_view.layout import window_of
from mind_mlir.lowering.schedule.linalg_view.values import constant_value, filler
from mind_mlir.mlir.bindings import Attribute, Operation, Type, Value, func, ir
from mind_mlir.mlir.locations import places_of
from mind_mlir.mlir.values import attributes_of, callee_of, is_result_of, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from mind_mlir.lowering.schedule.fusion.nests.plan import Root
    from mind_mlir.lowering.schedule.fusion.nests.program import NestProgram
    from mind_mlir.lowering.schedule.linalg_view.view import View


class DeduplicatedNests:
    """The nests of one function so far, by kind.

    Args:
        function: The function.
        located: Whether nests from different places of the program are of different kinds.
    """

    def __init__(self, function: Operation, *, located: bool = False) -> None:
        self._located = located
        self._function = function.operation
        self._counts: Counter[Hashable] = Counter()
        self._names: dict[Hashable, str] = {}  # of the functions that compute the nests of a kind

    def may_call(self, op: Operation, inputs: Sequence[Value]) -> bool:
        """Return whether a nest in the place of ``op`` can be a call as well.

        Parts of tensors could only be passed as copies; what is inserted into another tensor is best computed
        in its place there; and what a loop repeats is emitted once anyway.
        """
        users = (use.owner.operation for result in op.results for use in result.uses)
        return (
            op.parent.operation == self._function
            and not any(user.name == "tensor.insert_slice" for user in users)
            and not any(is_result_of(value, "tensor.extract_slice") for value in inputs)
        )

    def call(
        self,
        key: Hashable,
        inputs: Sequence[Value],
        results: Sequence[Type],
        define: Callable[[Emitter, list[Value]], Sequence[Value]],
    ) -> list[Value] | None:
        """Emit a call of the function of kind ``key``, and return what it returns.

        Args:
            key: What is computed; it says all that ``define`` depends on.
            inputs: The tensors that are read.
            results: The types of the results, new tensors.
            define: Emits the body of the function, given its arguments, and returns its results.

        Returns:
            None, with nothing emitted, if the nest is to be emitted where it stands.
        """
        if self._located:
            key = (key, places_of(ir.Location.current))
        self._counts[key] += 1
        if self._counts[key] <= IN_PLACE:
            return None
        if key not in self._names:
            self._names[key] = f"{name_of(self._function)}_nest_{len(self._names)}"
            with ir.InsertionPoint(self._function):
                types = [value.type for value in inputs], list(results)
                function = func.FuncOp(self._names[key], types, visibility="private")
            body = function.add_entry_block()
            with ir.InsertionPoint(body):
                func.ReturnOp(list(define(Emitter(function), list(body.arguments))))
        call = func.CallOp(list(results), ir.FlatSymbolRefAttr.get(self._names[key]), list(inputs))
        return list(call.results)


def call_choices(results: Sequence[Value] | None) -> tuple[Choice, ...]:
    """Return the choice that a nest is a call, given the results of the call, if it is one."""
    if results is None:
        return ()
    return (
        Choice(
            "call",
            f"@{callee_of(results[0].owner)}",
            f"one function for all but {IN_PLACE} nests of this kind",
        ),
    )


def call_nest(nests: DeduplicatedNests, nest: NestProgram) -> list[Value] | None:
    """Emit ``nest`` as a call, and return the tensors of its outputs, in their order.

    Returns:
        None, with nothing emitted, if it is to be emitted where it stands.
    """
    group = nest.group
    description = _describe(nest)
    if description is None:
        return None
    for view in group.members:
        if not nests.may_call(view.op, [value for value in description.inputs if value in view.operands]):
            return None

    def define(emitter: Emitter, arguments: list[Value]) -> list[Value]:
        read = dict(zip(description.inputs, arguments, strict=True))
        members = [
            dataclasses.replace(view, operands=tuple(read.get(value, value) for value in view.operands))
            for view in group.members
        ]
        numbers = description.constants.items()
        constants: dict[Root, Value] = {value: emitter.constant(value.type, each) for value, each in numbers}
        produced = {result: view for view in members for result in view.op.results}
        outputs = []
        for output in nest.outputs:
            type_ = output.destination.type
            start = None if output.start is None else constants[output.start]
            fresh = emitter.empty(list(type_.shape), type_.element_type)
            member = produced[output.result]
            outputs.append(dataclasses.replace(output, member=member, destination=fresh, start=start))
        inside = dataclasses.replace(group, members=members, produced=produced)
        inner = dataclasses.replace(nest, group=inside, outputs=outputs)
        return emit_nest(emitter, inner, Known(constants))

    types = [output.destination.type for output in nest.outputs]
    return nests.call(description.key, list(description.inputs), types, define)


@dataclasses.dataclass
class _Description:
    """What is computed by a nest.

    Attributes:
        key: Equal for groups for which the same is emitted.
        inputs: The tensors that it reads.
        constants: Numbers from outside that it uses.
    """

    key: Hashable
    inputs: dict[Value, int]
    constants: dict[Value, Attribute]


def _describe(nest: NestProgram) -> _Description | None:
    """Return the description of ``nest``, or None if it depends on more than whole tensors and constants."""
    group = nest.group
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
    starts: list[Hashable] = []
    for result, start in nest.starts.items():
        number = None if start is None else constant_value(start)
        if start is None or number is None:
            return None  # starts from what is in a tensor
        description.constants[start] = number
        starts.append((produced[result], number))
    results = [(produced[output.result], output.destination.type) for output in nest.outputs]
    description.key = (group.extents, group.vector, group.reductions, *members, *results, *starts)
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
            window = window_of(value)
            if window is not None and window.margin is not None:
                return None  # what lies beyond a tensor is no tensor
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
        attributes = attributes_of(op)
        for result in op.results:
            numbers[result] = len(numbers)
        found.append((op.name, tuple(operands), attributes, *(result.type for result in op.results)))
    return tuple(found)
