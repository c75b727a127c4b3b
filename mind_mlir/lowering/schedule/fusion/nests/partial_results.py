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

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.nests.program import Folded, Output
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

    def clear(self, each: Folded, partial: list[Value], parts: tuple[Index, Index]) -> list[Value]:
        """Write what stands for no terms to ``parts``, from one to that behind the last; return all."""
        nothing, extent = each.nothing(self._e, self._lanes), partial[0].type.shape[-1]

        def clear(part: Index, inside: list[Value]) -> list[Value]:
            def write(at: Index, mask: Value | None, now: list[Value]) -> list[Value]:
                pairs = zip(nothing, now, strict=True)
                return [self._e.write(value, tensor, [part, at], mask) for value, tensor in pairs]

            return self._e.vectors(extent, self._lanes, inside, write)

        return self._e.loop((*parts, 1), partial, clear)

    def join(self, each: Folded, partial: Sequence[Value]) -> list[Value]:
        """Return the destinations of ``each`` with what its ``partial`` results add up to."""
        shape = list(each.outputs[0].destination.type.shape)
        count, parts = math.prod(shape), self._parts
        flat = [collapse_value(tensor, [count] if shape else []) for tensor in each.destinations]
        both = [count, parts] if self._last else [parts, count]
        partial = [collapse_value(value, both if shape else [parts]) for value in partial]
        if not self._last:
            flat = self._columns(each, partial, flat)
        elif not shape:
            flat = self._element(each, partial, [], flat)
        else:
            flat = self._e.loop((0, count, 1), flat, lambda i, now: self._element(each, partial, [i], now))
        return [expand_value(value, shape) for value in flat]

    def _element(
        self, each: Folded, partial: Sequence[Value], at: list[Index], results: list[Value]
    ) -> list[Value]:
        """Join the parts of one element, which lie beside one another."""
        e, fold = self._e, each.fold
        width = 1 << (self._parts - 1).bit_length()
        elements = [output.element for output in each.outputs]
        paddings = fold.nothings(e, elements)
        mask = e.mask(width, self._parts)
        lanes = []
        for value, element, padding in zip(partial, elements, paddings, strict=True):
            vector = e.read(e.vector_type(width, element), value, [*at, 0], padding, mask)
            lanes.append(e.cast(vector, fold.wider(element)))
        pairs = zip(fold.totals(e, lanes), elements, strict=True)
        totals = [e.cast(total, element) for total, element in pairs]
        found = zip(each.begun(e, results, at, totals), results, strict=True)
        return [e.insert(value, result, at) for value, result in found]

    def _columns(self, each: Folded, partial: Sequence[Value], results: list[Value]) -> list[Value]:
        """Join parts that lie one after the other, a vector of elements at a time."""
        e, fold = self._e, each.fold
        parts, count = partial[0].type.shape
        elements = [output.element for output in each.outputs]
        types = [e.vector_type(self._lanes, element) for element in elements]
        neutral = each.nothing(e, self._lanes, wide=True)
        paddings = fold.nothings(e, elements)
        accumulators = Accumulators(e, [fold], neutral)

        def vector(at: Index, mask: Value | None, now: list[Value]) -> list[Value]:
            def add(part: Index, inside: list[Value]) -> list[Value]:
                terms = []
                for type_, value, padding in zip(types, partial, paddings, strict=True):
                    read = e.read(type_, value, [part, at], padding, mask)
                    terms.append(e.cast(read, fold.wider(type_.element_type)))
                return fold.joined(inside, terms)

            totals = accumulators.loop((0, parts, 1), parts, 1, accumulators.neutral, add)
            totals = [e.cast(total, element) for total, element in zip(totals, elements, strict=True)]
            starts = [
                e.read(type_, tensor, [at], e.number(element, 0), mask)
                if output.start is None
                else e.broadcast(type_, output.start)
                for output, tensor, type_, element in zip(each.outputs, now, types, elements, strict=True)
            ]
            found = fold.joined(starts, totals)
            return [e.write(value, tensor, [at], mask) for value, tensor in zip(found, now, strict=True)]

        return e.vectors(count, self._lanes, results, vector)


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
