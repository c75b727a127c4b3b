"""Gives what loops keep, which lies flat, the dimensions of what it holds: these can be divided.

A scan takes its slices from flat arrays, the way back through a loop its states, and both write them (see
`mind_mlir.ops.loop_state`). Before: a function in structured form. After: the same, where a flat array of
rows of one size, which is read and written by whole rows alone, has a dimension for rows and those of a row.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.attributes import Attributes, TensorLiteral
from mind_mlir.ir.module import CoreOperation, Result
from mind_mlir.ir.regions import value_types
from mind_mlir.ops.constants import constant_form
from mind_mlir.ops.region_flow import pairs_of
from mind_mlir.passes.canonical.functions import canonical_function

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mind_mlir.ir.module import Block, Function, ValueId
    from mind_mlir.ir.types import TensorType

_READ, _WRITE, _RESHAPE = "DynamicSlice", "DynamicUpdateSlice", "Reshape"


def with_rows(function: Function) -> Function:
    """Return a function whose flat arrays have rows; itself where it has none."""
    if not any(operation.opcode in (_READ, _WRITE) for operation in operations_of(function.blocks)):
        return function
    arrays = _Arrays(function)
    if not arrays.rows:
        return function
    (block,) = function.blocks
    return canonical_function(replace(function, blocks=(_Writer(arrays).block(block),)))


class _Arrays:
    """The flat arrays of a function.

    Attributes:
        types: The types of all values.
        makers: The operations without regions that make them.
        rows: The shape of a row of each flat array.
    """

    def __init__(self, function: Function) -> None:
        self.types = value_types(function.blocks)
        self.makers: dict[ValueId, CoreOperation] = {}
        self.rows: dict[ValueId, tuple[int, ...]] = {}
        self._same: dict[ValueId, ValueId] = {}
        self._readers: dict[ValueId, list[CoreOperation | None]] = defaultdict(list)
        for operation in operations_of(function.blocks):
            self._look(operation)
        for value in function.entry.terminator.operands:
            self._readers[value].append(None)
        given = {parameter.value_id for parameter in function.entry.parameters}
        members: dict[ValueId, list[ValueId]] = defaultdict(list)
        for value, type_ in self.types.items():
            if type_.rank == 1:
                members[self._first(value)].append(value)
        for values in members.values():
            if not given.intersection(values):
                row = self._row(values, [each for value in values for each in self._readers[value]])
                self.rows.update(dict.fromkeys(values, row) if row else {})

    def _look(self, operation: CoreOperation) -> None:
        if not operation.regions:
            self.makers.update(dict.fromkeys(operation.result_ids, operation))
        for at, value in enumerate(operation.operands):
            # What is read at another place than the first is not the array.
            self._readers[value].append(operation if at == 0 or operation.regions else None)
        if operation.opcode == _WRITE:
            self._join(operation.operands[0], operation.value_id)
        for source, target in pairs_of(operation):
            self._join(source, target)

    def _first(self, value: ValueId) -> ValueId:
        while value in self._same:
            above = self._same[value]
            self._same[value] = value = self._same.get(above, above)
        return value

    def _join(self, one: ValueId, other: ValueId) -> None:
        one, other = self._first(one), self._first(other)
        if one != other:
            self._same[one] = other

    def _row(self, values: Sequence[ValueId], readers: Sequence[CoreOperation | None]) -> tuple[int, ...]:
        """Return the shape of the rows of an array that is all of these values; none where it has no rows."""
        made = [self.makers.get(value) for value in values]
        sizes = {self._size(each) for each in (*readers, *made) if each and each.opcode in (_READ, _WRITE)}
        (extent,) = self.types[values[0]].extents
        if len(sizes) != 1 or not all(map(self._can_be_made, made)):
            return ()
        (size,) = sizes
        if size < 2 or extent % size:
            return ()
        shapes: list[tuple[int, ...]] = [(size,)]
        for reader in readers:
            if reader is None or not (reader.regions or reader.opcode in (_READ, _WRITE, _RESHAPE)):
                return ()
            if reader.opcode in (_READ, _WRITE) and self.place(reader.operands[-1], size) is None:
                return ()
            shapes += self._shapes(reader, extent // size)
        for each in made:
            if each is not None and each.opcode == _RESHAPE:
                shapes += [self.types[each.operands[0]].extents[1:]] * self._is_row(
                    each.operands[0], extent // size
                )
        return max(shapes, key=len)

    def _size(self, operation: CoreOperation) -> int:
        row = operation.value_id if operation.opcode == _READ else operation.operands[1]
        return self.types[row].element_count

    def _can_be_made(self, maker: CoreOperation | None) -> bool:
        """Return whether what makes an array, or hands it on, can make it with rows."""
        if maker is None or maker.opcode in (_WRITE, _RESHAPE):
            return True
        if maker.opcode == "BroadcastTo":
            return self.types[maker.operands[0]].rank == 0
        literal = maker.attributes.get("value")
        return isinstance(literal, TensorLiteral) and not maker.operands

    def _shapes(self, reader: CoreOperation, rows: int) -> Iterator[tuple[int, ...]]:
        """Yield the shapes of rows that an operation on an array knows of."""
        if reader.opcode == _RESHAPE and self._is_row(reader.value_id, rows):
            yield self.types[reader.value_id].extents[1:]
        if reader.opcode == _WRITE:
            maker = self.makers.get(reader.operands[1])
            if maker is not None and maker.opcode == _RESHAPE:
                yield self.types[maker.operands[0]].extents
        if reader.opcode == _READ:
            for other in self._readers[reader.value_id]:
                if other is not None and other.opcode == _RESHAPE:
                    yield self.types[other.value_id].extents

    def _is_row(self, value: ValueId, rows: int) -> bool:
        return self.types[value].rank > 1 and self.types[value].extents[0] == rows

    def place(self, start: ValueId, size: int) -> ValueId | TensorLiteral | None:
        """Return the number of the row that begins at ``start``; None where that is none for sure."""
        literal = self._literal(start)
        if literal is not None:
            whole, rest = divmod(int(literal.array.flat[0]), size)
            return None if rest else TensorLiteral.of([whole], literal.type.dtype)
        maker = self.makers.get(start)
        times = self.makers.get(maker.operands[0]) if maker is not None and maker.opcode == _RESHAPE else None
        if times is not None and times.opcode == "Mul":
            for index, factor in (times.operands, times.operands[::-1]):
                known = self._literal(factor)
                if known is not None and int(known.array.flat[0]) == size:
                    return index
        return None

    def _literal(self, value: ValueId) -> TensorLiteral | None:
        """Return the one number that a value is, if it is one."""
        maker = self.makers.get(value)
        literal = None if maker is None or maker.operands else maker.attributes.get("value")
        return literal if isinstance(literal, TensorLiteral) and literal.array.size == 1 else None


class _Writer:
    """Writes a function with rows."""

    def __init__(self, arrays: _Arrays) -> None:
        self._arrays, self._types = arrays, arrays.types
        self._fresh = count(1 + max(arrays.types, default=-1))
        self._operations: list[CoreOperation] = []
        #: Rows that lie flat, as they have been read.
        self._read: dict[ValueId, ValueId] = {}

    def block(self, block: Block) -> Block:
        """Return a block with rows."""
        outside, self._operations = self._operations, []
        for operation in block.operations:
            self._operation(operation)
        operations, self._operations = self._operations, outside
        parameters = [replace(each, type=self._type(each.value_id)) for each in block.parameters]
        return replace(block, operations=tuple(operations), parameters=tuple(parameters))

    def _type(self, value: ValueId) -> TensorType:
        """Return the type of a value of the function, with rows."""
        type_, row = self._types[value], self._arrays.rows.get(value)
        return type_ if row is None else type_.with_shape((type_.extents[0] // _size_of(row), *row))

    def _operation(self, operation: CoreOperation) -> None:
        if operation.regions:
            first, *others = [Result(value, self._type(value)) for value in operation.result_ids]
            regions = tuple(map(self.block, operation.regions))
            self._operations.append(
                replace(operation, result_type=first.type, others=tuple(others), regions=regions)
            )
        elif operation.opcode == _READ and operation.operands[0] in self._arrays.rows:
            array, start = operation.operands
            row = self._arrays.rows[array]
            type_ = self._types[array].with_shape((1, *row))
            places = self._places(operation, start, row)
            found = self._emit(operation, _READ, (array, places), type_, sizes=type_.extents)
            self._read[operation.value_id] = found
            self._operations.append(_reshaped(operation, found, operation.tensor_type))
        elif operation.opcode == _WRITE and operation.value_id in self._arrays.rows:
            array, update, start = operation.operands
            row = self._arrays.rows[array]
            read = (array, self._row(operation, update, row), self._places(operation, start, row))
            type_ = self._type(operation.value_id)
            self._operations.append(replace(operation, operands=read, result_type=type_))
        elif operation.opcode == _RESHAPE:
            (source,) = operation.operands
            type_ = self._type(operation.value_id)
            self._operations.append(_reshaped(operation, self._read.get(source, source), type_))
        elif operation.value_id in self._arrays.rows:
            self._operations.append(_made(operation, self._type(operation.value_id)))
        else:
            self._operations.append(operation)

    def _row(self, operation: CoreOperation, value: ValueId, row: tuple[int, ...]) -> ValueId:
        """Return a flat row as one of an array of rows: computed so, where it is a sum."""
        maker, flat = self._arrays.makers.get(value), self._types[value]
        type_ = flat.with_shape((1, *row))
        if value in self._read:
            value = self._read[value]
            if type_ == self._types.get(value):
                return value
        elif maker is not None and maker.opcode == _RESHAPE:
            (value,) = maker.operands
        elif (
            maker is not None
            and maker.opcode == "Add"
            and all(self._types[each] == flat for each in maker.operands)
        ):
            parts = [self._row(operation, each, row) for each in maker.operands]
            return self._emit(operation, "Add", parts, type_)
        return self._emit(operation, _RESHAPE, (value,), type_, new_shape=type_.extents)

    def _places(self, operation: CoreOperation, start: ValueId, row: tuple[int, ...]) -> ValueId:
        """Append where a row begins in an array of rows."""
        place, type_ = self._arrays.place(start, _size_of(row)), self._types[start]
        assert place is not None, "it has been looked at"
        if isinstance(place, TensorLiteral):
            number = self._constant(operation, place)
        else:
            number = self._emit(operation, _RESHAPE, (place,), type_, new_shape=(1,))
        zeros = self._constant(operation, TensorLiteral.of(np.zeros(len(row), int), type_.dtype))
        return self._emit(operation, "Concat", (number, zeros), type_.with_shape((1 + len(row),)), axis=0)

    def _constant(self, operation: CoreOperation, literal: TensorLiteral) -> ValueId:
        opcode, attributes = constant_form(literal)
        return self._emit(operation, opcode, (), literal.type, **attributes)

    def _emit(
        self,
        like: CoreOperation,
        opcode: str,
        operands: Sequence[ValueId],
        type_: TensorType,
        **attributes: Any,
    ) -> ValueId:
        value = next(self._fresh)
        self._types[value] = type_
        given = Attributes.of(attributes)
        self._operations.append(
            CoreOperation(value, opcode, tuple(operands), given, type_, like.source, origin=like.label)
        )
        return value


def _size_of(row: Sequence[int]) -> int:
    return math.prod(row)


def _reshaped(operation: CoreOperation, operand: ValueId, type_: TensorType) -> CoreOperation:
    attributes = Attributes.of({"new_shape": type_.extents})
    return replace(operation, opcode=_RESHAPE, operands=(operand,), attributes=attributes, result_type=type_)


def _made(operation: CoreOperation, type_: TensorType) -> CoreOperation:
    """Return what makes an array of one number, or of many, in another shape."""
    if operation.operands:
        attributes = Attributes.of({"result_shape": type_.extents})
        return replace(operation, attributes=attributes, result_type=type_)
    literal = operation.attributes["value"]
    assert isinstance(literal, TensorLiteral), "constants have literals"
    made = TensorLiteral.of(literal.array.reshape(type_.extents), type_.dtype)
    return replace(operation, attributes=Attributes.of(constant_form(made)[1]), result_type=type_)
