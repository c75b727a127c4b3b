"""The micro-kernels of products of many rows with weights of few bits: these are packed, then multiplied.

A strip is as many rows of weights as a vector has lanes: columns of the product. It is packed as numbers of
f32, element after element of all its columns, for products in tiles; or block after block, as words of four
bytes for an instruction that adds as many products, then the scales of its columns, and their zero points.
Elements of a block are in the order in which they come out of memory, as those of activations are. Sums of a
block of bytes are exact; then they are multiplied by the scales of its column and of its row, and added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.shuffles import exchange
from mind_mlir.lowering.kernels.activations import Step
from mind_mlir.lowering.kernels.llvm_function import MicroKernel, Text, add_where
from mind_mlir.lowering.kernels.quantized_weights import WeightKernel, Weights
from mind_mlir.lowering.kernels.vnni import I8, dot_products
from mind_mlir.ops.quantized_formats import BLOCK
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.lowering.kernels.llvm_text import TextValue
    from mind_mlir.lowering.kernels.quantized_weights import StepWeights


def block_bytes(lanes: int, *, zeros: bool) -> int:
    """Return the bytes of a block of a strip: words, then scales, and zero points if there are some."""
    return lanes * (BLOCK + 4 + 4 * zeros)


@dataclass(frozen=True)
class PanelKernel(WeightKernel):
    """Packs ``blocks`` blocks of a strip, from block ``first`` on; columns past the last one repeat it.

    Bytes are raised to be unsigned, and are read in vectors of half as many.

    Attributes:
        strip: Columns of a strip: elements of f32 in a vector, 16 for bytes.
    """

    strip: int

    kind = "panel"
    buffers = ("weights", "scales", "zeros", "target")
    numbers = ("columns", "first", "blocks", "weights_row", "scales_row", "zeros_row", "target_step")

    def append(self, t: Text) -> None:
        """Append the body: block after block of all columns."""
        weights = Weights(t, self)
        last = t["columns"] - 1
        start = weights.start()
        columns = [t.number(lane).minimum(last) for lane in range(self.strip)]
        rows = [weights.after(start, column) for column in columns]
        write, element = (_write_bytes, "i8") if self.integers else (_write_floats, "f32")
        with t.loop(t["blocks"], t.begin("target", element)) as (block, (there,)):
            place = t["first"] + block.number
            read = (weights.step(row, place, 1, scalars=self.integers) for row in rows)
            block.next(write(t, self, read, there))


def _write_bytes(t: Text, kernel: PanelKernel, columns: Iterator[StepWeights], there: TextValue) -> TextValue:
    """Append a block as words, scales and zero points; return where the next one goes."""
    half = kernel.strip // 2
    read = list(columns)
    held = [each.numbers[0].cast("bitcast", "i32", half) for each in read]
    pairs = [
        left.shuffle(right, range(kernel.strip)) for left, right in zip(held[:half], held[half:], strict=True)
    ]
    for number, value in enumerate(_turned(pairs)):
        (there + 4 * kernel.strip * number).store(value)
    for several, place in (([each.scale for each in read], half), ([each.zero for each in read], half + 1)):
        values = [each for each in several if each is not None]
        if values:
            found = t.poison("f32", len(values))
            for lane, value in enumerate(values):
                found = found.insert(value, lane)
            (there + 4 * kernel.strip * place).store(found)
    return there + block_bytes(kernel.strip, zeros=kernel.zeros)


def _write_floats(
    t: Text, kernel: PanelKernel, columns: Iterator[StepWeights], there: TextValue
) -> TextValue:
    """Append a block as f32, element after element; return where the next one goes."""
    lanes = kernel.strip
    numbers = [[each * read.scale for each in read.numbers] for read in columns]
    for part in range(BLOCK // lanes):
        for lane, value in enumerate(_turned([column[part] for column in numbers])):
            (there + t["target_step"] * (part * lanes + lane)).store(value)
    return there + t["target_step"] * BLOCK


def _turned(rows: list[TextValue]) -> list[TextValue]:
    """Append the transposition of squares, which lie side by side in as many vectors as they have rows."""
    return exchange(rows, lambda left, right, lanes: left.shuffle(right, lanes), rows[0].lanes)


@dataclass(frozen=True)
class TileKernel(MicroKernel):
    """``out[i, j] (+)= sum over k of left[i, k] * weight[j, k]`` for some rows, strip after strip.

    Attributes:
        vectors: Strips side by side.
        lanes: Columns of a strip.
        zeros: Whether there are zero points.
    """

    rows: int
    vectors: int
    lanes: int
    zeros: bool
    fma: bool

    kind = "tiles"
    buffers = ("left", "panel", "out")
    #: All but those of the result count bytes.
    numbers = ("columns", "strips", "blocks", "left_row", "strip", "out_row")
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
        with self._t.loop_if_any(number, *first) as (group, (here, there, live)):
            self._strips(here, there, live, count)
            group.next(here + self._t["strip"] * count, there + width, live - live.minimum(width))

    def _strips(self, here: TextValue, there: TextValue, live: TextValue, count: int) -> None:
        """Append the products of strips, of which so many columns are there, and their stores."""
        t, k = self._t, self._k
        firsts = [here + t["strip"] * strip for strip in range(count)]
        with t.loop(t["blocks"], *[t.constant(0, "f32", k.lanes)] * (k.rows * count)) as (block, inside):
            within = block.number * self._step
            places = [each + within for each in self._lefts]
            offset = block.number * self._size
            totals: list[TextValue] = []
            for number, first in enumerate(firsts):
                some = inside[number * k.rows : (number + 1) * k.rows]
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
