"""Results that are symmetric, of which the macro-tiles above the diagonal are copies of what is below it.

A product of a matrix and its own transpose is symmetric to the bit: both sums across the diagonal have the
same products in the same order. A macro-tile that is above it as a whole is not computed, but copied in
squares once all others are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import LARGEST_SQUARE
from mind_mlir.lowering.emission.shuffles import transpose
from mind_mlir.lowering.emission.split import least
from mind_mlir.mlir.bindings import memref, vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.contraction.geometry import TiledLoop
    from mind_mlir.lowering.schedule.contraction.marked import Product
    from mind_mlir.mlir.bindings import Value


class Mirror:
    """Copies the macro-tiles of one product that are above the diagonal, and says which these are."""

    def __init__(self, emitter: Emitter, product: Product) -> None:
        self._e, self._c = emitter, product.contraction
        self._out = self._c.view.operands[2]
        rows, _, columns, *_ = product.tiled_loops
        self._rows, self._columns = rows, columns
        self._side = min(product.schedule.lanes, LARGEST_SQUARE)

    @property
    def counts(self) -> list[int]:
        """How many macro-tiles there are: along the rows, the columns, and each dimension of batches."""
        batch = [self._c.extent(dim) for dim in self._c.batch]
        return [self._rows.count, self._columns.count, *batch]

    def is_computed(self, row: Index, column: Index) -> Value:
        """Emit whether any element of a macro-tile is on the diagonal or below it."""
        behind = self._e.add(self._e.mul(row, self._rows.size), self._rows.size)
        return self._e.compare("ugt", behind, self._e.mul(column, self._columns.size))

    def copy(self, digits: Sequence[Index]) -> None:
        """Emit the copy of a macro-tile, given which one it is, if it is above the diagonal."""
        row, column, *batch = digits
        around = dict(zip(self._c.batch, batch, strict=True))
        self._e.when(self.is_computed(row, column), lambda: None, lambda: self._squares(row, column, around))

    def _squares(self, row: Index, column: Index, around: dict[int, Index]) -> None:
        e, side = self._e, self._side
        rows, columns = (self._bounds(*each) for each in ((self._rows, row), (self._columns, column)))

        def at(i: Index, j: Index) -> None:
            bottom, right = e.add(i, side), e.add(j, side)
            is_whole = [e.compare("ule", bottom, rows[1]), e.compare("ule", right, columns[1])]
            ends = e.minimum(bottom, rows[1]), e.minimum(right, columns[1])
            e.when(
                e.all(is_whole),
                lambda: self._square(i, j, around),
                lambda: self._single(i, j, ends, around),
            )

        e.each((*columns, side), lambda j: e.each((*rows, side), lambda i: at(i, j)))

    def _bounds(self, loop: TiledLoop, digit: Index) -> tuple[Index, Index]:
        first = self._e.mul(digit, loop.size)
        return first, self._e.add(first, least(self._e, loop.extent, digit, loop.size))

    def _square(self, i: Index, j: Index, around: dict[int, Index]) -> None:
        e, side = self._e, self._side
        type_ = e.vector_type(side, self._c.element)
        lines = [self._place(e.add(j, lane), i, around) for lane in range(side)]
        for lane, value in enumerate(transpose([vector.LoadOp(type_, self._out, at).result for at in lines])):
            vector.StoreOp(value, self._out, self._place(e.add(i, lane), j, around))

    def _single(self, i: Index, j: Index, ends: tuple[Index, Index], around: dict[int, Index]) -> None:
        e = self._e

        def element(row: Index, column: Index) -> None:
            value = memref.LoadOp(self._out, self._place(column, row, around)).result
            memref.StoreOp(value, self._out, self._place(row, column, around))

        e.each((i, ends[0], 1), lambda row: e.each((j, ends[1], 1), lambda column: element(row, column)))

    def _place(self, row: Index, column: Index, around: dict[int, Index]) -> list[Value]:
        """Return the indices of an element of the result."""
        assert self._c.m is not None  # nothing is symmetric without rows
        env = {**around, self._c.m: row, self._c.n: column}
        return [self._e.index(index.emit(self._e, env)) for index in self._c.out]
