"""The results that leave a group's nest, and how they get into memory."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.groups.reductions import Combiner, combined_value, match_combiners
from mind_mlir.lowering.schedule.fusion.nests.elements import Chunk, read_vector
from mind_mlir.lowering.schedule.linalg_view.body import match_multiply_add

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.lowering.schedule.linalg_view.view import Access, Env, View
    from mind_mlir.mlir.bindings import Value


@dataclasses.dataclass(frozen=True)
class Output:
    """A result that leaves the nest.

    Attributes:
        member: the operation.
        number: number among its results.
        destination: the tensor it is written to; holds what a reduction starts from unless ``start`` does.
        start: the number that a reduction starts from, or None.
        adds: whether each element is combined with what is in memory by then: a sum over rows.
        instead: what is reduced rather than what the operation does, a value of its body.
    """

    member: View
    number: int
    destination: Value
    start: Value | None = None
    adds: bool = False
    instead: Value | None = None

    @property
    def access(self) -> Access:
        """The access to the result: its indices."""
        return self.member.accesses[len(self.member.inputs) + self.number]

    @property
    def result(self) -> Value:
        """The result itself."""
        return self.member.op.results[self.number]


def reductions_of(views: Iterable[View]) -> list[Output]:
    """Return the results of ``views``, which reduce, as results that are given as they are found."""
    return [Output(view, number, init) for view in views for number, init in enumerate(view.inits)]


def combiner_of(output: Output) -> Combiner:
    """Return how ``output``, a reduction, is combined."""
    combiners = match_combiners(output.member.body, output.member.results)
    assert combiners is not None  # `vector_dims` is empty otherwise
    return dataclasses.replace(combiners[output.number], location=output.member.op.location)


def wanted_values(output: Output) -> list[Value]:
    """Return what is needed in vectors for ``output``: a value, or both factors of a product to be summed."""
    member = output.member
    if output.instead is not None:
        return [output.instead]
    if not member.reductions:
        return [output.result]
    value = combined_value(member.body, member.results, output.number)
    product = match_multiply_add(member.body)
    return list(value.owner.operands) if product is not None and product.floating else [value]


class Stores:
    """Reads and writes the outputs of a group.

    Args:
        emitter: Where to emit.
        group: What is computed.
        lanes: Elements in a vector register.
        registers: Registers in a vector.
    """

    def __init__(self, emitter: Emitter, group: Group, lanes: int, registers: int) -> None:
        self._e = emitter
        self._dim = group.vector
        self._lanes = lanes
        self._registers = registers

    def store(
        self,
        output: Output,
        result: Value,
        env: Env,
        chunk: Chunk,
        value: Value,
        slot: Index | None = None,
    ) -> Value:
        """Write the vector of a chunk to ``result``, to part ``slot`` of it if it holds partial results.

        Each register is stored by itself: LLVM would store those of one vector last one first, which takes up
        to twice as long where they are not aligned.
        """
        indices = self._place(output, env, chunk, slot)
        if chunk.mask is not None or self._registers == 1:
            return self._e.write(value, result, indices, chunk.mask)
        for first in range(0, self._registers * self._lanes, self._lanes):
            part = self._e.part(value, first, self._lanes)
            result = self._e.write(part, result, [*indices[:-1], self._e.add(indices[-1], first)])
        return result

    def start(self, output: Output, result: Value, env: Env, chunk: Chunk, slot: Index | None) -> Value:
        """Return what the accumulator of ``chunk`` starts from: a number, or elements of ``result``."""
        if output.start is not None and slot is None:
            width = self._registers * self._lanes
            return self._e.broadcast(self._e.vector_type(width, output.start.type), output.start)
        indices = self._place(output, env, chunk, slot)
        return read_vector(self._e, self._registers * self._lanes, result, indices, chunk.mask)

    def _place(self, output: Output, env: Env, chunk: Chunk, slot: Index | None) -> list[Index]:
        here = env | {self._dim: chunk.start}
        indices = [index.emit(self._e, here) for index in output.access]
        return indices if slot is None else [slot, *indices]

    def store_total(
        self,
        output: Output,
        result: Value,
        env: Env,
        combine: Callable[[Value, Value], Value],
        total: Value,
        slot: Index | None,
    ) -> Value:
        """Combine ``total`` with what its element of ``result`` starts from, and store it there.

        Partial results, of which this is part ``slot``, start from nothing.
        """
        indices = [index.emit(self._e, env) for index in output.access]
        if slot is not None:
            return self._e.insert(total, result, [*indices, slot])
        start = self._e.extract(result, indices) if output.start is None else output.start
        return self._e.insert(combine(start, total), result, indices)
