"""How a scan is computed, as data, and how that is chosen."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Literal

from mind_mlir.lowering.emission.constants import BYTE_NS, FEWEST_SHARED
from mind_mlir.lowering.emission.decision import Choice, chosen
from mind_mlir.lowering.emission.split import Split, split

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.scans.match import Scan
    from mind_mlir.target import Target

#: So many steps are combined one after the other, at most, where that rounds: then they are one step of the
#: next level. Together with the blocks of threads that is fewer than `ops/accumulation.py` allows.
LEVEL = 128
#: Vectors that are combined side by side: while one waits for a sum, others are computed.
BESIDE = 4
#: The bytes of a vector along an axis, at most: one of 64 takes a shuffle more, and 1024 x 1024 of
#: f32 along the last axis 209 us rather than 174, where 512 bits are computed in halves.
_ALONG_BYTES = 32
#: The bytes of a vector of narrow elements along an axis: shuffles within so many take one instruction.
_NARROW_BYTES = 16


@dataclasses.dataclass(frozen=True)
class ScanSchedule:
    """The schedule of a scan.

    Attributes:
        lanes: The elements of a vector: along the axis where that is the last one, else across it.
        vectors: The vectors that are scanned side by side.
        steps: The steps along the axis: vectors of it, or single elements.
        cut: What threads share: the ``rows``, the ``columns`` across the axis, or ``blocks`` of the axis.
        split: How that is split.
        levels: In how many levels steps are combined.
    """

    lanes: int
    vectors: int
    steps: int
    cut: Literal["rows", "columns", "blocks"]
    split: Split
    levels: int

    @property
    def width(self) -> int:
        """The elements across the axis that are scanned side by side."""
        return self.lanes * self.vectors

    @property
    def blocks(self) -> int:
        """The blocks that the axis is cut in."""
        return self.split.count if self.cut == "blocks" else 1

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, and why."""
        along = "neighbours along the axis" if self.vectors == 0 else "elements beside one another"
        return chosen(
            ("vectors", f"{max(self.vectors, 1)} x {self.lanes}", along),
            self.levels > 1
            and ("levels", str(self.levels), f"errors grow with {LEVEL} steps and their logarithm"),
            ("chunks", f"{self.split.count} {self.cut}", self.split.reason),
            self.blocks > 1 and ("totals", f"{self.blocks}", "of all blocks, before these are scanned"),
        )


def choose_scan_schedule(scan: Scan, target: Target) -> ScanSchedule:
    """Return how to compute ``scan``."""
    rows, length = scan.extents[:2]
    lanes, inner = target.lanes(8 * scan.size), scan.inner
    if inner is None:
        lanes = min(lanes, _ALONG_BYTES // scan.size) if scan.size >= 4 else _NARROW_BYTES // scan.size
        vectors, steps = 0, -(-length // lanes)
    else:
        vectors, steps = min(BESIDE, -(-inner // lanes)), length
    nanoseconds = 2 * math.prod(scan.extents) * scan.size * BYTE_NS
    cut: Literal["rows", "columns", "blocks"] = "blocks"
    if rows >= FEWEST_SHARED or steps < FEWEST_SHARED:
        cut, shared = "rows", split(rows, nanoseconds)
    elif inner is not None and inner >= FEWEST_SHARED * lanes * vectors:
        cut, shared = "columns", split(inner, nanoseconds, multiple=lanes * vectors)
    else:
        shared = split(steps, nanoseconds / rows)
    together = shared.step if cut == "blocks" else steps
    levels = 1
    while scan.rounds and LEVEL**levels < together:
        levels += 1
    return ScanSchedule(lanes, vectors, steps, cut, shared, levels)
