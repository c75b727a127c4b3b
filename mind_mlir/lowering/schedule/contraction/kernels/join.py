"""The micro-kernel that adds up partial results, such as those of the parts of a sweep."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels.kernel import MicroKernel
from mind_mlir.lowering.schedule.contraction.kernels.loops import add_where, along, store_sums

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.kernels.llvm_function import Text
    from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import TextValue

#: Partial results that one accumulator sums.
JOINED = 32


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
