"""Elementwise work on a product's result, done to each macro-tile while that is in the cache."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.kernels.library import macro_tile_memory
from mind_mlir.mlir.bindings import Operation, Type, Value, ir
from mind_mlir.mlir.memory import erase_unread
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.contraction.geometry import TiledLoop


@dataclass(frozen=True)
class Epilogue:
    """The epilogue of a product: a loop whose body runs on each macro-tile of it once that is complete.

    Attributes:
        loop: A loop over the macro-tiles, whose body does it.
        tiled_loops: The loops over the result, in the order in which macro-tiles are numbered.
        dims: Which of them the dimensions of the result are, as the loop sees it.
        element: The type of the elements of the result.
        accesses: If the product and the loop alone use the result, the operations in the loop that do, and
            which of their operands it is; else nothing. The result needs no memory then.
        result: The buffer of that result.
    """

    loop: Operation
    tiled_loops: tuple[TiledLoop, ...]
    dims: tuple[int, ...]
    element: Type
    accesses: tuple[tuple[Operation, int], ...] = ()
    result: Value | None = None

    @property
    def own_shape(self) -> list[int]:
        """The extents of the memory of one macro-tile."""
        *outer, columns = (self.tiled_loops[number] for number in self.dims)
        return [*(min(part.size, part.extent) for part in outer), columns.size]

    def own(self, *, is_shared: bool) -> Value:
        """Emit the memory of one macro-tile, of its thread where threads share them."""
        return macro_tile_memory(ir.MemRefType.get(self.own_shape, self.element), is_shared=is_shared)

    def own_strides(self) -> dict[int, int]:
        """Return by how many elements each of the parts moves in the memory of one macro-tile."""
        shape = self.own_shape
        return {number: math.prod(shape[place + 1 :]) for place, number in enumerate(self.dims)}

    def emit(self, emitter: Emitter, digits: Sequence[Index], own: Value | None) -> None:
        """Put the body of the loop at the insertion point, once, for the macro-tile of these digits.

        That is in memory of its ``own``, or else in its place of the result.
        """
        number: Index = 0
        whole = 1
        for digit, part in zip(digits, self.tiled_loops, strict=True):
            number = emitter.add(number, emitter.mul(digit, whole))
            whole *= part.count
        firsts = [emitter.mul(digits[place], self.tiled_loops[place].size) for place in self.dims]
        body = self.loop.regions[0].blocks[0]
        body.arguments[0].replace_all_uses_with(emitter.index(number))
        point = ir.InsertionPoint.current
        *operations, _ = (op.operation for op in body.operations)
        for op in operations:
            op.detach_from_parent()
            point.insert(op)
        for user, place in self.accesses if own is not None else ():
            user.operands[place] = own
            with ir.InsertionPoint(user), user.location:
                for index, first in enumerate(firsts, place + 1):
                    user.operands[index] = emitter.index(emitter.sub(user.operands[index], first))

    def erase(self) -> None:
        """Erase the loop, whose body is elsewhere, and the result if it needs no memory."""
        self.loop.erase()
        if self.result is not None:
            erase_unread(self.result)
