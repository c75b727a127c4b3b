"""The micro-kernels of a sweep: a product of few rows that reads a large right factor once, row by row.

Such a product takes as long as memory needs to bring the right factor. That is fastest in the order in which
it lies there, without a tile of registers that would have several rows of it under way at a time. The results
of its parts are added up.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels.kernel import MicroKernel, add_where, along, store_sums

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.kernels.llvm_function import Text
    from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import TextValue

#: Partial results that one accumulator sums.
JOINED = 32
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
        left, right, out = (
            t.begin(name, element)
            for name, element in (("left", self.left), ("right", self.right), ("out", self.element))
        )
        outs = [out + t["out_row"] * row for row in range(self.rows)]
        lefts = [left + t["left_row"] * row for row in range(self.rows)]
        groups = t["depth"] // self.beside
        apart, onward = (groups, t.number(1)) if self.is_apart else (t.number(1), t.number(self.beside))
        for first, lanes, _ in along(t, t["columns"], self.lanes, masks=self.masks):
            for result in outs:
                (result + first).store(t.constant(0, self.element, lanes))
        done = groups * self.beside
        rest = t["depth"] - done

        def some(number: TextValue, there: TextValue, count: int) -> None:
            """Append what adds ``count`` rows of the right factor, from row ``number`` on."""
            rights = [there]
            for _ in range(1, count):
                rights.append(rights[-1] + t["right_step"] * apart)
            places = [number + t.number(each) * apart for each in range(count)]
            self._add(t, (lefts, rights, outs), [place * t["left_step"] for place in places])

        with t.loop_if_any(groups, right) as group:
            some(group.number * onward, group.inside[0], self.beside)
            group.next(group.inside[0] + t["right_step"] * onward)
        with t.loop_if_any(rest, right + done * t["right_step"]) as single:
            some(done + single.number, single.inside[0], 1)
            single.next(single.inside[0] + t["right_step"])

    def _add(self, t: Text, rows: tuple[list[TextValue], ...], offsets: list[TextValue]) -> None:
        """Append what adds products of rows of the right factor and of elements at ``offsets``."""
        lefts, rights, outs = rows
        scalars = [[(each + offset).read() for offset in offsets] for each in lefts]
        splats = [[each.splat(self.lanes) for each in several] for several in scalars]
        for first, lanes, mask in along(t, t["columns"], self.lanes, masks=self.masks):
            values = [(each + first).read(lanes, mask) for each in rights]
            for result, factors in zip(outs, splats if lanes else scalars, strict=True):
                place = result + first
                total = place.load(lanes)
                for factor, value in zip(factors, values, strict=True):
                    total = factor.multiply_add(value, total, fma=self.fma)
                place.store(total)


@dataclasses.dataclass(frozen=True)
class JoinKernel(MicroKernel):
    """``out[i, j] (+)= sum over p of source[p, i, j]``: adds up partial results, in their order.

    Attributes:
        lanes: Elements in a vector.
        element: The type of elements.
        masks: Whether loads and stores at edges take masks.
    """

    lanes: int
    element: str
    masks: bool

    kind = "join"
    buffers = ("source", "out")
    numbers = (
        *("source_first", "out_first", "rows", "columns", "parts"),
        *("source_row", "source_part", "out_row"),
    )
    adds = True

    def append(self, t: Text) -> None:
        """Append the body: row after row, vector after vector, part after part."""
        source, out = t.begin("source", self.element), t.begin("out", self.element)
        start = t.start(self.element)
        starts = start.splat(self.lanes)
        groups = t["parts"].blocks(JOINED)
        with t.loop(t["rows"], source, out) as rows:
            here, there = rows.inside
            for first, lanes, mask in along(t, t["columns"], self.lanes, masks=self.masks):
                total = self._total(t, groups, here + first, lanes)
                place = there + first
                if mask is None:
                    store_sums(t, [(place, total)], starts if lanes else start)
                else:
                    add_where(t, place, total, starts, mask)
            rows.next(here + t["source_row"], there + t["out_row"])

    def _total(self, t: Text, groups: TextValue, here: TextValue, lanes: int) -> TextValue:
        """Append the sum of all parts of what is ``here``."""
        zero = t.constant(0, self.element, lanes)
        with t.loop(groups, here, t["parts"], zero) as group:
            here, left, total = group.inside
            with t.loop(left.minimum(JOINED), here, zero) as part:
                here, some = part.inside
                value = here.load(lanes)
                here, some = here + t["source_part"], some + value
                part.next(here, some)
            left, total = left - JOINED, total + some
            group.next(here, left, total)
        return total
