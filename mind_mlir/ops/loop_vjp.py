"""The derivative of a loop: replay it, and go back.

A loop `While (%init) {condition, body}` computes T[0] = condition(init) and
T[k+1] = condition(body(T[k])); its results are T[n]. Going back takes cotangents of T[k+1] to those of T[k],
for k from n-1 down to 0, and, at last, to those of init. One *step* back reads those parts of the state T[k]
that the derivative needs, often none at all. They come, cheapest first:

- from nowhere, where the step reads none: then all that is needed is the number of iterations;
- from a record that the loop itself writes, where the number of iterations is known and the record small;
- from replaying the loop, from states that are kept (`mind_mlir.ops.loop_replay`).

The number of iterations is counted by the loop itself. All of this takes memory of constant size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from mind_mlir.ir.module import CoreOperation, Result
from mind_mlir.ir.regions import live_operations, reads
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.loop_replay import Replay
from mind_mlir.ops.loop_state import (
    INDEX,
    add_into,
    buffer_type,
    is_not_negative,
    put,
    room_for,
    state_bytes,
    take,
)
from mind_mlir.ops.trip_count import trip_count
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import Fills, VjpContext

#: The largest record that a loop of known length writes.
MAX_RECORD = 2**20


@dataclass(slots=True)
class ReverseStep:
    """One iteration back.

    Attributes:
        region: From (index, cotangents, sums) to the same; reads the records.
        carried: The parts of the state whose cotangents go round, by their places.
        summed: The captured values whose cotangents add up, by their places.
        read: The parts of the state that the region reads, by their places.
        needed: Those from which the loop can be replayed, as far as it computes parts that are read.
        records: For each part that is read, its values in the order of the iterations; not defined yet.
    """

    region: Fills
    carried: list[int]
    summed: list[int]
    read: list[int]
    needed: list[int]
    states: dict[int, Value]
    records: dict[int, Value] = field(default_factory=dict)

    def read_from(self, context: VjpContext, capacity: int) -> None:
        """Let the region take the state from records of ``capacity`` states each."""
        builder = context.builder
        for place in self.read:
            self.records[place] = builder.fresh(buffer_type(self.states[place].type, capacity))
        with self.region as region:
            derivative, builder.operations = builder.operations, []
            for place, record in self.records.items():
                state = self.states[place]
                take(builder, record, region.parameters[0], state.type, defines=state)
            builder.operations += derivative

    def run(self, context: VjpContext, last: Value, values: Sequence[Value]) -> list[Value]:
        """Append the loop that goes back from iteration ``last`` to 0; return what becomes of ``values``."""
        builder = context.builder
        with builder.region([INDEX, *(value.type for value in values)]) as more:
            more.yield_([is_not_negative(builder, more.parameters[0]), *more.parameters])
        found = builder.emit_all("While", last, *values, regions=(more, self.region))
        return list(found[1:])


def while_vjp(context: VjpContext) -> Sequence[Value | None]:
    """Return the cotangents of the initial values, and of the captured ones."""
    step = _step(context)
    types = [result.type for result in context.results]
    initial = [context.cotangents[place] or context.zeros(types[place]) for place in step.carried]
    initial += [context.zeros(context.captured[place].type) for place in step.summed]
    found = _run_back(context, step, initial)
    cotangents: list[Value | None] = [None] * len(types)
    for place, cotangent in zip(step.carried, found, strict=False):
        cotangents[place] = cotangent
    # What the condition computes from the initial values, before the first iteration.
    condition = context.regions[0]
    condition.run(context.operands)
    operands, captured = condition.pull([None, *cotangents])
    for place, total in zip(step.summed, found[len(step.carried) :], strict=True):
        captured[place] = context.sum(total, captured[place])
    return [*operands, *captured]


def _run_back(context: VjpContext, step: ReverseStep, initial: list[Value]) -> list[Value]:
    builder = context.builder
    known = trip_count(builder.operations[context.place], context.constants)
    if known is not None and step.read:
        size = state_bytes(context.results[place].type for place in step.read)
        if known * size <= MAX_RECORD:
            _record(context, step, max(known, 1))
            return step.run(context, builder.constant(known - 1, DType.SI64), initial)
    if known is None:
        (count,) = _extend(
            context,
            lambda: [builder.constant(0, DType.SI64)],
            lambda _, counted: [_next(context, counted[0])],
        )
    else:
        count = builder.constant(known, DType.SI64)
    if not step.read:
        one = builder.constant(1, DType.SI64)
        return step.run(context, builder.emit("Sub", count, one), initial)
    room = room_for([context.results[place].type for place in step.needed], context.depth)
    step.read_from(context, room.records)
    return Replay(context, step, room).run(count, initial)


def _step(context: VjpContext) -> ReverseStep:
    builder = context.builder
    condition, body = context.regions
    types = [result.type for result in context.results]
    carried = [
        place for place, active in enumerate(body.active) if active or context.cotangents[place] is not None
    ]
    around = [value.type for value in context.captured]
    with builder.region([INDEX, *(types[place] for place in carried), *around]) as region:
        index, *rest = region.parameters
        cotangents, totals = rest[: len(carried)], rest[len(carried) :]
        states = [builder.fresh(type_) for type_ in types]
        _, *after = condition.run(body.run(states))
        seeds: list[Value | None] = [None] * len(types)
        for place, cotangent in zip(carried, cotangents, strict=True):
            seeds[place] = cotangent
        found, captured = condition.pull([None, *seeds])
        found, more = body.pull(found)
        gradients = [found[place] or context.zeros(types[place]) for place in carried]
        sums = [context.sum(left, right) for left, right in zip(captured, more, strict=True)]
        summed = [place for place, total in enumerate(sums) if total is not None]
        sources = {operation.value_id: operation for operation in region.operations}
        new = [total and add_into(context, totals[i], total, sources) for i, total in enumerate(sums)]
        one = builder.constant(1, DType.SI64)
        region.parameters = [index, *cotangents, *(totals[place] for place in summed)]
        region.yield_([builder.emit("Sub", index, one), *gradients, *(total for total in new if total)])
    everything = region.operations
    region.prune()
    # Sums before the cotangents that they read are replaced: then both are updated in place.
    early = live_operations(region.operations, [total.id for total in new if total])
    sooner = {operation.value_id for operation in early}
    region.operations = early + [op for op in region.operations if op.value_id not in sooner]
    read = _read_states(region.operations, region.yields or (), states)
    needed = read
    while True:  # at most as often as there are parts of the state
        roots = [after[place] for place in needed]
        live = live_operations(everything, [value.id for value in roots])
        found_places = sorted({*needed, *_read_states(live, roots, states)})
        if found_places == needed:
            break
        needed = found_places
    return ReverseStep(region, carried, summed, read, needed, dict(enumerate(states)))


def _read_states(
    operations: Sequence[CoreOperation], yields: Sequence[Value], states: Sequence[Value]
) -> list[int]:
    used = {value.id for value in yields}
    for operation in operations:
        used.update(reads(operation))
    return [place for place, state in enumerate(states) if state.id in used]


def _record(context: VjpContext, step: ReverseStep, capacity: int) -> None:
    """Let the loop record the parts of its state that the step reads, ``capacity`` times."""
    builder = context.builder
    step.read_from(context, capacity)

    def begin() -> list[Value]:
        return [builder.constant(0, DType.SI64), *(context.zeros(r.type) for r in step.records.values())]

    def write(state: Sequence[Value], extra: Sequence[Value]) -> list[Value]:
        index, *records = extra
        written = [
            put(builder, record, state[place], index)
            for place, record in zip(step.records, records, strict=True)
        ]
        return [_next(context, index), *written]

    defines = [builder.fresh(INDEX), *step.records.values()]
    _extend(context, begin, write, defines)


def _next(context: VjpContext, index: Value) -> Value:
    return context.emit("Add", index, context.builder.constant(1, DType.SI64))


def _extend(
    context: VjpContext,
    begin: Callable[[], list[Value]],
    update: Callable[[Sequence[Value], Sequence[Value]], list[Value]],
    defines: Sequence[Value] = (),
) -> list[Value]:
    """Let the loop that has been appended already carry further values along; return their last values.

    Args:
        context: The loop.
        begin: Appends the values before the loop.
        update: Appends, in the body, new values, given the state and the values.
        defines: The values at the end, where they have been made already.
    """
    builder = context.builder
    operation = builder.operations[context.place]
    around, builder.operations = builder.operations, []
    initial = begin()
    types = [value.type for value in initial]
    results = list(defines) or [builder.fresh(type_) for type_ in types]
    carried = operation.result_types
    condition = builder.reopen(operation.regions[0], (TensorType(DType.I1), *carried))
    with condition:
        added = [condition.parameter(type_) for type_ in types]
        condition.yield_([*(condition.yields or ()), *added])
    before = tuple([context.operands[place].type for place in range(len(operation.operands))])
    body = builder.reopen(operation.regions[1], before)
    with body:
        state = list(body.parameters)
        added = [body.parameter(type_) for type_ in types]
        body.yield_([*(body.yields or ()), *update(state, added)])
    extended = replace(
        operation,
        operands=(*operation.operands, *(value.id for value in initial)),
        others=(*operation.others, *(Result(value.id, value.type) for value in results)),
        regions=(condition.block("condition"), body.block("body")),
    )
    around[context.place : context.place + 1] = [*builder.operations, extended]
    builder.operations = around
    return results
