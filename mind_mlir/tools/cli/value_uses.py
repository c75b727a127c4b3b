"""Find the operations that take a value, following control flow over blocks, into loops and callees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.ir.analysis.call_graph import callee_of, operations_of
from mind_mlir.ir.module import Block, CoreOperation, Function, Module, Return, ValueId
from mind_mlir.ir.regions import value_types
from mind_mlir.ops.region_flow import pairs_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.types import ValueType

#: A value of a function, which is named.
_Place: TypeAlias = "tuple[str, ValueId]"


@dataclass(frozen=True, slots=True)
class OperandUse:
    """One operand of one operation, and the types of all of its operands."""

    operation: CoreOperation
    index: int
    types: tuple[ValueType, ...]


class ValueUses:
    """The uses of all values of a verified module."""

    def __init__(self, module: Module) -> None:
        self._functions = {function.name: function for function in module.functions}
        self._uses: dict[_Place, list[OperandUse]] = defaultdict(list)
        self._becomes: dict[_Place, list[_Place]] = defaultdict(list)
        for function in module.functions:
            self._enter(function)

    def of(self, function: str, value: ValueId) -> Iterator[OperandUse]:
        """Yield the uses of ``value`` of a function, and of all values that it becomes unchanged."""
        pending: list[_Place] = [(function, value)]
        seen = set(pending)
        while pending:
            place = pending.pop()
            yield from self._uses.get(place, ())
            for other in self._becomes.get(place, ()):
                if other not in seen:
                    seen.add(other)
                    pending.append(other)

    def _enter(self, function: Function) -> None:
        operations = list(operations_of(function.blocks))
        types = value_types(function.blocks)
        blocks = {block.label: block for block in function.blocks}
        for block in function.blocks:
            for target in block.terminator.targets:
                self._hand_on(function.name, target.arguments, _ids(blocks[target.label]))
        for operation in operations:
            given = tuple(types[operand] for operand in operation.operands)
            for index, operand in enumerate(operation.operands):
                self._uses[function.name, operand].append(OperandUse(operation, index, given))
            callee = callee_of(operation)
            if callee is not None:
                self._call(function.name, operation, self._functions[callee])
            for value, new in pairs_of(operation):
                self._becomes[function.name, value].append((function.name, new))

    def _call(self, caller: str, call: CoreOperation, callee: Function) -> None:
        self._hand_on(caller, call.operands, _ids(callee.entry), callee.name)
        for block in callee.blocks:
            if isinstance(block.terminator, Return):
                self._hand_on(callee.name, block.terminator.operands, call.result_ids, caller)

    def _hand_on(
        self, function: str, values: Iterable[ValueId], become: Iterable[ValueId], other: str | None = None
    ) -> None:
        """Note that ``values`` of a function become others, of that or of the ``other`` function."""
        for value, new in zip(values, become, strict=True):
            self._becomes[function, value].append((other or function, new))


def _ids(block: Block) -> list[ValueId]:
    return [parameter.value_id for parameter in block.parameters]
