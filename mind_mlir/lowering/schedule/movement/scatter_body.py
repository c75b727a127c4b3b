"""What a marked loop over rows of updates does with one row, read from its body.

The body computes where a row begins, in the result and in the updates, and ends with the loop over the
columns, which combines an element of the updates with one of the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.linalg_view.values import copied, repeat
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.mlir.bindings import Operation, Value


class ScatterBody:
    """The body of one loop.

    Attributes:
        number: The number of the row.
        column: That of the column.
        place: Where the element belongs, in the flat result.
        columns: The loop over the columns.
        combiner: The operation on an old element and an update that gives the new one; None where that is the
            update.
    """

    def __init__(self, loop: Operation) -> None:
        self.number = loop.regions[0].blocks[0].arguments[0]
        *before, columns, _ = (op.operation for op in loop.regions[0].blocks[0].operations)
        self._before, self.columns = before, columns
        block = columns.regions[0].blocks[0]
        self.column, target = block.arguments
        self._inside = [op.operation for op in block.operations]
        insert = next(op for op in self._inside if op.name == "tensor.insert")
        self._written, self.place = insert.operands[0], insert.operands[2]
        found = definition(self._written)
        read = () if found is None else found.operands
        self._old = next((value for value in read if _is_of(value, target)), None)
        self.combiner = None if self._old is None else found

    @property
    def combined(self) -> str | None:
        """The name of the operation that combines; None where updates take the place of elements."""
        return None if self.combiner is None else self.combiner.name

    @property
    def update(self) -> Value:
        """An element of the updates."""
        if self.combiner is None:
            return self._written
        return next(value for value in self.combiner.operands if value != self._old)

    def combine(self, old: Value, new: Value, shape: Sequence[int]) -> Value:
        """Emit what becomes of ``old`` elements with ``new`` ones, vectors of ``shape``."""
        if self.combiner is None:
            return new
        operands = [old if value == self._old else new for value in self.combiner.operands]
        return repeat(self.combiner, operands, shape)[0]

    def elements(self, e: Emitter, first: Index, lanes: int) -> Value:
        """Emit so many elements of updates from ``first`` on, in the flat tensors that they are made of.

        They are a vector, or for 0 a single one. Rows are longer than one element.
        """
        block, shape = self.columns.regions[0].blocks[0], [lanes] * (lanes > 0)
        made: dict[Value, Value] = {}

        def of(value: Value) -> Value:
            op = definition(value)
            if value not in made:
                if op is None or op.block != block or _is_uniform(op):
                    same = value if op is None or op.block != block else op.clone().results[0]
                    made[value] = e.broadcast(e.vector_type(lanes, value.type), same) if lanes else same
                elif op.name != "tensor.extract":
                    found = repeat(op, [of(each) for each in op.operands], shape)
                    made.update(zip(op.results, found, strict=True))
                elif lanes:
                    padding = e.number(value.type, 0)
                    made[value] = e.read(e.vector_type(lanes, value.type), op.operands[0], [first], padding)
                else:
                    made[value] = e.extract(op.operands[0], [first])
            return made[value]

        return of(self.update)

    @property
    def begin(self) -> Value:
        """Where the row begins, in the flat result."""
        return self._inside[0].operands[0]

    def row(self, e: Emitter, number: Index) -> Value:
        """Emit where row ``number`` begins, in the flat result."""
        return copied(self._before, {self.number: e.index(number)})[self.begin]

    @property
    def operations(self) -> list[Operation]:
        """What computes, of a single element, where it belongs and what it is."""
        inside = self._inside[:-2]
        if self.combiner is not None:
            inside = [op for op in inside if op != self.combiner and self._old not in list(op.results)]
        return self._before + inside

    def single(self, e: Emitter, number: Index) -> tuple[Value, Value]:
        """Emit where update ``number``, a single element, belongs, and what it is."""
        made = copied(self.operations, {self.number: e.index(number), self.column: e.index(0)})
        return made.get(self.place, self.place), made.get(self.update, self.update)


def _is_uniform(op: Operation) -> bool:
    """Return whether ``op`` is a constant, or reads the one element of a tensor without dimensions."""
    return not op.operands or (op.name == "tensor.extract" and len(op.operands) == 1)


def _is_of(value: Value, target: Value) -> bool:
    """Return whether ``value`` is an element of the tensor ``target``."""
    op = definition(value)
    return op is not None and op.name == "tensor.extract" and op.operands[0] == target
