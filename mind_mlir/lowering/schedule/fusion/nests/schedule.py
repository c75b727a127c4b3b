"""Schedules of groups' nests, as data: chosen from their work and the target alone.

So that threads can share a nest, some of its loops are cut; each combination of their parts is a chunk.
Nests over the same rows are cut alike, so that a thread finds in its cache what it computed in the one
before. Where there is too little to cut among the loops that are kept, a reduced one is: each part of it is
reduced into a partial result, and a second nest joins these.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission import constants
from mind_mlir.lowering.emission.decision import Choice, chosen
from mind_mlir.lowering.emission.stores import past_caches
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.fusion.nests.work import Work
    from mind_mlir.target import Target


@dataclass(frozen=True)
class Cut:
    """A loop in parts.

    Attributes:
        dim: The loop.
        step: Iterations in a part; the last one may have fewer.
        count: Parts, at least two.
    """

    dim: int
    step: int
    count: int


@dataclass(frozen=True)
class FusedSchedule:
    """The schedule of a group's nest.

    Attributes:
        lanes: Elements in a vector register.
        vectors: Registers in a step of the vector loop, a power of two; accumulators, where that is reduced.
        strip: Rows that are reduced before the next elements of the results are looked at; 0: all of them.
        cuts: The loops that are cut for chunks, outermost first, at most one of them reduced.
        parts: The cut of a reduced loop, which is one of ``cuts``; None if no reduced loop is cut.
        parallel: Whether threads may share the chunks.
        brief: Whether no thread is to be woken for them.
        streaming: Whether stores may go past the cache.
        reason: Why it is cut so, for people.
        epilogue: The number of the product whose macro-tiles the chunks are, if they are such.
        beside: Iterations of the loop around the vector loop that are computed at once, with what they read.
        prefetch_distance: Elements ahead along the vector loop that are prefetched; 0: none.
        unrolled: Loops whose iterations are emitted one after the other.
    """

    lanes: int
    vectors: int = 1
    strip: int = 0
    cuts: tuple[Cut, ...] = ()
    parts: Cut | None = None
    parallel: bool = False
    brief: bool = False
    streaming: bool = False
    reason: str = ""
    epilogue: int | None = None
    beside: int = 1
    prefetch_distance: int = 0
    unrolled: tuple[int, ...] = ()

    @property
    def kind(self) -> str:
        """The name of such nests in listings."""
        return "fused"

    @property
    def width(self) -> int:
        """Elements in a step of the vector loop, which are one value of several registers."""
        return self.lanes * self.vectors

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return math.prod(cut.count for cut in self.cuts)

    @property
    def in_memory(self) -> bool:
        """Return whether reductions accumulate in their results, which hold what they start from."""
        return bool(self.strip) and self.parts is None

    def cut(self, dim: int) -> Cut | None:
        """Return how loop ``dim`` is cut; None if it is not."""
        return next((cut for cut in self.cuts if cut.dim == dim), None)

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, for people."""
        cuts = " x ".join(f"d{cut.dim} by {cut.step}" for cut in self.cuts)
        distance, parts = self.prefetch_distance, self.parts
        return chosen(
            ("vectors", f"{self.vectors} x {self.lanes}", "side by side, they hide latency"),
            self.strip == 1 and ("strips", "of 1 row", "rows are read one behind another, as they lie"),
            self.strip > 1
            and ("strips", f"of {self.strip} rows", "rows are too long to be prefetched one by one"),
            ("chunks", f"{self.chunks} ({cuts})" if cuts else "1", self.reason),
            self.beside > 1 and ("rows", f"{self.beside} at once", "they read the same elements"),
            self.unrolled != ()
            and (
                "unrolled",
                ", ".join(f"d{dim}" for dim in self.unrolled),
                "loops take as long as their bodies",
            ),
            distance > 0 and ("prefetch", f"{distance} elements ahead", "what is read exceeds the caches"),
            self.streaming and ("stores", "past the cache", "the results are larger than it"),
            parts is not None
            and ("parts", f"{parts.count} of d{parts.dim}", "partial results are joined afterwards"),
        )


