"""The micro-kernel that arranges activations for products with weights of few bits.

Blocks of 32 activations lie in the order in which weights of their format come out of memory. So many blocks
as a kernel of products takes in one step lie side by side. As integers of 8 bits they are followed by what
each lane of an accumulator is multiplied with, the scale of its block, and by what it starts from.
"""

from __future__ import annotations

import functools
import operator

from mind_mlir.lowering.kernels.llvm_function import MicroKernel, Text
from mind_mlir.lowering.kernels.llvm_text import TextValue, byte_width
from mind_mlir.ops.quantized_formats import BLOCK, FORMATS, GREATEST
from mind_mlir.support.lazy_dataclass import dataclass

#: Added to a number of magnitude up to 2**22, it leaves the nearest integer in the lowest bits: and its bits.
_TO_INTEGER, _TO_INTEGER_BITS = 1.5 * 2.0**23, 0x4B400000


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class ActivationsKernel(MicroKernel):
    """Writes rows of f32 as `Step` has them.

    Attributes:
        format: The format of the weights.
        blocks: Blocks in a step.
        rest: Blocks behind the last whole step: a step that ends in zeros.
        integers: Whether numbers are rounded to 8 bits.
        factor: What the sum of a block is multiplied with, for its accumulator to start from; 0 where sums
            stand as they are, as f32.
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
    numbers = ("rows", "steps", "source_row", "target_row")

    @property
    def step(self) -> Step:
        """Return what is written at once."""
        return Step(self.blocks if self.single else self.lanes, self.blocks, self.integers)

    def append(self, t: Text) -> None:
        """Append the body: row after row, step after step."""
        size, width = self.step.bytes, self.blocks * BLOCK
        buffers = t.begin("source", self.source), t.begin("target", "i8")
        with t.loop(t["rows"], *buffers) as (row, (here, there)):
            if self.rest:
                last, behind = there + t["steps"] * size, here + t["steps"] * width
                for block in range(self.blocks):
                    self._block(t, behind + block * BLOCK if block < self.rest else None, last, block)
            with t.loop_if_any(t["steps"], here, there) as (step, (source, target)):
                for block in range(self.blocks):
                    self._block(t, source + block * BLOCK, target, block)
                step.next(source + width, target + size)
            row.next(here + t["source_row"], there + t["target_row"])

    def _block(self, t: Text, source: TextValue | None, step: TextValue, number: int) -> None:
        """Append block ``number`` of a step: activations, or zeros."""
        if source is None:
            found = [t.constant(0, "f32", self.lanes)] * (BLOCK // self.lanes)
        else:
            found = [(source + first).read(self.lanes) for first in range(0, BLOCK, self.lanes)]
        if not self.integers:
            self._write(found, step, number)
            return
        scale = _greatest(found) / GREATEST
        divisor = scale.splat(self.lanes)
        steps = [_rounded(each / divisor) for each in found]
        summed = functools.reduce(operator.add, steps).reduced("add")
        self._write([each.cast("trunc", "i8") for each in steps], step, number)
        # Behind them come the scale in each lane of the block, and the sum in the first one.
        lanes = self.step.lanes // self.blocks
        first = self.step.numbers + 4 * number * lanes
        scales = scale.splat(lanes)
        (step + first).store(scales)
        value = summed * self.factor if self.factor else summed.cast("sitofp", "f32")
        placed = t.constant(0, value.element, lanes).insert(value, 0)
        (step + (first + 4 * self.step.lanes)).store(placed)

    def _write(self, found: list[TextValue], step: TextValue, number: int) -> None:
        """Append vectors of a block in the order of the format."""
        format_, half = FORMATS[self.format], BLOCK // 2
        if format_.bits == 8:
            offsets = [number * BLOCK + first for first in range(0, BLOCK, self.lanes)]
        else:
            starts = (number * half, (self.blocks + number) * half)
            if format_.pairs:  # the first element of each pair, then the second ones
                pairs = list(zip(found[::2], found[1::2], strict=True))
                alternate = [range(first, 2 * self.lanes, 2) for first in (0, 1)]
                found = [left.shuffle(right, lanes) for lanes in alternate for left, right in pairs]
            offsets = [start + first for start in starts for first in range(0, half, self.lanes)]
        for value, offset in zip(found, offsets, strict=True):
            (step + offset * byte_width(value.element)).store(value)


def _greatest(found: list[TextValue]) -> TextValue:
    """Append the greatest magnitude, by its bits: those of NaN are greater than those of all numbers."""
    bits = [each.cast("bitcast", "i32") for each in found]
    bits = [each & 0x7FFFFFFF for each in bits]
    while len(bits) > 1:
        first, second, *rest = bits
        bits = [*rest, first.maximum(second)]
    return bits[0].reduced("umax").cast("bitcast", "f32")


def _rounded(quotients: TextValue) -> TextValue:
    """Append quotients as i32: to nearest even, NaN as 0, none of a magnitude above the greatest."""
    known = quotients.compare("ord", quotients).select(quotients, quotients.like(0))
    for predicate, limit in (("ogt", GREATEST), ("olt", -GREATEST)):
        known = known.compare(predicate, limit).select(known.like(limit), known)
    return (known + _TO_INTEGER).cast("bitcast", "i32") - _TO_INTEGER_BITS
