"""The micro-kernel that arranges activations for products with weights of few bits.

Blocks of 32 activations lie in the order in which weights of their format come out of memory. So many blocks
as a kernel of products takes in one step lie side by side. As integers of 8 bits they are followed by what
each lane of an accumulator is multiplied with, the scale of its block, and by what it starts from.
"""

from __future__ import annotations

import dataclasses

from mind_mlir.lowering.schedule.contraction.kernels.kernel import MicroKernel
from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import Text, byte_width, convert, vector
from mind_mlir.lowering.schedule.contraction.kernels.loops import Moving, begin, if_any, stored, walk
from mind_mlir.ops.quantized_formats import BLOCK, FORMATS, GREATEST

#: Added to a number of magnitude up to 2**22, it leaves the nearest integer in the lowest bits: and its bits.
_TO_INTEGER, _TO_INTEGER_BITS = 1.5 * 2.0**23, 0x4B400000


@dataclasses.dataclass(frozen=True)
class Step:
    """What a kernel of products reads of a row of activations at once.

    Attributes:
        lanes: The lanes of an accumulator, each of which has a scale and a start.
        blocks: How many blocks.
        integers: Whether they are integers of 8 bits.
    """

    lanes: int
    blocks: int
    integers: bool

    @property
    def numbers(self) -> int:
        """Return the bytes of the numbers, which come first."""
        return self.blocks * BLOCK * (1 if self.integers else 4)

    @property
    def bytes(self) -> int:
        """Return all bytes: behind integers come a vector of scales and one of sums."""
        return self.numbers + (8 * self.lanes if self.integers else 0)

    @property
    def block_lanes(self) -> int:
        """Return the lanes that sums of a block have."""
        return self.lanes // self.blocks


@dataclasses.dataclass(frozen=True)
class ActivationsKernel(MicroKernel):
    """Writes rows of f32 as `Step` has them.

    Attributes:
        format: The format of the weights.
        lanes: Elements of f32 in a vector.
        blocks: Blocks in a step.
        rest: Blocks behind the last whole step: a step that ends in zeros.
        integers: Whether numbers are rounded to 8 bits.
        factor: What the sum of a block is multiplied with, for its accumulator to start from; 0 where sums
            stand as they are, as f32.
        source: The type of activations in memory, and conversions to f32.
        single: Whether a block has one scale and one sum, for tiles of accumulators of several columns.
    """

    format: str
    lanes: int
    blocks: int
    rest: int
    integers: bool
    factor: int
    source: str
    single: bool = False

    kind = "activations"
    buffers = ("source", "target")
    numbers = ("source_first", "target_first", "rows", "steps", "source_row", "target_row")

    @property
    def step(self) -> Step:
        """Return what is written at once."""
        return Step(self.blocks if self.single else self.lanes, self.blocks, self.integers)

    def append(self, t: Text) -> None:
        """Append the body: row after row, step after step."""
        writer, held, size = _Writer(t, self), stored(self.source), self.step.bytes
        source, target = begin(t, "source", held), begin(t, "target", "i8")

        def step(_: str, here: str, there: str) -> None:
            for block in range(self.blocks):
                writer.block(t.step(here, block * BLOCK, held), there, block)

        def row(_: str, here: str, there: str) -> None:
            if self.rest:
                last = t.step(there, t.mul("%steps", t.number(size)), "i8")
                behind = t.step(here, t.mul("%steps", t.number(self.blocks * BLOCK)), held)
                for block in range(self.blocks):
                    place = t.step(behind, block * BLOCK, held) if block < self.rest else None
                    writer.block(place, last, block)
            moving = [Moving(here, self.blocks * BLOCK, held), Moving(there, size, "i8")]
            if_any(t, "%steps", lambda: walk(t, "%steps", moving, step))

        moving = [Moving(source, "%source_row", held), Moving(target, "%target_row", "i8")]
        walk(t, "%rows", moving, row)


