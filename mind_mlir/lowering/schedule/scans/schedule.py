"""What a scan is: what is combined along which axis, in which direction; and how it is computed, as data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from mind_mlir.lowering.emission.constants import FEWEST_SHARED
from mind_mlir.lowering.emission.decision import Choice, chosen
from mind_mlir.lowering.emission.split import Split, split
from mind_mlir.lowering.schedule.kind import ViewNest
from mind_mlir.lowering.schedule.linalg_view.values import filler
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.memory import element_bytes
from mind_mlir.mlir.values import definition, terminator_of
from mind_mlir.ops.scan_lowering import EXCLUSIVE, REVERSE, SCAN_ATTRIBUTE
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target.rates import REFERENCE

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.kind import Site
    from mind_mlir.mlir.bindings import Operation, Type, Value
    from mind_mlir.target import Target


@dataclass(frozen=True)
class Scan(ViewNest):
    """Combinations of the elements along an axis up to each one.

    Attributes:
        combiner: What combines two elements.
        casts: What elements are converted by before that, one after the other.
        casts_back: What is found is converted by.
        neutral: The element that changes nothing, a scalar.
        exclusive: Whether an element is not part of its own result.
        reverse: Whether it begins with the last element.
    """

    combiner: Operation
    casts: tuple[Operation, ...]
    casts_back: tuple[Operation, ...]
    neutral: Value
    exclusive: bool
    reverse: bool

    @property
    def extents(self) -> tuple[int, ...]:
        """The tensors beside one another, the axis, and where there are some, elements beside one another."""
        return self.view.shapes[0]

    @property
    def inner(self) -> int | None:
        """The elements beside one another that are scanned alike; None where the axis is the last one."""
        return self.extents[2] if len(self.extents) > 2 else None

    @property
    def size(self) -> int:
        """The bytes of an element that is combined."""
        return element_bytes(self.combined)

    @property
    def combined(self) -> Type:
        """The type of what is combined."""
        return self.combiner.results[0].type

    @property
    def rounds(self) -> bool:
        """Whether combining two elements rounds."""
        return self.combiner.name in ("arith.addf", "arith.mulf")


def match_scan(site: Site) -> Scan | None:
    """Return the operation as a scan if it is marked as one."""
    view = site.view
    if view is None or SCAN_ATTRIBUTE not in view.op.attributes:
        return None
    flags = str(ir.StringAttr(view.op.attributes[SCAN_ATTRIBUTE]).value).split()
    chosen = definition(terminator_of(view.body).operands[0])
    assert chosen is not None, "a scan that is marked chooses what is before each element"
    casts_back, combiner = _casts(chosen.operands[1])
    neutral = filler(view.inits[0])
    assert combiner is not None, "a scan that is marked combines two elements"
    assert neutral is not None, "a scan that is marked begins with a number"
    casts, _ = _casts(combiner.operands[1])
    return Scan(view, combiner, casts, casts_back, neutral, EXCLUSIVE in flags, REVERSE in flags)


def _casts(value: Value) -> tuple[tuple[Operation, ...], Operation | None]:
    """Return the conversions that ``value`` is made by, in order, and what computes what they convert."""
    casts: list[Operation] = []
    while (op := definition(value)) is not None and len(op.operands) == 1:
        casts.insert(0, op)
        value = op.operands[0]
    return tuple(casts), op


#: So many steps are combined one after the other, at most, where that rounds: then they are one step of the
#: next level. Together with the blocks of threads that is fewer than `ops/accumulation.py` allows.
LEVEL = 128
#: Vectors that are combined side by side: while one waits for a sum, others are computed.
BESIDE = 4
#: The bytes of a vector along an axis, at most: one of 64 takes a shuffle more, and 1024 x 1024 of
#: f32 along the last axis 209 us rather than 174, where 512 bits are computed in halves.
_ALONG_BYTES = 32
#: The bytes of a vector of narrow elements along an axis, with AVX-512 and without: shuffles within so many
#: take one instruction. 304 rows of 712 bytes take 9.5 us rather than 14.
_NARROW_BYTES = 32, 16


@dataclass(frozen=True)
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
        narrow = _NARROW_BYTES[0 if target.masks else 1]
        lanes = min(lanes, (_ALONG_BYTES if scan.size >= 4 else narrow) // scan.size)
        vectors, steps = 0, -(-length // lanes)
    else:
        vectors, steps = min(BESIDE, -(-inner // lanes)), length
    nanoseconds = 2 * math.prod(scan.extents) * scan.size * REFERENCE.byte_ns
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
