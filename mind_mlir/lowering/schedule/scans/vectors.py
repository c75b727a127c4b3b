"""Vectors of a scan: what is read and written, and how the lanes of one are combined."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.schedule.linalg_view.values import cast, repeat
from mind_mlir.mlir.bindings import vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.scans.schedule import Scan
    from mind_mlir.mlir.bindings import Value


class Part(NamedTuple):
    """What is scanned at once.

    Attributes:
        row: Of which row.
        at: Where it begins across the axis.
        masks: Of each vector across it; None for one that is whole.
    """

    row: Index
    at: Index
    masks: Sequence[Value | None]


class ScanVectors:
    """Emits what happens to vectors of ``lanes`` elements.

    Attributes:
        type: Their type.
        number: The number that changes nothing.
        neutral: The vector that changes nothing.
    """

    def __init__(self, emitter: Emitter, scan: Scan, lanes: int) -> None:
        self._e, self._scan, self._lanes = emitter, scan, lanes
        self.type = emitter.vector_type(lanes, scan.combined)
        self.number = cast(scan.casts, scan.neutral, ())
        self.neutral = emitter.broadcast(self.type, self.number)

    def combined(self, before: Sequence[Value], values: Sequence[Value]) -> list[Value]:
        """Emit what each vector combines to with what is before it."""
        return [
            repeat(self._scan.combiner, pair, (self._lanes,))[0] for pair in zip(before, values, strict=True)
        ]

    def read(self, part: Part, place: Index) -> list[Value]:
        """Emit the elements of ``part`` at ``place`` along the axis."""
        scan = self._scan
        source, type_ = scan.view.inputs[0], self._e.vector_type(self._lanes, scan.element)
        read = (
            self._e.read(type_, source, self._at(part, place, number), scan.neutral, mask)
            for number, mask in enumerate(part.masks)
        )
        return [cast(scan.casts, each, (self._lanes,)) for each in read]

    def written(self, part: Part, place: Index, values: Sequence[Value], result: Value) -> Value:
        """Emit the results of ``part`` at ``place`` along the axis, in the tensor ``result``."""
        for number, (value, mask) in enumerate(zip(values, part.masks, strict=True)):
            element = cast(self._scan.casts_back, value, (self._lanes,))
            result = self._e.write(element, result, self._at(part, place, number), mask)
        return result

    def _at(self, part: Part, place: Index, number: int) -> list[Index]:
        """Return where vector ``number`` lies."""
        if self._scan.inner is None:
            return [part.row, self._e.mul(place, self._lanes)]
        return [part.row, place, self._e.add(part.at, number * self._lanes)]

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
