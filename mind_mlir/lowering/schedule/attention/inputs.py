"""Elements of other tensors that passes over the scores of an attention read, some of them in tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.scalars.graph import elements_below
from mind_mlir.mlir.bindings import Value, arith, ir

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from mind_mlir.lowering.schedule.attention.calls import KernelCalls
    from mind_mlir.lowering.schedule.attention.memory import Scratch
    from mind_mlir.lowering.schedule.attention.nest import AttentionNest
    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.lowering.schedule.linalg_view.view import Env
    from mind_mlir.lowering.schedule.scalars.graph import Scalar


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