class _Writer:
    """Appends what writes one block."""

    def __init__(self, t: Text, kernel: ActivationsKernel) -> None:
        self._t, self._k = t, kernel
        self._format = FORMATS[kernel.format]

    def block(self, source: str | None, step: str, number: int) -> None:
        """Append a block of a step: activations, or zeros."""
        t, k = self._t, self._k
        if source is None:
            found = [t.zero("f32", k.lanes)] * (BLOCK // k.lanes)
        else:
            places = (t.step(source, first, stored(k.source)) for first in range(0, BLOCK, k.lanes))
            found = [t.read(place, k.source, k.lanes) for place in places]
        if k.integers:
            self._integers(found, step, number)
        else:
            self._write(found, "f32", step, number)

    def _integers(self, found: list[str], step: str, number: int) -> None:
        t, lanes = self._t, self._k.lanes
        f32, i32 = vector(lanes, "f32"), vector(lanes, "i32")
        scale = t.binary("fdiv", self._greatest(found), t.constant(f"{GREATEST}.0", "f32"), "f32")
        divisor = t.splat(scale, lanes, "f32")
        steps = [self._rounded(t.binary("fdiv", each, divisor, f32)) for each in found]
        total = steps[0]
        for each in steps[1:]:
            total = t.binary("add", total, each, i32)
        summed = t.op(f'llvm.call_intrinsic "llvm.vector.reduce.add"({total}) : ({i32}) -> i32')
        narrow = vector(lanes, "i8")
        self._write([t.op(f"llvm.trunc {each} : {i32} to {narrow}") for each in steps], "i8", step, number)
        self._behind(scale, summed, step, number)

    def _greatest(self, found: list[str]) -> str:
        """Append the greatest magnitude, by its bits: those of NaN are greater than those of all numbers."""
        t, i32, f32 = self._t, vector(self._k.lanes, "i32"), vector(self._k.lanes, "f32")
        mask = t.constant(f"dense<{0x7FFFFFFF}>", i32)
        bits = [t.op(f"llvm.bitcast {each} : {f32} to {i32}") for each in found]
        bits = [t.binary("and", each, mask, i32) for each in bits]
        while len(bits) > 1:
            first, second, *rest = bits
            bits = [*rest, t.op(f"llvm.intr.umax({first}, {second}) : ({i32}, {i32}) -> {i32}")]
        most = t.op(f'llvm.call_intrinsic "llvm.vector.reduce.umax"({bits[0]}) : ({i32}) -> i32')
        return t.op(f"llvm.bitcast {most} : i32 to f32")

    def _rounded(self, quotients: str) -> str:
        """Append quotients as i32: to nearest even, NaN as 0, none of a magnitude above the greatest."""
        t, lanes = self._t, self._k.lanes
        f32, i32 = vector(lanes, "f32"), vector(lanes, "i32")
        i1 = vector(lanes, "i1")

        def number(value: float) -> str:
            return t.constant(f"dense<{value}>", f32)

        def chosen(predicate: str, left: str, right: str, on: str, off: str) -> str:
            flags = t.op(f'llvm.fcmp "{predicate}" {left}, {right} : {f32}')
            return t.select(flags, on, off, f32, i1)

        known = chosen("ord", quotients, quotients, quotients, t.zero("f32", lanes))
        for predicate, limit in (("ogt", float(GREATEST)), ("olt", -float(GREATEST))):
            known = chosen(predicate, known, number(limit), number(limit), known)
        moved = t.binary("fadd", known, number(_TO_INTEGER), f32)
        bits = t.op(f"llvm.bitcast {moved} : {f32} to {i32}")
        return t.binary("sub", bits, t.constant(f"dense<{_TO_INTEGER_BITS}>", i32), i32)

    def _write(self, found: list[str], element: str, step: str, number: int) -> None:
        """Append vectors of a block in the order of the format."""
        t, k = self._t, self._k
        half = BLOCK // 2
        if self._format.bits == 8:
            offsets = [number * BLOCK + first for first in range(0, BLOCK, k.lanes)]
        else:
            starts = (number * half, (k.blocks + number) * half)
            if self._format.pairs:
                found = self._apart(found, element)
            offsets = [start + first for start in starts for first in range(0, half, k.lanes)]
        for value, offset in zip(found, offsets, strict=True):
            place = t.step(step, offset * byte_width(element), "i8")
            t.store(value, place, vector(k.lanes, element), byte_width(element))

    def _apart(self, found: list[str], element: str) -> list[str]:
        """Append the first element of each pair, then the second ones."""
        t, lanes = self._t, self._k.lanes
        type_ = vector(lanes, element)
        pairs = list(zip(found[::2], found[1::2], strict=True))
        return [
            t.shuffle(left, right, list(range(first, 2 * lanes, 2)), type_)
            for first in (0, 1)
            for left, right in pairs
        ]

    def _behind(self, scale: str, summed: str, step: str, number: int) -> None:
        """Append the scale in each lane of the block, and the sum in the first one."""
        t, k, layout = self._t, self._k, self._k.step
        lanes = layout.block_lanes
        first = layout.numbers + 4 * number * lanes
        t.store(t.splat(scale, lanes, "f32"), t.step(step, first, "i8"), vector(lanes, "f32"), 4)
        if k.factor:
            element, value = "i32", t.binary("mul", summed, t.constant(str(k.factor), "i32"), "i32")
        else:
            element, value = "f32", convert(t, "i32:sitofp f32", summed, 0)
        type_ = vector(lanes, element)
        zero = t.zero(element, lanes)
        placed = t.op(f"llvm.insertelement {value}, {zero}[{t.number(0)} : i64] : {type_}")
        t.store(placed, t.step(step, first + 4 * layout.lanes, "i8"), type_, 4)
