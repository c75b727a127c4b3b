"""Stages of row programs over long rows, and their schedules, as data: each goes once along a row.

Schedules are chosen from their work and the target alone. Groups keep what one of them computes along the
row, and another one reads, in memory; each reads its operands anew. Stages compute such values again instead,
and some have two passes that read the same: a program is only computed in stages where that takes less time
than moving what groups would keep.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.constants import (
    BYTE_NS,
    CACHE_SPEEDUP,
    CHUNK_BYTES,
    FEWEST_CHUNKS,
    MOST_FUSED_CHUNKS,
    ONLINE_STEPS,
    ONLINE_VECTORS,
    RELATIVE_COST,
    SEGMENT_SHARE,
    SHARED_CACHE_SPEEDUP,
    VECTOR_NS,
    WAKING_NS,
    WORTHWHILE_NS,
)
from mind_mlir.lowering.schedule.emission.decision import Choice, chosen
from mind_mlir.lowering.schedule.emission.split import Split
from mind_mlir.lowering.schedule.fusion.groups.group import Group, widest
from mind_mlir.lowering.schedule.fusion.groups.row_program import RowSpace
from mind_mlir.lowering.schedule.fusion.nests.schedule import Cut, FusedSchedule, chunked, streams, vectors
from mind_mlir.lowering.schedule.fusion.nests.work import Work, bytes_of, read_by
from mind_mlir.lowering.schedule.fusion.row_programs.passes import Pass, Passes, cost_of
from mind_mlir.lowering.schedule.fusion.row_programs.relative import Kind, Relative, relative_sums
from mind_mlir.lowering.schedule.fusion.row_programs.row_schedule import (
    power_of_two,
    row_bytes_of,
    summary_of,
    works_of,
)

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.mlir.bindings import Value
    from mind_mlir.target import Target


@dataclasses.dataclass(frozen=True)
class Stage:
    """Passes that go along a row together.

    Attributes:
        passes: One or two; the second reduces nothing but sums relative to what the first one reduces.
        relative: These sums.
    """

    passes: tuple[Pass, ...]
    relative: tuple[Relative, ...] = ()

    @property
    def reduces(self) -> bool:
        """Return whether any pass reduces anything."""
        return any(part.reduced for part in self.passes)

    @property
    def is_online(self) -> bool:
        """Return whether exponentials are summed that are relative to the maximum so far."""
        return any(each.kind is Kind.EXPONENTIALS for each in self.relative)

    @property
    def members(self) -> list[View]:
        """The operations that are computed along the row."""
        return [view for part in self.passes for view in part.members]

    @property
    def stored(self) -> list[Value]:
        """Values along the row that go to memory."""
        return [value for part in self.passes for value in part.stored]


def stages_of(passes: Passes, produced: Mapping[Value, View]) -> tuple[Stage, ...]:
    """Return the stages of a row program, as few as possible.

    Args:
        passes: What it computes in each pass over a row.
        produced: Which member computes each value.
    """
    stages: list[Stage] = []
    left = list(passes.passes)
    while left:
        first = left.pop(0)
        relative = _relative(first, left[0], produced) if left else None
        if relative is None:
            stages.append(Stage((first,)))
        else:
            stages.append(Stage((first, left.pop(0)), relative))
    return tuple(stages)


def _relative(first: Pass, second: Pass, produced: Mapping[Value, View]) -> tuple[Relative, ...] | None:
    """Return the sums of ``second`` if it may go along a row together with ``first``."""
    if second.stored or not second.reduced or not first.reduced:
        return None
    numbers = {result for view in (*first.reduced, *first.row_scalars) for result in view.op.results}
    found = relative_sums(second.reduced, first.reduced, produced, numbers)
    online = found is not None and any(each.kind is Kind.EXPONENTIALS for each in found)
    return None if online and first.stored else found


def pays(
    group: Group,
    passes: Passes,
    stages: Sequence[Stage],
    results: Container[Value],
    whole: Work,
    target: Target,
    *,
    by_rows: bool,
) -> bool:
    """Return whether stages take less time than groups, for all that is known.

    Args:
        group: All operations of a row program; their rows lie along the last loop.
        passes: What is computed when.
        stages: Which passes go along a row together.
        results: The results that are used outside of it.
        whole: The work of all passes.
        target: The processor.
        by_rows: Whether groups would go through a few rows one after the other.
    """
    again, kept = _again(group, passes, results)
    joined = [stage for stage in stages if stage.relative]
    again += RELATIVE_COST * len(joined)
    read = [row_bytes_of(group, read_by(stage.passes[1].members, group.produced)) for stage in joined]
    # A line that is written is read first.
    saved = sum(read) / group.extents[group.vector] + 2 * sum(kept)
    rate = BYTE_NS
    row_bytes = whole.bytes * group.extents[group.vector] // math.prod(group.extents)
    if 2 * whole.bytes <= target.l3_bytes:
        rate /= CACHE_SPEEDUP
    elif by_rows and 2 * row_bytes <= target.l3_bytes:
        rate /= SHARED_CACHE_SPEEDUP
    return again * VECTOR_NS / target.lanes(widest(group.members)) < saved * rate


def _again(group: Group, passes: Passes, results: Container[Value]) -> tuple[int, list[int]]:
    """Return the operations that passes do again, and the bytes of an element of each value kept for them."""
    space = RowSpace(group.extents, group.reductions)
    first: dict[int, int] = {}
    again = 0
    kept: dict[Value, int] = {}
    for number, part in enumerate(passes.passes):
        along = [view for view in part.members if not view.reductions and not space.is_single(view)]
        again += sum(cost_of(view) for view in along if first.setdefault(id(view), number) < number)
        new = [view for view in part.members if first.get(id(view), number) == number]
        for value in (value for view in new for value in _inputs(view)):
            source = group.produced.get(value)
            if first.get(id(source), number) < number and value not in results:
                kept[value] = bytes_of(value) // math.prod(group.extents)
    return again, list(kept.values())


def _inputs(view: View) -> list[Value]:
    return [value for number, value in enumerate(view.inputs) if view.used(number)]


@dataclasses.dataclass(frozen=True)
class StageSchedule:
    """The schedule of a stage.

    Attributes:
        passes: How each of its passes is.
        segment: Elements of a row of which it has numbers of their own; passes go over a segment one by one.
        split: How the whole segments of a row are cut in chunks; one chunk where threads share the rows.
        summary: What it does, for people.
    """

    passes: tuple[FusedSchedule, ...]
    segment: int
    split: Split
    summary: str


@dataclasses.dataclass(frozen=True)
class LongSchedule:
    """The schedule of a row program over long rows.

    Attributes:
        rows: How the rows are cut in chunks, if they are what threads share.
        stages: How each stage is computed.
    """

    rows: FusedSchedule
    stages: tuple[StageSchedule, ...]

    @property
    def kind(self) -> str:
        """The name of such nests in listings."""
        return "long rows"

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, for people."""
        found = [
            Choice(
                f"stage {number}",
                ", ".join(f"{schedule.vectors} x {schedule.lanes}" for schedule in stage.passes),
                stage.summary,
            )
            for number, stage in enumerate(self.stages, 1)
        ]
        segments = ", ".join(str(stage.segment) for stage in self.stages[:-1])
        found += chosen(("pieces", f"of {segments}", "what is reduced of them is joined behind each stage"))
        if self.rows.cuts:
            *_, chunks = (choice for choice in self.rows.choices() if choice.name == "chunks")
            found.append(chunks)
        else:
            counts = ", ".join(str(stage.split.count) for stage in self.stages)
            found += chosen(("chunks", counts, f"of each row: {self.stages[0].split.reason}"))
        past = any(schedule.streaming for stage in self.stages for schedule in stage.passes)
        found += chosen(past and ("stores", "past the cache", "the results are larger than it"))
        return tuple(found)


