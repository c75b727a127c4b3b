"""Calls of micro-kernels that pack and multiply what lies in memory as matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.schedule.contraction.kernels.packing import PACK_ARGUMENTS, PackKernel
from mind_mlir.lowering.schedule.contraction.kernels.product import PRODUCT_ARGUMENTS, ProductKernel
from mind_mlir.lowering.schedule.contraction.kernels.vnni import are_normal
from mind_mlir.mlir.memory import metadata_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.contraction.kernels.library import Library
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
    """Emits calls of kernels.

    Args:
        emitter: The emitter.
        library: The kernels of the module.
        element: The type of accumulators.
        most: How many steps one accumulator sums at most before it is added to what there is.
    """

    def __init__(self, emitter: Emitter, library: Library, element: Type, most: int) -> None:
        self._e = emitter
        self._library = library
        self._element = element
        self._most = most

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
        """Emit a packing of what begins at ``source`` to ``target``.

        Args:
            kernel: The kernel.
            source: The pointer to elements, and where they begin.
            target: A room of the thread.
            bounds: Columns, steps, and how far the source moves from one to the next.
            others: Other arguments of the kernel.
        """
        columns, depth, stride = bounds
        numbers: dict[str, Index] = {
            "source_first": source[1],
            "columns": columns,
            "depth": depth,
            "stride": stride,
            "panel": math.prod(target.type.shape),
            **others,
        }
        values = [self._e.index(numbers.get(name, 0)) for name in PACK_ARGUMENTS]
        self._library.call(kernel, [source[0], metadata_of(target)[0], *values])

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
        first = kernels[0]
        numbers: dict[str, Index] = {
            "left_first": left.first,
            "right_first": right.first,
            "out_first": out.first,
            "rows": bounds[0],
            "planes": 1,
            "columns": bounds[1],
            "depth": blocks.size,
            "last_depth": blocks.last,
            "taps": 1,
            "last_taps": 1,
            "blocks": blocks.number,
            "left_row": left.outer,
            "left_step": left.inner,
            "right_panel": right.outer,
            "right_step": right.inner,
            "left_tile": left.outer * first.rows,
            "left_block": left.inner * blocks.size,
            "right_block": right.inner * blocks.size,
            "out_row": out.outer,
        }

        def call(one: ProductKernel) -> None:
            values = [e.index(numbers.get(name, 0)) for name in PRODUCT_ARGUMENTS]
            pointers = [each.base for each in matrices]
            zero = e.number(self._element, 0)
            self._library.call(one, [*pointers, *values, zero, adds])

        if info is None:
            call(first)
        else:
            e.when(are_normal(*info), lambda: call(first), lambda: call(kernels[1]))
