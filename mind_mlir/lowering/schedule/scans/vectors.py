"""Vectors of a scan: what is read and written, and how the lanes of one are combined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.linalg_view.values import repeat
from mind_mlir.mlir.bindings import vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.scans.match import Scan
    from mind_mlir.mlir.bindings import Value


class ScanVectors:
    """Emits what happens to vectors of ``lanes`` elements.

    Attributes:
        type: Their type.
        neutral: The vector that changes nothing.
    """

    def __init__(self, emitter: Emitter, scan: Scan, lanes: int) -> None:
        self._e, self._scan, self._lanes = emitter, scan, lanes
        self.type = emitter.vector_type(lanes, scan.element)
        self.neutral = emitter.broadcast(self.type, scan.neutral)

    def combined(self, before: Sequence[Value], values: Sequence[Value]) -> list[Value]:
        """Emit what each vector combines to with what is before it."""
        return [
            repeat(self._scan.combiner, pair, (self._lanes,))[0] for pair in zip(before, values, strict=True)
        ]

    def read(self, row: Index, place: Index, at: Index, masks: Sequence[Value | None]) -> list[Value]:
        """Emit the elements of a step: ``place`` along the axis, from ``at`` on across it."""
        source = self._scan.view.inputs[0]
        return [
            self._e.read(self.type, source, self._at(row, place, at, number), self._scan.neutral, mask)
            for number, mask in enumerate(masks)
        ]

    def written(
        self,
        row: Index,
        place: Index,
        at: Index,
        masks: Sequence[Value | None],
        values: Sequence[Value],
        result: Value,
    ) -> Value:
        """Emit the results of a step, in the tensor ``result``."""
        for number, (value, mask) in enumerate(zip(values, masks, strict=True)):
            result = self._e.write(value, result, self._at(row, place, at, number), mask)
        return result

    def _at(self, row: Index, place: Index, at: Index, number: int) -> list[Index]:
        """Return where vector ``number`` of a step lies."""
        if self._scan.inner is None:
            return [row, self._e.mul(place, self._lanes)]
        return [row, place, self._e.add(at, number * self._lanes)]

    def along(self, value: Value) -> tuple[Value, Value]:
        """Emit the scan of a vector's lanes, and what all of them combine to, in every lane.

        In each step, one half of some neighbours gets what the other half combines to.
        """
        lanes, distance, is_reverse = self._lanes, 1, self._scan.reverse
        while distance < lanes:
            taken = [self._taken(lane, distance) for lane in range(lanes)]
            (value,) = self.combined([self._moved(value, taken)], [value])
            distance *= 2
        last = 0 if is_reverse else lanes - 1
        total = vector.ShuffleOp(value, value, [last] * lanes).result
        if self._scan.exclusive:
            before = [lane + 1 if is_reverse else lane - 1 for lane in range(lanes)]
            value = self._moved(value, [lane if 0 <= lane < lanes else None for lane in before])
        return value, total

    def _taken(self, lane: int, distance: int) -> int | None:
        """Return the lane that holds what ``distance`` neighbours before ``lane`` combine to."""
        first = lane // (2 * distance) * 2 * distance
        is_upper = bool(lane & distance)
        if self._scan.reverse:
            return None if is_upper else first + distance
        return first + distance - 1 if is_upper else None

    def _moved(self, value: Value, taken: Sequence[int | None]) -> Value:
        """Emit the lanes ``taken`` of a vector; None is what changes nothing."""
        places = [lane if place is None else len(taken) + place for lane, place in enumerate(taken)]
        return vector.ShuffleOp(self.neutral, value, places).result
