"""The outermost loops of a nest: over the chunks that its schedule cuts it in."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.split import Split
from mind_mlir.lowering.schedule.fusion.body import Place, Range

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.schedule import Cut, FusedSchedule
    from mind_mlir.lowering.schedule.reading.view import Env
    from mind_mlir.mlir.bindings import Value


class Chunks:
    """Emits them.

    Args:
        emitter: Where to emit.
        whole: Of each loop, the iterations that are cut.
        vector: The vector loop.
        reductions: The loops that are reduced.
        schedule: How they are cut.
    """

    def __init__(
        self,
        emitter: Emitter,
        whole: Sequence[int],
        vector: int,
        reductions: Sequence[int],
        schedule: FusedSchedule,
    ) -> None:
        self._e = emitter
        self._whole = whole
        self._vector = vector
        self._reductions = reductions
        self._s = schedule

    def emit(
        self,
        cuts: Sequence[Cut],
        place: Place,
        carried: list[Value],
        body: Callable[[Place, list[Value]], list[Value]],
        *,
        parallel: bool,
    ) -> list[Value]:
        """Run ``body`` for each of the chunks that ``cuts`` make of what is to be computed at ``place``."""
        if not cuts:
            return body(place, carried)
        count = math.prod(cut.count for cut in cuts)

        def chunk(number: Index, inside: list[Value]) -> list[Value]:
            return body(self._piece(cuts, number, place), inside)

        if not parallel:
            return self._e.loop((0, count, 1), carried, chunk)
        split = Split(1, count, self._s.reason, self._s.brief, self._s.epilogue)
        return self._e.chunks(split, count, carried, lambda first, _, inside: chunk(first, inside))

    def _piece(self, cuts: Sequence[Cut], number: Index, place: Place) -> Place:
        """Return the place of chunk ``number``."""
        env: Env = dict(place.env)
        ranges, slot = dict(place.ranges), place.slot
        for position, cut in reversed(list(enumerate(cuts))):
            own = self._e.modulo(number, cut.count) if position else number
            number = self._e.floordiv(number, cut.count) if position else number
            if cut is self._s.parts:
                slot = own
            if cut.step == 1 and cut.dim not in self._reductions:
                env[cut.dim] = own
            else:
                ranges[cut.dim] = self._range(cut, own)
        return Place(env, place.known, ranges, slot)

    def _range(self, cut: Cut, number: Index) -> Range:
        extent = self._whole[cut.dim]
        lower = self._e.mul(number, cut.step)
        upper = self._e.add(lower, cut.step)
        end = cut.dim != self._vector
        last = None if end or self._s.epilogue is None else upper
        upper = self._e.minimum(upper, extent) if extent != cut.count * cut.step else upper
        return Range(lower, upper, end=end, last=last)
