"""Schedules of products with weights of few bits, chosen by shape, format and target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import LINE, WAKING_NS
from mind_mlir.lowering.emission.decision import Choice, chosen
from mind_mlir.lowering.emission.split import split
from mind_mlir.lowering.kernels.quantized import FOUR, ONE, TWO
from mind_mlir.lowering.schedule.contraction import costs
from mind_mlir.lowering.schedule.contraction.schedule import instructions
from mind_mlir.ops.quantized_formats import BLOCK
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target.record import X86_64

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.quantized.marked import QuantizedProduct
    from mind_mlir.target import Target
    from mind_mlir.target.rates import Rates


@dataclass(frozen=True)
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
        masks: Whether vectors at edges are masked.
        ahead: How many bytes ahead memory is asked for, if it is.
        panels: Blocks of a chunk that are packed at once, if they are.
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
    masks: bool
    ahead: int = 0
    panels: int = 0

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, for people."""
        how = {
            FOUR: "four products of bytes at a time",
            TWO: "two products of 16 bits at a time",
            ONE: "one product of 32 bits at a time",
            "": "in f32",
        }
        packed = f"packed, {self.panels * BLOCK} elements of each column at a time"
        return chosen(
            ("weights", packed, "what tiles read again and again stays in the second-level cache")
            if self.panels
            else ("weights", "as they lie", "memory is read once, and from one end to the other"),
            ("tile", f"{self.rows} x {self.columns}", "rows of activations share what weights become"),
            not self.panels and ("step", f"{self.blocks * BLOCK} elements", "whole vectors of weights"),
            ("products", how[self.dots], "what the processor has, and activations are"),
            ("chunk", f"{self.nc} columns", "what threads share"),
        )


def quantized_schedule(product: QuantizedProduct, target: Target) -> QuantizedSchedule:
    """Return the schedule of a product with weights of few bits."""
    (rows, columns, depth), integers = product.extents, product.integers
    dots = _dots(target) if integers else ""
    row_bytes = depth * product.format.bits // 8
    nanoseconds = columns * max(row_bytes * target.rates.byte_ns, depth * rows * costs.FEW_BIT_NS)
    in_bytes = dots == FOUR and target.masks and target.lanes(32) == 16
    fewest = costs.BYTE_PANELS_FROM if in_bytes else costs.FLOAT_PANELS_FROM
    if rows >= fewest and (in_bytes or not integers):
        return _panels(product, nanoseconds, dots, target)
    lanes, blocks = target.lanes(32), 1
    if integers:
        lanes, blocks = _step(product, lanes, dots)
    most_rows, most_columns = costs.FEW_BIT_TILES.get(target.vector_registers, costs.FEW_BIT_TILES[16])
    streams = min(columns, costs.STREAMS if rows == 1 else most_columns)
    cut = split(columns // streams, nanoseconds)
    return QuantizedSchedule(
        lanes=lanes,
        blocks=blocks,
        rows=min(rows, most_rows),
        columns=streams,
        nc=cut.step,
        brief=cut.brief,
        dots=dots,
        ahead=_ahead(target.rates) if rows == 1 else 0,
        **instructions(target),
    )


def _ahead(rates: Rates) -> int:
    """Return how many bytes ahead each stream of weights is asked for: what it reads until memory answers.

    Processors notice late that a row follows the one before.
    """
    return max(1, int(rates.latency_ns / rates.byte_ns / costs.STREAMS / LINE)) * LINE


def _panels(product: QuantizedProduct, nanoseconds: float, dots: str, target: Target) -> QuantizedSchedule:
    """Return the schedule of a product of many rows, by packed weights."""
    floats = costs.FLOAT_TILES.get(target.vector_registers, costs.FLOAT_TILES[16])
    rows, vectors = costs.INTEGER_TILE if dots else floats
    blocks, most = product.depth // BLOCK, costs.INTEGER_BLOCKS if dots else costs.FLOAT_BLOCKS
    return QuantizedSchedule(
        lanes=target.lanes(32),
        blocks=1,
        rows=rows,
        columns=vectors * target.lanes(32),
        nc=min(costs.PANEL_COLUMNS, product.columns),
        brief=nanoseconds < WAKING_NS,
        dots=dots,
        panels=-(-blocks // -(-blocks // most)),
        **instructions(target),
    )


def _dots(target: Target) -> str:
    if target.integer_dots and target.vector_bytes >= 32:
        return FOUR
    return TWO if target.machine == X86_64 else ONE


def _step(product: QuantizedProduct, lanes: int, dots: str) -> tuple[int, int]:
    """Return the lanes of a vector of integers, and the blocks in a step, of which there is one at least."""
    several = 2 if product.format.bits == 8 else 4
    if lanes == 16 and dots == FOUR and product.depth // BLOCK >= several:
        return 16, several
    return min(lanes, 8), 1
