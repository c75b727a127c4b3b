"""Schedules of row programs, as data: chosen from their work and the target alone."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Generic, TypeVar

from mind_mlir.lowering.schedule.emission.constants import (
    BLOCK_SHARE,
    FEW_SINGLES,
    PREFETCH_ROW,
    ROW_SHARE,
    SINGLE_COST,
    SUMMED_ROWS,
)
from mind_mlir.lowering.schedule.emission.decision import Choice, chosen
from mind_mlir.lowering.schedule.fusion.groups.group import Group, widest
from mind_mlir.lowering.schedule.fusion.nests.schedule import FusedSchedule, chunked, streams, vectors
from mind_mlir.lowering.schedule.fusion.nests.work import Work, bytes_of, operations_of, read_by
from mind_mlir.lowering.schedule.linalg_view.values import filler
from mind_mlir.mlir.bindings import Value, ir
from mind_mlir.mlir.locations import label_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.lowering.schedule.fusion.nests.body import Output
    from mind_mlir.lowering.schedule.fusion.row_programs.passes import Pass, Passes
    from mind_mlir.target import Target


@dataclasses.dataclass(frozen=True)
class RowSchedule:
    """The schedule of a row program.

    Attributes:
        rows: How the rows are cut in chunks.
        block: Rows that a pass runs over before the next one does, a power of two.
        passes: How each pass over a row is computed.
        vectors: Whether what there is one of for each row is computed for many rows at a time.
        prefetch_pass: Which pass prefetches rows that the first one reads in a while; -1: none does.
        pipelined: Whether the last pass over a block runs after the first over the next.
        summaries: What each pass does, for people.
        summed: Rows that are reduced to one partial result, where all are reduced to one; else 0.
    """

    rows: FusedSchedule
    block: int
    passes: tuple[FusedSchedule, ...]
    vectors: bool
    prefetch_pass: int
    pipelined: bool
    summaries: tuple[str, ...]
    summed: int = 0

    @property
    def kind(self) -> str:
        """The name of such nests in listings."""
        return "rows"

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, for people."""
        passes = enumerate(zip(self.passes, self.summaries, strict=True), 1)
        *_, chunks = (choice for choice in self.rows.choices() if choice.name == "chunks")
        blocks, summed = (f"of {count} row{'s' * (count > 1)}" for count in (self.block, self.summed))
        return (
            *(Choice(f"pass {n}", f"{each.vectors} x {each.lanes}", text) for n, (each, text) in passes),
            *chosen(
                ("blocks", blocks, "passes find them in the first-level cache"),
                self.pipelined and ("order", "last pass after the next first", "no pass waits for a number"),
            ),
            chunks,
            *chosen(
                self.summed > 0 and ("partial sums", summed, "they are joined afterwards"),
                self.prefetch_pass >= 0
                and ("prefetch", f"in pass {self.prefetch_pass + 1}", "memory answers late"),
                any(schedule.streaming for schedule in self.passes)
                and ("stores", "past the cache", "the results are larger than it"),
            ),
        )


#: The schedule of a row program, over rows that the cache holds or over long ones.
ScheduleT = TypeVar("ScheduleT")


@dataclasses.dataclass(frozen=True)
class RowPlan(Generic[ScheduleT]):
    """A row program that is to be emitted.

    Attributes:
        group: All its operations; their rows lie along the last loop.
        passes: What is computed when.
        outputs: The results that are used outside of it.
        starts: The number that each reduction starts from, where that is known.
        schedule: How.
        target: The processor.
    """

    group: Group
    passes: Passes
    outputs: Sequence[Output]
    starts: Mapping[Value, Value]
    schedule: ScheduleT
    target: Target


