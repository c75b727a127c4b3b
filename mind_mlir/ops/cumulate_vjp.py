"""The derivative of Cumulate: of sums, those from the other end; of extremes, sums at what they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType
from mind_mlir.ops.accumulators import computed_dtype

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import VjpContext


def cumulate_vjp(context: VjpContext) -> Sequence[Value | None]:
    """Derivative rule of Cumulate."""
    (operand,), attributes = context.operands, context.attributes
    dtype, kind = operand.type.dtype, attributes["kind"]
    if not (dtype.is_float or dtype.is_complex):
        return (None,)
    if 0 in operand.shape:
        return (context.zeros(operand.type),)
    if kind == "Sum":
        how = {**attributes, "reverse": not attributes["reverse"]}
        return (context.emit("Cumulate", context.cotangent, **how),)
    cotangent = context.cotangent
    along = _Axis(context)
    if attributes["exclusive"]:  # each result is that of the neighbour, with its own element
        cotangent = along.moved(cotangent, 1, forwards=along.reverse)
    if along.extent == 1:
        return (cotangent,)
    found = along.factors(operand, cotangent) if kind == "Prod" else along.shares(operand, cotangent, kind)
    return (found,)


class _Axis:
    """The axis that elements are combined along."""

    def __init__(self, context: VjpContext) -> None:
        self._c = context
        self._type = context.operands[0].type
        self._axis = context.attributes["axis"] % self._type.rank
        self.extent = self._type.extents[self._axis]
        self.reverse: bool = context.attributes["reverse"]

    def _part(self, value: Value, start: int, end: int) -> Value:
        """Append the elements from ``start`` to ``end``."""
        extents = value.type.extents
        starts = [start if axis == self._axis else 0 for axis in range(len(extents))]
        ends = [end if axis == self._axis else extent for axis, extent in enumerate(extents)]
        return self._c.emit("Slice", value, starts=tuple(starts), ends=tuple(ends), steps=(1,) * len(extents))

    def moved(self, value: Value, by: int, *, forwards: bool) -> Value:
        """Append ``value`` moved by some places, zeros coming in."""
        kept = self._part(value, 0, self.extent - by) if forwards else self._part(value, by, self.extent)
        low, high = (
            tuple(by if axis == self._axis and side else 0 for axis in range(self._type.rank))
            for side in (forwards, not forwards)
        )
        zero = TensorLiteral.of(0, value.type.dtype)
        interior = (0,) * self._type.rank
        return self._c.emit("Pad", kept, low=low, high=high, interior=interior, pad_value=zero)

    def shares(self, operand: Value, cotangent: Value, kind: str) -> Value:
        """Append the sum of the cotangents of all results that an element is."""
        c, n, axis = self._c, self.extent, self._axis
        results = c.emit("Cumulate", operand, kind=kind, axis=axis, exclusive=False, reverse=self.reverse)
        begins, ends = self._part(results, 0, n - 1), self._part(results, 1, n)
        before, after = (ends, begins) if self.reverse else (begins, ends)
        # Behind a NaN everything is NaN: that is nothing new.
        differs = c.emit("Compare", before, after, op="NotEqual")
        is_new = c.emit("And", differs, c.emit("Compare", before, before, op="Equal"))
        shape = self._type.extents
        places = c.emit("Iota", shape=shape, dtype=DType.SI64, axis=axis)
        first = c.builder.constant(n - 1 if self.reverse else 0, DType.SI64)
        edge = c.emit("BroadcastTo", first, result_shape=self._part(places, 0, 1).type.extents)
        nothing = c.emit("BroadcastTo", first, result_shape=is_new.type.extents)
        inner = self._part(places, 0, n - 1) if self.reverse else self._part(places, 1, n)
        marks = c.emit("Select", is_new, inner, nothing)
        marks = c.emit("Concat", *((marks, edge) if self.reverse else (edge, marks)), axis=axis)
        chosen = c.emit(
            "Cumulate", marks, kind="Min" if self.reverse else "Max", axis=axis, reverse=self.reverse
        )
        zeros = c.zeros(self._type)
        return c.emit("ScatterReduce", zeros, chosen, cotangent, axis=axis, reduce="Add")

    def factors(self, operand: Value, cotangent: Value) -> Value:
        """Append the sum of the cotangents of all products that an element is in, times its other factors.

        With `c` the cotangents and `x` the elements, `s[i] = c[i] + x[i + 1] s[i + 1]` times the product of
        the elements before. Elements are divided by nowhere.
        """
        c, dtype = self._c, self._type.dtype
        computed = computed_dtype(dtype)
        value, total = c.cast(operand, computed), c.cast(cotangent, computed)
        before = c.emit("Cumulate", value, kind="Prod", axis=self._axis, exclusive=True, reverse=self.reverse)
        factor, reach = self.moved(value, 1, forwards=self.reverse), 1
        while reach < self.extent:
            beyond = self.moved(total, reach, forwards=self.reverse)
            total = c.emit("Add", total, c.emit("Mul", factor, beyond))
            factor = c.emit("Mul", factor, self.moved(factor, reach, forwards=self.reverse))
            reach *= 2
        return c.cast(c.emit("Mul", before, total), dtype)
