"""What operations take a value, wherever control flow hands it on: over blocks, into loops and callees."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.analysis.call_graph import callee_of, operations_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mind_mlir.ir.module import Block, CoreOperation, Function, Module, ValueId
    from mind_mlir.ir.types import ValueType

#: A value of a function, which is named.
_Place: TypeAlias = "tuple[str, ValueId]"


@dataclass(frozen=True, slots=True)
class Use:
    """One operand of one operation, and the types of all of its operands."""

    operation: CoreOperation
    index: int
    types: tuple[ValueType, ...]


class ValueUses:
    """The uses of all values of a verified module."""

    def __init__(self, module: Module) -> None:
        self._functions = {function.name: function for function in module.functions}
        self._uses: dict[_Place, list[Use]] = defaultdict(list)
        self._becomes: dict[_Place, list[_Place]] = defaultdict(list)
        for function in module.functions:
            self._enter(function)

    def of(self, function: str, value: ValueId) -> Iterator[Use]:
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
        types: dict[ValueId, ValueType] = {}
        operations = list(operations_of(function.blocks))
        for block in (*function.blocks, *(region for op in operations for region in op.regions)):
            types.update((parameter.value_id, parameter.type) for parameter in block.parameters)
        for operation in operations:
            types.update((result.value_id, result.type) for result in operation.results)
        blocks = {block.label: block for block in function.blocks}
        for block in function.blocks:
            for target in block.terminator.targets:
                self._hand_on(function, target.arguments, blocks[target.label])
        for operation in operations:
            given = tuple(types[operand] for operand in operation.operands)
            for index, operand in enumerate(operation.operands):
                self._uses[function.name, operand].append(Use(operation, index, given))
            callee = callee_of(operation)
            if callee is not None:
                for operand, parameter in zip(
                    operation.operands, self._functions[callee].parameters, strict=True
                ):
                    self._becomes[function.name, operand].append((callee, parameter.value_id))
            elif operation.opcode == "While":
                self._hand_round(function, operation)

    def _hand_round(self, function: Function, loop: CoreOperation) -> None:
        condition, body = loop.regions
        self._hand_on(function, loop.operands, condition)
        self._hand_on(function, condition.terminator.operands[1:], body)
        self._hand_on(function, body.terminator.operands, condition)

    def _hand_on(self, function: Function, values: Iterable[ValueId], block: Block) -> None:
        for value, parameter in zip(values, block.parameters, strict=True):
            self._becomes[function.name, value].append((function.name, parameter.value_id))
