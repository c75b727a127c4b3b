"""Replays a loop from states that are kept, so that one can go back through it in constant memory.

The states of a loop of n iterations are needed from the last one to the first. The *kept* ones are a stack,
which holds the first state at first. To go back through the iterations before iteration k:

1. while more than B iterations lie between the top of the stack and k, advance from the top by a stride and
   push the state that is found there;
2. record the at most B states from the top on;
3. go back through the record, and pop.

The strides are those of Griewank and Walther ("Revolve", ACM TOMS 26, 2000): with room for s states,
b(s, t) = (s+t)! / (s! t!) chunks of B iterations are replayed, no iteration run more than t times for it. So
time is linear in practice: with some hundreds of states kept, t is 1 or 2 for a million iterations. It is
never wrong: a longer loop only takes more replays. Each of the three loops holds nothing but its own work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.loop_state import INDEX, Room, buffer_type, put, take
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.loop_vjp import ReverseStep
    from mind_mlir.ops.vjp import VjpContext


@dataclass(slots=True)
class Replay:
    """Appends the loops that replay a loop and go back through it.

    The stack has a place more than the strides count on: the first state of a chunk is pushed there when all
    others are taken.
    """

    context: VjpContext
    step: ReverseStep
    room: Room

    def run(self, count: Value, initial: Sequence[Value]) -> list[Value]:
        """Append the way back through ``count`` iterations; return what becomes of ``initial``."""
        context, builder, step = self.context, self.context.builder, self.step
        operands = self._first_state()
        parts = [operands[place] for place in step.needed]
        places = TensorType(DType.SI64, (self.room.kept + 1,))
        stacks = [
            put(builder, context.zeros(buffer_type(part.type, self.room.kept + 1)), part, self._integer(0))
            for part in parts
        ]
        records = [context.zeros(record.type) for record in step.records.values()]
        carried = [count, self._integer(0), context.zeros(places), *stacks, *records, *initial]
        types = [value.type for value in carried]
        with builder.region(types) as more:
            going_on = builder.emit("Compare", more.parameters[0], self._integer(0), op="Greater")
            more.yield_([going_on, *more.parameters])
        with builder.region(types) as back:
            end, top, positions, *rest = back.parameters
            kept, rest = rest[: len(parts)], rest[len(parts) :]
            recorded, values = rest[: len(records)], rest[len(records) :]
            start, top, positions, *rest = self._push(end, top, positions, kept)
            kept, state = rest[: len(parts)], rest[len(parts) :]
            length = builder.emit("Sub", end, start)
            recorded = self._record(state, recorded, length)
            last = builder.emit("Sub", length, self._integer(1))
            values = step.run(context, last, values)
            below = builder.emit("Sub", top, self._integer(1))
            back.yield_([start, below, positions, *kept, *recorded, *values])
        found = builder.emit_all("While", *carried, regions=(more, back))
        return list(found[len(found) - len(initial) :])

    def _first_state(self) -> list[Value]:
        """Append what the condition makes of the initial values."""
        return self.context.regions[0].run(self.context.operands)[1:]

    def _push(self, end: Value, top: Value, positions: Value, kept: Sequence[Value]) -> list[Value]:
        """Append the loop that pushes states until the top is near ``end``.

        Returns:
            The top's position, its place, the positions, the stacks, and the parts of the top's state.
        """
        builder, needed = self.context.builder, self.step.needed
        start = take(builder, positions, top, INDEX)
        types = [self.context.results[place].type for place in needed]
        state = [take(builder, stack, top, type_) for stack, type_ in zip(kept, types, strict=True)]
        carried = [start, top, positions, *kept, *state]
        with builder.region([value.type for value in carried]) as far:
            distance = builder.emit("Sub", end, far.parameters[0])
            room = self._integer(self.room.records)
            far.yield_([builder.emit("Compare", distance, room, op="Greater"), *far.parameters])
        with builder.region([value.type for value in carried]) as push:
            start, top, positions, *rest = push.parameters
            stacks, state = rest[: len(needed)], rest[len(needed) :]
            stride = self._stride(builder.emit("Sub", end, start), top)
            state = self._advance(state, stride)
            start = builder.emit("Add", start, stride)
            top = builder.emit("Add", top, self._integer(1))
            positions = put(builder, positions, start, top)
            stacks = [put(builder, stack, part, top) for stack, part in zip(stacks, state, strict=True)]
            push.yield_([start, top, positions, *stacks, *state])
        return list(builder.emit_all("While", *carried, regions=(far, push)))

    def _stride(self, distance: Value, top: Value) -> Value:
        """Append how far the next state to keep lies from the top, which is ``distance`` away from the end.

        With t the least number of replays for which b(s, t) reaches the number of chunks, it is b(s, t-1)
        chunks, but always leaves one.
        """
        builder = self.context.builder
        size = self._integer(self.room.records)
        rest = builder.emit("Sub", distance, self._integer(1))
        whole = builder.emit("Div", rest, size)  # all chunks but the last one
        free = builder.emit("Sub", self._integer(self.room.kept), top)
        one = self._integer(1)
        with builder.region([INDEX] * 3) as short:
            _replays, _before, reached = short.parameters
            short.yield_([builder.emit("Compare", reached, whole, op="LessEqual"), *short.parameters])
        with builder.region([INDEX] * 3) as again:
            replays, _before, reached = again.parameters
            replays = builder.emit("Add", replays, self._integer(1))
            factor = builder.emit("Add", free, replays)
            further = builder.emit("Div", builder.emit("Mul", reached, factor), replays)
            again.yield_([replays, reached, further])
        found = builder.emit_all("While", self._integer(0), one, one, regions=(short, again))
        return builder.emit("Mul", builder.emit("Minimum", found[1], whole), size)

    def _advance(self, state: Sequence[Value], stride: Value) -> list[Value]:
        """Append the loop that runs ``stride`` iterations."""
        builder = self.context.builder
        carried = [self._integer(0), *state]
        with builder.region([value.type for value in carried]) as more:
            more.yield_([builder.emit("Compare", more.parameters[0], stride, op="Less"), *more.parameters])
        with builder.region([value.type for value in carried]) as body:
            index, *state = body.parameters
            following = self._next(state)
            body.yield_([builder.emit("Add", index, self._integer(1)), *following])
        body.prune()
        return list(builder.emit_all("While", *carried, regions=(more, body))[1:])

    def _record(self, state: Sequence[Value], records: Sequence[Value], length: Value) -> list[Value]:
        """Append the loop that writes ``length`` states into the records, from ``state`` on."""
        builder, step = self.context.builder, self.step
        parts = len(step.needed)

        def written(records: Sequence[Value], state: Sequence[Value], index: Value) -> list[Value]:
            by_place = dict(zip(step.needed, state, strict=True))
            return [
                put(builder, record, by_place[place], index)
                for place, record in zip(step.records, records, strict=True)
            ]

        first = written(records, state, self._integer(0))
        carried = [self._integer(1), *state, *first]
        with builder.region([value.type for value in carried]) as more:
            more.yield_([builder.emit("Compare", more.parameters[0], length, op="Less"), *more.parameters])
        with builder.region([value.type for value in carried]) as body:
            index, *rest = body.parameters
            following = self._next(rest[:parts])
            after = written(rest[parts:], following, index)
            body.yield_([builder.emit("Add", index, self._integer(1)), *following, *after])
        body.prune()
        defines = [builder.fresh(value.type) for value in carried[: 1 + parts]]
        defines += step.records.values()
        found = builder.emit_all("While", *carried, regions=(more, body), defines=defines)
        return list(found[1 + parts :])

    def _next(self, state: Sequence[Value]) -> list[Value]:
        """Append one iteration, as far as the needed parts of the state take part in it."""
        condition, body = self.context.regions
        given = dict(zip(self.step.needed, state, strict=True))
        # What is not needed is not there; the operations that read it are pruned.
        full = [
            given.get(place) or self.context.builder.fresh(result.type)
            for place, result in enumerate(self.context.results)
        ]
        _, *after = condition.run(body.run(full))
        return [after[place] for place in self.step.needed]

    def _integer(self, value: int) -> Value:
        return self.context.builder.constant(value, DType.SI64)
