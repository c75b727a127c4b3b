"""Emits a group as one loop nest over vectors.

The loops over parallel dimensions are outermost. A vector dimension that is parallel is cut in chunks of a
few vectors, with reduction loops inside each chunk; one that is reduced is innermost, with several
accumulators that are joined at its end. What does not depend on a loop is read before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.bindings import arith, ir, vector
from mind_mlir.lowering.schedule.emission.decision import Choice
from mind_mlir.lowering.schedule.fusion.combiner import match_combiners
from mind_mlir.lowering.schedule.fusion.elements import Chunk, Elements, Known
from mind_mlir.lowering.schedule.fusion.group import widest
from mind_mlir.lowering.schedule.fusion.output import Output, Stores, wanted_values

if TYPE_CHECKING:
    from mind_mlir.bindings import Value
    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.combiner import Combiner
    from mind_mlir.lowering.schedule.fusion.group import Group
    from mind_mlir.lowering.schedule.reading.view import Env
    from mind_mlir.target import Target

#: Vectors in a chunk, for bodies of up to so many operations each.
_CHUNKS = ((2, 4), (8, 2))
#: Accumulators of a reduction along the vector dimension: enough to hide the latency of an addition.
_ACCUMULATORS = 4


#: Rows of a reduction over rows that are read side by side where there are many long ones: so few that the
#: processor prefetches all of them.
STRIP = 8


def in_strips(group: Group) -> bool:
    """Return whether ``group`` reduces so many and long rows that it goes over the results once a strip."""
    if not group.reductions or group.vector in group.reductions:
        return False
    row = group.extents[group.vector] * widest(group.members) // 8
    return row >= _LONG_ROW and group.extents[group.reductions[0]] > 2 * STRIP


#: Bytes in a row from where on one row after another is no longer prefetched: a page.
_LONG_ROW = 4096


def _chunk_vectors(group: Group, lanes: int) -> int:
    """Return how many vectors of a parallel vector loop are computed side by side."""
    wanted = next((vectors for most, vectors in _CHUNKS if group.weight <= most), 1)
    if group.reductions:
        wanted = max(wanted, _ACCUMULATORS)
    return max(1, min(wanted, group.extents[group.vector] // lanes))


def _row_accumulators(extent: int, lanes: int) -> int:
    """Return how many vectors of a reduced vector loop are accumulated side by side."""
    return max(1, min(_ACCUMULATORS, extent // lanes))


def choices(group: Group, target: Target) -> tuple[Choice, ...]:
    """Return what is chosen for the nest of ``group``, and why."""
    if group.vector < 0:
        return (Choice("vectors", "none", "single elements"),)
    bits = widest(group.members)
    lanes = target.lanes(bits)
    along = f"along loop {group.vector}, elements of up to {bits} bits"
    if group.vector in group.reductions:
        count = _row_accumulators(group.extents[group.vector], lanes)
        found = [
            Choice("vectors", f"1 x {lanes}", along),
            Choice("sums", f"{count} side by side", "they hide the latency of an addition"),
        ]
    else:
        count = _chunk_vectors(group, lanes)
        found = [Choice("vectors", f"{count} x {lanes}", f"{along}; operations on each: {group.weight}")]
    if in_strips(group):
        found.append(Choice("strips", f"of {STRIP} rows", "rows are too long to be prefetched one by one"))
    return tuple(found)


class GroupEmitter:
    """Emits one group.

    Args:
        emitter: where to emit.
        group: what to compute.
        outputs: the results that are used outside of the group, reductions among them.
        target: the processor.
    """

    def __init__(self, emitter: Emitter, group: Group, outputs: list[Output], target: Target) -> None:
        self._e = emitter
        self._g = group
        self._fma = target.fma
        self._outputs = outputs
        self._lanes = target.lanes(widest(group.members))
        wanted = [value for output in outputs for value in wanted_values(output)]
        self._elements = Elements(emitter, group, self._lanes, wanted)
        self._stores = Stores(emitter, group, self._lanes)
        self._reducers = [output for output in outputs if output.member.reductions]
        self._streams = [output for output in outputs if not output.member.reductions]
        self._combiners: list[Combiner] = []
        for output in self._reducers:
            combiners = match_combiners(output.member.body, output.member.results)
            assert combiners is not None  # `vector_dims` is empty otherwise
            self._combiners.append(combiners[output.number])

    def emit(self, known: Known) -> list[Value]:
        """Emit the nest at the insertion point; return the tensors of the outputs, in their order.

        Args:
            known: Other values for some that the bodies take from outside.
        """
        rank = len(self._g.extents)
        outer = [dim for dim in range(rank) if dim != self._g.vector and dim not in self._g.reductions]
        carried = [output.destination for output in (*self._streams, *self._reducers)]
        carried = self._outer(outer, {}, self._elements.advance({}, known), carried)
        by_output = dict(zip((id(o) for o in (*self._streams, *self._reducers)), carried, strict=True))
        return [by_output[id(output)] for output in self._outputs]

    def _outer(self, dims: list[int], env: Env, known: Known, carried: list[Value]) -> list[Value]:
        if not dims:
            return self._vector_loop(env, known, carried)

        def body(i: Index, inside: list[Value]) -> list[Value]:
            here = env | {dims[0]: i}
            return self._outer(dims[1:], here, self._elements.advance(here, known), inside)

        return self._e.loop((0, self._g.extents[dims[0]], 1), carried, body)

    def _vector_loop(self, env: Env, known: Known, carried: list[Value]) -> list[Value]:
        if self._g.vector < 0:
            return self._single(known, carried)
        if self._g.vector in self._g.reductions:
            return self._reduce_rows(env, known, carried)
        if not self._g.reductions:
            return self._chunks(env, known, (0, 1), carried)
        extent = self._g.extents[self._g.reductions[0]]
        step = STRIP if in_strips(self._g) else extent

        def strip(i: Index, inside: list[Value]) -> list[Value]:
            end = self._e.add(i, step)
            end = self._e.minimum(end, extent) if extent % step else end
            return self._chunks(env, known, (i, end), inside)

        return self._e.loop((0, extent, step), carried, strip)

    def _single(self, known: Known, carried: list[Value]) -> list[Value]:
        """Store the outputs of a group without loops, each a single element."""
        pairs = zip(self._streams, carried, strict=True)
        return [self._e.insert(self._elements.scalar(o.result, known), tensor, []) for o, tensor in pairs]

    # A parallel vector dimension.

    def _chunks(
        self, env: Env, known: Known, strip: tuple[Index, Index], carried: list[Value]
    ) -> list[Value]:
        """Cut the vector dimension in chunks; what is left of it is one shorter chunk with a masked end."""
        extent = self._g.extents[self._g.vector]
        vectors = _chunk_vectors(self._g, self._lanes)
        step = vectors * self._lanes
        full = extent - extent % step
        carried = self._e.loop(
            (0, full, step),
            carried,
            lambda i, inside: self._chunk(env, known, strip, Chunk(i, vectors, None), inside),
        )
        if extent == full:
            return carried
        count = -(-(extent - full) // self._lanes)
        mask = self._e.mask(self._lanes, extent - full - (count - 1) * self._lanes)
        return self._chunk(env, known, strip, Chunk(full, count, mask), carried)

    def _chunk(
        self, env: Env, known: Known, strip: tuple[Index, Index], chunk: Chunk, carried: list[Value]
    ) -> list[Value]:
        if not self._g.reductions:
            computed = self._elements.chunk(env, known, chunk, self._now(carried))
            return self._store_streams(env, chunk, computed, carried)
        streams, results = carried[: len(self._streams)], carried[len(self._streams) :]
        starts = [
            self._stores.start(output, result, env, chunk, v)
            for output, result in zip(self._reducers, results, strict=True)
            for v in range(chunk.vectors)
        ]
        values = self._reduction_loops(self._g.reductions, strip, env, known, chunk, [*streams, *starts])
        streams, accumulators = values[: len(streams)], values[len(streams) :]
        for number, output in enumerate(self._reducers):
            own = accumulators[number * chunk.vectors : (number + 1) * chunk.vectors]
            results[number] = self._stores.store(output, results[number], env, chunk, own)
        return [*streams, *results]

    def _reduction_loops(
        self,
        dims: tuple[int, ...],
        bounds: tuple[Index, Index],
        env: Env,
        known: Known,
        chunk: Chunk,
        carried: list[Value],
    ) -> list[Value]:
        if not dims:
            return self._accumulate(env, known, chunk, carried)

        def body(i: Index, inside: list[Value]) -> list[Value]:
            here = env | {dims[0]: i}
            following = (0, self._g.extents[dims[1]]) if len(dims) > 1 else (0, 1)
            now = self._elements.advance(here, known)
            return self._reduction_loops(dims[1:], following, here, now, chunk, inside)

        return self._e.loop((*bounds, 1), carried, body)

    def _accumulate(self, env: Env, known: Known, chunk: Chunk, carried: list[Value]) -> list[Value]:
        """Compute one chunk and combine its reductions with the accumulators, which follow the streams."""
        count = len(self._streams)
        computed = self._elements.chunk(env, known, chunk, self._now(carried))
        following = self._store_streams(env, chunk, computed, carried[:count])
        accumulators = iter(carried[count:])
        for output, combiner in zip(self._reducers, self._combiners, strict=True):
            following += [self._combine(output, combiner, next(accumulators), lanes) for lanes in computed]
        return following

    def _now(self, carried: list[Value]) -> dict[Value, Value]:
        """Return what the destinations of the streams are by now, which ``carried`` starts with."""
        return {output.destination: now for output, now in zip(self._streams, carried, strict=False)}

    def _combine(self, output: Output, combiner: Combiner, accumulator: Value, known: Known) -> Value:
        """Combine what a reduction computed with an accumulator, fused if it is a product."""
        values = [self._elements.vector(value, known) for value in wanted_values(output)]
        if len(values) == 1:
            return combiner.combine(accumulator, values[0])
        if self._fma:
            return vector.FMAOp(*values, accumulator).result
        return combiner.combine(accumulator, arith.MulFOp(*values).result)

    def _store_streams(
        self, env: Env, chunk: Chunk, computed: list[Known], carried: list[Value]
    ) -> list[Value]:
        stored = list(carried)
        for place, output in enumerate(self._streams):
            values = [self._elements.vector(output.result, known) for known in computed]
            stored[place] = self._stores.store(output, stored[place], env, chunk, values)
        return stored

    # A reduced vector dimension.

    def _reduce_rows(self, env: Env, known: Known, carried: list[Value]) -> list[Value]:
        count = len(self._streams)
        streams, results = carried[:count], carried[count:]
        extent = self._g.extents[self._g.vector]
        vectors = _row_accumulators(extent, self._lanes)
        neutrals = []
        for output, combiner in zip(self._reducers, self._combiners, strict=True):
            element = ir.RankedTensorType(output.destination.type).element_type
            type_ = self._e.vector_type(self._lanes, element)
            neutrals += [self._e.splat(type_, combiner.neutral_attribute(element))] * vectors
        others = tuple(dim for dim in self._g.reductions if dim != self._g.vector)
        values = self._row_loops(others, env, known, vectors, [*streams, *neutrals])
        streams, accumulators = values[:count], values[count:]
        for number, (output, combiner) in enumerate(zip(self._reducers, self._combiners, strict=True)):
            own = accumulators[number * vectors : (number + 1) * vectors]
            total = combiner.horizontal(_join(combiner, own))
            results[number] = self._stores.store_total(output, results[number], env, combiner.combine, total)
        return [*streams, *results]

    def _row_loops(
        self, dims: tuple[int, ...], env: Env, known: Known, vectors: int, carried: list[Value]
    ) -> list[Value]:
        if dims:

            def body(i: Index, inside: list[Value]) -> list[Value]:
                here = env | {dims[0]: i}
                return self._row_loops(dims[1:], here, self._elements.advance(here, known), vectors, inside)

            return self._e.loop((0, self._g.extents[dims[0]], 1), carried, body)
        extent = self._g.extents[self._g.vector]
        step = vectors * self._lanes
        full = extent - extent % step
        carried = self._e.loop(
            (0, full, step),
            carried,
            lambda i, inside: self._accumulate(env, known, Chunk(i, vectors, None), inside),
        )
        return self._row_end(env, known, vectors, full, carried)

    def _row_end(self, env: Env, known: Known, vectors: int, first: int, carried: list[Value]) -> list[Value]:
        """Accumulate what is left of a row after its full steps: single vectors, the last one masked."""
        extent = self._g.extents[self._g.vector]
        count = len(self._streams)
        for number, at in enumerate(range(first, extent, self._lanes)):
            mask = self._e.mask(self._lanes, extent - at)
            picked = [count + group * vectors + number for group in range(len(self._reducers))]
            given = [*carried[:count], *(carried[place] for place in picked)]
            taken = self._accumulate_masked(env, known, Chunk(at, 1, mask), given)
            carried = [*taken[:count], *carried[count:]]
            for place, value in zip(picked, taken[count:], strict=True):
                carried[place] = value
        return carried

    def _accumulate_masked(self, env: Env, known: Known, chunk: Chunk, carried: list[Value]) -> list[Value]:
        following = self._accumulate(env, known, chunk, carried)
        if chunk.mask is None:
            return following
        count = len(self._streams)
        kept = [
            self._e.select(chunk.mask, new, old)
            for new, old in zip(following[count:], carried[count:], strict=True)
        ]
        return [*following[:count], *kept]


def _join(combiner: Combiner, values: list[Value]) -> Value:
    """Combine ``values`` pairwise, the first half with the second."""
    while len(values) > 1:
        half = (len(values) + 1) // 2
        rest = values[half:]
        values = [combiner.combine(values[i], rest[i]) if i < len(rest) else values[i] for i in range(half)]
    return values[0]
