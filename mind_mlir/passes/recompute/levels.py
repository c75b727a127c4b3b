"""A block in levels: what lies between its contractions, and what of one level another one reads.

The level of an operation is the number of contractions, loops, branches and calls on the longest way to it.
What is read within a level may stay in registers; what a later one reads goes through memory.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from mind_mlir.ir.regions import reads
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.opdef import Movement
from mind_mlir.ops.registry import by_opcode, lookup

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.ir.types import ValueType

#: Operations that rounding to a narrow float stands for.
NARROWING = 6


class Levels:
    """The levels of a block in structured form, with the facts about its operations and values.

    Attributes:
        operations: Its operations; they are known by their numbers in it.
        types: The types of all values of the function.
        made_by: The operation that makes a value of the block.
        users: The operations that read a value, each once.
        of: The level of each operation.
        costs: How many vector operations an element of each takes; 0 for what is not elementwise on floats.
        last: The last level that reads a value, through views, too; of a result of the block, none is later.
        returned: The results of the block.
        roots: What a view is one of; other values are not in it.
        reads: The values that each operation reads, each once.
        read: The values that each level reads.
        moved: How many bytes all operations up to each have made.
    """

    def __init__(
        self,
        operations: Sequence[CoreOperation],
        returned: Sequence[ValueId],
        types: Mapping[ValueId, ValueType],
    ) -> None:
        self.operations = operations
        self.types = types
        self.made_by = {value: number for number, each in enumerate(operations) for value in each.result_ids}
        self.users: dict[ValueId, list[int]] = {}
        self.of: list[int] = []
        self.costs = [_cost(each, types) for each in operations]
        self.last: dict[ValueId, int] = dict.fromkeys(returned, len(operations) + 1)
        self.returned = frozenset(returned)
        self.roots: dict[ValueId, ValueId] = {}
        self.read: dict[int, set[ValueId]] = {}
        self.reads = [tuple(dict.fromkeys(reads(each))) for each in operations]
        self._find_levels()
        self._find_last()
        self.moved = list(accumulate(sum(map(self.bytes_of, each.result_ids)) for each in operations))

    def is_given(self, number: int) -> bool:
        """Return whether an operation is there without being computed: a constant, or an input."""
        opcode = self.operations[number].opcode
        return opcode == "Input" or by_opcode()[opcode].is_constant

    def is_view(self, number: int) -> bool:
        """Return whether an operation is a view of its operand."""
        movement = by_opcode()[self.operations[number].opcode].movement
        return movement in (Movement.RESHAPE, Movement.BROADCAST)

    def is_border(self, number: int) -> bool:
        """Return whether a level begins with an operation."""
        return _is_border(self.operations[number])

    def is_other(self, number: int) -> bool:
        """Return whether an operation within a level is not elementwise on floats: most are reductions."""
        if self.costs[number] or self.is_given(number) or self.is_border(number):
            return False
        return not by_opcode()[self.operations[number].opcode].is_view

    def root(self, value: ValueId) -> ValueId:
        """Return what ``value`` is a view of; itself if it is none."""
        return self.roots.get(value, value)

    def bytes_of(self, value: ValueId) -> int:
        """Return how many bytes ``value`` takes."""
        type_ = self.types[value]
        return type_.element_count * type_.dtype.itemsize if isinstance(type_, TensorType) else 0

    def around_reductions(self) -> set[int]:
        """Return the operations that on their level anything which is not elementwise reads, or is read by.

        There may be other operations in between.
        """
        others = {number for number in range(len(self.operations)) if self.is_other(number)}
        behind, before = set(others), set(others)
        for number, level in enumerate(self.of):
            makers = self._makers(number)
            if any(maker in behind and self.of[maker] == level for maker in makers):
                behind.add(number)
        for number in reversed(range(len(self.of))):
            if number in before:
                before.update(maker for maker in self._makers(number) if self.of[maker] == self.of[number])
        return behind | before

    def _makers(self, number: int) -> Iterator[int]:
        return (self.made_by[value] for value in self.reads[number] if value in self.made_by)

    def _find_levels(self) -> None:
        for number, operation in enumerate(self.operations):
            below = max((self.of[maker] for maker in self._makers(number)), default=0)
            self.of.append(below + _is_border(operation))
            for value in self.reads[number]:
                self.users.setdefault(value, []).append(number)
            if self.is_view(number):
                self.roots[operation.value_id] = self.root(operation.operands[0])

    def _find_last(self) -> None:
        for number in reversed(range(len(self.operations))):
            last = level = self.of[number]
            if self.is_view(number):
                last = self.last.get(self.operations[number].value_id, level)
            else:
                self.read.setdefault(level, set()).update(map(self.root, self.reads[number]))
            for value in self.reads[number]:
                self.last[value] = max(self.last.get(value, 0), last)


def _is_border(operation: CoreOperation) -> bool:
    record = by_opcode()[operation.opcode]
    return record.contracts or record.runs_others or bool(operation.regions)


def _cost(operation: CoreOperation, types: Mapping[ValueId, ValueType]) -> int:
    """Return how many vector operations an element takes; 0 for what is not elementwise on floats.

    Integers are left out, whose divisions are checked, and complex numbers, of which there are no vectors.
    """
    record = lookup(operation.opcode)
    if record is None or not record.vector_operations:
        return 0
    found = [types[value] for value in (*operation.operands, operation.value_id)]
    dtypes = [type_.dtype for type_ in found if isinstance(type_, TensorType)]
    if any(dtype is not DType.I1 and not (dtype.is_float and dtype.itemsize > 1) for dtype in dtypes):
        return 0
    is_narrow = dtypes[-1].is_float and dtypes[-1].itemsize < DType.F32.itemsize
    return record.vector_operations + NARROWING * is_narrow


class OperationCopies:
    """Copies of operations of a block, each made in front of the first operation that needs it.

    Nothing is copied sooner: what an operation reads may be defined no earlier than where it is needed.

    Args:
        levels: The block.
        numbers: The operations that are copied, of one result each; what others make is read as it is.
        fresh: Numbers for values.
    """

    def __init__(self, levels: Levels, numbers: Collection[int], fresh: Iterator[ValueId]) -> None:
        self._levels = levels
        self._numbers = numbers
        self._fresh = fresh
        self._made: dict[ValueId, ValueId] = {}

    def reading(self, operation: CoreOperation, values: Collection[ValueId]) -> Iterator[CoreOperation]:
        """Yield, in order, the copies of what makes ``values`` that there are not yet.

        Then ``operation``, which reads ``values``, reading the copies.
        """
        levels, needed = self._levels, set[int]()
        pending = list(values)
        while pending:
            value = pending.pop()
            maker = levels.made_by.get(value)
            if maker is None or maker not in self._numbers or value in self._made:
                continue
            if maker not in needed:
                needed.add(maker)
                pending += levels.operations[maker].operands
        for number in sorted(needed):
            copied = levels.operations[number]
            copy = self._with(copied, copied.operands)
            self._made[copied.value_id] = value = next(self._fresh)
            yield replace(copy, value_id=value, origin=f"{copied.label} again")
        yield self._with(operation, values)

    def _with(self, operation: CoreOperation, values: Collection[ValueId]) -> CoreOperation:
        """Return ``operation``, where it reads the copies of ``values`` that there are."""
        made = self._made
        operands = [made.get(each, each) if each in values else each for each in operation.operands]
        return replace(operation, operands=tuple(operands))
