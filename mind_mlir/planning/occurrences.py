"""How often each operation of a module runs, where that can be seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.ir.analysis.call_graph import callee_of, operations_of
from mind_mlir.ir.regions import value_types
from mind_mlir.ops.trip_count import integer_constant, trip_count

if TYPE_CHECKING:
    from mind_mlir.ir.module import Block, CoreOperation, Function, Module, ValueId
    from mind_mlir.ir.types import TensorType


class PlannedOperation(NamedTuple):
    """An operation, at one of the ways to it.

    Attributes:
        operation: The operation.
        types: The types of the values of its function.
        times: How often it runs: so often for each of what ``given`` lists.
        given: What is known only when the program runs: turns of loops and branches, as messages say them.
    """

    operation: CoreOperation
    types: Mapping[ValueId, TensorType]
    times: int
    given: tuple[str, ...]


def occurrences(module: Module, function: Function) -> Iterator[PlannedOperation]:
    """Yield the operations that a call of a function runs; a function that is called twice comes twice.

    Args:
        module: A verified module in structured form.
        function: One of its functions.
    """
    yield from _Walk(module).function(function.name, 1, ())


class _Walk:
    def __init__(self, module: Module) -> None:
        self._functions = {each.name: each for each in module.functions}
        self._known: dict[str, tuple[Mapping[ValueId, TensorType], Mapping[ValueId, int]]] = {}

    def function(self, name: str, times: int, given: tuple[str, ...]) -> Iterator[PlannedOperation]:
        """Yield what runs where a function is called so often."""
        blocks = self._functions[name].blocks
        if name not in self._known:
            numbers = {each.value_id: integer_constant(each) for each in operations_of(blocks)}
            constants = {value: number for value, number in numbers.items() if number is not None}
            self._known[name] = value_types(blocks), constants
        for block in blocks:
            yield from self._block(block, name, times, given)

    def _block(
        self, block: Block, name: str, times: int, given: tuple[str, ...]
    ) -> Iterator[PlannedOperation]:
        types, constants = self._known[name]
        for operation in block.operations:
            yield PlannedOperation(operation, types, times, given)
            callee = callee_of(operation)
            if callee is not None:
                yield from self.function(callee, times, given)
            for region, often, more in _inside(operation, constants):
                yield from self._block(region, name, times * often, (*given, *more))


def _inside(
    operation: CoreOperation, constants: Mapping[ValueId, int]
) -> Iterator[tuple[Block, int, tuple[str, ...]]]:
    """Yield the regions of an operation, each with how often it runs, and what that depends on."""
    if operation.opcode == "While":
        condition, body = operation.regions
        turns = trip_count(operation, constants)
        more = () if turns is not None else (f"turn of the loop {_place(operation)}",)
        yield condition, 1 if turns is None else turns + 1, more
        yield body, 1 if turns is None else turns, more
        return
    for region in operation.regions:
        yield region, 1, (f"branch {_place(operation)}",)


def _place(operation: CoreOperation) -> str:
    location = operation.location
    return f"of {operation.label}" if location is None else f"at {location}"
