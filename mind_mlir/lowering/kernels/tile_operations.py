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

from mind_mlir.lowering.kernels.vnni import BF16, WORD

if TYPE_CHECKING:
    from mind_mlir.lowering.kernels.llvm_function import Text
    from mind_mlir.lowering.kernels.llvm_text import TextValue

#: Rows of a tile, and words in a row.
SIDE = 16
#: How operations are written: as instructions; as code for vectors that does all that these do, for machines
#: without them; and as `WIDENED`, the same but that subnormal numbers are what they are.
INSTRUCTIONS, EMULATED = "tiles", "emulated"
#: Bytes, which factors may be of besides bf16, and how instructions call them.
SIGNS = {"i8": "s", "u8": "u"}

#: The most tiles there are.
_REGISTERS = 8
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

    def load(self, tile: int, place: TextValue, stride: int) -> None:
        """Append a load of a tile's rows, so many words apart."""
        self._call("tileloadd64", self._number(tile), place, self._t.number(4 * stride))

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
    """Appends code for vectors: sums are tiles in memory, and factors are read where they are loaded from."""

    def __init__(self, t: Text, left: str, right: str, *, flushes: bool) -> None:
        self._t, self._flushes = t, flushes
        self._element = "f32" if left == BF16 else WORD
        self._signs = left == "i8", right == "i8"
        self._sums: dict[int, TextValue] = {}
        self._loaded: dict[int, tuple[TextValue, int]] = {}

    def begin(self) -> None:
        """Append memory for sums."""
        self._sums = {tile: self._t.buffer(SIDE * SIDE, self._element) for tile in range(_REGISTERS // 2)}

    def end(self) -> None:
        """Append nothing."""

    def zero(self, tile: int) -> None:
        """Append that a tile is all zeros."""
        zero = self._t.constant(0, self._element, SIDE)
        for row in range(SIDE):
            self._row(tile, row).store(zero, alignment=64)

    def load(self, tile: int, place: TextValue, stride: int) -> None:
        """Note where a tile of a factor is, whose rows are so many words apart."""
        self._loaded[tile] = place, stride

    def store(self, tile: int, place: TextValue, stride: int) -> None:
        """Append a copy of a tile's rows, so many words apart."""
        for row in range(SIDE):
            (place + row * stride).store(self._row(tile, row).load(SIDE, alignment=64))

    def dot(self, sums: int, left: int, right: int) -> None:
        """Append the dot product of two tiles, which is added to a third one."""
        t, parts = self._t, 1 if self._element == WORD else 2
        (left_place, left_stride), (right_place, right_stride) = self._loaded[left], self._loaded[right]
        zeros = [t.constant(0, self._element, SIDE)] * (_TOGETHER * parts)
        with t.loop(SIDE // _TOGETHER, left_place, self._row(sums, 0)) as (rows, (here, there)):
            with t.loop(SIDE, here, right_place, *zeros) as (step, (word, vector, *inside)):
                factor = vector.load(SIDE, element=WORD)
                following: list[TextValue] = []
                for row in range(_TOGETHER):
                    one = (word + row * left_stride).load(element=WORD).splat(SIDE)
                    following += self._terms(one, factor, inside[row * parts :][:parts])
                step.next(word + 1, vector + right_stride, *following)
            for row in range(_TOGETHER):
                total, *other = following[row * parts :][:parts]
                for each in other:
                    total = self._flushed(total + each)
                place = there + row * SIDE
                place.store(self._flushed(place.load(SIDE, alignment=64) + total), alignment=64)
            rows.next(here + _TOGETHER * left_stride, there + _TOGETHER * SIDE)

    def _terms(self, left: TextValue, right: TextValue, sums: list[TextValue]) -> list[TextValue]:
        """Append the products of the terms of words: sums of lower and upper bf16, or one of all bytes."""
        if self._element == WORD:
            (total,) = sums
            for up in (24, 16, 8, 0):
                one, other = (
                    (each << up).binary("ashr" if signed else "lshr", 24)
                    for each, signed in zip((left, right), self._signs, strict=True)
                )
                total = total + one * other
            return [total]
        found = []
        for is_upper, total in zip((False, True), sums, strict=True):
            halves = (each & (-1 << 16) if is_upper else each << 16 for each in (left, right))
            one, other = (self._flushed(each.cast("bitcast", "f32")) for each in halves)
            found.append(self._flushed(one.multiply_add(other, total, fma=True)))
        return found

    def _flushed(self, value: TextValue) -> TextValue:
        """Append zeros of the same signs for subnormal numbers, if that is what the instruction does."""
        if not self._flushes or value.element == WORD:
            return value
        bits = value.cast("bitcast", WORD)
        is_small = (bits & 0x7FFFFFFF).compare("ult", 1 << 23)
        return is_small.select(bits & (-1 << 31), bits).cast("bitcast", "f32")

    def _row(self, tile: int, row: int) -> TextValue:
        return self._sums[tile] + row * SIDE


def tile_operations(t: Text, how: str, left: str, right: str) -> TileInstructions | TileVectors:
    """Return what appends operations on tiles, in one of the ways above, of factors of these types."""
    if how == INSTRUCTIONS:
        return TileInstructions(t, left, right)
    return TileVectors(t, left, right, flushes=how == EMULATED)