def choose_row_schedule(
    group: Group, passes: Passes, results: Sequence[Value], target: Target
) -> RowSchedule | None:
    """Return how a row program is computed; None if its operations are not to be one nest."""
    if len(passes.passes) < 2:
        return None
    if is_long(group, passes, results, target):
        return None
    lanes = target.lanes(widest(group.members))
    works, whole = works_of(group, passes, results)
    touched, stored = whole.bytes, whole.stored
    row_bytes = _touched_bytes(group, passes, results)
    rows = chunked(whole, lanes, target)
    if rows is None:
        return None
    schedules = []
    for work, part in zip(works, passes.passes, strict=True):
        past = stored and not part.summed and streams(dataclasses.replace(work, bytes=touched), target)
        each = vectors(work, lanes, streaming=bool(past))
        schedules.append(
            dataclasses.replace(
                rows, vectors=each, cuts=(), parallel=False, brief=False, streaming=bool(past)
            )
        )
    summaries = tuple(summary_of(part, passes.kept) for part in passes.passes)
    most = _most(group, rows)
    block = min(power_of_two(target.l1_bytes // BLOCK_SHARE // row_bytes), most)
    costly = SINGLE_COST * sum(map(operations_of, passes.row_scalars)) > whole.operations * -(
        -group.extents[group.vector] // lanes
    )
    alike = _are_vectors(group, passes, results)
    if costly and alike:
        block = min(max(block, FEW_SINGLES), most)
    apart = block >= FEW_SINGLES and alike
    if costly and not apart:
        return None
    far = touched > target.l2_bytes and works[0].row_bytes >= PREFETCH_ROW
    pipelined = block < most
    costs = [work.operations for work in works]
    prefetch_pass = costs.index(max(costs if pipelined else costs[:-1])) if far else -1
    summed = _summed(group, rows) if passes.summed else 0
    return RowSchedule(rows, block, tuple(schedules), apart, prefetch_pass, pipelined, summaries, summed)


def is_long(group: Group, passes: Passes, results: Sequence[Value], target: Target) -> bool:
    """Return whether the second-level cache does not hold what a row program touches of a row."""
    return _touched_bytes(group, passes, results) * ROW_SHARE > target.l2_bytes


def _touched_bytes(group: Group, passes: Passes, results: Sequence[Value]) -> int:
    """Return the bytes that are read, written or kept of one row; one at least."""
    read = read_by(group.members, group.produced)
    return max(1, row_bytes_of(group, [*read, *results, *passes.kept]))  # none where all is one element


def works_of(group: Group, passes: Passes, results: Sequence[Value]) -> tuple[list[Work], Work]:
    """Return the work of each of ``passes``, and that of all of them."""
    bits = widest(group.members)
    works = [_work(group, part, bits, results) for part in passes.passes]
    whole = dataclasses.replace(
        works[0],
        reductions=(group.vector,),
        weight=sum(work.weight for work in works),
        operations=sum(work.operations for work in works),
        bytes=sum(map(bytes_of, [*read_by(group.members, group.produced), *results])),
        stored=sum(work.stored for work in works),
        sums=any(work.sums for work in works),
    )
    return works, whole


def _summed(group: Group, rows: FusedSchedule) -> int:
    """Return how many rows have partial sums in common: no chunk has a part of them."""
    cut = rows.cut(group.vector - 1)
    return min(SUMMED_ROWS, power_of_two(group.extents[group.vector - 1]) if cut is None else cut.step)


def _most(group: Group, rows: FusedSchedule) -> int:
    """Return how many rows of a chunk lie behind one another, a power of two, or so many as fit one."""
    if group.vector == 0:
        return 1
    cut = rows.cut(group.vector - 1)
    return power_of_two(group.extents[group.vector - 1] if cut is None else cut.step)


def power_of_two(count: int) -> int:
    """Return the greatest power of two up to ``count``; one at least."""
    return 1 << (max(1, count).bit_length() - 1)


def _are_vectors(group: Group, passes: Passes, results: Sequence[Value]) -> bool:
    """Return whether the numbers of several rows may be computed as vectors in memory of a block alone.

    Lanes behind the last row of a block hold anything: integers could not be divided by them.
    """
    row_scalars = passes.row_scalars
    if any(result in results for view in row_scalars for result in view.op.results):
        return False
    outside = [
        access
        for view in row_scalars
        for value, access in zip(view.inputs, view.accesses, strict=False)
        if value not in group.produced and filler(value) is None
    ]
    if any(index.terms for access in outside for index in access):
        return False
    types = [argument.type for view in row_scalars for argument in view.body.arguments]
    return all(isinstance(type_, ir.FloatType) for type_ in types)


def row_bytes_of(group: Group, values: Sequence[Value]) -> int:
    """Return the bytes of one row of those of ``values`` that have rows."""
    elements = math.prod(group.extents)
    types = [value.type for value in values]
    along = [
        value
        for value, type_ in zip(values, types, strict=True)
        if isinstance(type_, ir.RankedTensorType) and math.prod(type_.shape) == elements
    ]
    return sum(map(bytes_of, along)) * group.extents[group.vector] // elements


def _work(group: Group, part: Pass, bits: int, results: Sequence[Value]) -> Work:
    written = [value for value in part.stored if value in results]
    return Work(
        group.extents,
        group.vector,
        (group.vector,) if part.reduced else (),
        bits,
        sum(len(view.body.operations) - 1 for view in part.members),
        sum(operations_of(view) for view in part.members),
        0,
        sum(map(bytes_of, written)),
        sums=any(view.reductions for view in part.members),
    )


def summary_of(part: Pass, kept: Sequence[Value]) -> str:
    """Return what ``part`` does with a row, as text; ``kept`` is what is no result."""
    names = [label_of(view.op.location) or "a value" for view in part.reduced]
    found = [f"reduces {' and '.join(names)}"] if names else []
    names = [label_of(view.op.location) or "a value" for view in part.summed]
    found += [f"sums {' and '.join(names)} over the rows"] if names else []
    for verb, values in (
        ("keeps", [value for value in part.stored if value in kept]),
        ("stores", [value for value in part.stored if value not in kept]),
        ("reads again", part.loaded),
    ):
        names = [label_of(value.owner.location) or "a value" for value in values]
        if names:
            found.append(f"{verb} {' and '.join(names)}")
    return ", ".join(found)
