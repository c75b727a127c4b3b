"""The nest of a convolution along lines: parts of lines, and planes of images, channels and features."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.groups.collapse import collapse_value, expand_value
from mind_mlir.lowering.schedule.kind import Kind, Site
from mind_mlir.lowering.schedule.movement.transposition import emit_in_order
from mind_mlir.lowering.schedule.windows.lines import lines_schedule, match_lines
from mind_mlir.lowering.schedule.windows.terms import multiply_add, read_factor
from mind_mlir.mlir.bindings import Value, arith, ir, tensor, vector
from mind_mlir.ops.accumulation import BLOCK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.emission.emitter import Index
    from mind_mlir.lowering.schedule.windows.lines import Lines, LinesSchedule


class LinesEmitter:
    """Emits a convolution along lines as its schedule says."""

    def __init__(self, site: Site, lines: Lines, schedule: LinesSchedule) -> None:
        self._site, self._n, self._s = site, lines, schedule
        self._e, self._fma = site.scope.emitter, site.scope.target.fma
        self._image = self._planes()
        self._filter = collapse_value(lines.filter, [lines.terms, lines.groups * lines.features * lines.side])
        self._zero = self._e.number(self._e.vector_type(schedule.lanes, lines.element), 0)

    def _planes(self) -> Value:
        """Emit the image as planes of lines, ``[N, planes, space..., elements of a line]``."""
        n, stride = self._n, self._n.axes[-1].stride
        shape = ir.RankedTensorType(n.image.type).shape
        count, *outer, width = shape[: len(n.axes) + 1]
        channels = math.prod(shape[len(n.axes) + 1 :])
        image = collapse_value(n.image, [count, *outer, width, channels])
        if width % stride:
            # No window reads what is not written.
            wide = [count, *outer, -(-width // stride) * stride, channels]
            shape, rank = [count, *outer, width, channels], len(wide)
            image = tensor.InsertSliceOp(
                image, self._e.empty(wide, image.type.element_type), [], [], [], [0] * rank, shape, [1] * rank
            ).result
            width = wide[-2]
        if n.planes == 1:
            merged = collapse_value(image, [count, *outer, width * channels])
            return expand_value(merged, [count, 1, *outer, width * channels])
        pixels = math.prod(outer) * width // stride
        split = expand_value(image, [count, *outer, width // stride, stride, channels])
        matrix = collapse_value(split, [count, pixels, stride * channels])
        moved = emit_in_order(matrix, (0, 2, 1), self._site)
        return expand_value(moved, [count, n.planes, *outer, width // stride])

    def emit(self) -> list[Value]:
        """Emit the nest at the insertion point and return the result tensor."""
        e, n, s = self._e, self._n, self._s
        count, groups, *rows = n.places
        parts, blocks = -(-n.length // (s.vectors * s.lanes)), -(-n.features // s.features)
        planes = [count, groups * n.features, *rows, n.length]
        extents = [count, groups, blocks, *rows, parts]

        def part(number: Index, carried: list[Value]) -> list[Value]:
            image, group, block, *at, number = reversed(e.digits(number, extents[::-1]))
            step = s.vectors * s.lanes
            first = e.minimum(e.mul(block, s.features), n.features - s.features)
            start = e.minimum(e.mul(number, step), n.length - step)
            return self._part([image, *at], (group, first), start, carried)

        empty = [e.empty(planes, n.element)]
        (result,) = e.iterations(s.split, math.prod(extents), empty, part)
        pixels = math.prod(rows) * n.axes[-1].results
        if groups * n.features == 1:
            return [collapse_value(result, [count, *rows, n.length])]
        flat = collapse_value(result, [count, groups * n.features, pixels])
        return [emit_in_order(flat, (0, 2, 1), self._site)]

    def _part(
        self, places: Sequence[Index], feature: tuple[Index, Index], start: Index, carried: list[Value]
    ) -> list[Value]:
        """Emit the results at ``places`` from element ``start`` of the line on.

        They are those of a group, from a feature of that on.
        """
        e, n, s, terms = self._e, self._n, self._s, self._n.terms
        zeros = [self._zero] * (s.vectors * s.features)

        def block(first: Index, totals: list[Value]) -> list[Value]:
            sums = e.loop((first, e.minimum(e.add(first, BLOCK), terms), 1), zeros, term)
            return [arith.AddFOp(total, each).result for total, each in zip(totals, sums, strict=True)]

        def term(number: Index, sums: list[Value]) -> list[Value]:
            return self._term(places, feature, start, number, sums)

        sums = (
            e.loop((0, terms, 1), zeros, term) if terms <= BLOCK else e.loop((0, terms, BLOCK), zeros, block)
        )
        (result,) = carried
        plane = e.add(e.mul(feature[0], n.features), feature[1])
        for place, value in enumerate(sums):
            number, along = divmod(place, s.vectors)
            at = [places[0], e.add(plane, number), *places[1:], e.add(start, along * s.lanes)]
            result = e.write(value, result, at)
        return [result]

    def _term(
        self,
        places: Sequence[Index],
        feature: tuple[Index, Index],
        start: Index,
        number: Index,
        sums: list[Value],
    ) -> list[Value]:
        """Emit what term ``number`` adds to ``sums``."""
        e, n, s = self._e, self._n, self._s
        *outer, last = n.axes
        channel, along, *taps = e.digits(number, [n.channels, *(axis.window for axis in reversed(n.axes))])
        rows = [
            e.add(e.mul(place, axis.stride), e.mul(tap, axis.spacing))
            for axis, place, tap in zip(outer, places[1:], reversed(taps), strict=True)
        ]
        far = e.mul(along, last.spacing)
        step = e.mul(e.modulo(far, last.stride), n.groups * n.channels)
        plane = e.add(step, e.add(e.mul(feature[0], n.channels), channel))
        column = e.add(start, e.mul(e.floordiv(far, last.stride), n.side))
        first = e.add(e.mul(feature[0], n.features), feature[1])
        weights = [self._weights([number, e.add(first, place)]) for place in range(s.features)]
        loaded = [
            read_factor(
                e,
                self._image,
                n.body.casts[0],
                s.lanes,
                [places[0], plane, *rows, e.add(column, place * s.lanes)],
            )
            for place in range(s.vectors)
        ]
        return [
            multiply_add(
                loaded[place % s.vectors],
                weights[place // s.vectors][place % s.vectors % s.period],
                total,
                fma=self._fma,
            )
            for place, total in enumerate(sums)
        ]

    def _weights(self, place: Sequence[Index]) -> list[Value]:
        """Return the weights of a term as vectors: those of the channels side by side, or one feature's."""
        n, s = self._n, self._s
        pixel = read_factor(self._e, self._filter, n.body.casts[1], n.side, place)
        return [
            vector.ShuffleOp(
                pixel, pixel, [(phase * s.lanes + lane) % n.side for lane in range(s.lanes)]
            ).result
            for phase in range(s.period)
        ]


#: Convolutions of few channels and features.
LINES = Kind(
    "lines",
    match_lines,
    lines_schedule,
    lambda nest, schedule, site: LinesEmitter(site, nest, schedule).emit(),
)
