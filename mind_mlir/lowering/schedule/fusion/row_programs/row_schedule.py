"""Schedules of row programs, as data: chosen from their work and the target alone.

Rows that the cache holds are computed in blocks of a few, one pass after the other. Rows that it does not
hold are computed in stages, each of which goes along the row once, segment by segment.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission import constants
from mind_mlir.lowering.emission.decision import Choice, chosen
from mind_mlir.lowering.emission.split import Split
from mind_mlir.lowering.schedule.fusion.nests.schedule import Cut, FusedSchedule, streams, vectors
from mind_mlir.lowering.schedule.fusion.nests.work import read_by
from mind_mlir.lowering.schedule.fusion.row_programs.passes import Passes, passes_of
from mind_mlir.lowering.schedule.fusion.row_programs.relative import Stage, stages_of
from mind_mlir.lowering.schedule.fusion.row_programs.row_work import RowWork, pays
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.mlir.bindings import Value
    from mind_mlir.target import Target


@dataclass(frozen=True)
class SegmentSchedule:
    """How a stage goes along a long row.

    Attributes:
        passes: How each of the passes that go along it together is computed.
        size: Elements of a segment, of which the row has numbers of their own; passes go over it one by one.
        split: How the whole segments of a row are cut in chunks; one chunk where threads share the rows.
    """

    passes: tuple[FusedSchedule, ...]
    size: int
    split: Split


@dataclass(frozen=True)
class RowProgramSchedule(FusedSchedule):
    """The schedule of a row program: how the rows are cut in chunks, if they are what threads share.

    Attributes:
        passes: How each pass over a row is computed, and, as the reason, what it does.
        segments: How each stage goes along long rows; none where rows are computed in blocks.
        block: Rows that a pass runs over before the next one does, a power of two.
        apart: Whether what there is one of for each row is computed for many rows at a time.
        prefetch_pass: Which pass prefetches rows that the first one reads in a while; -1: none does.
        pipelined: Whether the last pass over a block runs after the first over the next.
        summed: Rows that are reduced to one partial result, where all are reduced to one; else 0.
    """

    passes: tuple[FusedSchedule, ...] = ()
    segments: tuple[SegmentSchedule, ...] = ()
    block: int = 1
    apart: bool = False
    prefetch_pass: int = -1
    pipelined: bool = False
    summed: int = 0

    @property
    def kind(self) -> str:
        """The name of such nests in listings."""
        return "long rows" if self.segments else "rows"

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, for people."""
        found = list[Choice]()
        steps = [each.passes for each in self.segments] or [(each,) for each in self.passes]
        for number, step in enumerate(steps, 1):
            value = ", ".join(f"{each.vectors} x {each.lanes}" for each in step)
            name = f"{'stage' if self.segments else 'pass'} {number}"
            found.append(Choice(name, value, ", ".join(each.reason for each in step if each.reason)))
        chunks = next((each.value, each.reason) for each in super().choices() if each.name == "chunks")
        if self.segments and not self.cuts:
            counts = ", ".join(str(each.split.count) for each in self.segments)
            chunks = counts, f"of each row: {self.segments[0].split.reason}"
        sizes = ", ".join(str(each.size) for each in self.segments[:-1])
        blocks, summed = (f"of {count} row{'s' * (count > 1)}" for count in (self.block, self.summed))
        past = any(schedule.streaming for schedule in self.passes)
        return (
            *found,
            *chosen(
                bool(self.segments)
                and ("pieces", f"of {sizes}", "what is reduced of them is joined behind each stage"),
                not self.segments and ("blocks", blocks, "passes find them in the first-level cache"),
                self.pipelined and ("order", "last pass after the next first", "no pass waits for a number"),
                ("chunks", *chunks),
                self.summed > 0 and ("partial sums", summed, "they are joined afterwards"),
                self.prefetch_pass >= 0
                and ("prefetch", f"in pass {self.prefetch_pass + 1}", "memory answers late"),
                past and ("stores", "past the cache", "the results are larger than it"),
            ),
        )


def choose_rows(
    group: Group, results: Sequence[Value], target: Target
) -> tuple[Passes, RowProgramSchedule] | None:
    """Return the passes of a row program and how they are computed; None if it is not to be one nest."""
    passes = passes_of(group, results)
    if len(passes.passes) < 2:
        return None
    work = RowWork(group, passes, results, target)
    # Whether the second-level cache holds what is touched of a row.
    if work.touched_bytes * constants.ROW_SHARE <= target.l2_bytes:
        schedule = _in_blocks(work)
    else:
        work = RowWork(group, passes_of(group, results, long=True), results, target)
        schedule = _in_segments(work)
    return None if schedule is None else (work.passes, schedule)


