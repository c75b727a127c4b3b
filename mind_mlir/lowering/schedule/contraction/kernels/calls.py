"""Calls of micro-kernels that pack and multiply what lies in memory as matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.schedule.contraction.kernels.product import ProductKernel
from mind_mlir.lowering.schedule.contraction.kernels.vnni import are_normal
from mind_mlir.mlir.memory import metadata_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.contraction.kernels.library import Library
    from mind_mlir.lowering.schedule.contraction.kernels.packing import PackKernel
    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.mlir.bindings import Type, Value


class Matrix(NamedTuple):
    """A factor or a result of a product in memory.

    Attributes:
        base: The pointer to its elements.
        first: Where it begins there.
        outer: How far it moves from row to row; a right factor from panel to panel.
        inner: How far a factor moves from step to step.
    """

    base: Value
    first: Index
    outer: int
    inner: int = 1

    @staticmethod
    def of(room: Value, outer: int, inner: int = 1) -> Matrix:
        """Emit where a room of a thread lies."""
        base, first, _ = metadata_of(room)
        return Matrix(base, first, outer, inner)


class Blocks(NamedTuple):
    """The steps of a product in blocks, which are summed by themselves.

    Attributes:
        number: How many blocks there are.
        size: Steps of each.
        last: Steps of the last one.
    """

    number: Index
    size: int
    last: Index


class KernelCalls:
    """Emits calls of kernels with accumulators of a type that sum so many steps at ``most``."""

    def __init__(self, emitter: Emitter, library: Library, element: Type, most: int) -> None:
        self._e, self._library, self._element, self._most = emitter, library, element, most

    def blocks(self, steps: Index) -> Blocks:
        """Return so many steps in blocks."""
        e, most = self._e, self._most
        if isinstance(steps, int):
            count = -(-steps // most)
            size = -(-steps // count)
            return Blocks(count, size, steps - (count - 1) * size)
        before = e.floordiv(e.sub(steps, 1), most)
        return Blocks(e.add(before, 1), most, e.sub(steps, e.mul(before, most)))

    def pack(
        self,
        kernel: PackKernel,
        source: tuple[Value, Index],
        target: Value,
        bounds: tuple[Index, Index, int],
        **others: Index,
    ) -> None:
        """Emit a packing of what begins at ``source``, a pointer and a place there, to a room of the thread.

        Bounds are columns, steps, and how far the source moves from one to the next.
        """
        numbers: dict[str, Index] = {
            "source_first": source[1],
            **dict(zip(("columns", "depth", "stride"), bounds, strict=True)),
            "panel": math.prod(target.type.shape),
            **others,
        }
        self._library.call_with(self._e, kernel, (source[0], metadata_of(target)[0]), numbers)

    def product(
        self,
        kernels: Sequence[ProductKernel],
        bounds: tuple[Index, Index],
        blocks: Blocks,
        matrices: tuple[Matrix, Matrix, Matrix],
        adds: Value,
        info: tuple[Value, Value] | None = None,
    ) -> None:
        """Emit a product.

        Args:
            kernels: The kernel, and another one where its instruction may not be used.
            bounds: Rows and columns of the result.
            blocks: The steps.
            matrices: The left factor, the right one, and the result.
            adds: Whether it is added to what there is.
            info: Of words, the packing info of both factors: it says whether their instruction may be used.
        """
        e = self._e
        left, right, out = matrices
        numbers: dict[str, Index] = {
            **{
                f"{name}_first": each.first
                for name, each in zip(ProductKernel.buffers, matrices, strict=True)
            },
            "rows": bounds[0],
            "columns": bounds[1],
            "depth": blocks.size,
            "last_depth": blocks.last,
            "blocks": blocks.number,
            "left_row": left.outer,
            "left_step": left.inner,
            "right_panel": right.outer,
            "right_step": right.inner,
            "left_tile": left.outer * kernels[0].rows,
            "left_block": left.inner * blocks.size,
            "right_block": right.inner * blocks.size,
            "out_row": out.outer,
        }

        def call(kernel: ProductKernel) -> None:
            pointers = [each.base for each in matrices]
            self._library.call_with(e, kernel, pointers, numbers, (e.number(self._element, 0), adds))

        if info is None:
            call(kernels[0])
        else:
            e.when(are_normal(*info), lambda: call(kernels[0]), lambda: call(kernels[1]))
