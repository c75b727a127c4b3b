"""Weights of few bits as vectors of numbers in registers, with the scales and zero points of their lanes."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import NamedTuple

from mind_mlir.lowering.schedule.contraction.kernels.kernel import MicroKernel
from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import Text, byte_width, convert, vector
from mind_mlir.lowering.schedule.contraction.kernels.loops import Moving, begin, stored
from mind_mlir.ops.quantized_formats import BLOCK, FORMATS, SCALE_BYTES

#: Words of 16 bits that one load brings, of which a shuffle takes the scales of several blocks.
_WORDS = 32
#: Bytes that one hint fetches.
_LINE = 64
#: What is added to numbers of 8 bits for an instruction that takes them without a sign.
_RAISED = 128


@dataclasses.dataclass(frozen=True)
class WeightKernel(MicroKernel):
    """A kernel that reads weights of few bits.

    Attributes:
        format: Their format.
        lanes: Elements of f32 in a vector.
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
        zero: The zero point of each lane, raised as numbers are; empty where there are none, or where they
            are subtracted already.
    """

    numbers: list[str]
    scale: str
    zero: str


class Weights:
    """Appends the reading of weights.

    A row is three pointers: to bytes, to scales, and to zero points; these may be unused.
    """

    def __init__(self, t: Text, kernel: WeightKernel) -> None:
        self._t, self._k = t, kernel
        self._f = FORMATS[kernel.format]
        self._scale_element = stored(kernel.scale)
        #: How far apart blocks begin, and where their numbers do.
        self._stride = self._f.block_bytes or self._f.depth_bytes
        self._head = SCALE_BYTES if self._f.block_bytes else 0
        #: Values that are vectors of what each lane has.
        self._vectors: set[str] = set()
        #: Whether what a block has is wanted as a single number.
        self._scalars = False

    # Rows

    def start(self) -> list[str]:
        """Append the first row."""
        return [
            begin(self._t, "weights", "i8"),
            begin(self._t, "scales", self._scale_element),
            begin(self._t, "zeros", "i8"),
        ]

    def after(self, row: list[str], count: int | str) -> list[str]:
        """Append the row that many further on."""
        return [each.after(self._t, each.pointer) for each in self.moving(row, count)]

    def moving(self, row: list[str], count: int | str = 1) -> list[Moving]:
        """Return the pointers of a row as a loop moves them, so many rows an iteration."""
        t = self._t
        names = ("weights", "i8"), ("scales", self._scale_element), ("zeros", "i8")

        def by(name: str) -> str:
            return t.mul(f"%{name}_row", t.number(count) if isinstance(count, int) else count)

        return [
            Moving(each, partial(by, name), element) for each, (name, element) in zip(row, names, strict=True)
        ]

    # Steps

    def step(self, row: list[str], number: str, live: int, *, scalars: bool = False) -> StepWeights:
        """Append step ``number`` of a row, of which so many blocks are there.

        Args:
            row: Where the row is.
            number: The number of the step.
            live: The blocks.
            scalars: Whether the scale and the zero point of a single block are no vectors.
        """
        t, k = self._t, self._k
        data, scales, zeros = row
        here = t.step(data, t.mul(number, t.number(k.blocks * self._stride)), "i8")
        if k.ahead:
            there = t.step(here, k.ahead, "i8")
            for offset in range(0, k.blocks * self._stride, _LINE):
                t.prefetch(t.step(there, offset, "i8"))
        self._scalars = scalars
        scale = self._scales(here, scales, number, live)
        zero = self._zeros(zeros, number, live) if k.zeros else []
        if scalars:
            return StepWeights(self._integers(here, live), scale[0], "".join(zero))
        scale_lanes, zero_lanes = self._in_lanes(scale), self._in_lanes(zero) if zero else ""
        if k.integers:
            return StepWeights(self._integers(here, live), scale_lanes, zero_lanes)
        numbers = self._floats(here)
        if k.zeros:
            numbers = [t.binary("fsub", each, zero_lanes, vector(k.lanes, "f32")) for each in numbers]
        return StepWeights(numbers, scale_lanes, "")

    # Scales and zero points

    def _scales(self, here: str, scales: str, number: str, live: int) -> list[str]:
        """Append the scale of each block, or a single vector of them."""
        t, k = self._t, self._k
        if not self._f.block_bytes:
            return self._of_groups(scales, number, live, k.scale)
        if k.blocks > 1 and live == k.blocks:
            return [self._of_words(here)]
        return [self._single(t.step(here, block * self._stride, "i8"), k.scale) for block in range(live)]

    def _single(self, place: str, conversions: str) -> str:
        """Append what a block has: of the only one of a step in all lanes, which are converted together."""
        t, k = self._t, self._k
        if k.blocks > 1 or self._scalars:
            return t.read(place, conversions, 0)
        element = stored(conversions)
        held = t.load(place, element, byte_width(element))
        return self._whole(convert(t, conversions, t.splat(held, k.lanes, element), k.lanes))

    def _of_words(self, here: str) -> str:
        """Append the scales that blocks begin with, by one load of words."""
        t, k = self._t, self._k
        words = t.load(here, vector(_WORDS, "i16"), 1)
        places = [block * self._stride // 2 for block in self._lane_blocks()]
        picked = t.shuffle(words, words, places, vector(_WORDS, "i16"))
        return self._whole(convert(t, k.scale, picked, k.lanes))

    def _of_groups(self, base: str, number: str, live: int, conversions: str) -> list[str]:
        """Append what groups have, for each block or as a single vector."""
        t, k = self._t, self._k
        element = stored(conversions)
        first = t.mul(number, t.number(k.blocks)) if k.blocks > 1 else number
        if k.group == 1 and k.blocks > 1 and live == k.blocks:
            several = t.read(t.step(base, first, element), conversions, k.blocks)
            return [self._whole(t.shuffle(several, several, self._lane_blocks(), vector(k.blocks, "f32")))]
        shared = k.group % k.blocks == 0
        found = []
        for block in range(1 if shared else live):
            place = t.add(first, t.number(block)) if block else first
            place = place if k.group == 1 else t.binary("udiv", place, t.number(k.group))
            found.append(self._single(t.step(base, place, element), conversions))
        return found * live if shared else found

    def _zeros(self, zeros: str, number: str, live: int) -> list[str]:
        t, k = self._t, self._k
        how = "sext" if self._f.bits == 8 else "zext"
        found = self._of_groups(zeros, number, live, f"i8:{how} i32:sitofp f32")
        if not k.raised:
            return found
        moved = []
        for each in found:
            lanes = k.lanes if each in self._vectors else 0
            value = f"dense<{k.raised}.0>" if lanes else f"{k.raised}.0"
            type_ = vector(lanes, "f32")
            sum_ = t.binary("fadd", each, t.constant(value, type_), type_)
            moved.append(self._whole(sum_) if lanes else sum_)
        return moved

    def _whole(self, value: str) -> str:
        """Note that ``value`` is a vector of all lanes."""
        self._vectors.add(value)
        return value

    def _lane_blocks(self) -> list[int]:
        """Return which block each lane belongs to."""
        k = self._k
        return [lane * k.blocks // k.lanes for lane in range(k.lanes)]

    def _in_lanes(self, found: list[str]) -> str:
        """Append one number for each block, in its lanes; zeros for blocks that are not there."""
        t, k = self._t, self._k
        if found[0] in self._vectors:
            return found[0]
        if k.blocks == 1 or (len(found) == k.blocks and len(set(found)) == 1):
            return t.splat(found[0], k.lanes, "f32")
        type_ = vector(k.blocks, "f32")
        several = t.zero("f32", k.blocks)
        for block, each in enumerate(found):
            several = t.op(f"llvm.insertelement {each}, {several}[{t.number(block)} : i64] : {type_}")
        return t.shuffle(several, several, self._lane_blocks(), type_)

    # Numbers

    def _integers(self, here: str, live: int) -> list[str]:
        """Append the bytes of a step in whole vectors."""
        t, k = self._t, self._k
        width = 4 * k.lanes
        if self._f.bits == 8:
            found = [
                self._bytes(here, first, min(width, 32 * k.blocks), live)
                for first in range(0, 32 * k.blocks, width)
            ]
            if not k.raised:
                return found
            high = t.constant("dense<-128>", vector(width, "i8"))
            return [t.binary("xor", each, high, vector(width, "i8")) for each in found]
        low, high = self._halves(self._bytes(here, 0, 16 * k.blocks, live), 16 * k.blocks)
        if 16 * k.blocks == width:
            return [low, high]
        return [t.shuffle(low, high, list(range(width)), vector(width // 2, "i8"))]

    def _halves(self, held: str, width: int) -> list[str]:
        """Append the numbers of 4 bits in the low halves of bytes and in the high ones."""
        t, type_ = self._t, vector(width, "i8")
        low = t.binary("and", held, t.constant("dense<15>", type_), type_)
        return [low, t.binary("lshr", held, t.constant("dense<4>", type_), type_)]

    def _bytes(self, here: str, first: int, width: int, live: int) -> str:
        """Append ``width`` bytes of numbers from byte ``first`` of them on, zeros where no block is."""
        t, size = self._t, self._f.depth_bytes
        if self._stride == size and first + width <= live * size:
            return t.load(t.step(here, first, "i8"), vector(width, "i8"), 1)
        piece = min(size, width)
        pieces = []
        for at in range(first, first + width, piece):
            block, within = divmod(at, size)
            if block < live:
                offset = block * self._stride + self._head + within
                pieces.append(t.load(t.step(here, offset, "i8"), vector(piece, "i8"), 1))
            else:
                pieces.append(t.zero("i8", piece))
        while len(pieces) > 1:
            places = list(range(2 * piece))
            pairs = zip(pieces[::2], pieces[1::2], strict=True)
            pieces = [t.shuffle(left, right, places, vector(piece, "i8")) for left, right in pairs]
            piece *= 2
        return pieces[0]

    def _floats(self, here: str) -> list[str]:
        """Append the numbers of a block as f32."""
        t, k = self._t, self._k
        if self._f.bits == 8:
            offsets = range(self._head, self._head + BLOCK, k.lanes)
            held = [t.load(t.step(here, offset, "i8"), vector(k.lanes, "i8"), 1) for offset in offsets]
            if self._f.is_float:
                return [_eight_bits(t, each, k.weight, k.lanes) for each in held]
            return [convert(t, "i8:sext i32:sitofp f32", each, k.lanes) for each in held]
        both = self._halves(t.load(t.step(here, self._head, "i8"), vector(16, "i8"), 1), 16)
        type_ = vector(16, "i8")
        if not k.zeros:
            middle = t.constant(f"dense<{self._f.middle}>", type_)
            both = [t.binary("sub", each, middle, type_) for each in both]
        return [
            convert(t, "i8:sext i32:sitofp f32", self._part(each, first), k.lanes)
            for each in both
            for first in range(0, 16, k.lanes)
        ]

    def _part(self, held: str, first: int) -> str:
        lanes = self._k.lanes
        if lanes == 16:
            return held
        return self._t.shuffle(held, held, list(range(first, first + lanes)), vector(16, "i8"))


#: What is said of floats of 8 bits before the conversion of f16 to f32.
WIDE, FINE = "e5m2", "e4m3"


def _eight_bits(t: Text, held: str, conversions: str, lanes: int) -> str:
    """Append floats of 8 bits as f32, by way of the bits of f16: of 5 bits of exponent, as both have them.

    Those with 4 bits of exponent, moved, are 2**8 times less; they have one NaN and no infinity.
    """
    kind, half = conversions.split(" ", maxsplit=1)
    i8, i16, f32 = (vector(lanes, each) for each in ("i8", "i16", "f32"))
    wide = t.op(f"llvm.sext {held} : {i8} to {i16}")
    if kind == WIDE:
        return convert(t, half, t.binary("shl", wide, t.constant("dense<8>", i16), i16), lanes)
    # The sign, extended, is bit 15 and those below it, which go.
    moved = t.binary("shl", wide, t.constant("dense<7>", i16), i16)
    moved = t.binary("and", moved, t.constant(f"dense<{0xBF80 - (1 << 16)}>", i16), i16)
    value = convert(t, half, moved, lanes)
    value = t.binary("fmul", value, t.constant("dense<256.0>", f32), f32)
    magnitude = t.binary("and", held, t.constant("dense<127>", i8), i8)
    is_nan = t.compare("eq", magnitude, t.constant("dense<127>", i8), i8)
    nan = t.constant("dense<0x7FC00000>", f32)
    return t.select(is_nan, nan, value, f32, vector(lanes, "i1"))
