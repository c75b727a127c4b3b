"""Weights of few bits as vectors of numbers in registers, with the scales and zero points of their lanes."""

from __future__ import annotations

from typing import NamedTuple

from mind_mlir.lowering.kernels.llvm_function import MicroKernel, Text
from mind_mlir.lowering.kernels.llvm_text import TextValue, stored
from mind_mlir.ops.quantized_formats import BLOCK, FORMATS, SCALE_BYTES
from mind_mlir.support.lazy_dataclass import dataclass

#: Words of 16 bits that one load brings, of which a shuffle takes the scales of several blocks.
_WORDS = 32
#: Bytes that one hint fetches.
_LINE = 64
#: What is added to numbers of 8 bits for an instruction that takes them without a sign.
_RAISED = 128


@dataclass(frozen=True)
class WeightKernel(MicroKernel):
    """A kernel that reads weights of few bits.

    Attributes:
        format: Their format.
        blocks: Blocks in a step.
        integers: Whether they become bytes; else f32.
        group: Blocks in a group, where scales are a tensor of their own.
        scale: The type of scales in memory, and conversions to f32.
        zeros: Whether there are zero points.
        weight: Conversions of weights that are floats.
    """

    format: str
    lanes: int
    blocks: int
    integers: bool
    group: int
    scale: str
    zeros: bool
    weight: str

    @property
    def ahead(self) -> int:
        """How many bytes ahead memory is asked for, if it is."""
        return 0

    @property
    def is_unsigned(self) -> bool:
        """Whether an instruction takes the bytes without a sign."""
        return self.integers

    @property
    def raised(self) -> int:
        """What is added to bytes so that they have no sign, where they need none; 4 bits have none."""
        return _RAISED if self.is_unsigned and FORMATS[self.format].bits == 8 else 0


class StepWeights(NamedTuple):
    """A step of a row of weights.

    Attributes:
        numbers: Bytes for products of integers, else vectors of f32 less what stands for zero.
        scale: The scale of each lane.
        zero: The zero point of each lane, raised as numbers are; None where there are none, or where they
            are subtracted already.
    """

    numbers: list[TextValue]
    scale: TextValue
    zero: TextValue | None


