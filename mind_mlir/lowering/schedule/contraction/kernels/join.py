"""The micro-kernel that adds up partial results, such as those of the parts of a sweep."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels.kernel import MicroKernel
from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import byte_width, vector
from mind_mlir.lowering.schedule.contraction.kernels.loops import (
    Moving,
    add_where,
    along,
    begin,
    count_of,
    store_sum,
    walk,
)

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import Text

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

    @property
    def sums(self) -> str:
        """The type of what sums start from."""
        return self.element

    def append(self, t: Text) -> None:
        """Append the body: row after row, vector after vector, part after part."""
        element = self.element
        source, out = begin(t, "source", element), begin(t, "out", element)
        start = t.splat("%start", self.lanes, element)
        most = t.number(JOINED)
        groups = count_of(t, "%parts", JOINED)

        def columns(source: str, out: str, first: str, lanes: int, mask: str | None) -> None:
            type_ = vector(lanes, element)

            def part(_: str, inside: list[str]) -> list[str]:
                value = t.load(inside[0], type_, byte_width(element))
                after = t.step(inside[0], "%source_part", element)
                return [after, t.sum(inside[1], value, element, lanes)]

            def group(_: str, inside: list[str]) -> list[str]:
                here, left, total = inside
                some = [(here, "!llvm.ptr"), (t.zero(element, lanes), type_)]
                here, value = t.loop(t.minimum(left, most), some, part)
                return [here, t.binary("sub", left, most), t.sum(total, value, element, lanes)]

            first_part = (t.step(source, first, element), "!llvm.ptr")
            carried = [first_part, ("%parts", "i64"), (t.zero(element, lanes), type_)]
            total = t.loop(groups, carried, group)[2]
            place = t.step(out, first, element)
            if mask is None:
                store_sum(t, [(place, total)], start if lanes else "%start", lanes, element)
            else:
                add_where(t, place, total, start, mask, lanes, element)

        def row(_: str, here: str, there: str) -> None:
            along(t, "%columns", self.lanes, lambda *place: columns(here, there, *place), masks=self.masks)

        walk(t, "%rows", [Moving(source, "%source_row", element), Moving(out, "%out_row", element)], row)
