"""The micro-kernel of a sweep: a product of few rows that reads a large right factor once, row by row.

Such a product takes as long as memory needs to bring the right factor. That is fastest in the order in which
it lies there, without a tile of registers that would have several rows of it under way at a time.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels.kernel import MicroKernel
from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import byte_width, vector
from mind_mlir.lowering.schedule.contraction.kernels.loops import (
    Moving,
    along,
    begin,
    if_any,
    rows_of,
    stored,
    walk,
)

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import Text

#: Rows of the right factor that are read side by side, for one row of results and for several: so many
#: streams the processor prefetches, and a result is loaded and stored once for all of them. For one row of
#: results they are far apart, so that each stream goes on through memory, which is read faster by half on one
#: thread. For several they are neighbours, and products are added up in the order of tiles.
_BESIDE = 4, 8


@dataclasses.dataclass(frozen=True)
class AxpyKernel(MicroKernel):
    """``out[i, j] = sum over k of left[i, k] * right[k, j]``, some rows of the right factor after others.

    The results, few rows of them, stay in the first-level cache meanwhile. Their rows have room for whole
    vectors.

    Attributes:
        rows: All rows.
        lanes: Elements in a vector.
        element: The type of accumulators and results.
        left: The type of elements of the left factor in memory, and conversions to accumulators.
        right: The same of the right factor.
        fma: Whether products of floats are fused with their addition.
        masks: Whether loads at edges take masks; else these are computed one by one.
    """

    rows: int
    lanes: int
    element: str
    left: str
    right: str
    fma: bool
    masks: bool

    kind = "sweep"
    buffers = ("left", "right", "out")
    numbers = (
        *("left_first", "right_first", "out_first", "columns", "depth"),
        *("left_row", "left_step", "right_step", "out_row"),
    )

    @property
    def is_apart(self) -> bool:
        """Return whether rows that are read side by side are far apart."""
        return self.rows == 1

    @property
    def beside(self) -> int:
        """Rows of the right factor that are read side by side."""
        return _BESIDE[min(self.rows, 2) - 1]

    def append(self, t: Text) -> None:
        """Append the body: results are cleared, then groups of rows of the right factor are added."""
        left, right = begin(t, "left", stored(self.left)), begin(t, "right", stored(self.right))
        outs = rows_of(t, begin(t, "out", self.element), "%out_row", self.rows, self.element)
        lefts = rows_of(t, left, "%left_row", self.rows, stored(self.left))
        side = t.number(self.beside)
        groups = t.binary("udiv", "%depth", side)
        apart, onward = (groups, t.number(1)) if self.is_apart else (t.number(1), side)

        def clear(first: str, lanes: int, _: str | None) -> None:
            for result in outs:
                zero, place = t.zero(self.element, lanes), t.step(result, first, self.element)
                t.store(zero, place, vector(lanes, self.element), byte_width(self.element))

        along(t, "%columns", self.lanes, clear, masks=self.masks)
        done = t.mul(groups, side)
        rest = t.binary("sub", "%depth", done)

        def some(number: str, there: str, count: int) -> None:
            """Append what adds ``count`` rows of the right factor, from row ``number`` on."""
            rights = [there]
            for _ in range(1, count):
                rights.append(t.step(rights[-1], t.mul("%right_step", apart), stored(self.right)))
            places = [t.add(number, t.mul(t.number(each), apart)) for each in range(count)]
            self._add(t, (lefts, rights, outs), [t.mul(place, "%left_step") for place in places])

        def group(number: str, there: str) -> None:
            some(t.mul(number, onward), there, self.beside)

        def single(number: str, there: str) -> None:
            some(t.add(done, number), there, 1)

        grouped = Moving(right, lambda: t.mul("%right_step", onward), stored(self.right))
        if_any(t, groups, lambda: walk(t, groups, [grouped], group))
        last = t.step(right, t.mul(done, "%right_step"), stored(self.right))
        left_over = Moving(last, "%right_step", stored(self.right))
        if_any(t, rest, lambda: walk(t, rest, [left_over], single))

    def _add(self, t: Text, rows: tuple[list[str], list[str], list[str]], offsets: list[str]) -> None:
        """Append what adds products of rows of the right factor and of elements at ``offsets``."""
        lefts, rights, outs = rows
        element = self.element
        scalars = [
            [t.read(t.step(each, offset, stored(self.left)), self.left, 0) for offset in offsets]
            for each in lefts
        ]
        splats = [[t.splat(each, self.lanes, element) for each in several] for several in scalars]

        def columns(first: str, lanes: int, mask: str | None) -> None:
            type_ = vector(lanes, element)
            places = (t.step(each, first, stored(self.right)) for each in rights)
            values = [t.read(each, self.right, lanes, mask) for each in places]
            for result, factors in zip(outs, splats if lanes else scalars, strict=True):
                place = t.step(result, first, element)
                total = t.load(place, type_, byte_width(element))
                for factor, value in zip(factors, values, strict=True):
                    total = t.multiply_add(factor, value, total, element, lanes, fma=self.fma)
                t.store(total, place, type_, byte_width(element))

        along(t, "%columns", self.lanes, columns, masks=self.masks)
