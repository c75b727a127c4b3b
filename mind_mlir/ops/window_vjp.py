"""The derivative of ReduceWindow: sums of sliding windows, and shares of those that are extreme."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ops.accumulators import computed_dtype, extreme_vjp, holds
from mind_mlir.ops.phases import Phase, has_few, is_small, joined, margins, phases, shifted, spanned
from mind_mlir.ops.sliding import Sliding, Windowed

if TYPE_CHECKING:
    import numpy.typing as npt

    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import VjpContext

#: The lists of ReduceWindow, and the least number of each.
LISTS = {
    "window_dims": 1,
    "strides": 1,
    "padding_low": 0,
    "padding_high": 0,
    "base_dilation": 1,
    "window_dilation": 1,
}


def sliding_axes(attributes: Mapping[str, Any], shape: Sequence[int]) -> list[Sliding]:
    """Return the windows of a ReduceWindow along each axis of its operand."""
    return [Sliding(*numbers) for numbers in zip(shape, *(attributes[name] for name in LISTS), strict=True)]


def reduce_window_vjp(context: VjpContext) -> Sequence[Value | None]:
    """Derivative rule of `ReduceWindow`."""
    (x,), attributes = context.operands, context.attributes
    if not attributes["accum_dtype"].is_float:
        return (None,)
    if 0 in x.shape or not x.shape:
        return (context.cotangent if not x.shape else context.zeros(x.type),)
    axes = sliding_axes(attributes, x.shape)
    if attributes["reduce"] == "Sum":
        if has_few(axes):
            return (joined(context, axes, lambda chosen: _sums(context, chosen)),)
        windows = Windowed(context, axes)
        return (windows.added(windows.inside(windows.spread(context.cotangent))),)
    extreme = context.result
    if not holds(attributes["accum_dtype"], x.type.dtype):
        extreme = context.emit("ReduceWindow", x, **{**attributes, "accum_dtype": x.type.dtype})
    if has_few(axes) and is_small(axes):
        return (_Shares(context, axes, x, extreme).gradient(),)
    return (_gathered(context, Windowed(context, axes), x, extreme),)


def _sums(context: VjpContext, chosen: Sequence[Phase]) -> Value:
    """Return for each element of a phase the sum of what flows back from the windows it is in."""
    given = context.cotangent
    if not all(phase.places for phase in chosen):
        return context.zeros(given.type.with_shape(tuple(phase.count for phase in chosen)))
    spans = [(phase.shifts[0], phase.shifts[-1] + phase.count) for phase in chosen]
    spacing = tuple(phase.shifts[1] - phase.shifts[0] if len(phase.shifts) > 1 else 1 for phase in chosen)
    ones, none = (1,) * len(chosen), (0,) * len(chosen)
    return context.emit(
        "ReduceWindow",
        spanned(context, given, spans),
        window_dims=tuple(len(phase.shifts) for phase in chosen),
        strides=ones,
        padding_low=none,
        padding_high=none,
        base_dilation=ones,
        window_dilation=spacing,
        reduce="Sum",
        accum_dtype=computed_dtype(given.type.dtype),
    )


class _Shares:
    """Shares the cotangent of each window among the elements that are the extreme one, or NaN where that is.

    Args:
        context: The ReduceWindow.
        axes: Its windows.
        x: Its operand.
        extreme: The extreme element of each window, in the dtype of the operand.
    """

    def __init__(self, context: VjpContext, axes: Sequence[Sliding], x: Value, extreme: Value) -> None:
        self._c, self._axes, self._x, self._extreme = context, axes, x, extreme
        self._computed = computed_dtype(x.type.dtype)

    def gradient(self) -> Value:
        """Append the cotangent of the operand and return it."""
        c = self._c
        counts = [axis.count for axis in self._axes]
        lows, highs = margins([phases(axis) for axis in self._axes], counts)
        spans = [(-low, count + high) for low, count, high in zip(lows, counts, highs, strict=True)]
        extreme = spanned(c, self._extreme, spans)
        share = spanned(c, self._share(), spans)

        def part(chosen: tuple[Phase, ...]) -> Value:
            starts = tuple(phase.start for phase in chosen)
            steps = tuple(axis.stride for axis in self._axes)
            elements = c.emit("Slice", self._x, starts=starts, ends=self._x.shape, steps=steps)
            extremes = shifted(c, chosen, extreme, lows)
            zeros = c.zeros(share.type.with_shape(elements.shape))
            total: Value | None = None
            for places, given in shifted(c, chosen, share, lows).items():
                term = c.emit("Select", self._chosen(elements, extremes[places]), given, zeros)
                total = c.sum(total, term)
            return zeros if total is None else total

        return c.cast(joined(c, self._axes, part), self._x.type.dtype)

    def _share(self) -> Value:
        """Return for each window what each element that shares in it is given."""
        c = self._c
        whole = self._padded()
        count: Value | None = None
        for places in itertools.product(*(range(axis.window) for axis in self._axes)):
            parts = [axis.elements(place) for axis, place in zip(self._axes, places, strict=True)]
            elements = c.emit(
                "Slice",
                whole,
                starts=tuple(part.start for part in parts),
                ends=tuple(part.stop for part in parts),
                steps=tuple(part.step for part in parts),
            )
            chosen = c.emit("Cast", self._chosen(elements, self._extreme), dtype=self._computed)
            count = c.sum(count, chosen)
        assert count is not None, "a window has an element"
        count = self._without_padding(count)
        return c.emit("Mul", c.cast(c.cotangent, self._computed), c.emit("Reciprocal", count))

    def _padded(self) -> Value:
        """Return the operand with NaN around it, which no extreme element equals."""
        low, high = (tuple(getattr(axis, name) for axis in self._axes) for name in ("low", "high"))
        if not any((*low, *high)):
            return self._x
        nan = TensorLiteral.of(float("nan"), self._x.type.dtype)
        interior = (0,) * len(low)
        return self._c.emit("Pad", self._x, low=low, high=high, interior=interior, pad_value=nan)

    def _without_padding(self, count: Value) -> Value:
        """Return ``count`` less the elements of each window that are padding: as NaN, these were counted."""
        c, axes = self._c, self._axes
        inside = {place: axis.places()[1].sum(axis=1) for place, axis in enumerate(axes)}
        cut = [place for place, axis in enumerate(axes) if inside[place].min() < axis.window]
        if not cut:
            return count
        elements = self._everywhere(math.prod(axis.window for at, axis in enumerate(axes) if at not in cut))
        for place in cut:
            column = [1] * len(axes)
            column[place] = axes[place].count
            elements = c.emit("Mul", elements, self._everywhere(inside[place].reshape(column)))
        padding = c.emit("Sub", self._everywhere(math.prod(axis.window for axis in axes)), elements)
        return c.emit("Sub", count, padding)

    def _everywhere(self, number: npt.ArrayLike) -> Value:
        """Return a constant of one element, or with some extents of 1, as a tensor of all windows."""
        constant = self._c.builder.constant(number, self._computed)
        return self._c.emit("BroadcastTo", constant, result_shape=self._extreme.shape)

    def _chosen(self, elements: Value, extreme: Value) -> Value:
        equal = self._c.emit("Compare", elements, extreme, op="Equal")
        return self._c.emit("Or", equal, self._c.emit("Compare", elements, elements, op="NotEqual"))


def _gathered(context: VjpContext, windows: Windowed, x: Value, extreme: Value) -> Value:
    """Share the cotangent of each window as `_Shares` does, by way of a tensor of all windows."""

    def total(ones: Value) -> Value:
        dtype, axes = ones.type.dtype, tuple(range(1, len(windows.shape), 2))
        form = {"kind": "Sum", "axes": axes, "keepdims": False, "accum_dtype": dtype, "out_dtype": dtype}
        return context.emit("Reduce", ones, **form)

    elements = windows.of(x)
    return windows.added(extreme_vjp(context, elements, extreme, windows.spread, total, windows.mask))