def _in_blocks(work: RowWork) -> RowProgramSchedule | None:
    """Return how rows are computed that the cache holds."""
    rows, group, passes, target = work.rows, work.group, work.passes, work.target
    if rows is None:
        return None
    # Rows of a chunk that lie behind one another.
    most = 1
    if group.vector:
        cut = rows.cut(group.vector - 1)
        most = _power_of_two(group.extents[group.vector - 1] if cut is None else cut.step)
    block = min(_power_of_two(target.l1_bytes // constants.BLOCK_SHARE // work.touched_bytes), most)
    costly, alike = work.has_costly_scalars, work.has_alike_scalars
    if costly and alike:
        block = min(max(block, constants.FEW_SINGLES), most)
    apart = block >= constants.FEW_SINGLES and alike
    if costly and not apart:
        return None
    far = work.whole.bytes > target.l2_bytes and work.whole.row_bytes >= constants.PREFETCH_ROW
    pipelined = block < most
    costs = [each.operations for each in work.each]
    return RowProgramSchedule(
        **vars(rows),
        passes=_pass_schedules(work),
        block=block,
        apart=apart,
        prefetch_pass=costs.index(max(costs if pipelined else costs[:-1])) if far else -1,
        pipelined=pipelined,
        summed=min(constants.SUMMED_ROWS, most) if passes.summed else 0,  # no chunk has a part of them
    )


def _in_segments(work: RowWork) -> RowProgramSchedule | None:
    """Return how long rows are computed; None if they are better left to groups."""
    passes, group = work.passes, work.group
    if passes.kept or passes.summed:
        return None
    stages = stages_of(passes)
    rows, nanoseconds = work.rows, work.row_nanoseconds
    if (rows is None and nanoseconds < constants.WORTHWHILE_NS) or not pays(work, stages):
        return None
    left = iter(_pass_schedules(work))
    segments: list[SegmentSchedule] = []
    for stage in stages:
        own = list(itertools.islice(left, len(stage.passes)))
        if stage.is_online:
            own = [dataclasses.replace(each, vectors=constants.ONLINE_VECTORS) for each in own]
        size = _segment(work, stage, max(each.width for each in own))
        count = max(1, work.extent // size)
        split = Split(count, 1, "threads share the rows") if rows is not None else _split(count, work)
        cuts = (Cut(group.vector, size, count),)
        segments.append(
            SegmentSchedule(tuple(dataclasses.replace(each, cuts=cuts) for each in own), size, split)
        )
    plain = FusedSchedule(work.lanes, reason="threads share each row")
    each_pass = tuple(itertools.chain.from_iterable(each.passes for each in segments))
    return RowProgramSchedule(**vars(rows or plain), passes=each_pass, segments=tuple(segments))


def _pass_schedules(work: RowWork) -> tuple[FusedSchedule, ...]:
    """Return how each pass goes along a row."""
    found = []
    for each, part in zip(work.each, work.passes.passes, strict=True):
        past = not part.summed and streams(each, work.target)
        count = vectors(each, work.lanes, work.target, streaming=past)
        summary = part.summary(work.passes.kept)
        found.append(FusedSchedule(work.lanes, count, streaming=past, reason=summary))
    return tuple(found)


def _segment(work: RowWork, stage: Stage, width: int) -> int:
    """Return the elements of a segment: what a stage reads of it takes a part of the first-level cache."""
    if stage.is_online:
        return width * constants.ONLINE_STEPS
    members = [view for part in stage.passes for view in part.members]
    read = max(1, work.row_bytes(read_by(members, work.group.produced)))
    return max(width, _power_of_two(work.target.l1_bytes // constants.SEGMENT_SHARE * work.extent // read))


def _split(count: int, work: RowWork) -> Split:
    """Return how ``count`` segments of a row are cut in chunks."""
    nanoseconds = work.row_nanoseconds
    wanted = max(constants.FEWEST_CHUNKS, work.whole.row_bytes // constants.CHUNK_BYTES)
    step = _power_of_two(count // min(constants.MOST_FUSED_CHUNKS, wanted))
    about = f"about {nanoseconds / 1000:.1f} us of work"
    return Split(step, -(-count // step), about, nanoseconds < constants.WAKING_NS)


def _power_of_two(count: int) -> int:
    """Return the greatest power of two up to ``count``; one at least."""
    return 1 << (max(1, count).bit_length() - 1)
