"""Schedules of products with weights of few bits, chosen by shape, format and target."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels.quantized import FOUR, ONE, TWO
from mind_mlir.lowering.schedule.emission.constants import BYTE_NS
from mind_mlir.lowering.schedule.emission.decision import Choice, chosen
from mind_mlir.lowering.schedule.emission.split import split
from mind_mlir.ops.quantized_formats import BLOCK, FORMATS
from mind_mlir.target.record import X86_64

if TYPE_CHECKING:
    from mind_mlir.target import Target

#: Rows of activations and columns side by side in the registers of a kernel, by how many registers there are.
_TILES = {32: (4, 2), 16: (2, 2)}
#: Columns side by side for a single row: so many streams the processor prefetches.
_STREAMS = 4
#: Nanoseconds of a product of one activation and one weight, about.
_PRODUCT_NS = 0.01


@dataclasses.dataclass(frozen=True)
class QuantizedSchedule:
    """The schedule of a product with weights of few bits.

    Attributes:
        lanes: Elements of f32 in a vector.
        blocks: Blocks of 32 in a step.
        rows: Rows of activations that a kernel multiplies at once.
        columns: Columns side by side.
        nc: Columns in a chunk, the unit of threads.
        brief: Whether it is over so soon that no thread is to be woken for it.
        dots: How bytes are multiplied; empty where activations stay floats.
        fma: Whether products are fused with their addition.
        half: Whether f16 becomes f32 in one instruction.
    """

    lanes: int
    blocks: int
    rows: int
    columns: int
    nc: int
    brief: bool
    dots: str
    fma: bool
    half: bool

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, for people."""
        how = {
            FOUR: "four products of bytes at a time",
            TWO: "two products of 16 bits at a time",
            ONE: "one product of 32 bits at a time",
            "": "in f32",
        }
        return chosen(
            ("weights", "as they lie", "memory is read once, and from one end to the other"),
            ("tile", f"{self.rows} x {self.columns}", "rows of activations share what weights become"),
            ("step", f"{self.blocks * BLOCK} elements", "whole vectors of weights"),
            ("products", how[self.dots], "what the processor has, and activations are"),
            ("chunk", f"{self.nc} columns", "what threads share"),
        )


def quantized_schedule(
    format: str, shape: tuple[int, int, int], *, integers: bool, target: Target
) -> QuantizedSchedule:
    """Return the schedule of a product.

    Args:
        format: The format of the weights.
        shape: Rows of activations, rows of weights, and elements that are summed over.
        integers: Whether activations become integers of 8 bits.
        target: The processor.
    """
    rows, columns, depth = shape
    dots = _dots(target) if integers else ""
    lanes, blocks = target.lanes(32), 1
    if integers:
        lanes, blocks = _step(format, depth // BLOCK, lanes, dots)
    most_rows, most_columns = _TILES.get(target.vector_registers, _TILES[16])
    row_bytes = depth * FORMATS[format].bits // 8
    nanoseconds = columns * max(row_bytes * BYTE_NS, depth * rows * _PRODUCT_NS)
    cut = split(columns, nanoseconds, multiple=_STREAMS)
    return QuantizedSchedule(
        lanes=lanes,
        blocks=blocks,
        rows=min(rows, most_rows),
        columns=_STREAMS if rows == 1 else most_columns,
        nc=cut.step,
        brief=cut.brief,
        dots=dots,
        fma=target.fma,
        half=target.half,
    )


def _dots(target: Target) -> str:
    if target.integer_dots and target.vector_bytes >= 32:
        return FOUR
    return TWO if target.machine == X86_64 else ONE


def _step(format: str, blocks: int, lanes: int, dots: str) -> tuple[int, int]:
    """Return the lanes of a vector of integers, and the blocks in a step, of which there is one at least."""
    several = 2 if FORMATS[format].bits == 8 else 4
    if lanes == 16 and dots == FOUR and blocks >= several:
        return 16, several
    return min(lanes, 8), 1
