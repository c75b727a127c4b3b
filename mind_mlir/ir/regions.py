"""The values that operations read and define, regions included, and the operations that anything needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mind_mlir.ir.module import Block, CoreOperation, ValueId
    from mind_mlir.ir.types import TensorType

#: How deep regions may nest. No program that a person writes comes close, and stages go through them by
#: recursion: each level takes stack.
MAX_NESTING = 64


def blocks_within(operation: CoreOperation) -> Iterator[Block]:
    """Yield the blocks of an operation's regions, and of those of the operations in them."""
    pending = list(reversed(operation.regions))
    while pending:
        block = pending.pop()
        yield block
        for inner in block.operations:
            if inner.regions:
                pending.extend(reversed(inner.regions))


def value_types(blocks: Iterable[Block]) -> dict[ValueId, TensorType]:
    """Return the types of all values of the blocks of a verified function, those in regions included."""
    types: dict[ValueId, TensorType] = {}
    for block in blocks:
        for each in (block, *(inner for operation in block.operations for inner in blocks_within(operation))):
            types.update((parameter.value_id, parameter.tensor_type) for parameter in each.parameters)
            for operation in each.operations:
                types.update(zip(operation.result_ids, operation.result_types, strict=True))
    return types


def defined_within(operation: CoreOperation) -> set[ValueId]:
    """Return the values that are defined in the regions of an operation."""
    defined: set[ValueId] = set()
    for block in blocks_within(operation):
        defined.update(parameter.value_id for parameter in block.parameters)
        for inner in block.operations:
            defined.update(inner.result_ids)
    return defined


def _captured(operation: CoreOperation) -> list[ValueId]:
    """Return what the regions of an operation read and that is defined around it; some may come twice."""
    found: list[ValueId] = []
    for block in blocks_within(operation):
        found.extend(block.terminator.operands)
        for inner in block.operations:
            found.extend(inner.operands)
    defined = defined_within(operation)
    return [value for value in found if value not in defined]


def captured_values(operation: CoreOperation) -> list[ValueId]:
    """Return the values around ``operation`` that its regions read, in the order of their ids."""
    return sorted({*_captured(operation)})


def reads(operation: CoreOperation) -> tuple[ValueId, ...]:
    """Return the values that an operation reads and that are defined around it; some may come twice."""
    return (*operation.operands, *_captured(operation)) if operation.regions else operation.operands


def live_operations(operations: Sequence[CoreOperation], roots: Iterable[ValueId]) -> list[CoreOperation]:
    """Return those of the operations of a block that ``roots``, values of it, depend on."""
    live = set(roots)
    kept = []
    for operation in reversed(operations):
        if not live.isdisjoint(operation.result_ids):
            live.update(reads(operation))
            kept.append(operation)
    return kept[::-1]


def read_too_soon(block: Block) -> ValueId | None:
    """Return a value that is read where it is not defined, in the block of a function in structured form.

    The blocks of regions may read what is defined around them, before their operation. None if all is well.
    """
    return _read_too_soon(block, set())


def _read_too_soon(block: Block, known: set[ValueId]) -> ValueId | None:
    defined = [parameter.value_id for parameter in block.parameters]
    known.update(defined)
    for operation in block.operations:
        if not known.issuperset(operation.operands):
            return next(value for value in operation.operands if value not in known)
        for region in operation.regions:
            found = _read_too_soon(region, known)
            if found is not None:
                return found
        known.update(operation.result_ids)
        defined += operation.result_ids
    for value in block.terminator.operands:
        if value not in known:
            return value
    known.difference_update(defined)
    return None


def uses_in(block: Block) -> Iterator[tuple[ValueId, CoreOperation | None]]:
    """Yield each value that is read, with the operation of ``block`` that does; None for any other."""
    for operation in block.operations:
        for value in operation.operands:
            yield value, operation
        for inner in blocks_within(operation):
            for value, _ in uses_in(inner):
                yield value, None
    for value in block.terminator.operands:
        yield value, None
