"""The facts about a function's values while it is rewritten: types, makers, readers, numbers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.regions import blocks_within
from mind_mlir.ir.types import DTypeKind
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.ir.module import Block, CoreOperation, Function, ValueId
    from mind_mlir.ir.types import DType, ValueType

#: An element as Python has it.
Number: TypeAlias = "bool | int | float | complex"

#: Of a constant, the first bytes that are looked at before all of them are.
_PREFIX = 256


class Known:
    """The values of one function.

    Attributes:
        types: Their types.
        makers: The operation that makes a value, where that is its only result and it has no regions.
        uses: How often a value is read.
    """

    def __init__(self, function: Function) -> None:
        self.types: dict[ValueId, ValueType] = {}
        self.makers: dict[ValueId, CoreOperation] = {}
        self.uses: Counter[ValueId] = Counter()
        self._numbers: dict[ValueId, Number | None] = {}
        for block in function.blocks:
            self._look_at(block)
        self._next = max(self.types, default=-1) + 1

    def _look_at(self, block: Block) -> None:
        self._look_into(block)
        for operation in block.operations:
            if operation.regions:
                for inner in blocks_within(operation):
                    self._look_into(inner)

    def _look_into(self, block: Block) -> None:
        types, count = self.types, self.count
        for parameter in block.parameters:
            types[parameter.value_id] = parameter.type
        for operation in block.operations:
            types[operation.value_id] = operation.result_type
            for other in operation.others:
                types[other.value_id] = other.type
            count(operation.operands)
        count(block.terminator.operands)

    def count(self, values: Iterable[ValueId], times: int = 1) -> None:
        """Count readers of ``values``."""
        uses = self.uses
        for value in values:
            uses[value] += times

    def fresh(self) -> ValueId:
        """Return an id that no value has."""
        self._next += 1
        return self._next - 1

    def enter(self, operation: CoreOperation) -> None:
        """Note what makes a value; all operations are entered in order."""
        if not operation.regions and not operation.others:
            self.makers[operation.value_id] = operation

    def number(self, value: ValueId) -> Number | None:
        """Return the element that all elements of a constant are, seen through views; None for any other."""
        if value in self._numbers:
            return self._numbers[value]
        chain = [value]
        maker = self.makers.get(value)
        while maker is not None and by_opcode()[maker.opcode].movement is not None:
            (operand,) = maker.operands
            if operand in self._numbers:
                break
            chain.append(operand)
            maker = self.makers.get(operand)
        if maker is not None and by_opcode()[maker.opcode].movement is not None:
            found = self._numbers[maker.operands[0]]
        else:
            found = None if maker is None else _uniform(maker)
        for each in chain:
            self._numbers[each] = found
        return found


def _uniform(maker: CoreOperation) -> Number | None:
    literal = maker.attributes.get("value")
    if maker.operands or not isinstance(literal, TensorLiteral) or not literal.data:
        return None
    data, size = literal.data, literal.type.dtype.itemsize
    element = data[:size]
    prefix = data[: max(_PREFIX // size * size, size)]
    if prefix != element * (len(prefix) // size):
        return None
    if len(data) > len(prefix) and data != element * (len(data) // size):
        return None
    return _as_number(literal, literal.type.dtype)


def _as_number(literal: TensorLiteral, dtype: DType) -> Number:
    element = literal.array.reshape(-1)[0]
    match dtype.kind:
        case DTypeKind.BOOL:
            return bool(element)
        case DTypeKind.FLOAT:
            return float(element)
        case DTypeKind.COMPLEX:
            return complex(element)
        case _:
            return int(element)
