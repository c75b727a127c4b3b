"""The operations of a program as it was written, numbered, and the program that is located at the numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.ir.module import Branch, CondBranch, Functions
from mind_mlir.ir.numbered import NumberedText
from mind_mlir.mlir.locations import places_of
from mind_mlir.tools.explorer.exploration import SourceOperation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.diagnostics import Location
    from mind_mlir.diagnostics.checks import Place
    from mind_mlir.ir.module import Block, CoreOperation, Function, Module, Parameter, Terminator, ValueId
    from mind_mlir.mlir.bindings import MLIRLocation

#: What parameters are called, as the operations are that stand for them in flat modules.
_INPUT = "Input"


class OperationNumbering:
    """The operations of a program: numbers for them, and places that say these.

    Attributes:
        module: The program, located at the numbers.
        text: What it is located in.
        operations: Its operations as data, by their numbers.
        places: Where they stand.
    """

    def __init__(self, module: Module) -> None:
        self.text = NumberedText()
        self.operations: list[SourceOperation] = []
        self.places: list[Location | None] = []
        self._makers: dict[ValueId, int] = {}
        self.module = replace(
            module, functions=Functions([self._function(each) for each in module.functions])
        )

    def of_file(self, file: str, line: int) -> frozenset[int]:
        """Return what a place in a file of a later stage stands for."""
        return self.text.of_line(line) if file == self.text.name else frozenset()

    def of_location(self, location: MLIRLocation) -> frozenset[int]:
        """Return what a location of MLIR stands for."""
        found = (self.of_file(file, line) for file, line, _ in places_of(location))
        return frozenset[int]().union(*found)

    def spelled(self, place: Place) -> str:
        """Return a place of a later stage as that in the program that it stands for."""
        numbers = sorted(self.of_file(place[0], place[1]))
        location = self.places[numbers[0]] if numbers else None
        return ":".join(map(str, place)) if not numbers else f"{location or ''}"

    def _function(self, function: Function) -> Function:
        self._makers = {}
        parameters = tuple(map(self._parameter, function.blocks[0].parameters)) if function.blocks else ()
        blocks = [self._block(each) for each in function.blocks]
        if blocks:
            blocks[0] = replace(blocks[0], parameters=parameters)
        return replace(function, blocks=tuple(blocks))

    def _parameter(self, parameter: Parameter) -> Parameter:
        number = self._enter(_INPUT, parameter.label, str(parameter.type), parameter.location, ())
        self._makers[parameter.value_id] = number
        return replace(parameter, location=self.text.location(number))

    def _block(self, block: Block) -> Block:
        operations = tuple(map(self._operation, block.operations))
        return replace(block, operations=operations, terminator=self._terminator(block.terminator))

    def _operation(self, operation: CoreOperation) -> CoreOperation:
        types = ", ".join(str(result.type) for result in operation.results)
        number = self._enter(operation.opcode, operation.label, types, operation.location, operation.operands)
        self._makers.update(dict.fromkeys(operation.result_ids, number))
        regions = tuple(map(self._block, operation.regions))
        return replace(operation, source=self.text.source([number]), regions=regions)

    def _terminator(self, terminator: Terminator) -> Terminator:
        if not isinstance(terminator, (Branch, CondBranch)) or terminator.location is None:
            return terminator
        number = self._enter(
            type(terminator).__name__, "", "", terminator.location, getattr(terminator, "operands", ())
        )
        return replace(terminator, location=self.text.location(number))

    def _enter(
        self, opcode: str, name: str, type_: str, location: Location | None, operands: Iterable[ValueId]
    ) -> int:
        file, line = ("", 0) if location is None else (location.source.name, location.line)
        inputs = dict.fromkeys(self._makers[value] for value in operands if value in self._makers)
        self.operations.append(SourceOperation(opcode, name, type_, file, line, tuple(inputs)))
        self.places.append(location)
        return len(self.operations) - 1