class Weights:
    """Appends the reading of weights.

    A row is three pointers: to bytes, to scales, and to zero points; these may be unused.
    """

    def __init__(self, t: Text, kernel: WeightKernel) -> None:
        self._t, self._k = t, kernel
        self._f = FORMATS[kernel.format]
        #: How far apart blocks begin, and where their numbers do.
        self._stride = self._f.block_bytes or self._f.depth_bytes
        self._head = SCALE_BYTES if self._f.block_bytes else 0
        #: Whether what a block has is wanted as a single number.
        self._scalars = False

    # Rows

    def start(self) -> list[TextValue]:
        """Append the first row."""
        how = "sext" if self._f.bits == 8 else "zext"
        elements = ("weights", "i8"), ("scales", self._k.scale), ("zeros", f"i8:{how} i32:sitofp f32")
        return [self._t.begin(name, element) for name, element in elements]

    def after(self, row: list[TextValue], count: int | TextValue) -> list[TextValue]:
        """Append the row that many further on."""
        names = ("weights_row", "scales_row", "zeros_row")
        return [each + self._t[name] * count for each, name in zip(row, names, strict=True)]

    # Steps

    def step(
        self, row: list[TextValue], number: TextValue, live: int, *, scalars: bool = False
    ) -> StepWeights:
        """Append step ``number`` of a row, of which so many blocks are there: as vectors, or as scalars."""
        k = self._k
        data, scales, zeros = row
        here = data + number * (k.blocks * self._stride)
        if k.ahead:
            there = here + k.ahead
            for offset in range(0, k.blocks * self._stride, _LINE):
                (there + offset).prefetch()
        self._scalars = scalars
        held = self._scales(here, scales, number, live)
        points = self._of_groups(zeros, number, live) if k.zeros else []
        points = [each + k.raised for each in points] if k.raised else points
        scale, zero = self._in_lanes(held), self._in_lanes(points) if points else None
        if k.integers:
            return StepWeights(self._integers(here, live), scale, zero)
        numbers = self._floats(here)
        return StepWeights(numbers if zero is None else [each - zero for each in numbers], scale, None)

    # Scales and zero points

    def _scales(self, here: TextValue, scales: TextValue, number: TextValue, live: int) -> list[TextValue]:
        """Append the scale of each block, or a single vector of them."""
        k = self._k
        if not self._f.block_bytes:
            return self._of_groups(scales, number, live)
        if k.blocks > 1 and live == k.blocks:  # by one load of words
            words = here.load(_WORDS, element="i16", alignment=1)
            places = [block * self._stride // 2 for block in self._lane_blocks]
            return [words.shuffle(words, places).converted(k.scale)]
        return [self._single(here + block * self._stride, k.scale) for block in range(live)]

    def _single(self, place: TextValue, conversions: str) -> TextValue:
        """Append what a block has: of the only one of a step in all lanes, which are converted together."""
        held = place.load(element=stored(conversions))
        if self._k.blocks == 1 and not self._scalars:
            held = held.splat(self._k.lanes)
        return held.converted(conversions)

    def _of_groups(self, base: TextValue, number: TextValue, live: int) -> list[TextValue]:
        """Append what groups have, for each block or as a single vector."""
        k = self._k
        first = number * k.blocks if k.blocks > 1 else number
        if k.group == 1 and k.blocks > 1 and live == k.blocks:
            several = (base + first).read(k.blocks)
            return [several.shuffle(several, self._lane_blocks)]
        shared = k.group % k.blocks == 0
        found = []
        for block in range(1 if shared else live):
            place = first + block if block else first
            place = place if k.group == 1 else place // k.group
            found.append(self._single(base + place, base.element))
        return found * live if shared else found

    @property
    def _lane_blocks(self) -> list[int]:
        """Which block each lane belongs to."""
        k = self._k
        return [lane * k.blocks // k.lanes for lane in range(k.lanes)]

    def _in_lanes(self, found: list[TextValue]) -> TextValue:
        """Append one number for each block, in its lanes, if wanted; zeros for blocks that are not there."""
        k = self._k
        if found[0].lanes or self._scalars:
            return found[0]
        if k.blocks == 1 or (len(found) == k.blocks and len(set(found)) == 1):
            return found[0].splat(k.lanes)
        several = self._t.constant(0, "f32", k.blocks)
        for block, each in enumerate(found):
            several = several.insert(each, block)
        return several.shuffle(several, self._lane_blocks)

    # Numbers

    def _integers(self, here: TextValue, live: int) -> list[TextValue]:
        """Append the bytes of a step in whole vectors."""
        k = self._k
        width = 4 * k.lanes
        if self._f.bits == 8:
            size = BLOCK * k.blocks
            found = [self._bytes(here, first, min(width, size), live) for first in range(0, size, width)]
            return [each ^ -_RAISED for each in found] if k.raised else found
        low, high = _halves(self._bytes(here, 0, 16 * k.blocks, live))
        return [low, high] if low.lanes == width else [low.shuffle(high, range(width))]

    def _bytes(self, here: TextValue, first: int, width: int, live: int) -> TextValue:
        """Append ``width`` bytes of numbers from byte ``first`` of them on, zeros where no block is."""
        size = self._f.depth_bytes
        if self._stride == size and first + width <= live * size:
            return (here + first).load(width)
        piece = min(size, width)
        pieces = []
        for at in range(first, first + width, piece):
            block, within = divmod(at, size)
            if block < live:
                pieces.append((here + (block * self._stride + self._head + within)).load(piece))
            else:
                pieces.append(self._t.constant(0, "i8", piece))
        while len(pieces) > 1:
            pairs = zip(pieces[::2], pieces[1::2], strict=True)
            pieces = [left.shuffle(right, range(2 * left.lanes)) for left, right in pairs]
        return pieces[0]

    def _floats(self, here: TextValue) -> list[TextValue]:
        """Append the numbers of a block as f32."""
        k = self._k
        if self._f.bits == 8:
            offsets = range(self._head, self._head + BLOCK, k.lanes)
            held = [(here + offset).load(k.lanes) for offset in offsets]
            if self._f.is_float:
                return [_eight_bits(each, k.weight) for each in held]
            return [each.converted("i8:sext i32:sitofp f32") for each in held]
        both = _halves((here + self._head).load(16))
        if not k.zeros:
            both = [each - self._f.middle for each in both]
        parts = (
            each if k.lanes == 16 else each.part(first, k.lanes)
            for each in both
            for first in range(0, 16, k.lanes)
        )
        return [each.converted("i8:sext i32:sitofp f32") for each in parts]


def _halves(held: TextValue) -> list[TextValue]:
    """Append the numbers of 4 bits in the low halves of bytes and in the high ones."""
    return [held & 15, held >> 4]


#: What is said of floats of 8 bits before the conversion of f16 to f32.
WIDE, FINE = "e5m2", "e4m3"


def _eight_bits(held: TextValue, conversions: str) -> TextValue:
    """Append floats of 8 bits as f32, by way of the bits of f16: of 5 bits of exponent, as both have them.

    Those with 4 bits of exponent, moved, are 2**8 times less; they have one NaN and no infinity.
    """
    kind, half = conversions.split(" ", maxsplit=1)
    wide = held.cast("sext", "i16")
    if kind == WIDE:
        return (wide << 8).converted(half)
    # The sign, extended, is bit 15 and those below it, which go.
    value = ((wide << 7) & (0xBF80 - (1 << 16))).converted(half) * 256
    is_nan = (held & 127).compare("eq", 127)
    return is_nan.select(value.like("0x7FC00000"), value)
