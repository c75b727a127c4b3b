"""Nests that a program repeats, emitted once.

The first few nests of a kind are emitted where they stand. From then on a private function computes them, and
each is a call: the time that later stages take for a nest, they take once. A kind is described by a key, made
from what is to be emitted rather than from what has been.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import IN_PLACE
from mind_mlir.lowering.emission.decision import Choice, chosen
from mind_mlir.lowering.emission.emitter import Emitter
from mind_mlir.lowering.schedule.fusion.nests.elements import Known
from mind_mlir.lowering.schedule.fusion.row_programs.row_nest import emit_nest
from mind_mlir.lowering.schedule.linalg_view.layout import window_of
from mind_mlir.lowering.schedule.linalg_view.values import constant_value, filler
from mind_mlir.lowering.schedule.scalars.graph import OpaqueError
from mind_mlir.mlir.bindings import Attribute, Operation, Value, func, ir
from mind_mlir.mlir.locations import Sharing, add_places, places_of
from mind_mlir.mlir.values import attributes_of, callee_of, is_result_of, name_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from mind_mlir.lowering.schedule.fusion.nests.plan import Root
    from mind_mlir.lowering.schedule.fusion.nests.program import NestProgram
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.mlir.bindings import MLIRLocation


class DeduplicatedNests:
    """The nests of one function so far, by kind.

    Args:
        function: The function.
        sharing: What a function says of the places of the nests that it computes.
    """

    def __init__(self, function: Operation, sharing: Sharing = Sharing.FIRST) -> None:
        self._sharing = sharing
        self._function = function.operation
        self._counts: Counter[Hashable] = Counter()
        self._names: dict[Hashable, str] = {}  # of the functions that compute the nests of a kind
        self._bodies: dict[Hashable, tuple[Operation, list[MLIRLocation]]] = {}  # these, and their members
        self._others: dict[Hashable, list[list[MLIRLocation]]] = {}  # the members of nests that call them

    def call(self, nest: NestProgram) -> list[Value] | None:
        """Emit ``nest`` as a call of the function of its kind, and return the tensors of its outputs.

        Returns:
            None, with nothing emitted, if it is to be emitted where it stands.
        """
        try:
            found = _Description(nest)
        except OpaqueError:
            return None
        if not all(self._may_call(view, found.inputs) for view in nest.group.members):
            return None
        apart = self._sharing is Sharing.APART
        key = (found.key, places_of(ir.Location.current)) if apart else found.key
        self._counts[key] += 1
        if self._counts[key] <= IN_PLACE:
            return None
        results = [output.destination.type for output in nest.outputs]
        places = [view.op.location for view in nest.group.members]
        if self._sharing is Sharing.ALL and key in self._bodies:
            self._others.setdefault(key, []).append(places)
        if key not in self._names:
            self._names[key] = f"{name_of(self._function)}_nest_{len(self._names)}"
            with ir.InsertionPoint(self._function):
                types = [value.type for value in found.inputs], results
                function = func.FuncOp(self._names[key], types, visibility="private")
            body = function.add_entry_block()
            with ir.InsertionPoint(body):
                read = dict(zip(found.inputs, body.arguments, strict=True))
                func.ReturnOp(_emit_inside(nest, Emitter(function), read, found.constants))
            self._bodies[key] = function.operation, places
        call = func.CallOp(results, ir.FlatSymbolRefAttr.get(self._names[key]), list(found.inputs))
        return list(call.results)

    def locate(self) -> None:
        """Let what functions compute be located at the nests that call them, too."""
        for key, others in self._others.items():
            function, first = self._bodies[key]
            add_places(function, dict(zip(first, zip(*others, strict=True), strict=True)))

    def _may_call(self, view: View, inputs: Iterable[Value]) -> bool:
        """Return whether a nest of which ``view`` is a member, and that reads ``inputs``, can be a call.

        Parts of tensors could only be passed as copies; what is inserted into another tensor is best computed
        in its place there; and what a loop repeats is emitted once anyway.
        """
        users = (use.owner.operation for result in view.op.results for use in result.uses)
        parts = (value for value in inputs if is_result_of(value, "tensor.extract_slice"))
        return (
            view.op.parent.operation == self._function
            and not any(user.name == "tensor.insert_slice" for user in users)
            and not any(value in view.operands for value in parts)
        )


def call_choices(results: Sequence[Value] | None) -> tuple[Choice, ...]:
    """Return the choice that a nest is a call, given the results of the call, if it is one."""
    why = f"one function for all but {IN_PLACE} nests of this kind"
    return chosen(results is not None and ("call", f"@{callee_of(results[0].owner)}", why))


def _emit_inside(
    nest: NestProgram, emitter: Emitter, read: Mapping[Value, Value], numbers: Mapping[Value, Attribute]
) -> list[Value]:
    """Emit ``nest`` in a function of its own, where other values are ``read``, and ``numbers`` constants."""
    members = [
        dataclasses.replace(view, operands=tuple(read.get(value, value) for value in view.operands))
        for view in nest.group.members
    ]
    constants: dict[Root, Value] = {
        value: emitter.constant(value.type, each) for value, each in numbers.items()
    }
    produced = {result: view for view in members for result in view.op.results}
    outputs = []
    for output in nest.outputs:
        type_ = output.destination.type
        start = None if output.start is None else constants[output.start]
        fresh = emitter.empty(list(type_.shape), type_.element_type)
        member = produced[output.result]
        outputs.append(dataclasses.replace(output, member=member, destination=fresh, start=start))
    inside = dataclasses.replace(nest.group, members=members, produced=produced)
    return emit_nest(emitter, dataclasses.replace(nest, group=inside, outputs=outputs), Known(constants))


class _Description:
    """What is computed by a nest.

    Attributes:
        key: Equal for groups for which the same is emitted.
        inputs: The tensors that it reads, by number.
        constants: Numbers from outside that it uses.

    Raises:
        OpaqueError: It depends on more than whole tensors and constants.
    """

    def __init__(self, nest: NestProgram) -> None:
        group = nest.group
        self.inputs: dict[Value, int] = {}
        self.constants: dict[Value, Attribute] = {}
        self._produced = {
            result: (member, number)
            for member, view in enumerate(group.members)
            for number, result in enumerate(view.op.results)
        }
        members = [
            (view.accesses, view.shapes, view.reductions, view.live, self._operands(view), self._body(view))
            for view in group.members
        ]
        starts = [(self._produced[result], self._number(start)) for result, start in nest.starts.items()]
        results = [(self._produced[output.result], output.destination.type) for output in nest.outputs]
        self.key: Hashable = (group.extents, group.vector, group.reductions, *members, *results, *starts)

    def _number(self, value: Value | None) -> Attribute:
        """Return the constant that ``value`` is; None stands for what is in a tensor."""
        constant = None if value is None else constant_value(value)
        if constant is None:
            raise OpaqueError
        self.constants[value] = constant
        return constant

    def _operands(self, view: View) -> Hashable:
        """Return which tensors ``view`` reads, the group's own or by number."""
        found: list[Hashable] = []
        for number, value in enumerate(view.operands):
            if number >= len(view.inputs):
                if view.used(number) and not view.reductions:
                    raise OpaqueError  # updates a tensor
            elif value in self._produced:
                found.append(self._produced[value])
            elif view.used(number):
                window = window_of(value)
                if window is not None and window.margin is not None:
                    raise OpaqueError  # what lies beyond a tensor is no tensor
                if not isinstance(value.type, ir.RankedTensorType) or filler(value) is not None:
                    raise OpaqueError
                found.append((value.type, self.inputs.setdefault(value, len(self.inputs))))
        return tuple(found)

    def _body(self, view: View) -> Hashable:
        """Return what the body of ``view`` computes."""
        numbers = {argument: number for number, argument in enumerate(view.body.arguments)}
        found: list[Hashable] = [argument.type for argument in view.body.arguments]
        for operation in view.body.operations:
            op = operation.operation
            operands = [numbers[each] if each in numbers else self._number(each) for each in op.operands]
            attributes = attributes_of(op)
            for result in op.results:
                numbers[result] = len(numbers)
            found.append((op.name, tuple(operands), attributes, *(result.type for result in op.results)))
        return tuple(found)
