"""How values flow through operations with regions: what their operands, and what regions yield, become.

MLIR says the same by the successors of `RegionBranchOpInterface`. Calls are looked through by whoever asks,
function by function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mind_mlir.ops.registry import by_opcode
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.module import Block, CoreOperation, ValueId


@dataclass(frozen=True, slots=True)
class Forwarded:
    """Values that an operation with regions hands on unchanged.

    Attributes:
        region: The region that yields them; None for operands of the operation.
        first: The place of the first of them there.
        into: What they become, in order: results, or parameters of regions.
    """

    region: int | None
    first: int
    into: tuple[tuple[ValueId, ...], ...]

    def values(self, operation: CoreOperation) -> Sequence[ValueId]:
        """Return the values, of the operation that has said this."""
        return _source(operation, self.region)[self.first :]


def cond_flow(operation: CoreOperation) -> Sequence[Forwarded]:
    """Return that what either region yields are the results."""
    return [Forwarded(region, 0, (operation.result_ids,)) for region in range(len(operation.regions))]


def while_flow(operation: CoreOperation) -> Sequence[Forwarded]:
    """Return how values go round the loop: all but the predicate, which nothing else takes."""
    condition, body = map(_parameters, operation.regions)
    return [
        Forwarded(None, 0, (condition,)),
        Forwarded(0, 1, (body, operation.result_ids)),
        Forwarded(1, 0, (condition,)),
    ]


def scan_flow(operation: CoreOperation) -> Sequence[Forwarded]:
    """Return how values go from step to step: carried ones as they are, others as slices and stacks."""
    parameters = _parameters(operation.regions[0])
    carried = parameters[: int(str(operation.attributes["carry_count"]))]
    return [Forwarded(None, 0, (parameters,)), Forwarded(0, 0, (carried, operation.result_ids))]


def _parameters(region: Block) -> tuple[ValueId, ...]:
    return tuple([parameter.value_id for parameter in region.parameters])


def flow_of(operation: CoreOperation) -> Sequence[Forwarded]:
    """Return how values flow through ``operation``, as its record says; nothing where it has no regions."""
    rule = by_opcode()[operation.opcode].flow if operation.regions else None
    return () if rule is None else rule(operation)


def pairs_of(operation: CoreOperation) -> Iterator[tuple[ValueId, ValueId]]:
    """Yield each value that flows through ``operation``, with what it becomes."""
    for each in flow_of(operation):
        for targets in each.into:
            yield from zip(each.values(operation), targets, strict=False)


def only_read(operation: CoreOperation) -> Iterator[ValueId]:
    """Yield what an operation reads and does not hand on: a predicate, or all operands without regions."""
    first: dict[int | None, int] = {each.region: each.first for each in flow_of(operation)}
    for region in (None, *range(len(operation.regions))):
        yield from _source(operation, region)[: first.get(region)]


def repeats(operation: CoreOperation) -> bool:
    """Return whether a region may run again: what one yields is given to one of them."""
    results = {operation.result_ids}
    return any(each.region is not None and set(each.into) - results for each in flow_of(operation))


def _source(operation: CoreOperation, region: int | None) -> Sequence[ValueId]:
    return operation.operands if region is None else operation.regions[region].terminator.operands
