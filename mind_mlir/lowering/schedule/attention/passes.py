"""Passes over the scores of an attention, and elements of other tensors that they read, some in tiles."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.schedule.attention.memory import TERMS
from mind_mlir.lowering.schedule.attention.nest import QueryBlock
from mind_mlir.lowering.schedule.emission.emitter import EXACT_ATTRIBUTE, PLAIN_ATTRIBUTE
from mind_mlir.lowering.schedule.folds.reductions import Accumulators
from mind_mlir.lowering.schedule.scalars.graph import ordered
from mind_mlir.lowering.schedule.scalars.values import ScalarValues
from mind_mlir.mlir.bindings import Value, arith, ir

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.lowering.schedule.attention.memory import Scratch
    from mind_mlir.lowering.schedule.attention.nest import AttentionNest
    from mind_mlir.lowering.schedule.emission.emitter import Bounds, Index
    from mind_mlir.lowering.schedule.linalg_view.view import Env
    from mind_mlir.lowering.schedule.scalars.graph import Scalar
    from mind_mlir.lowering.schedule.scalars.passes import ScalarPass

    #: Returns the elements of a key, given its number.
    At: TypeAlias = Callable[[Index], ScalarValues]


class ScorePasses:
    """Emits passes over the scores of a block of queries."""

    def __init__(self, nest: AttentionNest) -> None:
        self._e = nest.e
        self._nest = nest

    def block(self, env: Env, live: Index, own: Scratch) -> QueryBlock:
        """Return a block of queries of which nothing is known but where it is."""
        block = QueryBlock(env, live, own, ScalarValues(self._nest.lanes, self._nest.row))
        return dataclasses.replace(block, elements=self._inside(block, env, 0))

    def run(self, block: QueryBlock, stage: ScalarPass, keys: tuple[Index, Index]) -> list[Value]:
        """Emit a pass over some keys, given the first one and how many there are.

        What it reduces is then known of the block, and returned.
        """
        e, lanes, count = self._e, self._nest.lanes, keys[1]
        if not stage.roots:
            return []
        block.elements.compute(stage.roots, stage.before, self._nest.column)
        folds = [row for row in stage.folds for _ in range(lanes.vectors)]
        combiners = [self._nest.program.fold(row) for row in folds]
        neutral = [fold.nothing(e, lanes.type(row.type)) for fold, row in zip(combiners, folds, strict=True)]
        folded = Accumulators(e, combiners, neutral)

        def one(at: At, local: Index, carried: list[Value]) -> list[Value]:
            elements = at(local)
            terms = [value for row in stage.folds for value in elements.vectors(row.operands[0])]
            kept = [(array, elements.vectors(node)) for node, array in stage.stores.items()]
            for array, values in kept:
                lanes.store_row(values, block.own["array", array], local)
            return folded.join(carried, terms)

        def some(start: Index, carried: list[Value]) -> list[Value]:
            end = e.minimum(e.add(start, TERMS), count)
            return folded.join(carried, self.each(block, stage, keys[0], (start, end, 1), neutral, one))

        sums = any(row.combiner == "arith.addf" for row in stage.folds)
        if sums or self._tiled(stage):
            results = e.loop((0, count, TERMS), neutral, some)
        else:
            results = self.each(block, stage, keys[0], (0, count, 1), neutral, one)
        for number, row in enumerate(stage.folds):
            block.elements.know(row, results[number * lanes.vectors : (number + 1) * lanes.vectors])
        return results

    def each(
        self,
        block: QueryBlock,
        stage: ScalarPass,
        first: Index,
        bounds: Bounds,
        carried: list[Value],
        body: Callable[[At, Index, list[Value]], list[Value]],
    ) -> list[Value]:
        """Emit a loop over some keys behind ``first``, not more than a tile has where ``stage`` needs any.

        The body is given what returns the elements of a key, and the number of one.
        """
        e, start, end = self._e, *bounds[:2]
        env = {**block.env, self._nest.column: e.add(first, start)}
        for node in self._tiled(stage):
            self._emit_tile(node, block, env, e.sub(end, start))

        def at(local: Index) -> ScalarValues:
            env = {**block.env, self._nest.column: e.add(first, local)}
            elements = self._inside(block, env, e.sub(local, start))
            for node, array in stage.before.items():
                elements.know(node, self._stored(block, node, array, local))
            return elements

        return e.loop(bounds, carried, lambda local, inside: body(at, local, inside))

    def _stored(self, block: QueryBlock, node: Scalar, array: int, local: Index) -> list[Value]:
        """Emit what an array has of a key."""
        found = self._nest.lanes.row(block.own["array", array], local)
        mark = self._marks(node)
        for each in found if mark else ():
            each.owner.attributes[mark] = ir.UnitAttr.get()
        return [self._e.cast(each, node.type) for each in found]

    def _marks(self, node: Scalar) -> str:
        """Return what is known of the numbers of bf16 that ``node`` is, or is a sum of products of."""
        if str(self._nest.stored) == "bf16" and node.kind == "product":
            return PLAIN_ATTRIBUTE
        is_short = node.name == "arith.extf" and str(node.operands[0].type) == "bf16"
        return EXACT_ATTRIBUTE if is_short else ""

    # Elements of inputs.

    def _inside(self, block: QueryBlock, env: Env, tile: Index) -> ScalarValues:
        """Return what is known of a block at a key, the one number ``tile`` of those that were transposed."""
        return block.elements.inside(env, lambda node: self._read(block, node, env, tile))

    def _read(self, block: QueryBlock, node: Scalar, env: Env, tile: Index) -> Value | list[Value]:
        e, nest, lanes, buffer = self._e, self._nest, self._nest.lanes, self._nest.inputs[node.number]
        if nest.row not in node.axes:
            return lanes.element_at(buffer.value, buffer.indices(e, env))
        if node in nest.tiled:
            if nest.column not in node.axes:  # the same for all keys, and read before the first of them
                tile = 0
                self._emit_tile(node, block, env, 1)
            found = lanes.row(block.own["tiles", node.number], tile)
            return [self._condition(each) for each in found] if str(node.type) == "i1" else found
        *outer, last = buffer.indices(e, env)
        return [
            lanes.load(
                buffer.value,
                [*outer, e.add(last, first)],
                e.sub(block.live, first) if nest.is_ragged else None,
            )
            for first in range(0, lanes.vectors * lanes.count, lanes.count)
        ]

    def _condition(self, bytes_: Value) -> Value:
        """Emit conditions of the bytes that they are in memory."""
        return arith.CmpIOp(arith.CmpIPredicate.ne, bytes_, self._e.number(bytes_.type, 0)).result

    def _tiled(self, stage: ScalarPass) -> list[Scalar]:
        """Return the inputs that are transposed some keys at a time, and that a pass needs."""
        needed = ordered(stage.roots, stop=stage.before, folds=False)
        return [each for each in self._nest.tiled if self._nest.column in each.axes and each in needed]

    def _emit_tile(self, node: Scalar, block: QueryBlock, env: Env, count: Index) -> None:
        """Emit the tile of an input, for ``count`` keys from the one of ``env`` on."""
        nest, buffer = self._nest, self._nest.inputs[node.number]
        kernel = nest.kernels.tile(node, buffer.access)
        step = buffer.strides.get(nest.row if kernel.transposes else nest.column, 0)
        source = buffer.base, buffer.at(self._e, env)
        nest.calls.pack(kernel, source, block.own["tiles", node.number], (block.live, count, step))
