"""The operations on tiles that AMX has, as instructions, or as code for vectors that gives the same bits.

A tile has 16 rows of 64 bytes. A left factor's rows are rows of the product, 16 words of its terms each; a
right factor's are words of terms for 16 columns; words are those of `vnni`. A dot product adds all 16 words'
products to a tile of 16 x 16 sums.

For bf16 that is, as Intel's manual has it (SDM volume 2, TDPBF16PS): the products of the lower terms of all
words are added up one after the other from zero, by fused multiply-adds that round to nearest even; so are
those of the upper terms; both sums are added, and that is added to the sum there was. Subnormal numbers count
as zeros, before each of these operations and after it. Where none are on the way, which `vnni.are_normal`
tells for these, too, code without that (`WIDENED`) gives the same bits. Products of bytes are exact, and sums
of i32 wrap around.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.kernels.llvm_text import byte_width
from mind_mlir.lowering.kernels.summands import joined
from mind_mlir.lowering.kernels.vnni import BF16, WIDENED, WORD

if TYPE_CHECKING:
    from mind_mlir.lowering.kernels.llvm_function import Text
    from mind_mlir.lowering.kernels.llvm_text import TextValue

#: Rows of a tile, and words in a row.
SIDE = 16
#: Packed factors that are read as tiles, squares of words: left ones, whose squares are ``[column][step]``,
#: and right ones, whose squares are ``[step][column]``; with summands each line, of steps or of columns, is
#: followed by those of the others.
LEFT_TILES, RIGHT_TILES = "left tiles", "right tiles"
#: How operations are written: as instructions; as code for vectors that does all that these do, for machines
#: without them; and as `WIDENED`, the same but that subnormal numbers are what they are.
INSTRUCTIONS, EMULATED = "tiles", "emulated"
#: Bytes, which factors may be of besides bf16, and how instructions call them.
SIGNS = {"i8": "s", "u8": "u"}

#: Tiles of sums, which come first, and all tiles that there are.
SUMS, TILES = 4, 8
#: What tells the processor that all tiles have 16 rows of 64 bytes: palette 1, and bytes and rows of each.
_CONFIGURATION = [1, 0, 0, 0, *[64 << 16 | 64] * 4, *[0] * 4, *[0x10101010] * 2, 0, 0]
#: Rows whose sums vector code has in registers at the same time.
_TOGETHER = 4


class TileInstructions:
    """Appends instructions."""

    def __init__(self, t: Text, left: str, right: str) -> None:
        self._t = t
        kinds = f"b{SIGNS[left]}{SIGNS[right]}d" if left != BF16 else "bf16ps"
        self._dot = f"tdp{kinds}"

    def begin(self) -> None:
        """Append what comes before all else: it sets all tiles to zeros, too."""
        words = self._t.constant(str(_CONFIGURATION), WORD, SIDE)
        place = self._t.buffer(SIDE, WORD)
        place.store(words, alignment=64)
        self._call("ldtilecfg", place)

    def end(self) -> None:
        """Append what comes after all else: the system need not save what no tile holds."""
        self._call("tilerelease")

    def zero(self, tile: int) -> None:
        """Append that a tile is all zeros."""
        self._call("tilezero", self._number(tile))

    def load(self, tile: int, side: int, place: TextValue, stride: TextValue | int) -> None:
        """Append a load of a tile's rows, so many elements apart, of factor 0, the left one, or 1."""
        width = byte_width(place.element)
        size = self._t.number(width * stride) if isinstance(stride, int) else stride * width
        self._call("tileloadd64", self._number(tile), place, size)

    def store(self, tile: int, place: TextValue, stride: int) -> None:
        """Append a store of a tile's rows, so many words apart."""
        self._call("tilestored64", self._number(tile), place, self._t.number(4 * stride))

    def dot(self, sums: int, left: int, right: int) -> None:
        """Append the dot product of two tiles, which is added to a third one."""
        self._call(self._dot, *(self._number(tile) for tile in (sums, left, right)))

    def _number(self, tile: int) -> TextValue:
        return self._t.constant(tile, "i8")

    def _call(self, name: str, *operands: TextValue) -> None:
        given, types = (", ".join(each) for each in ([x.name for x in operands], [x.type for x in operands]))
        self._t.line(f'llvm.call_intrinsic "llvm.x86.{name}"({given}) : ({types}) -> ()')


