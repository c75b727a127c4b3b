"""Rows of an attention that are too long to be kept: some keys at a time, as a stable softmax allows."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.passes import Keys
from mind_mlir.lowering.schedule.folds.exponentials import OnlineExponentials
from mind_mlir.mlir.bindings import Value, arith

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.attention.nest import AttentionNest, QueryBlock
    from mind_mlir.lowering.schedule.attention.outputs import OutputRows
    from mind_mlir.lowering.schedule.attention.passes import ScorePasses
    from mind_mlir.lowering.schedule.attention.products import AttentionProducts
    from mind_mlir.lowering.schedule.emission.emitter import Index


class KeyBlocks:
    """Emits blocks of keys: sums, and the output, are scaled when a row's maximum grows."""

    def __init__(
        self, nest: AttentionNest, passes: ScorePasses, products: AttentionProducts, rows: OutputRows
    ) -> None:
        self._nest = nest
        self._passes = passes
        self._products = products
        self._rows = rows
        (self._greatest,), (self._total,) = (stage.folds for stage in nest.program.stages[:2])
        self._fold = OnlineExponentials(nest.e, nest.lanes.type(self._greatest.type))

    def run(self, block: QueryBlock, limit: Index) -> None:
        """Emit all keys before ``limit``, and the end of the output."""
        nest, lanes, own = self._nest, self._nest.lanes, block.own
        for c in range(0, lanes.vectors * lanes.count, lanes.count):
            lanes.store(self._fold.begin()[0], own["greatest", 0], [0, c])
            lanes.store(lanes.splat(0.0), own["sums", 0], [0, c])
        bounds = (0, limit, nest.schedule.keys)
        nest.e.loop(bounds, [], lambda first, _: self._keys(block, first, limit))
        for row, room in ((self._greatest, own["greatest", 0]), (self._total, own["sums", 0])):
            block.elements.know(row, lanes.row(room, 0))
        self._rows.finish(block, nest.outputs[0], limit)

    def _keys(self, block: QueryBlock, first: Index, limit: Index) -> list[Value]:
        """Emit a block of keys, from key ``first`` on."""
        nest, lanes, own = self._nest, self._nest.lanes, block.own
        (score,), (output,), (begin, following, *_) = nest.scores, nest.outputs, nest.program.stages
        here = dataclasses.replace(block, elements=block.elements.inside({}))
        count = nest.e.minimum(nest.e.sub(limit, first), nest.schedule.keys)
        self._products.score(here, score, first, count)
        keys = Keys(first, count, {nest.program.scores[0]: 0})
        self._grow(here, self._passes.run(here, begin, keys))
        if begin.stores:
            keys = dataclasses.replace(keys, stored={node: array for array, node in begin.stores})
        for c, value in enumerate(self._passes.run(here, following, keys)):
            at = [0, c * lanes.count]
            before, factor = (lanes.load(own[name, 0], at) for name in ("sums", "row"))
            total = arith.AddFOp(self._fold.scaled(before, factor), value).result
            lanes.store(total, own["sums", 0], at)
        later = nest.e.compare("ne", first, 0)
        self._rows.shrink(here, output, later)
        self._products.output(here, output, 0, (first, count), later, None)
        return []

    def _grow(self, block: QueryBlock, found: Sequence[Value]) -> None:
        """Emit the maximum so far, and by what all before has to be scaled."""
        lanes, own = self._nest.lanes, block.own
        combiner = self._nest.program.fold(self._greatest)
        maxima = []
        for c, value in enumerate(found):
            at = [0, c * lanes.count]
            before = lanes.load(own["greatest", 0], at)
            greatest = combiner.combine(before, value)
            lanes.store(greatest, own["greatest", 0], at)
            subtracted = self._fold.subtracted(greatest)
            lanes.store(self._fold.factor(before, subtracted), own["row", 0], at)
            maxima.append(subtracted)
        block.elements.know(self._greatest, maxima)
