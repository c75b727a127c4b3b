"""The micro-kernel of products of many rows of bytes, in tiles: of packed weights of few bits.

Sums of a block are exact; then they are multiplied by the scales of its column and of its row, and added.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels.activations import Step
from mind_mlir.lowering.schedule.contraction.kernels.kernel import MicroKernel, add_where
from mind_mlir.lowering.schedule.contraction.kernels.quantized_panels import block_bytes
from mind_mlir.lowering.schedule.contraction.kernels.vnni import I8, dot_products
from mind_mlir.ops.quantized_formats import BLOCK

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.kernels.llvm_function import Text
    from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import TextValue


@dataclasses.dataclass(frozen=True)
class TileKernel(MicroKernel):
    """``out[i, j] (+)= sum over k of left[i, k] * weight[j, k]`` for some rows, strip after strip.

    Attributes:
        rows: All rows.
        vectors: Strips side by side.
        lanes: Columns of a strip.
        zeros: Whether there are zero points.
        fma: Whether products of floats are fused with their addition.
    """

    rows: int
    vectors: int
    lanes: int
    zeros: bool
    fma: bool

    kind = "tiles"
    buffers = ("left", "panel", "out")
    #: All but those of the result count bytes.
    numbers = (
        *("left_first", "panel_first", "out_first", "columns", "strips", "blocks"),
        *("left_row", "strip", "out_row"),
    )
    adds = True
    element = "f32"

    def append(self, t: Text) -> None:
        """Append the body: strips side by side, then single ones."""
        tiles = _Tiles(self, t)
        panel, out = t.begin("panel", "i8"), t.begin("out", "f32")
        whole = t["strips"] // self.vectors
        tiles.several(whole, (panel, out, t["columns"]), self.vectors)
        if self.vectors > 1:
            done = whole * self.vectors
            passed = done * self.lanes
            panel, out = panel + t["strip"] * done, out + passed
            left = t["columns"] - t["columns"].minimum(passed)
            tiles.several(t["strips"] - done, (panel, out, left), 1)


class _Tiles:
    """Appends products of strips."""

    def __init__(self, kernel: TileKernel, t: Text) -> None:
        self._k, self._t = kernel, t
        #: The bytes of a block: of a row of activations, and of a strip.
        self._step = Step(1, 1, integers=True).bytes
        self._size = block_bytes(kernel.lanes, zeros=kernel.zeros)
        left = t.begin("left", "i8")
        self._lefts = [left + t["left_row"] * row for row in range(kernel.rows)]

    def several(self, number: TextValue, first: tuple[TextValue, TextValue, TextValue], count: int) -> None:
        """Append ``number`` groups of ``count`` strips side by side, from ``first`` on.

        That is where they are, where results go, and how many columns are left.
        """
        width = count * self._k.lanes
        with self._t.loop_if_any(number, *first) as group:
            here, there, live = group.inside
            self._strips(here, there, live, count)
            here, there = here + self._t["strip"] * count, there + width
            group.next(here, there, live - live.minimum(width))

    def _strips(self, here: TextValue, there: TextValue, live: TextValue, count: int) -> None:
        """Append the products of strips, of which so many columns are there, and their stores."""
        t, k = self._t, self._k
        firsts = [here + t["strip"] * strip for strip in range(count)]
        with t.loop(t["blocks"], *[t.constant(0, "f32", k.lanes)] * (k.rows * count)) as block:
            within = block.number * self._step
            places = [each + within for each in self._lefts]
            offset = block.number * self._size
            totals: list[TextValue] = []
            for number, first in enumerate(firsts):
                some = block.inside[number * k.rows : (number + 1) * k.rows]
                totals += self._products(first + offset, places, some)
            block.next(*totals)
        for place, total in enumerate(totals):
            strip, row = divmod(place, k.rows)
            target = there + (t["out_row"] * row + strip * k.lanes)
            mask = (live - live.minimum(strip * k.lanes)).mask(0, k.lanes)
            add_where(t, target, total, t.start("f32").splat(k.lanes), mask)

    def _products(self, strip: TextValue, places: list[TextValue], sums: list[TextValue]) -> list[TextValue]:
        """Append ``sums``, one for each row, plus the products of a block of a strip."""
        t, k = self._t, self._k
        zero = t.constant(0, "i32", k.lanes)
        dots = [zero if k.zeros else self._word(place, BLOCK + 4, "i32") for place in places]
        for number in range(BLOCK // 4):
            weights = (strip + 4 * k.lanes * number).load(k.lanes, element="i32")
            dots = [
                dot_products(t, I8, weights, self._word(place, 4 * number, "i32"), each)
                for place, each in zip(places, dots, strict=True)
            ]
        scales = (strip + k.lanes * BLOCK).load(k.lanes, element="f32")
        points = (strip + k.lanes * (BLOCK + 4)).load(k.lanes, element="f32") if k.zeros else None
        found = []
        for place, each, total in zip(places, dots, sums, strict=True):
            product = each.cast("sitofp", "f32")
            if points is not None:
                product = product - points * self._word(place, BLOCK + 4, "f32")
            product = product * scales
            found.append(product.multiply_add(self._word(place, BLOCK, "f32"), total, fma=k.fma))
        return found

    def _word(self, pointer: TextValue, offset: int, element: str) -> TextValue:
        """Append a word of activations in every lane."""
        return (pointer + offset).load(element=element).splat(self._k.lanes)