def choose_schedule(work: Work, target: Target) -> FusedSchedule:
    """Return how a group is computed that does ``work``."""
    if work.vector < 0:
        return FusedSchedule(target.lanes(work.bits), reason="a single element")
    streaming = streams(work, target)
    shared, fewest, wanted = _chunks(work, target)
    side = vectors(work, shared.lanes, target, streaming=streaming)
    strip, parts = _strip(work, target), None
    side = side if strip else max(side, _row_registers(work, target))
    full = side * shared.lanes
    parallel, cuts, count = shared.parallel, list(shared.cuts), shared.chunks
    if strip and work.sums and work.extents[work.reductions[0]] > constants.MOST_STRIPS * constants.STRIP:
        parts = _row_parts(work, work.reductions[0])
    if parallel and parts is None and count < fewest:
        vector_cuts = [] if work.vector in work.reductions else _vector_cuts(work, -(-wanted // count), full)
        count *= math.prod(cut.count for cut in vector_cuts)
        if work.reductions and count < fewest:
            parts = _parts(work, -(-wanted // count), full)
        cuts += vector_cuts
    elif parallel and parts is not None:
        cuts += _vector_cuts(work, work.row_bytes // constants.STRIP_BYTES, full)
    if parts is not None:
        cuts.append(parts)
        strip = max(strip, -(-parts.step // constants.MOST_STRIPS)) if strip and work.sums else strip
    parallel = parallel and bool(cuts)
    beside = _beside(work, parts, target)
    along = work.vector in work.reductions and beside == 1
    far = along and work.bytes >= constants.PREFETCH_CACHES * target.l3_bytes
    return dataclasses.replace(
        shared,
        vectors=1 if beside > 1 and work.reductions else side,
        strip=strip,
        cuts=tuple(cuts),
        parts=parts,
        parallel=parallel,
        streaming=streaming,
        reason=shared.reason if parallel or not shared.parallel else f"one thread: {shared.reason}",
        beside=beside,
        prefetch_distance=constants.PREFETCH_BYTES * 8 // work.bits if far else 0,
        unrolled=_unrolled(work, {cut.dim for cut in cuts}, side * shared.lanes),
    )


def _unrolled(work: Work, cut: set[int], width: int) -> tuple[int, ...]:
    """Return the innermost loops around a vector loop of a single step that are short enough to be none.

    What is over after that, since no loop is left, is not worth the code.
    """
    found: list[int] = []
    dims = [dim for dim in (*reversed(work.reductions), *reversed(work.outer)) if dim != work.vector]
    count = max(1, work.operations)
    for dim in dims:
        count *= work.extents[dim]
        if dim in cut or work.extents[dim] > constants.UNROLLED or count > constants.UNROLLED_OPERATIONS:
            break
        found.append(dim)
    is_step = work.extents[work.vector] < 2 * width
    return tuple(sorted(found)) if is_step and len(found) < len(dims) else ()


def _beside(work: Work, parts: Cut | None, target: Target) -> int:
    """Return how many iterations of the innermost of the outer loops are computed at once."""
    rows = work.extents[work.outer[-1]] if work.outer else 0
    if work.overlaps:
        return constants.BESIDE if rows >= constants.BESIDE else 1
    far = work.shares and not work.stored and parts is None and work.bytes > target.l2_bytes
    fits = work.operations <= constants.SHARED_OPERATIONS and rows >= constants.SHARED_ROWS
    return constants.SHARED_ROWS if far and fits else 1


def chunked(work: Work, target: Target) -> FusedSchedule | None:
    """Return how the loops around a reduced vector loop are cut; None if there are too few to share."""
    shared, fewest, _ = _chunks(work, target)
    return None if shared.parallel and shared.chunks < fewest else shared


def _chunks(work: Work, target: Target) -> tuple[FusedSchedule, int, int]:
    """Return how the loops around the vector loop are cut, and whether threads share the chunks.

    Behind that, the fewest chunks that threads share, and how many there are to be.
    """
    nanoseconds, iteration_bytes = work.nanoseconds(target), math.prod(work.extents) * work.bits // 8
    parallel, brief = nanoseconds >= constants.WORTHWHILE_NS, nanoseconds < constants.WAKING_NS
    fewest = constants.FEWEST_CHUNKS // 2 if brief else constants.FEWEST_CHUNKS
    wanted = min(constants.MOST_FUSED_CHUNKS, max(fewest, iteration_bytes // constants.CHUNK_BYTES))
    about = f"about {nanoseconds / 1000:.1f} us of work"
    reason = about if parallel else f"one thread: {about}"
    cuts = tuple(_outer_cuts(work, wanted)) if parallel else ()
    lanes = target.lanes(work.bits)
    if work.outer or work.vector in work.reductions:
        lanes = min(lanes, 1 << (work.extents[work.vector] - 1).bit_length())
    return FusedSchedule(lanes, cuts=cuts, parallel=parallel, brief=brief, reason=reason), fewest, wanted


def streams(work: Work, target: Target) -> bool:
    """Return whether the results are worth storing past the cache, and all vectors of them aligned alike.

    What is only written, as a broadcast row, is as fast by plain stores: processors see whole lines coming.
    """
    only_written = work.bytes - work.stored < work.stored // 2
    if work.reductions or only_written or not past_caches(work.stored, work.bytes, target):
        return False
    aligned = work.row_bytes % target.vector_bytes == 0 or not work.outer
    return aligned and work.extents[work.vector] >= target.lanes(work.bits)


def vectors(work: Work, lanes: int, target: Target, *, streaming: bool) -> int:
    """Return the registers of a step: more than one takes longer to compile, and is not always faster.

    Where one instruction moves bf16 within registers, a step has as many as fill one in memory.
    """
    wanted = 2 if work.short and target.masks and 2 * lanes == target.lanes(16) else 1
    if streaming:
        wanted = next((vectors for most, vectors in constants.STEPS if work.weight <= most), wanted)
    elif work.reductions:
        wanted = next((vectors for most, vectors in constants.ACCUMULATORS if work.operations <= most), 1)
    most = max(1, min(wanted, work.extents[work.vector] // lanes))
    return 1 << (most.bit_length() - 1)


def _strip(work: Work, target: Target) -> int:
    """Return the rows of a strip of a reduction over so many and long rows that it pays; else 0."""
    if not work.reductions or work.vector in work.reductions:
        return 0
    room = _room(work, target)
    long = work.row_bytes >= constants.LONG_ROW or 0 < room * constants.ROW_TAIL < work.row_bytes
    if not long or work.extents[work.reductions[0]] <= 2 * constants.STRIP:
        return 0
    # Rows are read one behind another, as they lie, if their results stay beside them in the cache.
    few = not work.sums or work.extents[work.reductions[0]] <= constants.MOST_STRIPS * constants.STRIP
    return 1 if few and 2 * work.row_bytes <= target.l1_bytes else constants.STRIP


def _row_registers(work: Work, target: Target) -> int:
    """Return how many registers hold what a row of a reduction over rows is added to; 0 for other nests.

    Rows are then read as they lie: parts of a row at a time are nothing that the processor sees coming.
    """
    room = _room(work, target)
    if work.row_bytes > room * constants.ROW_TAIL:
        return 0
    return 1 << (max(1, min(room, work.row_bytes) // target.vector_bytes).bit_length() - 1)


def _room(work: Work, target: Target) -> int:
    """Return the bytes of accumulators in registers, where reductions over rows wait for memory; else 0."""
    along = not work.reductions or work.vector in work.reductions
    if along or work.bytes <= target.l2_bytes or work.operations > constants.MOVING_OPERATIONS:
        return 0
    return target.vector_registers // 2 // work.operations * target.vector_bytes


def _outer_cuts(work: Work, wanted: int) -> list[Cut]:
    """Cut the loops around the vector loop, from the outermost on, in about ``wanted`` chunks."""
    cuts: list[Cut] = []
    count = 1
    for dim in work.outer:
        extent, still = work.extents[dim], -(-wanted // count)
        if extent > still:
            # Powers of two: chunks of nests over the same rows then fit together.
            rows = 1 << ((extent // still).bit_length() - 1)
            return [*cuts, Cut(dim, rows, -(-extent // rows))]
        if extent > 1:
            cuts.append(Cut(dim, 1, extent))
            count *= extent
    return cuts


def _vector_cuts(work: Work, wanted: int, step: int) -> list[Cut]:
    """Cut the vector loop, but for what is left of it after the last full step, at multiples of a page."""
    full = work.extents[work.vector] // step * step
    page = max(step, constants.PAGE * 8 // work.bits // step * step)
    count = min(wanted, full // page)
    if count < 2:
        return []
    length = page << ((full // page // count).bit_length() - 1)
    return [Cut(work.vector, length, -(-full // length))]


def _row_parts(work: Work, dim: int) -> Cut | None:
    rows = work.extents[dim]
    others = math.prod(work.extents[other] for other in work.reductions if other != dim)
    least = 1 if work.vector in work.reductions else max(1, constants.PART_ROWS // others)
    step = max(least, -(-rows // constants.MOST_PARTS))
    step = -(-step // constants.STRIP) * constants.STRIP if step > constants.STRIP else step
    count = -(-rows // step)
    return Cut(dim, step, count) if count > 1 else None


def _parts(work: Work, wanted: int, step: int) -> Cut | None:
    """Cut the longest reduced loop."""
    dim = max(work.reductions, key=lambda reduced: work.extents[reduced])
    if dim != work.vector:
        return _row_parts(work, dim)
    cuts = _vector_cuts(work, min(wanted, constants.MOST_PARTS), step)
    return cuts[0] if cuts else None
