"""Partial results of reductions: memory for them, and sums that join them.

Where a reduced loop is cut in parts, or rows are added up in memory, each part has a result of its own. They
are joined in f64, which costs nothing beside the parts, and rounds once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.folds.reductions import Accumulators
from mind_mlir.lowering.schedule.fusion.groups.collapse import collapse_value, expand_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.nests.program import Output
    from mind_mlir.lowering.schedule.linalg_view.view import Env
    from mind_mlir.mlir.bindings import Value


class PartialResults:
    """Emits what is done with them outside of the parts.

    Args:
        lanes: Elements of a vector.
        parts: How many there are.
        last: Whether the parts of an element lie beside one another, rather than those of a part.
    """

    def __init__(self, emitter: Emitter, lanes: int, parts: int, *, last: bool) -> None:
        self._e = emitter
        self._lanes = lanes
        self._parts = parts
        self._last = last

    def memory(self, output: Output) -> Value:
        """Return a new tensor for the parts of ``output``, a reduction."""
        shape = output.destination.type.shape
        return self._e.empty([*shape, self._parts] if self._last else [self._parts, *shape], output.element)

    def clear(self, output: Output, partial: Value, parts: tuple[Index, Index]) -> Value:
        """Write what changes nothing to ``parts``, from one to that behind the last; return all of them."""
        neutral = output.combiner.nothing(self._e, self._e.vector_type(self._lanes, output.element))

        def clear(part: Index, inside: list[Value]) -> list[Value]:
            return self._e.vectors(
                partial.type.shape[-1],
                self._lanes,
                inside,
                lambda at, mask, now: [self._e.write(neutral, now[0], [part, at], mask)],
            )

        return self._e.loop((*parts, 1), [partial], clear)[0]

    def join(self, output: Output, partial: Value) -> Value:
        """Return the destination of ``output`` with what its ``partial`` results add up to."""
        shape = list(output.destination.type.shape)
        count, parts = math.prod(shape), self._parts
        flat = collapse_value(output.destination, [count] if shape else [])
        both = [count, parts] if self._last else [parts, count]
        partial = collapse_value(partial, both if shape else [parts])
        if not self._last:
            flat = self._columns(output, partial, flat)
        elif not shape:
            flat = self._element(output, partial, [], flat)
        else:
            (flat,) = self._e.loop(
                (0, count, 1), [flat], lambda i, now: [self._element(output, partial, [i], now[0])]
            )
        return expand_value(flat, shape)

    def _element(self, output: Output, partial: Value, at: list[Index], result: Value) -> Value:
        """Join the parts of one element, which lie beside one another."""
        combiner, element = output.combiner, output.element
        width = 1 << (self._parts - 1).bit_length()
        padding = combiner.nothing(self._e, element)
        mask = self._e.mask(width, self._parts)
        vector = self._e.read(self._e.vector_type(width, element), partial, [*at, 0], padding, mask)
        wide = combiner.wider(element)
        total = self._e.cast(combiner.horizontal(self._e.cast(vector, wide)), element)
        return self._e.insert(combiner.combine(output.begin(self._e, result, at), total), result, at)

    def _columns(self, output: Output, partial: Value, result: Value) -> Value:
        """Join parts that lie one after the other, a vector of elements at a time."""
        e, combiner, element = self._e, output.combiner, output.element
        type_ = e.vector_type(self._lanes, element)
        parts, count = partial.type.shape
        wide = combiner.wider(element)
        neutral = combiner.nothing(e, e.vector_type(self._lanes, wide))
        padding = combiner.nothing(e, element)
        accumulators = Accumulators(e, [combiner], [neutral])

        def vector(at: Index, mask: Value | None, now: list[Value]) -> list[Value]:
            def add(part: Index, inside: list[Value]) -> list[Value]:
                terms = e.read(type_, partial, [part, at], padding, mask)
                return [combiner.combine(inside[0], e.cast(terms, wide))]

            (total,) = accumulators.loop((0, parts, 1), parts, 1, accumulators.neutral, add)
            total = e.cast(total, element)
            if output.start is None:
                start = e.read(type_, now[0], [at], e.number(element, 0), mask)
            else:
                start = e.broadcast(type_, output.start)
            return [e.write(combiner.combine(start, total), now[0], [at], mask)]

        return e.vectors(count, self._lanes, [result], vector)[0]


class SummedRows(PartialResults):
    """Sums over rows of a nest, of which some that follow one another have one in common.

    A pass over a row adds to a partial sum in memory, which has as many elements as the row and stays in the
    cache. No more rows have one in common than an accumulator may take, and never rows of different chunks:
    what is added up in which order depends on the schedule alone.

    Args:
        outer: The extents of the loops over rows.
        rows: How many rows have one in common.
    """

    def __init__(self, emitter: Emitter, lanes: int, outer: Sequence[int], rows: int) -> None:
        self._outer, self._rows = outer, max(1, rows)
        #: Of the rows that lie behind one another, so many have one each.
        self._each = -(-outer[-1] // self._rows) if outer else 1
        super().__init__(emitter, lanes, math.prod(outer[:-1]) * self._each, last=False)

    def slot(self, env: Env, row: Index | None = None) -> Index:
        """Return which partial sum ``row``, or the row at ``env``, is added to."""
        place: Index = 0
        for dim, extent in enumerate(self._outer[:-1]):
            place = self._e.add(self._e.mul(place, extent), env[dim])
        row = env[len(self._outer) - 1] if row is None else row
        return self._e.add(self._e.mul(place, self._each), self._e.floordiv(row, self._rows))
