"""What is reduced of the segments of a row: the numbers of each, and how those of all are joined, in f64.

A sum or a maximum has one number a segment. A sum of exponentials is relative to the maximum of its segment,
which is another reduction. A sum of squares is relative to the mean of its segment, and has three numbers
more: that mean, the sum of the differences, and the elements of the segment.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.schedule.emission.emitter import zero
from mind_mlir.lowering.schedule.fusion.nests.body import Output, combiner_of
from mind_mlir.lowering.schedule.fusion.row_programs.relative import Kind, Relative
from mind_mlir.mlir.bindings import Value, arith, ir
from mind_mlir.mlir.bindings import math as math_

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.nests.plan import Root
    from mind_mlir.lowering.schedule.fusion.row_programs.passes import Stage
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.mlir.bindings import Attribute, Type

    #: Reads a vector of numbers; lanes beyond the last segment hold zero unless another number is given.
    Read: TypeAlias = Callable[..., Value]

#: Tensors with an element a segment, as they are by now: by the name of what it is, and the reduction that it
#: belongs to, if that is one.
Numbers: TypeAlias = "dict[tuple[str, Value | None], Value]"


class SegmentFolds:
    """Joins the numbers of the segments of a row that a stage reduces.

    Args:
        lanes: Elements of a vector.
        count: Segments.
    """

    def __init__(self, emitter: Emitter, stage: Stage, lanes: int, count: int) -> None:
        self._e = emitter
        self._stage = stage
        self._relative = {each.result: each for each in stage.relative}
        self._lanes = lanes
        self._count = count

    def memory(self) -> Numbers:
        """Emit memory for the numbers of the segments of one row."""
        views = [view for part in self._stage.passes for view in part.reduced]
        squares = [each.result for each in self._stage.relative if each.kind is Kind.SQUARES]
        rows: list[tuple[str, Value | None, Value]] = []
        rows += [("total", result, result) for view in views for result in view.op.results]
        rows += [(name, result, result) for name in ("rest", "own") for result in squares]
        rows += [("count", None, result) for result in squares[:1]]
        return {
            (name, of): self._e.empty([self._count], ir.RankedTensorType(like.type).element_type)
            for name, of, like in rows
        }

    def join(self, numbers: Numbers, known: Mapping[Root, Value], view: View, number: int) -> Value:
        """Return what result ``number`` of ``view``, a reduction, adds up to.

        Args:
            numbers: What was reduced of the segments.
            known: The numbers of the row so far.
            view: The reduction.
            number: Which result.
        """
        result = view.op.results[number]
        combiner = combiner_of(Output(view, number, view.inits[number]))
        element = ir.RankedTensorType(result.type).element_type
        wide = combiner.wider(element)
        relative = self._relative.get(result)
        type_ = self._e.vector_type(self._lanes, element)

        neutral = combiner.nothing(self._e, self._e.vector_type(self._lanes, wide))

        nothing = zero(element)

        def vector(at: Index, mask: Value | None, now: list[Value]) -> list[Value]:
            def read(name: str, of: Value | None, padding: Attribute = nothing) -> Value:
                return self._e.read(type_, numbers[name, of], [at], self._e.splat(element, padding), mask)

            if relative is None:
                terms = self._e.cast(read("total", result, combiner.neutral_attribute(element)), wide)
            else:
                terms = _TERMS[relative.kind](self._e, relative, read, known[relative.centre], wide)
            return [combiner.combine(now[0], terms if mask is None else self._e.select(mask, terms, neutral))]

        (found,) = self._e.vectors(self._count, self._lanes, [neutral], vector)
        return self._e.cast(combiner.horizontal(found), element)


def _exponentials(e: Emitter, sum_: Relative, read: Read, centre: Value, wide: Type) -> Value:
    """Return the sums of some segments, as if the maximum of the row had been subtracted.

    Where the maximum of a segment is minus infinity, its sum is zero, and so is the factor unless all of
    the row is minus infinity: then it is NaN, as it would be in one segment.
    """
    greatest = read("total", sum_.source, ir.FloatAttr.get(centre.type, -math.inf))
    totals = read("total", sum_.result)
    less = arith.SubFOp(greatest, e.broadcast(greatest.type, centre)).result
    factor = e.cast(math_.ExpOp(less).result, wide)
    return arith.MulFOp(e.cast(totals, wide), factor).result


def _squares(e: Emitter, sum_: Relative, read: Read, centre: Value, wide: Type) -> Value:
    """Return the sums of some segments, as if the number of the row had been subtracted."""
    total, rest = (e.cast(read(name, sum_.result), wide) for name in ("total", "rest"))
    count = e.cast(read("count", None), wide)
    narrow = read("own", sum_.result)
    own = e.cast(narrow, wide)
    row = e.cast(e.broadcast(narrow.type, centre), wide)
    two = e.number(total.type, 2.0)
    apart = arith.SubFOp(own, row).result
    inner = arith.AddFOp(arith.MulFOp(two, rest).result, arith.MulFOp(count, apart).result).result
    return arith.AddFOp(total, arith.MulFOp(apart, inner).result).result


_TERMS = {
    Kind.EXPONENTIALS: _exponentials,
    Kind.SQUARES: _squares,
}
