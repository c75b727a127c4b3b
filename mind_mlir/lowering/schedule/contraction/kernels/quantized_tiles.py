"""The micro-kernel of products of many rows of bytes, in tiles: of packed weights of few bits.

Sums of a block are exact; then they are multiplied by the scales of its column and of its row, and added.
"""

from __future__ import annotations

import dataclasses

from mind_mlir.lowering.schedule.contraction.kernels.activations import Step
from mind_mlir.lowering.schedule.contraction.kernels.kernel import MicroKernel
from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import Text, convert, vector
from mind_mlir.lowering.schedule.contraction.kernels.loops import add_where, begin, if_any, rows_of
from mind_mlir.lowering.schedule.contraction.kernels.quantized_panels import block_bytes
from mind_mlir.lowering.schedule.contraction.kernels.vnni import I8, dot_products
from mind_mlir.ops.quantized_formats import BLOCK


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

    @property
    def sums(self) -> str:
        """The type of what sums start from."""
        return "f32"

    def append(self, t: Text) -> None:
        """Append the body: strips side by side, then single ones."""
        _Tiles(self, t).append()


class _Tiles:
    """Writes one kernel."""

    def __init__(self, kernel: TileKernel, t: Text) -> None:
        self._k, self._t = kernel, t
        self._f32, self._i32 = (vector(kernel.lanes, each) for each in ("f32", "i32"))
        #: The bytes of a block: of a row of activations, and of a strip.
        self._step = Step(1, 1, integers=True).bytes
        self._size = block_bytes(kernel.lanes, zeros=kernel.zeros)
        self._lefts = rows_of(t, begin(t, "left", "i8"), "%left_row", kernel.rows, "i8")

    def append(self) -> None:
        """Append all strips."""
        t, k = self._t, self._k
        panel, out = begin(t, "panel", "i8"), begin(t, "out", "f32")
        whole = t.binary("udiv", "%strips", t.number(k.vectors))
        self._several(whole, [panel, out, "%columns"], k.vectors)
        if k.vectors == 1:
            return
        done = t.mul(whole, t.number(k.vectors))
        passed = t.mul(done, t.number(k.lanes))
        behind = [
            t.step(panel, t.mul("%strip", done), "i8"),
            t.step(out, passed, "f32"),
            t.binary("sub", "%columns", t.minimum("%columns", passed)),
        ]
        self._several(t.binary("sub", "%strips", done), behind, 1)

    def _several(self, number: str, carried: list[str], count: int) -> None:
        """Append so many groups of ``count`` strips side by side."""
        t, lanes = self._t, self._k.lanes

        def group(_: str, inside: list[str]) -> list[str]:
            here, there, live = inside
            self._strips(here, there, live, count)
            return [
                t.step(here, t.mul("%strip", t.number(count)), "i8"),
                t.step(there, count * lanes, "f32"),
                t.binary("sub", live, t.minimum(live, t.number(count * lanes))),
            ]

        pairs = list(zip(carried, ("!llvm.ptr", "!llvm.ptr", "i64"), strict=True))
        if_any(t, number, lambda: t.loop(number, pairs, group))

    def _strips(self, here: str, there: str, live: str, count: int) -> None:
        """Append the products of strips, of which so many columns are there, and their stores."""
        t, k, lanes = self._t, self._k, self._k.lanes
        firsts = rows_of(t, here, "%strip", count, "i8")

        def block(number: str, inside: list[str]) -> list[str]:
            within = t.mul(number, t.number(self._step))
            places = [t.step(each, within, "i8") for each in self._lefts]
            offset = t.mul(number, t.number(self._size))
            found = []
            for place, first in enumerate(firsts):
                some = inside[place * k.rows : (place + 1) * k.rows]
                found += self._products(t.step(first, offset, "i8"), places, some)
            return found

        zeros = [(t.zero("f32", lanes), self._f32)] * (k.rows * count)
        for place, total in enumerate(t.loop("%blocks", zeros, block)):
            strip, row = divmod(place, k.rows)
            offset = t.add(t.mul("%out_row", t.number(row)), t.number(strip * lanes))
            target = t.step(there, offset, "f32")
            mask = t.mask(t.binary("sub", live, t.minimum(live, t.number(strip * lanes))), 0, lanes)
            add_where(t, target, total, t.splat("%start", lanes, "f32"), mask, lanes, "f32")

    def _products(self, strip: str, places: list[str], sums: list[str]) -> list[str]:
        """Append ``sums``, one for each row, plus the products of a block of a strip."""
        t, k, lanes, f32 = self._t, self._k, self._k.lanes, self._f32
        zero = t.zero("i32", lanes)
        dots = [zero if k.zeros else self._word(place, BLOCK + 4, "i32") for place in places]
        for number in range(BLOCK // 4):
            weights = t.load(t.step(strip, 4 * lanes * number, "i8"), self._i32, 4)
            dots = [
                dot_products(t, I8, weights, self._word(place, 4 * number, "i32"), each, lanes)
                for place, each in zip(places, dots, strict=True)
            ]
        scales = t.load(t.step(strip, lanes * BLOCK, "i8"), f32, 4)
        points = t.load(t.step(strip, lanes * (BLOCK + 4), "i8"), f32, 4) if k.zeros else ""
        found = []
        for place, each, total in zip(places, dots, sums, strict=True):
            product = convert(t, "i32:sitofp f32", each, lanes)
            if k.zeros:
                shift = t.binary("fmul", points, self._word(place, BLOCK + 4, "f32"), f32)
                product = t.binary("fsub", product, shift, f32)
            product = t.binary("fmul", product, scales, f32)
            scale = self._word(place, BLOCK, "f32")
            found.append(t.multiply_add(product, scale, total, "f32", lanes, fma=k.fma))
        return found

    def _word(self, pointer: str, offset: int, element: str) -> str:
        """Append a word of activations in every lane."""
        t = self._t
        return t.splat(t.load(t.step(pointer, offset, "i8"), element, 4), self._k.lanes, element)
