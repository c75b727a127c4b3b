"""The blocks of a function in the making: where operations go, and how blocks end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from mind_mlir.ir.module import Block, Branch, CondBranch, CoreOperation, Function, Parameter, Return, Target
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.builders.builder import Builder
    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.module import Terminator
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ir.value import Value

#: The label of a function's first block, where there are several.
_ENTRY = "entry"


@dataclass(slots=True, eq=False)
class PendingBlock:
    """A block that is being filled."""

    label: str
    parameters: list[Value] = field(default_factory=list)
    operations: list[CoreOperation] = field(default_factory=list)
    terminator: Terminator | None = None


@dataclass(slots=True, eq=False)
class Blocks:
    """The blocks of a function, in the order in which they were begun.

    Attributes:
        builder: Appends operations to the block that is current.
        current: That block; None where nothing can come by, behind a return. What is appended there is lost.
    """

    builder: Builder
    current: PendingBlock | None = None
    _begun: list[PendingBlock] = field(default_factory=list)
    _made: int = 0

    def __post_init__(self) -> None:
        self.begin(PendingBlock(_ENTRY))

    def new(self, kind: str, types: Iterable[TensorType] = ()) -> PendingBlock:
        """Return a block to be begun later, whose parameters are of ``types``."""
        self._made += 1
        return PendingBlock(f"{kind}{self._made}", [self.builder.fresh(type_) for type_ in types])

    def begin(self, block: PendingBlock, *, reachable: bool = True) -> None:
        """Let ``block`` be current, and stand after those begun before, where anything comes to it."""
        if reachable:
            self._begun.append(block)
            self.resume(block)

    def resume(self, block: PendingBlock | None) -> None:
        """Let a block be current that has been begun before."""
        self.current = block
        self.builder.operations = block.operations if block else []

    def branch(self, target: PendingBlock, values: Sequence[Value] = ()) -> None:
        """End the current block: go on with ``target``, whose parameters are ``values``."""
        self._end(Branch(_target(target, values)))

    def cond_branch(
        self,
        condition: Value,
        then: PendingBlock,
        otherwise: PendingBlock,
        location: Location | None,
        *,
        then_values: Sequence[Value] = (),
        otherwise_values: Sequence[Value] = (),
    ) -> None:
        """End the current block: go on with one of two blocks, whose parameters are the values given."""
        targets = _target(then, then_values), _target(otherwise, otherwise_values)
        self._end(CondBranch(condition.id, *targets, location))

    def return_(self, values: Sequence[Value], location: Location | None) -> None:
        """End the current block and the function."""
        self._end(Return(tuple([value.id for value in values]), location=location))

    def _end(self, terminator: Terminator) -> None:
        if self.current is not None:
            self.current.terminator = terminator
        self.resume(None)

    @property
    def complete(self) -> bool:
        """Return whether every block has ended; one that branches on what has been reported has not."""
        return all(block.terminator is not None for block in self._begun)

    def function(self, name: str, results: tuple[TensorType, ...], location: Location | None) -> Function:
        """Return the function of all blocks, which have ended."""
        several = len(self._begun) > 1
        blocks = [_block(block, several=several) for block in self._begun]
        parameters = tuple(self.builder.parameters)
        entry = Block(blocks[0].operations, blocks[0].terminator, parameters, blocks[0].label)
        return Function(name, (entry, *blocks[1:]), False, results, location)


def _target(block: PendingBlock, values: Sequence[Value] = ()) -> Target:
    return Target(block.label, tuple([value.id for value in values]))


def _block(block: PendingBlock, *, several: bool) -> Block:
    assert block.terminator is not None, "every block ends before its function does"
    parameters = tuple([Parameter(value.id, value.type) for value in block.parameters])
    if not several:
        return Block(tuple(block.operations), block.terminator, parameters)
    return Block(tuple(block.operations), block.terminator, parameters, block.label)
