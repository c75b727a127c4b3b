"""The micro-kernel of dot products: few rows, and a right factor that is read column by column."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels.kernel import MicroKernel, store_sums, sum_of_lanes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.contraction.kernels.llvm_function import Text
    from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import TextValue


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
    adds = True

    def append(self, t: Text) -> None:
        """Append the body: columns side by side, then those that are left."""
        right, out = t.begin("right", self.right), t.begin("out", self.element)
        if self.beside == 1:
            with t.loop(t["columns"], right, out) as loop:
                loop.next(*self._columns(t, 1, *loop.inside))
            return
        whole = t["columns"] // self.beside
        rest = t["columns"] - whole * self.beside
        behind = right + whole * self.beside * t["right_column"], out + whole * self.beside
        for count, first, beside in ((whole, (right, out), self.beside), (rest, behind, 1)):
            with t.loop_if_any(count, *first) as loop:
                loop.next(*self._columns(t, beside, *loop.inside))

    def _columns(
        self, t: Text, beside: int, first: TextValue, result: TextValue
    ) -> tuple[TextValue, TextValue]:
        """Append ``beside`` columns from ``first`` on, whose results go to ``result`` and what follows.

        Returns the next column, and where its results go.
        """
        left = t.begin("left", self.left)
        lefts = [left + t["left_row"] * row for row in range(self.rows)]
        rights = [t["right_column"] * column for column in range(beside)]
        width, last = t.number(self.lanes * self.vectors), t["blocks"] - 1
        cells = self.rows * beside
        with t.loop(t["blocks"], t.number(0), first, *[t.constant(0, self.element)] * cells) as block:
            offset, there, *totals = block.inside
            depth = block.number.compare("eq", last).select(t["last_depth"], t["depth"])
            zeros = [t.constant(0, self.element, self.lanes)] * (cells * self.vectors)
            with t.loop(depth // width, offset, there, *zeros) as step:
                offset, there, *sums = step.inside
                sums = self._multiplied(t, [offset, *lefts], [there, *rights], sums)
                offset, there = offset + width, there + width
                step.next(offset, there, *sums)
            if self.ragged:
                rest = depth % width
                masks = [rest.mask(v * self.lanes, self.lanes) for v in range(self.vectors)]
                sums = self._multiplied(t, [offset, *lefts], [there, *rights], sums, masks)
            several = [sums[cell : cell + self.vectors] for cell in range(0, len(sums), self.vectors)]
            totals = [total + sum_of_lanes(each) for total, each in zip(totals, several, strict=True)]
            block.next(offset, there, *totals)
        places = [
            result + t["out_row"] * row + t.number(column)
            for row in range(self.rows)
            for column in range(beside)
        ]
        store_sums(t, list(zip(places, totals, strict=True)), t.start(self.element))
        return first + t["right_column"] * beside, result + beside

    def _multiplied(
        self,
        t: Text,
        lefts: Sequence[TextValue],
        rights: Sequence[TextValue],
        sums: Sequence[TextValue],
        masks: Sequence[TextValue] = (),
    ) -> list[TextValue]:
        """Append ``sums`` plus the products of a step; those of a step that is not whole have ``masks``.

        Args:
            t: The kernel.
            lefts: How far the step is from the beginning of rows of the left factor, and where these are.
            rights: Where the first column of the right factor is, and how far columns are from it.
            sums: What there is.
            masks: Those of each vector.
        """
        (offset, *rows), (there, *columns) = lefts, rights
        following = list(sums)
        for v in range(self.vectors):
            mask = masks[v] if masks else None
            place = there + t.number(v * self.lanes)
            factors = [(place + each).read(self.lanes, mask) for each in columns]
            place = offset + v * self.lanes
            for row, each in enumerate(rows):
                value = (each + place).read(self.lanes, mask)
                for column, factor in enumerate(factors):
                    cell = (row * len(columns) + column) * self.vectors + v
                    following[cell] = value.multiply_add(factor, sums[cell], fma=self.fma)
        return following