class TileVectors:
    """Appends code for vectors: tiles are memory, those of factors hold their terms as they are multiplied.

    Terms lie in lines, ``[line][term of a word][word]``.
    """

    def __init__(self, t: Text, types: tuple[str, str], *, flushes: bool, joins: int) -> None:
        self._t, self._types, self._flushes, self._joins = t, types, flushes, joins
        self._element = WORD if types[0] != BF16 else "f32"
        self._terms = 4 if self._element == WORD else 2
        #: How many sums a dot product has: those of lower and upper terms, but for what is no bf16 by itself.
        self._parts = 1 if self._element == WORD or joins > 1 else 2
        self._tiles: list[TextValue] = []

    def begin(self) -> None:
        """Append memory for tiles."""
        sizes = [1] * SUMS + [self._terms] * (TILES - SUMS)
        self._tiles = [self._t.buffer(SIDE * SIDE * size, self._element) for size in sizes]

    def end(self) -> None:
        """Append nothing."""

    def zero(self, tile: int) -> None:
        """Append that a tile is all zeros."""
        zero = self._t.constant(0, self._element, SIDE)
        for row in range(SIDE):
            (self._tiles[tile] + row * SIDE).store(zero, alignment=64)

    def load(self, tile: int, side: int, place: TextValue, stride: TextValue | int) -> None:
        """Append a copy of a tile's terms, whose rows are so many elements apart, of a factor as above."""
        t, width = self._t, byte_width(place.element)
        firsts = (
            [stride // self._joins * number for number in range(self._joins)]
            if isinstance(stride, int)
            else [0]
        )
        with t.loop(SIDE, place, self._tiles[tile]) as (line, (here, there)):
            words = [(here + first).load(SIDE, element=WORD, alignment=width) for first in firsts]
            for number, value in enumerate(self._terms_of(words, is_signed=self._types[side] == "i8")):
                (there + number * SIDE).store(value, alignment=64)
            line.next(here + stride, there + self._terms * SIDE)

    def _terms_of(self, words: list[TextValue], *, is_signed: bool) -> list[TextValue]:
        """Append the terms of words, of their summands joined, the lowest ones first."""
        if self._element == WORD:
            shift = "ashr" if is_signed else "lshr"
            return [(words[0] << up).binary(shift, 24) for up in (24, 16, 8, 0)]
        halves = [each << 16 for each in words], [each & (-1 << 16) for each in words]
        return [self._flushed(joined(each)) for each in halves]

    def store(self, tile: int, place: TextValue, stride: int) -> None:
        """Append a copy of a tile's rows, so many words apart."""
        for row in range(SIDE):
            line = (self._tiles[tile] + row * SIDE).load(SIDE, alignment=64)
            (place + row * stride).store(line)

    def dot(self, sums: int, left: int, right: int) -> None:
        """Append the dot product of two tiles, which is added to a third one."""
        t, line = self._t, self._terms * SIDE
        zeros = [t.constant(0, self._element, SIDE)] * (_TOGETHER * self._parts)
        with t.loop(SIDE // _TOGETHER, self._tiles[left], self._tiles[sums]) as (rows, (here, there)):
            with t.loop(SIDE, here, self._tiles[right], *zeros) as (step, (one, other, *inside)):
                found = inside
                for term in range(self._terms):
                    factor = (other + term * SIDE).load(SIDE, alignment=64)
                    for row in range(_TOGETHER):
                        number = row * self._parts + term % self._parts
                        value = (one + (row * line + term * SIDE)).load().splat(SIDE)
                        found[number] = self._flushed(value.multiply_add(factor, found[number], fma=True))
                step.next(one + 1, other + line, *found)
            for row in range(_TOGETHER):
                total, *others = found[row * self._parts :][: self._parts]
                for each in others:
                    total = self._flushed(total + each)
                place = there + row * SIDE
                place.store(self._flushed(place.load(SIDE, alignment=64) + total), alignment=64)
            rows.next(here + _TOGETHER * line, there + _TOGETHER * SIDE)

    def _flushed(self, value: TextValue) -> TextValue:
        """Append zeros of the same signs for subnormal numbers, if that is what the instruction does."""
        if not self._flushes or value.element == WORD:
            return value
        bits = value.cast("bitcast", WORD)
        is_small = (bits & 0x7FFFFFFF).compare("ult", 1 << 23)
        return is_small.select(bits & (-1 << 31), bits).cast("bitcast", "f32")


def tile_operations(
    t: Text, how: str, left: str, right: str, summands: int = 1
) -> TileInstructions | TileVectors:
    """Return what appends operations on tiles, in one of the ways above, of factors of these types.

    `WIDENED` joins their ``summands``; with the others each is multiplied by itself.
    """
    if how == INSTRUCTIONS:
        return TileInstructions(t, left, right)
    joins = summands if how == WIDENED else 1
    return TileVectors(t, (left, right), flushes=how == EMULATED, joins=joins)