def choose_long_schedule(
    group: Group, passes: Passes, stages: Sequence[Stage], results: Sequence[Value], target: Target
) -> LongSchedule | None:
    """Return how a row program over long rows is computed; None if it is better left to groups."""
    if len(passes.passes) < 2 or passes.kept or passes.summed:
        return None
    lanes = target.lanes(widest(group.members))
    works, whole = works_of(group, passes, results)
    rows = chunked(whole, lanes, target)
    nanoseconds = whole.nanoseconds(target) * group.extents[group.vector] / math.prod(group.extents)
    if rows is None and nanoseconds < WORTHWHILE_NS:
        return None
    if not pays(group, passes, stages, results, whole, target, by_rows=rows is not None):
        return None
    plain = FusedSchedule(
        lanes, 1, 0, (), None, parallel=False, brief=False, streaming=False, reason="threads share each row"
    )
    left = iter(works)
    found = []
    for stage in stages:
        own = [next(left) for _ in stage.passes]
        schedules = [_pass(work, stage, plain, whole, target) for work in own]
        segment = _segment(group, stage, max(schedule.width for schedule in schedules), target)
        count = max(1, group.extents[group.vector] // segment)
        split = Split(count, 1, "threads share the rows")
        if rows is None:
            split = _split(count, whole.row_bytes, nanoseconds)
        cut = Cut(group.vector, segment, count)
        schedules = [dataclasses.replace(schedule, cuts=(cut,)) for schedule in schedules]
        summary = ", ".join(filter(None, (summary_of(part, ()) for part in stage.passes)))
        found.append(StageSchedule(tuple(schedules), segment, split, summary))
    return LongSchedule(rows or plain, tuple(found))


def _pass(work: Work, stage: Stage, plain: FusedSchedule, whole: Work, target: Target) -> FusedSchedule:
    past = bool(work.stored) and streams(dataclasses.replace(work, bytes=whole.bytes), target)
    count = ONLINE_VECTORS if stage.is_online else vectors(work, plain.lanes, streaming=past)
    return dataclasses.replace(plain, vectors=count, streaming=past)


def _segment(group: Group, stage: Stage, width: int, target: Target) -> int:
    """Return the elements of a segment: what a stage reads of it takes a part of the first-level cache."""
    if stage.is_online:
        return width * ONLINE_STEPS
    read = row_bytes_of(group, read_by(stage.members, group.produced))
    extent = group.extents[group.vector]
    return max(width, power_of_two(target.l1_bytes // SEGMENT_SHARE * extent // max(1, read)))


def _split(count: int, row_bytes: int, nanoseconds: float) -> Split:
    """Return how ``count`` segments of a row are cut in chunks."""
    wanted = min(MOST_FUSED_CHUNKS, max(FEWEST_CHUNKS, row_bytes // CHUNK_BYTES))
    step = power_of_two(count // wanted)
    about = f"about {nanoseconds / 1000:.1f} us of work"
    return Split(step, -(-count // step), about, nanoseconds < WAKING_NS)
