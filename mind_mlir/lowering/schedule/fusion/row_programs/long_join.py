"""Joins what was reduced of each piece of a row. Sums are joined in f64, in the order of the pieces."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index, zero
from mind_mlir.lowering.schedule.fusion.groups.reductions import Combiner, match_combiners
from mind_mlir.lowering.schedule.fusion.nests.join import wider
from mind_mlir.lowering.schedule.fusion.row_programs.relative import Kind, Relative
from mind_mlir.mlir.bindings import arith, ir
from mind_mlir.mlir.bindings import math as math_

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.lowering.schedule.fusion.row_programs.long_segments import SegmentValues
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.mlir.bindings import Attribute, Type, Value


class SegmentJoiner:
    """Joins the numbers of the pieces of a row.

    Args:
        emitter: Where to emit.
        lanes: Elements in a vector.
        count: Pieces.
    """

    def __init__(self, emitter: Emitter, lanes: int, count: int) -> None:
        self._e = emitter
        self._lanes = lanes
        self._count = count

    def total(self, view: View, number: int, numbers: SegmentValues) -> Value:
        """Return what result ``number`` of ``view``, a reduction, adds up to."""
        combiner = _combiner(view, number)
        tensor = numbers.totals[view.op.results[number]]
        element = ir.RankedTensorType(tensor.type).element_type
        wide = wider(combiner, element)
        found = self._joined(
            combiner,
            wide,
            lambda at, mask: self._widened(
                self._read(tensor, at, mask, combiner.neutral_attribute(element)), wide
            ),
        )
        return found if wide == element else arith.TruncFOp(element, found).result

    def relative(self, sum_: Relative, view: View, numbers: SegmentValues, centre: Value) -> Value:
        """Return what the sum ``sum_`` of ``view`` adds up to, now that its ``centre`` is known."""
        combiner = _combiner(view, 0)
        element = centre.type
        wide = wider(combiner, element)
        terms = self._exponentials if sum_.kind is Kind.EXPONENTIALS else self._squares
        found = self._joined(combiner, wide, lambda at, mask: terms(sum_, numbers, centre, wide, at, mask))
        return found if wide == element else arith.TruncFOp(element, found).result

    def _exponentials(
        self,
        sum_: Relative,
        numbers: SegmentValues,
        centre: Value,
        wide: Type,
        at: Index,
        mask: Value | None,
    ) -> Value:
        """Return the sums of some pieces, as if the maximum of the row had been subtracted.

        Where the maximum of a piece is minus infinity, its sum is zero, and so is the factor unless all of
        the row is minus infinity: then it is NaN, as it would be in one piece.
        """
        element = centre.type
        lowest = ir.FloatAttr.get(element, -float("inf"))
        greatest = self._read(numbers.totals[sum_.source], at, mask, lowest)
        totals = self._read(numbers.totals[sum_.result], at, mask, zero(element))
        less = arith.SubFOp(greatest, self._e.broadcast(greatest.type, centre)).result
        factor = self._widened(math_.ExpOp(less).result, wide)
        return arith.MulFOp(self._widened(totals, wide), factor).result

    def _squares(
        self,
        sum_: Relative,
        numbers: SegmentValues,
        centre: Value,
        wide: Type,
        at: Index,
        mask: Value | None,
    ) -> Value:
        """Return the sums of some pieces, as if the number of the row had been subtracted."""
        nothing = zero(centre.type)
        tensors = (numbers.totals[sum_.result], numbers.rests[sum_.result], *numbers.counts)
        total, rest, count = (self._widened(self._read(t, at, mask, nothing), wide) for t in tensors)
        own = self._widened(self._read(numbers.own[sum_.result], at, mask, nothing), wide)
        type_ = total.type
        row = self._widened(self._e.broadcast(self._e.vector_type(self._lanes, centre.type), centre), wide)
        two = self._e.splat(type_, ir.FloatAttr.get(wide, 2.0))
        apart = arith.SubFOp(own, row).result
        inner = arith.AddFOp(arith.MulFOp(two, rest).result, arith.MulFOp(count, apart).result).result
        return arith.AddFOp(total, arith.MulFOp(apart, inner).result).result

    def _joined(self, combiner: Combiner, wide: Type, terms: Callable[[Index, Value | None], Value]) -> Value:
        """Combine the ``terms`` of all pieces, a vector of them at a time."""
        type_ = self._e.vector_type(self._lanes, wide)
        neutral = self._e.splat(type_, combiner.neutral_attribute(wide))
        full = self._count - self._count % self._lanes
        (total,) = self._e.loop(
            (0, full, self._lanes), [neutral], lambda at, now: [combiner.combine(now[0], terms(at, None))]
        )
        if full != self._count:
            mask = self._e.mask(self._lanes, self._count - full)
            last = terms(full, mask)
            total = combiner.combine(total, self._e.select(mask, last, neutral))
        return combiner.horizontal(total)

    def _read(self, tensor: Value, at: Index, mask: Value | None, padding: Attribute) -> Value:
        element = ir.RankedTensorType(tensor.type).element_type
        type_ = self._e.vector_type(self._lanes, element)
        return self._e.read(type_, tensor, [at], self._e.splat(element, padding), mask)

    def _widened(self, vector: Value, element: Type) -> Value:
        if ir.VectorType(vector.type).element_type == element:
            return vector
        return arith.ExtFOp(self._e.vector_type(self._lanes, element), vector).result


def _combiner(view: View, number: int) -> Combiner:
    combiners = match_combiners(view.body, view.results)
    assert combiners is not None, "what is reduced in vectors is combined"
    return replace(combiners[number], location=view.op.location)
