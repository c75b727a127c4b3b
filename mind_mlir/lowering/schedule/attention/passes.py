"""Emits passes over the scores of an attention."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.choice import tile_pack
from mind_mlir.lowering.schedule.attention.memory import Elements, Place, Scratch, element, load, store
from mind_mlir.lowering.schedule.attention.products import Products
from mind_mlir.lowering.schedule.emission.emitter import EXACT_ATTRIBUTE, PLAIN_ATTRIBUTE, Index
from mind_mlir.lowering.schedule.fusion.groups.reductions import combined
from mind_mlir.mlir.bindings import Value, arith, ir

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.lowering.schedule.attention.nodes import Node
    from mind_mlir.lowering.schedule.attention.program import Stage
    from mind_mlir.lowering.schedule.linalg_view.view import Env

#: Keys whose terms are summed one after the other.
TERMS = 32


class Passes(Products):
    """Emits the passes of one attention."""

    def _stage(
        self, place: Place, stage: Stage, stored: Mapping[Node, int], keys: tuple[Index, Index]
    ) -> list[Value]:
        """Emit a pass over scores of keys, of which ``keys`` says the first one and how many there are.

        What it reduces is then known at ``place``.
        """
        e, s = self._e, self._s
        roots = [*(row.operands[0] for row in stage.rows), *(node for _, node in stage.stores)]
        if not roots:
            return []
        place.elements.compute(roots, stored.keys(), self._column)
        neutral = [value for row in stage.rows for value in [self._neutral(row)] * s.vectors]

        def one(local: Index, carried: list[Value], elements: Elements) -> list[Value]:
            self._recall(place, elements, stored, local)
            terms = [value for row in stage.rows for value in elements.vectors(row.operands[0])]
            kept = [(array, elements.vectors(node)) for array, node in stage.stores]
            for array, several in kept:
                for c, value in enumerate(several):
                    store(e, e.cast(value, self._element), place.own.arrays[array], [local, c * s.lanes])
            return self._combined(stage, carried, terms)

        first, count = keys
        memory = place.own, place.live

        def several(start: Index, end: Index) -> list[Value]:
            self._emit_tiles(place, roots, stored, e.add(first, start), e.sub(end, start))

            def inner(local: Index, inside: list[Value]) -> list[Value]:
                env = {**place.env, self._column: e.add(first, local)}
                tile = e.sub(local, start)
                elements = place.elements.inside(env, lambda node: self._read(memory, node, env, tile))
                return one(local, inside, elements)

            return e.loop((start, end, 1), neutral, inner)

        def block(start: Index, carried: list[Value]) -> list[Value]:
            return self._combined(stage, carried, several(start, e.minimum(e.add(start, TERMS), count)))

        if self._is_sum(stage) or self._needs_tiles(place, roots, stored):
            results = e.loop((0, count, TERMS), neutral, block)
        else:
            results = several(0, count)
        for number, row in enumerate(stage.rows):
            place.elements.know(row, results[number * s.vectors : (number + 1) * s.vectors])
        return results

    def _is_sum(self, stage: Stage) -> bool:
        """Return whether ``stage`` sums terms, in blocks for the sake of accuracy."""
        return any(row.combiner == "arith.addf" for row in stage.rows)

    def _needs_tiles(self, place: Place, roots: Sequence[Node], stored: Mapping[Node, int]) -> bool:
        """Return whether ``roots`` need inputs that are transposed some keys at a time."""
        needed = elements_below(roots, stored)
        return any(node in needed for node in self._tiled_inputs(place.own))

    def _tiled_inputs(self, own: Scratch) -> list[Node]:
        """Return the inputs that have a tile for some keys at a time."""
        return [each for each in self._p.inputs if each.number in own.tiles and self._column in each.dims]

    def _recall(self, place: Place, elements: Elements, stored: Mapping[Node, int], local: Index) -> None:
        """Emit loads of what is ``stored`` of a key."""
        e, s = self._e, self._s
        for node, array in stored.items():
            found = [
                load(e, s.lanes, place.own.arrays[array], [local, c * s.lanes]) for c in range(s.vectors)
            ]
            mark = self._marks(node)
            for each in found:
                if mark:
                    each.owner.attributes[mark] = ir.UnitAttr.get()
            elements.know(node, [e.cast(each, node.type) for each in found])

    def _marks(self, node: Node) -> str:
        """Return what is known of the numbers of bf16 that ``node`` is, or is a sum of products of."""
        if str(self._stored) == "bf16" and node.kind == "score":
            return PLAIN_ATTRIBUTE
        is_short = node.name == "arith.extf" and str(node.operands[0].type) == "bf16"
        return EXACT_ATTRIBUTE if is_short else ""

    def _neutral(self, row: Node) -> Value:
        value = -0.0 if row.combiner == "arith.addf" else -math.inf
        return self._e.number(self._e.vector_type(self._s.lanes, row.type), value)

    def _combined(self, stage: Stage, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        rows = [row for row in stage.rows for _ in range(self._s.vectors)]
        return [
            combined(row.combiner, one, other, either_zero=row in self._p.vanishing)
            for row, one, other in zip(rows, left, right, strict=True)
        ]

    def _read(self, memory: tuple[Scratch, Index], node: Node, env: Env, tile: Index) -> Value | list[Value]:
        """Emit the elements of an input for a key, the one number ``tile`` of those that were transposed."""
        e, s = self._e, self._s
        own, live = memory
        buffer = self._buffers[self._input(node)]
        if self._row not in node.dims:
            return element(e, buffer.value, buffer.indices(e, env))
        if node.number in own.tiles:
            source = own.tiles[node.number]
            if self._column not in node.dims:  # the same for all keys, and read before the first of them
                tile = 0
                self._emit_tile(node, memory, env, 1)
            found = [load(e, s.lanes, source, [tile, c * s.lanes]) for c in range(s.vectors)]
            return [self._condition(each) for each in found] if node.type == self._bit else found
        indices = buffer.indices(e, env)
        if self._queries % s.queries == 0:
            return [
                load(e, s.lanes, buffer.value, [*indices[:-1], e.add(indices[-1], c * s.lanes)])
                for c in range(s.vectors)
            ]
        return [
            self._load_masked(buffer.value, indices, c * s.lanes, e.sub(live, c * s.lanes))
            for c in range(s.vectors)
        ]

    def _condition(self, bytes_: Value) -> Value:
        """Emit conditions of the bytes that they are in memory."""
        return arith.CmpIOp(arith.CmpIPredicate.ne, bytes_, self._e.number(bytes_.type, 0)).result

    def _emit_tiles(
        self, place: Place, roots: Sequence[Node], stored: Mapping[Node, int], first: Index, count: Index
    ) -> None:
        """Emit tiles of the inputs that ``roots`` need and that have any."""
        needed = elements_below(roots, stored)
        for node in self._tiled_inputs(place.own):
            if node in needed:
                env = {**place.env, self._column: first}
                self._emit_tile(node, (place.own, place.live), env, count)

    def _emit_tile(self, node: Node, memory: tuple[Scratch, Index], env: Env, count: Index) -> None:
        """Emit the tile of an input, for ``count`` keys from the one of ``env`` on."""
        own, live = memory
        buffer = self._buffers[self._input(node)]
        kernel = tile_pack(self._s, self._p, node, buffer.access)
        step = buffer.strides.get(self._row if kernel.transposes else self._column, 0)
        target = own.tiles[node.number]
        self._pack(kernel, buffer.base, target, (live, count, step), source_first=buffer.at(self._e, env))


def elements_below(roots: Sequence[Node], stored: Mapping[Node, int]) -> set[Node]:
    """Return what ``roots`` are computed from by elements, down to what is ``stored``."""
    found: set[Node] = set()
    work = list(roots)
    while work:
        node = work.pop()
        if node not in found:
            found.add(node)
            if node not in stored and node.kind != "row":
                work += node.operands
    return found
