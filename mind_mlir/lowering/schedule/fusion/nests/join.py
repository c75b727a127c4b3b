"""Joins the partial results of a reduction whose loop was cut in parts: a second, short nest.

Sums are joined in f64: that costs nothing beside the parts, and rounds once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index, zero
from mind_mlir.lowering.schedule.fusion.groups.collapse import collapse_value, expand_value
from mind_mlir.lowering.schedule.fusion.groups.reductions import Accumulators, Combiner
from mind_mlir.mlir.bindings import Type, Value, arith, ir

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.fusion.nests.output import Output


def partial_results(emitter: Emitter, output: Output, parts: int, *, last: bool) -> Value:
    """Return a new tensor for ``parts`` partial results of ``output``.

    Args:
        emitter: Where to emit.
        output: A reduction.
        parts: How many.
        last: Whether the parts of an element lie beside one another, rather than those of a part.
    """
    type_ = ir.RankedTensorType(output.destination.type)
    shape = [*type_.shape, parts] if last else [parts, *type_.shape]
    return emitter.empty(shape, type_.element_type)


class Joiner:
    """Joins partial results.

    Args:
        emitter: Where to emit.
        lanes: Elements in a vector.
    """

    def __init__(self, emitter: Emitter, lanes: int) -> None:
        self._e = emitter
        self._lanes = lanes

    def join(self, output: Output, combiner: Combiner, partial: Value, *, last: bool) -> Value:
        """Return ``output``'s destination with the joined ``partial`` results (see `partial_results`)."""
        shape = list(output.destination.type.shape)
        parts = partial.type.shape[-1 if last else 0]
        count = math.prod(shape)
        flat = collapse_value(output.destination, [count] if shape else [])
        partial = collapse_value(partial, ([count, parts] if last else [parts, count]) if shape else [parts])
        if not last:
            flat = self._columns(output, combiner, partial, flat)
        elif not shape:
            flat = self._element(output, combiner, partial, [], flat)
        else:
            (flat,) = self._e.loop(
                (0, count, 1), [flat], lambda i, now: [self._element(output, combiner, partial, [i], now[0])]
            )
        return expand_value(flat, shape)

    def _element(
        self, output: Output, combiner: Combiner, partial: Value, at: list[Index], result: Value
    ) -> Value:
        """Join the parts of one element, which lie beside one another."""
        element = ir.RankedTensorType(partial.type).element_type
        parts = partial.type.shape[-1]
        width = 1 << (parts - 1).bit_length()
        padding = self._e.splat(element, combiner.neutral_attribute(element))
        mask = self._e.mask(width, parts)
        vector = self._e.read(self._e.vector_type(width, element), partial, [*at, 0], padding, mask)
        wide = wider(combiner, element)
        total = combiner.horizontal(self._widened(vector, wide))
        total = total if wide == element else arith.TruncFOp(element, total).result
        start = self._e.extract(result, at) if output.start is None else output.start
        return self._e.insert(combiner.combine(start, total), result, at)

    def _columns(self, output: Output, combiner: Combiner, partial: Value, result: Value) -> Value:
        """Join parts that lie one after the other, a vector of elements at a time."""
        element = ir.RankedTensorType(partial.type).element_type
        type_ = self._e.vector_type(self._lanes, element)
        parts, count = partial.type.shape
        wide = wider(combiner, element)
        neutral = self._e.splat(self._e.vector_type(self._lanes, wide), combiner.neutral_attribute(wide))
        padding = self._e.splat(element, combiner.neutral_attribute(element))
        accumulators = Accumulators(self._e, [combiner], [neutral])

        def vector(at: Index, mask: Value | None, now: Value) -> Value:
            (total,) = accumulators.loop(
                (0, parts, 1),
                parts,
                1,
                accumulators.neutral,
                lambda part, inside: [
                    combiner.combine(
                        inside[0],
                        self._widened(self._e.read(type_, partial, [part, at], padding, mask), wide),
                    )
                ],
            )
            total = total if wide == element else arith.TruncFOp(type_, total).result
            start = self._start(output, type_, now, at, mask)
            return self._e.write(combiner.combine(start, total), now, [at], mask)

        full = count - count % self._lanes
        (result,) = self._e.loop(
            (0, full, self._lanes), [result], lambda at, inside: [vector(at, None, inside[0])]
        )
        return result if full == count else vector(full, self._e.mask(self._lanes, count - full), result)

    def _widened(self, vector: Value, element: Type) -> Value:
        if ir.VectorType(vector.type).element_type == element:
            return vector
        return arith.ExtFOp(self._e.vector_type(vector.type.shape[0], element), vector).result

    def _start(self, output: Output, type_: Type, result: Value, at: Index, mask: Value | None) -> Value:
        if output.start is not None:
            return self._e.broadcast(type_, output.start)
        element = ir.VectorType(type_).element_type
        padding = self._e.splat(element, zero(element))
        return self._e.read(type_, result, [at], padding, mask)


def wider(combiner: Combiner, element: Type) -> Type:
    """Return the type that parts are joined in: a wider one where that keeps the sum from rounding again."""
    if combiner.name == "arith.addf" and not isinstance(element, ir.F64Type):
        return ir.F64Type.get()
    return element
