"""Passes over the scores of an attention, and elements of other tensors that they read, some in tiles."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.schedule.attention.memory import TERMS
from mind_mlir.lowering.schedule.emission.emitter import EXACT_ATTRIBUTE, PLAIN_ATTRIBUTE, Index
from mind_mlir.lowering.schedule.folds.reductions import Accumulators
from mind_mlir.lowering.schedule.scalars.graph import elements_below
from mind_mlir.mlir.bindings import Value, arith, ir

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.lowering.schedule.attention.nest import AttentionNest, QueryBlock
    from mind_mlir.lowering.schedule.scalars.graph import Scalar
    from mind_mlir.lowering.schedule.scalars.passes import ScalarPass
    from mind_mlir.lowering.schedule.scalars.values import ScalarValues

    #: Returns the elements of a key, given its number.
    At: TypeAlias = Callable[[Index], ScalarValues]
    from collections.abc import Collection, Iterable

    from mind_mlir.lowering.schedule.attention.memory import Scratch
    from mind_mlir.lowering.schedule.contraction.kernels.calls import KernelCalls
    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.lowering.schedule.linalg_view.view import Env


class Inputs:
    """Emits loads of elements of inputs."""

    def __init__(self, nest: AttentionNest, calls: KernelCalls) -> None:
        self._e = nest.e
        self._nest = nest
        self._calls = calls
        self._bit = ir.IntegerType.get_signless(1)
        self._tiled = nest.tiled_inputs

    def read(self, own: Scratch, live: Index, node: Scalar, env: Env, tile: Index) -> Value | list[Value]:
        """Emit the elements of an input for a key, the one number ``tile`` of those that were transposed."""
        e, lanes, buffer = self._e, self._nest.lanes, self._nest.input(node)
        if self._nest.row not in node.axes:
            return lanes.element_at(buffer.value, buffer.indices(e, env))
        if node in self._tiled:
            if self._nest.column not in node.axes:  # the same for all keys, and read before the first of them
                tile = 0
                self._emit_tile(node, own, live, env, 1)
            found = lanes.row(own["tiles", node.number], tile)
            return [self._condition(each) for each in found] if node.type == self._bit else found
        indices = buffer.indices(e, env)
        firsts = range(0, lanes.vectors * lanes.count, lanes.count)
        if not self._nest.is_ragged:
            return [lanes.load(buffer.value, [*indices[:-1], e.add(indices[-1], first)]) for first in firsts]
        return [lanes.load_live(buffer.value, indices, e.sub(live, first), offset=first) for first in firsts]

    def _condition(self, bytes_: Value) -> Value:
        """Emit conditions of the bytes that they are in memory."""
        return arith.CmpIOp(arith.CmpIPredicate.ne, bytes_, self._e.number(bytes_.type, 0)).result

    def in_tiles(self, roots: Iterable[Scalar], stored: Collection[Scalar]) -> list[Scalar]:
        """Return the inputs that are transposed some keys at a time, and that ``roots`` need."""
        needed = elements_below(roots, stored)
        return [each for each in self._tiled if self._nest.column in each.axes and each in needed]

    def emit_tiles(
        self, nodes: Sequence[Scalar], own: Scratch, live: Index, env: Env, keys: tuple[Index, Index]
    ) -> None:
        """Emit tiles of inputs, for keys from the first of ``keys`` on, so many."""
        first, count = keys
        for node in nodes:
            self._emit_tile(node, own, live, {**env, self._nest.column: first}, count)

    def _emit_tile(self, node: Scalar, own: Scratch, live: Index, env: Env, count: Index) -> None:
        """Emit the tile of an input, for ``count`` keys from the one of ``env`` on."""
        buffer = self._nest.input(node)
        kernel = self._nest.kernels.tile(node, buffer.access)
        step = buffer.strides.get(self._nest.row if kernel.transposes else self._nest.column, 0)
        source = buffer.base, buffer.at(self._e, env)
        self._calls.pack(kernel, source, own["tiles", node.number], (live, count, step))


@dataclasses.dataclass(frozen=True)
class Keys:
    """Some keys, and what is stored of them.

    Attributes:
        first: The first one.
        count: How many there are.
        stored: Nodes that arrays have of them, each with the number of its array.
    """

    first: Index
    count: Index
    stored: Mapping[Scalar, int]


class ScorePasses:
    """Emits passes over the scores of a block of queries."""

    def __init__(self, nest: AttentionNest, inputs: Inputs) -> None:
        self._e = nest.e
        self._nest = nest
        self._inputs = inputs

    def run(self, block: QueryBlock, stage: ScalarPass, keys: Keys) -> list[Value]:
        """Emit a pass; what it reduces is then known of the block, and returned."""
        e, lanes = self._e, self._nest.lanes
        roots = [*(row.operands[0] for row in stage.folds), *(node for _, node in stage.stores)]
        if not roots:
            return []
        block.elements.compute(roots, keys.stored, self._nest.column)
        folds = [
            (self._nest.program.fold(row), row.type) for row in stage.folds for _ in range(lanes.vectors)
        ]
        neutral = [e.splat(lanes.type(type_), fold.neutral_attribute(type_)) for fold, type_ in folds]
        folded = Accumulators(e, [fold for fold, _ in folds], neutral)

        def one(at: At, local: Index, carried: list[Value]) -> list[Value]:
            elements = at(local)
            terms = [value for row in stage.folds for value in elements.vectors(row.operands[0])]
            kept = [(array, elements.vectors(node)) for array, node in stage.stores]
            for array, values in kept:
                lanes.store_row(values, block.own["array", array], local)
            return folded.join(carried, terms)

        def some(start: Index, carried: list[Value]) -> list[Value]:
            end = e.minimum(e.add(start, TERMS), keys.count)
            return folded.join(carried, self.each(block, roots, keys, (start, end, 1), neutral, one))

        sums = any(row.combiner == "arith.addf" for row in stage.folds)
        if sums or self._inputs.in_tiles(roots, keys.stored):
            results = e.loop((0, keys.count, TERMS), neutral, some)
        else:
            results = self.each(block, roots, keys, (0, keys.count, 1), neutral, one)
        for number, row in enumerate(stage.folds):
            block.elements.know(row, results[number * lanes.vectors : (number + 1) * lanes.vectors])
        return results

    def each(
        self,
        block: QueryBlock,
        roots: Sequence[Scalar],
        keys: Keys,
        bounds: tuple[Index, Index, int],
        carried: list[Value],
        body: Callable[[At, Index, list[Value]], list[Value]],
    ) -> list[Value]:
        """Emit a loop over some of ``keys``, not more than a tile has where ``roots`` need any.

        Args:
            block: The queries.
            roots: What the body computes.
            keys: The keys, of which ``bounds`` are numbers.
            bounds: The first key, the one behind the last, and the step.
            carried: What goes from key to key.
            body: Is given what returns the elements of a key, and the number of one.
        """
        e, start, end = self._e, *bounds[:2]
        tiles = self._inputs.in_tiles(roots, keys.stored)
        self._inputs.emit_tiles(
            tiles, block.own, block.live, block.env, (e.add(keys.first, start), e.sub(end, start))
        )
        return e.loop(
            bounds,
            carried,
            lambda local, inside: body(lambda key: self._at(block, keys, start, key), local, inside),
        )

    def _at(self, block: QueryBlock, keys: Keys, start: Index, local: Index) -> ScalarValues:
        """Return the elements of a key; the one number ``start`` is the first of a tile."""
        env = {**block.env, self._nest.column: self._e.add(keys.first, local)}
        tile = self._e.sub(local, start)
        elements = block.elements.inside(
            env, lambda node: self._inputs.read(block.own, block.live, node, env, tile)
        )
        for node, array in keys.stored.items():
            found = self._nest.lanes.row(block.own["array", array], local)
            mark = self._marks(node)
            for each in found if mark else ():
                each.owner.attributes[mark] = ir.UnitAttr.get()
            elements.know(node, [self._e.cast(each, node.type) for each in found])
        return elements

    def _marks(self, node: Scalar) -> str:
        """Return what is known of the numbers of bf16 that ``node`` is, or is a sum of products of."""
        if str(self._nest.stored) == "bf16" and node.kind == "product":
            return PLAIN_ATTRIBUTE
        is_short = node.name == "arith.extf" and str(node.operands[0].type) == "bf16"
        return EXACT_ATTRIBUTE if is_short else ""
