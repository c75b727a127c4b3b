"""The nest of a scan: one pass over memory, which carries what is combined so far in registers.

Along the last axis, a vector is scanned by shuffles, and its last lane is what it adds to the ones behind it.
Across other axes, lanes are independent of one another. Where threads share blocks of the axis, a first loop
finds what each block combines to, and a block begins with what those before it do: so bits are the same
whichever thread computes a block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.kind import Kind
from mind_mlir.lowering.schedule.linalg_view.values import repeat
from mind_mlir.lowering.schedule.scans.schedule import BESIDE, LEVEL, choose_scan_schedule, match_scan
from mind_mlir.lowering.schedule.scans.vectors import Part, ScanVectors
from mind_mlir.mlir.bindings import Value, vector

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from mind_mlir.lowering.emission.emitter import Emitter, Index, VectorBody
    from mind_mlir.lowering.schedule.scans.schedule import Scan, ScanSchedule

    #: Emits a step: from its place, the mask of a vector that is not whole, and what is carried. That is what
    #: is combined so far, each vector, and the tensors that are written.
    Step: TypeAlias = VectorBody
    #: Emits what is done with a part of a row.
    PartBody: TypeAlias = Callable[[Part, list[Value]], list[Value]]
    #: The first one of some steps, or elements, and the one behind the last.
    Ends: TypeAlias = tuple[Index, Index]
    #: Emits what is done with the steps within some ends, those of a block, and the tensors behind it.
    BlockBody: TypeAlias = Callable[[Part, Ends, Index, list[Value]], list[Value]]


class ScanEmitter:
    """Emits one scan as its schedule says."""

    def __init__(self, emitter: Emitter, scan: Scan, schedule: ScanSchedule) -> None:
        self._e, self._scan, self._s = emitter, scan, schedule
        self._v = ScanVectors(emitter, scan, schedule.lanes)
        length, lanes = scan.extents[1], schedule.lanes
        #: The steps whose vectors are whole, and the mask of the one behind them.
        self._whole = schedule.steps if scan.inner is not None else length // lanes
        self._rest = None if scan.inner is not None else emitter.mask(lanes, length % lanes or lanes)

    def emit(self) -> list[Value]:
        """Emit the nest at the insertion point and return the result tensor."""
        e, s, shape = self._e, self._s, self._scan.extents
        result, across = e.empty(shape, self._scan.element), (0, self._scan.inner or 0)

        def chunk(first: Index, end: Index, carried: list[Value]) -> list[Value]:
            rows, columns = ((first, end), across) if s.cut == "rows" else ((0, shape[0]), (first, end))
            return e.loop((*rows, 1), carried, lambda row, now: self._row(row, columns, now))

        if s.cut == "blocks":
            return e.loop((0, shape[0], 1), [result], self._in_blocks)
        return e.chunks(s.split, shape[0] if s.cut == "rows" else across[1], [result], chunk)

    # Rows, and what is beside one another in them

    def _row(self, row: Index, across: Ends, carried: list[Value]) -> list[Value]:
        """Emit the scan of a row, as far as ``across`` says."""
        ends = (0, self._s.steps)
        return self._parts(row, across, carried, lambda part, now: self._scanned(part, ends, None, now))

    def _parts(self, row: Index, across: Ends, carried: list[Value], body: PartBody) -> list[Value]:
        """Emit ``body`` for each part of a row that is scanned at once."""
        e, inner, width, lanes = self._e, self._scan.inner, self._s.width, self._s.lanes
        if inner is None:
            return body(Part(row, 0, [None]), carried)
        first, end = across
        left = inner % width
        whole = inner - left

        def parts(bounds: Ends, masks: list[Value | None]) -> list[Value]:
            return e.loop((*bounds, width), carried, lambda at, now: body(Part(row, at, masks), now))

        carried = parts((first, e.minimum(end, whole)), [None] * self._s.vectors)
        if not left:
            return carried
        masks = [e.mask(lanes, min(lanes, left - place)) for place in range(0, left, lanes)]
        # Only what holds the end of the row has an iteration of this.
        return parts((e.maximum(first, whole), end), masks)

    # Blocks of the axis

    def _in_blocks(self, row: Index, carried: list[Value]) -> list[Value]:
        """Emit the scan of a row whose blocks threads share."""
        e, s, inner = self._e, self._s, self._scan.inner
        across = (0, inner or 0)
        if s.blocks == 1:
            return self._row(row, across, carried)
        totals = e.empty([s.blocks, *([] if inner is None else [inner])], self._scan.combined)

        def blocks(body: BlockBody, carried: list[Value]) -> list[Value]:
            def chunk(first: Index, end: Index, now: list[Value]) -> list[Value]:
                block = e.floordiv(first, s.split.step)
                return self._parts(row, across, now, lambda part, in_: body(part, (first, end), block, in_))

            return e.chunks(s.split, s.steps, carried, chunk)

        def scanned(part: Part, ends: Ends, block: Index, now: list[Value]) -> list[Value]:
            return self._scanned(part, ends, self._before(totals, block, part), now)

        (totals,) = blocks(self._total, [totals])
        return blocks(scanned, carried)

    def _total(self, part: Part, ends: Ends, block: Index, carried: list[Value]) -> list[Value]:
        """Emit what ``block``, the steps within ``ends``, combines to."""
        e, (totals,) = self._e, carried
        if self._scan.inner is None:
            _, own = self._v.along(self._total_along(part.row, ends))
            return [e.insert(vector.ExtractOp(own, [], [0]).result, totals, [block])]
        step = self._totalling(lambda place: self._v.read(part, place))
        found = self._steps(ends, self._s.levels, [], len(part.masks), lambda _: step)
        for number, (value, mask) in enumerate(zip(found, part.masks, strict=True)):
            totals = e.write(value, totals, [block, e.add(part.at, number * self._s.lanes)], mask)
        return [totals]

    def _total_along(self, row: Index, ends: Ends) -> Value:
        """Emit what the vectors within ``ends`` combine to lane by lane, some of them side by side."""
        e, (first, end) = self._e, ends
        fours = e.floordiv(e.sub(e.minimum(end, self._whole), first), BESIDE)

        def four(number: Index) -> list[Value]:
            place = e.add(first, e.mul(number, BESIDE))
            return [self._v.read(Part(row, 0, [None]), e.add(place, each))[0] for each in range(BESIDE)]

        step = self._totalling(four)
        quick = self._steps((0, fours), self._s.levels, [], BESIDE, lambda _: step, ragged=False)
        rest = (e.add(first, e.mul(fours, BESIDE)), end)

        def one(place: Index, mask: Value | None, so_far: list[Value]) -> list[Value]:
            return self._v.combined(so_far, self._v.read(Part(row, 0, [mask]), place))

        slow = self._single(rest, [self._v.neutral], one, ragged=True)
        while len(quick) > 1:
            quick = self._v.combined(quick[::2], quick[1::2])
        return self._v.combined(quick, slow)[0]

    def _totalling(self, read: Callable[[Index], list[Value]]) -> Step:
        """Return a step that combines what is read with what is combined so far, and writes nothing."""
        return lambda place, _, so_far: self._v.combined(so_far, read(place))

    def _before(self, totals: Value, block: Index, part: Part) -> list[Value]:
        """Emit what the blocks before ``block`` combine to, each vector of a part."""
        e, scan = self._e, self._scan
        bounds = (e.add(block, 1), self._s.blocks, 1) if scan.reverse else (0, block, 1)
        if scan.inner is None:
            (number,) = e.loop(
                bounds,
                [self._v.number],
                lambda place, now: repeat(scan.combiner, [now[0], e.extract(totals, [place])], ()),
            )
            return [e.broadcast(self._v.type, number)]

        def step(place: Index, now: list[Value]) -> list[Value]:
            lanes = ([place, e.add(part.at, number * self._s.lanes)] for number in range(len(part.masks)))
            pairs = zip(lanes, part.masks, strict=True)
            read = [e.read(self._v.type, totals, at, self._v.number, mask) for at, mask in pairs]
            return self._v.combined(now, read)

        return e.loop(bounds, [self._v.neutral] * len(part.masks), step)

    # Steps

    def _scanned(self, part: Part, ends: Ends, base: list[Value] | None, carried: list[Value]) -> list[Value]:
        """Emit the scan of the steps within ``ends``; ``base`` is what those before them combine to."""

        def steps(base: list[Value] | None) -> Step:
            def step(place: Index, mask: Value | None, carried: list[Value]) -> list[Value]:
                *so_far, tensor = carried
                here = part if mask is None else part._replace(masks=[mask])
                read = self._v.read(here, place)
                if self._scan.inner is None:
                    inside, own = self._v.along(read[0])
                    after = self._v.combined(so_far, [own])
                    found = self._v.combined(so_far, [inside])
                else:
                    after = self._v.combined(so_far, read)
                    found = so_far if self._scan.exclusive else after
                if base is not None:
                    found = self._v.combined(base, found)
                return [*after, self._v.written(here, place, found, tensor)]

            return step

        return self._steps(ends, self._s.levels, carried, len(part.masks), steps, base)[-1:]

    def _steps(
        self,
        ends: Ends,
        levels: int,
        tensors: list[Value],
        count: int,
        make: Callable[[list[Value] | None], Step],
        base: list[Value] | None = None,
        *,
        ragged: bool = True,
    ) -> list[Value]:
        """Emit the steps within ``ends``; return what they combine to, and the tensors that they write.

        Args:
            ends: The first one, and the one behind the last, wherever they begin.
            levels: In how many levels they are combined: ``LEVEL`` to so many at most.
            tensors: What they write.
            count: How many vectors are scanned side by side.
            make: Returns a step, from what everything before the level combines to.
            base: What everything before the steps combines to; None for nothing.
            ragged: Whether they may have the vector that is not whole.
        """
        e, start = self._e, [self._v.neutral] * count
        if levels == 1 and base is not None and not self._scan.rounds:
            return self._single(ends, [*base, *tensors], make(None), ragged=ragged)
        if levels == 1:
            return self._single(ends, [*start, *tensors], make(base), ragged=ragged)
        size = LEVEL ** (levels - 1)

        def level(done: Index, now: list[Value]) -> list[Value]:
            so_far, written = now[:count], now[count:]
            if self._scan.reverse:
                last = e.sub(ends[1], done)
                part = (e.sub(last, e.minimum(e.sub(last, ends[0]), size)), last)
            else:
                first = e.add(ends[0], done)
                part = (first, e.minimum(e.add(first, size), ends[1]))
            before = so_far if base is None else self._v.combined(base, so_far)
            found = self._steps(part, levels - 1, written, count, make, before, ragged=ragged)
            return [*self._v.combined(so_far, found[:count]), *found[count:]]

        return e.loop((0, e.sub(ends[1], ends[0]), size), [*start, *tensors], level)

    def _single(self, ends: Ends, carried: list[Value], step: Step, *, ragged: bool) -> list[Value]:
        """Emit one step after the other, from the last one on where the scan begins there."""
        e, (first, end), reverse = self._e, ends, self._scan.reverse
        masked = ragged and self._whole < self._s.steps
        stop = e.minimum(end, self._whole) if masked else end

        def whole(now: list[Value]) -> list[Value]:
            if not reverse:
                return e.loop((first, stop, 1), now, lambda place, in_: step(place, None, in_))
            last = e.sub(e.add(first, stop), 1)
            return e.loop((first, stop, 1), now, lambda place, in_: step(e.sub(last, place), None, in_))

        def rest(now: list[Value]) -> list[Value]:
            """Emit the step whose vector is not whole, if it is among these."""
            bounds = (e.maximum(first, self._whole), end, 1)
            return e.loop(bounds, now, lambda place, in_: step(place, self._rest, in_))

        if not masked:
            return whole(carried)
        return whole(rest(carried)) if reverse else rest(whole(carried))


#: Sums, products and extremes up to each element.
SCAN = Kind(
    "scan",
    match_scan,
    choose_scan_schedule,
    lambda nest, schedule, site: ScanEmitter(site.scope.emitter, nest, schedule).emit(),
)
