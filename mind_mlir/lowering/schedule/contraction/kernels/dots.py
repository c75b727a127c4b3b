"""The micro-kernel of dot products: few rows, and a right factor that is read column by column."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels.kernel import MicroKernel
from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import vector
from mind_mlir.lowering.schedule.contraction.kernels.loops import (
    Moving,
    begin,
    if_any,
    lane_sum,
    rows_of,
    store_sum,
    stored,
    walk,
)

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import Text


@dataclasses.dataclass(frozen=True)
class DotKernel(MicroKernel):
    """``out[i, j] (+)= sum over k of left[i, k] * right[j, k]``, some columns after others, for all rows.

    Both factors are contiguous along the products. Sums of a block start at zero, in several accumulators.
    Columns are computed side by side so that what is loaded of the left factor serves all of them.

    Attributes:
        rows: All rows.
        beside: Columns that are computed side by side; those that are left, one after the other.
        vectors: Accumulators of an element of the result.
        lanes: Elements in a vector.
        element: The type of accumulators and results.
        left: The type of elements of the left factor in memory, and conversions to accumulators.
        right: The same of the right factor.
        fma: Whether products of floats are fused with their addition.
        ragged: Whether loads behind the last whole step take masks; else a block has whole steps only.
    """

    rows: int
    beside: int
    vectors: int
    lanes: int
    element: str
    left: str
    right: str
    fma: bool
    ragged: bool

    kind = "dots"
    buffers = ("left", "right", "out")
    numbers = (
        *("left_first", "right_first", "out_first", "columns", "depth", "last_depth", "blocks"),
        *("left_row", "right_column", "out_row"),
    )

    @property
    def sums(self) -> str:
        """The type of what sums start from."""
        return self.element

    def append(self, t: Text) -> None:
        """Append the body: columns side by side, then those that are left."""
        right, out = begin(t, "right", stored(self.right)), begin(t, "out", self.element)

        def columns(count: str, first: tuple[str, str], beside: int) -> None:
            moving = [
                Moving(first[0], lambda: t.mul("%right_column", t.number(beside)), stored(self.right)),
                Moving(first[1], beside, self.element),
            ]
            walk(t, count, moving, lambda _, *places: _Columns(t, self, beside).append(*places))

        if self.beside == 1:
            columns("%columns", (right, out), 1)
            return
        side = t.number(self.beside)
        whole = t.binary("udiv", "%columns", side)
        rest = t.binary("sub", "%columns", t.mul(whole, side))
        behind = (
            t.step(right, t.mul(t.mul(whole, side), "%right_column"), stored(self.right)),
            t.step(out, t.mul(whole, side), self.element),
        )
        for count, first, beside in ((whole, (right, out), self.beside), (rest, behind, 1)):
            if_any(t, count, partial(columns, count, first, beside))


class _Columns:
    """Appends the sums of ``beside`` columns of the right factor."""

    def __init__(self, t: Text, kernel: DotKernel, beside: int) -> None:
        self._t, self._k, self._beside = t, kernel, beside
        self._vector = vector(kernel.lanes, kernel.element)
        self._cells = kernel.rows * beside

    def append(self, first: str, result: str) -> None:
        """Append columns from ``first`` on, whose results go to ``result`` and what follows."""
        t, k = self._t, self._k
        left = begin(t, "left", stored(k.left))
        self._lefts = rows_of(t, left, "%left_row", k.rows, stored(k.left))
        self._rights = [t.mul("%right_column", t.number(column)) for column in range(self._beside)]
        self._width = t.number(k.lanes * k.vectors)
        self._last = t.binary("sub", "%blocks", t.number(1))
        zeros = [(t.zero(k.element), k.element)] * self._cells
        carried = [(t.number(0), "i64"), (first, "!llvm.ptr"), *zeros]
        _, _, *totals = t.loop("%blocks", carried, self._block)
        places = [
            t.step(t.step(result, t.mul("%out_row", t.number(row)), k.element), t.number(column), k.element)
            for row in range(k.rows)
            for column in range(self._beside)
        ]
        store_sum(t, list(zip(places, totals, strict=True)), "%start", 0, k.element)

    def _block(self, number: str, inside: list[str]) -> list[str]:
        t, k = self._t, self._k
        offset, there, *totals = inside
        depth = t.select(t.compare("eq", number, self._last), "%last_depth", "%depth", "i64")
        zeros = [(t.zero(k.element, k.lanes), self._vector)] * (self._cells * k.vectors)
        steps = t.binary("udiv", depth, self._width)
        offset, there, *sums = t.loop(steps, [(offset, "i64"), (there, "!llvm.ptr"), *zeros], self._step)
        if k.ragged:
            rest = t.binary("urem", depth, self._width)
            masks = [t.mask(rest, v * k.lanes, k.lanes) for v in range(k.vectors)]
            sums = self._multiplied(offset, there, sums, masks)
        several = [sums[cell * k.vectors : (cell + 1) * k.vectors] for cell in range(self._cells)]
        added = [
            t.sum(total, lane_sum(t, each, k.element, k.lanes), k.element, 0)
            for total, each in zip(totals, several, strict=True)
        ]
        return [offset, there, *added]

    def _step(self, _: str, inside: list[str]) -> list[str]:
        t = self._t
        offset, there, *sums = inside
        following = self._multiplied(offset, there, sums, [])
        return [t.add(offset, self._width), t.step(there, self._width, stored(self._k.right)), *following]

    def _multiplied(self, offset: str, there: str, sums: list[str], masks: list[str]) -> list[str]:
        """Append ``sums`` plus the products of a step; those of a step that is not whole have ``masks``."""
        t, k = self._t, self._k
        following = list(sums)
        for v in range(k.vectors):
            mask = masks[v] if masks else None
            place = t.step(there, t.number(v * k.lanes), stored(k.right))
            factors = [
                t.read(t.step(place, each, stored(k.right)), k.right, k.lanes, mask) for each in self._rights
            ]
            place = t.add(offset, t.number(v * k.lanes))
            for row, each in enumerate(self._lefts):
                value = t.read(t.step(each, place, stored(k.left)), k.left, k.lanes, mask)
                for column, factor in enumerate(factors):
                    cell = (row * self._beside + column) * k.vectors + v
                    following[cell] = t.multiply_add(value, factor, sums[cell], k.element, k.lanes, fma=k.fma)
        return following
