"""The values of one function while it is written as C: which expression or array each of them is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mind_mlir.conversion.c.arrays import Array, address, in_memory, label_for, row_major
from mind_mlir.conversion.c.nodes import AffineIndex, Element, Expr, Set, Sum, Text
from mind_mlir.conversion.c.operations import C_TYPES, kind_of
from mind_mlir.mlir.bindings import Operation, Value, ir
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from mind_mlir.conversion.c.statements import Statements


class Values:
    """What stands for each value, and which arrays may be written to again.

    Attributes:
        scalars: The expression of each scalar.
        arrays: The array of each tensor.
        buffers: C type and number of elements of the arrays of the function, by name.
    """

    def __init__(self, code: Statements) -> None:
        self.scalars: dict[Value, Expr] = {}
        self.arrays: dict[Value, Array] = {}
        self.buffers: dict[str, tuple[str, int]] = {}
        self._code = code
        self._wanted: dict[Value, str] = {}
        self._homes: dict[str, object] = {}
        self._block: Any = None
        self._order: dict[Operation, int] = {}

    @contextmanager
    def within(self, block: Any) -> Iterator[list[Operation]]:
        """Give the operations of ``block`` while they are written: arrays made meanwhile belong to it."""
        outer, self._block = self._block, block
        operations = [view.operation for view in block.operations]
        self._order.update((op, number) for number, op in enumerate(operations))
        yield operations
        self._block = outer

    def buffer(self, value: Value) -> str:
        """Return a new array for ``value``."""
        if value in self._wanted:
            name = self._wanted.pop(value)
        else:
            name = self._code.name(label_for(value))
            self.buffers[name] = C_TYPES[kind_of(value.type)], max(1, math.prod(value.type.shape))
        self._homes[name] = self._block
        return name

    def bind(self, value: Value, name: str) -> None:
        """Say that ``value`` is the variable or the dense array ``name``."""
        if isinstance(value.type, ir.RankedTensorType):
            self.arrays[value] = in_memory(name, value.type.shape)
        else:
            self.scalars[value] = Text(name)

    def settle(self, name: str, home: object) -> None:
        """Say that the array ``name`` may be written to by what stands in the block ``home``."""
        self._homes[name] = home

    def alias(self, argument: Value, value: Value) -> None:
        """Say that ``argument`` is ``value``."""
        if value in self.arrays:
            self.arrays[argument] = self.arrays[value]
        else:
            self.scalars[argument] = self.scalars[value]

    def want(self, value: Value, name: str) -> None:
        """Have ``value`` computed in the array ``name`` if it is computed at all."""
        self._wanted.setdefault(value, name)

    def is_wanted(self, value: Value) -> bool:
        """Return whether ``value`` is yet to be computed in an array that has been named."""
        return value in self._wanted

    def index(self, value: Value) -> AffineIndex:
        """Return an index that is computed, as a term of addresses."""
        expr = self.scalars[value]
        if isinstance(expr, Sum):
            return expr.index
        if isinstance(expr, Text) and re.fullmatch(r"-?\d+", expr.text):
            return AffineIndex((), int(expr.text))
        if not isinstance(expr, Text):
            expr = self.scalars[value] = self._code.variable("at", expr, "const int64_t")
        return AffineIndex(((expr.text, 1),))

    def copied(
        self, array: Array, name: str, offset: AffineIndex | None = None, strides: Sequence[int] = ()
    ) -> None:
        """Write loops that put ``array`` into the array ``name``."""
        with self._code.loops(array.shape) as indices:
            place = address(indices, strides or row_major(array.shape))
            value = array.read(indices)
            self._code.add(Set(Element(name, place if offset is None else place.plus(offset)), value))

    def copy(self, value: Value) -> Array:
        """Return a dense copy of the tensor ``value`` in memory, in an array of its own."""
        array, name = self.arrays[value], self.buffer(value)
        self.copied(array, name)
        return in_memory(name, array.shape)

    def dense(self, value: Value) -> str:
        """Return an array in which the tensor ``value`` lies densely; it is copied where it does not yet."""
        if self.arrays[value].place is None:
            self.arrays[value] = self.copy(value)
        array = self.arrays[value]
        if array.place is None or array.place[1:] != (row_major(array.shape), 0):
            array = self.copy(value)
        assert array.place is not None, "a copy is in memory"
        return array.place[0]

    def destination(self, op: Operation, tensor: Value, reading: Array | None = None) -> str:
        """Return the array that ``op`` writes to: that of ``tensor`` where nobody needs it any more."""
        result, array = op.results[0], self.arrays[tensor]
        if array.place is not None and array.place[1:] == (row_major(array.shape), 0):
            name = array.place[0]
            mine = name in self._homes and self._homes[name] == self._block == _block_of(tensor)
            apart = reading is None or name not in reading.reads
            if mine and apart and not self._uses_left(tensor, self._order[op]):
                self._flush(name, op, tensor)
                self.bind(result, name)
                return name
        name = self.buffer(result)
        owner = definition(tensor)
        if owner is None or owner.name != "tensor.empty":
            self.copied(array, name)
        self.bind(result, name)
        return name

    def _flush(self, name: str, op: Operation, destination: Value) -> None:
        """Put into memory what would read the array ``name`` after ``op`` writes to it."""
        for value, array in list(self.arrays.items()):
            mine = name in array.reads and value != destination and _block_of(value) == self._block
            if mine and self._uses_left(value, self._order[op] - 1):
                self.arrays[value] = self.copy(value)

    def _uses_left(self, value: Value, after: int) -> bool:
        return any(self._position(use.owner.operation) > after for use in value.uses)

    def _position(self, op: Operation) -> int:
        while op not in self._order:
            op = op.parent.operation
        return self._order[op]


def _block_of(value: Value) -> Any:
    return value.owner if isinstance(value, ir.BlockArgument) else value.owner.operation.block
