"""Groups that end the macro-tiles of a product: elementwise work on its result, cut like the product.

A group of elementwise operations that reads a marked contraction element by element gets one chunk for each
macro-tile of it, and both get the same number. So `buffers/epilogues` can do the group's work on each of them
while that is in the cache: a bias, an activation, a residual, a conversion, an optimiser's update.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.emitter import EPILOGUE_ATTRIBUTE
from mind_mlir.lowering.schedule.contraction.geometry import COLUMNS, TiledLoop, in_memory_order
from mind_mlir.lowering.schedule.contraction.marked import SCHEDULE_ATTRIBUTE, Product, schedule_of
from mind_mlir.lowering.schedule.fusion.groups.collapse import Loops, loops_of
from mind_mlir.lowering.schedule.fusion.groups.group import Group, is_identity
from mind_mlir.lowering.schedule.fusion.nests.schedule import Cut, FusedSchedule, streams, vectors
from mind_mlir.lowering.schedule.linalg_view.values import unreshaped
from mind_mlir.lowering.schedule.linalg_view.view import Views
from mind_mlir.mlir.bindings import Operation, Value, ir
from mind_mlir.mlir.values import definition
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.lowering.schedule.fusion.nests.work import Work
    from mind_mlir.target import Target


@dataclass(frozen=True)
class Ending:
    """A product, and how a group runs over its macro-tiles.

    Attributes:
        product: The marked contraction.
        loops: What the loops of the group become: those over the result that is in macro-tiles.
        tiled_loops: The loops over the result, in the order in which macro-tiles are numbered.
        dims: Which of them the loops of the group are.
    """

    product: Operation
    loops: Loops
    tiled_loops: tuple[TiledLoop, ...]
    dims: tuple[int, ...]

    @property
    def result(self) -> Value:
        """The result of the product."""
        return self.product.results[0]

    def schedule(self, work: Work, target: Target, number: int) -> FusedSchedule:
        """Mark the product with ``number`` and return the schedule of the group, which does ``work``."""
        lanes = target.lanes(work.bits)
        streaming = streams(work, target)
        side = vectors(work, lanes, target, streaming=streaming)
        while self.tiled_loops[COLUMNS].size % (side * lanes):
            side //= 2
        cuts = tuple(
            Cut(self.dims.index(place), loop.size, loop.count)
            for place, loop in reversed(list(enumerate(self.tiled_loops)))
            if loop.count > 1
        )
        self.product.attributes[EPILOGUE_ATTRIBUTE] = ir.IntegerAttr.get(ir.IndexType.get(), number)
        return FusedSchedule(
            lanes,
            side,
            cuts=cuts,
            parallel=True,
            brief=schedule_of(self.product).brief,
            streaming=streaming,
            reason="the pieces of the product, while they are in the cache",
            epilogue=number,
        )


def ending_of(group: Group, target: Target) -> Ending | None:
    """Return the product whose macro-tiles ``group`` may end, the last one that it reads, if there is one.

    Args:
        group: What is about to be emitted behind its last member.
        target: The processor.
    """
    if group.reductions or group.vector != len(group.extents) - 1 or not group.extents:
        return None
    last = group.members[-1].op
    read = [each for each in _read(group) if each[0].block == last.block]
    product = None
    for other, _ in read:
        product = other if product is None or product.is_before_in_block(other) else product
    if product is None or not all(in_order for other, in_order in read if other == product):
        return None
    tiled_loops = _tiled_loops(product)
    dims = None if tiled_loops is None else in_memory_order(tiled_loops)
    if tiled_loops is None or dims is None or math.prod(part.count for part in tiled_loops) == 1:
        return None
    loops = loops_of(group.members, [tiled_loops[place].extent for place in dims])
    if loops is None or tiled_loops[COLUMNS].size % max(1, target.vector_bytes // 4):
        return None
    return Ending(product, loops, tiled_loops, dims)


def _read(group: Group) -> Iterator[tuple[Operation, bool]]:
    """Iterate over marked contractions that ``group`` reads: whether that is in the order of its loops."""
    for view in group.members:
        for number, value in enumerate(view.operands):
            op = definition(unreshaped(value))
            if op is not None and SCHEDULE_ATTRIBUTE in op.attributes and view.used(number):
                is_input = number < len(view.inputs)
                yield op, is_input and is_identity(view.accesses[number], len(group.extents))


def _tiled_loops(product: Operation) -> tuple[TiledLoop, ...] | None:
    """Return the loops over the result of ``product``; None if a group ends its macro-tiles, or none can.

    None can where not all of them are computed.
    """
    found = Product.of(product, Views())
    is_free = found.schedule.is_tiled and EPILOGUE_ATTRIBUTE not in product.attributes
    is_free = is_free and not found.schedule.mirrors
    return found.tiled_loops if is_free and not found.loops.first[2] else None
