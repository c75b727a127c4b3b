"""Cuts from constant filters of convolutions what lies on padding wherever the window is.

Before: a function in structured form, whose constant parameters are literals. After: the same, where filters
have no first and last elements that meet nothing but padding, as six of nine elements do where a 3 x 3
window is on an image of one row, and all but one where the elements of a window lie further apart than the
image is large. `prepare` cuts them when the program is compiled.

Results stay the same: such an element is multiplied by zeros alone, and a finite number times zero adds
nothing. So filters with infinities or NaN are left as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ops.convolution_form import CONVOLUTIONS, attributes_of_axes, axes_of, general_attributes
from mind_mlir.passes.simplify.sweep import rewritten

if TYPE_CHECKING:
    from mind_mlir.ir.module import Function, ValueId
    from mind_mlir.ops.sliding import Sliding
    from mind_mlir.passes.simplify.rewrite import Rewrite


def cut_taps(function: Function) -> Function:
    """Return ``function``, in structured form, with filters cut; itself where there is nothing to cut."""
    return rewritten(function, dict.fromkeys(CONVOLUTIONS, (_cut,)))


def _cut(at: Rewrite) -> ValueId | None:
    image, filter_ = at.operands
    extents, window = at.shape_of(image), at.shape_of(filter_)
    attributes = at.attributes
    if at.operation.opcode != "Convolution":
        attributes = general_attributes(attributes, extents, window, at.type.dtype)
    axes = axes_of(attributes, extents, window)
    used = [used_of(axis) for axis in axes]
    whole = all(len(each) == axis.window for each, axis in zip(used, axes, strict=True))
    if whole or not all(used) or not _is_finite(at, filter_):
        return None
    type_ = at.type_of(filter_)
    shape = (*map(len, used), *window[len(axes) :])
    starts = (*(each.start for each in used), 0, 0)
    ends, steps = (*(each.stop for each in used), *window[len(axes) :]), (1,) * len(shape)
    cut = at.emit("Slice", (filter_,), type_.with_shape(shape), starts=starts, ends=ends, steps=steps)
    lists = attributes_of_axes([_narrowed(axis, each) for axis, each in zip(axes, used, strict=True)])
    return at.emit("Convolution", (image, cut), at.type, **{**attributes, **lists})


def used_of(axis: Sliding) -> range:
    """Return the elements of a window from the first to the last one that meet an element of the axis."""
    places = range(axis.window)
    first = next((place for place in places if _meets(axis, place)), None)
    if first is None:
        return range(0)
    return range(first, next(place for place in reversed(places) if _meets(axis, place)) + 1)


def _meets(axis: Sliding, place: int) -> bool:
    """Return whether element ``place`` of any window lies on an element of the axis."""
    windows = range(axis.count)[axis.terms(place)]
    if not windows:
        return False
    begins = windows[0] * axis.stride + place * axis.spacing - axis.low
    step = windows.step * axis.stride
    before = max(0, -(begins // step))  # so many of the windows have it before the axis
    return before < len(windows) and begins + before * step <= (axis.extent - 1) * axis.base


def _narrowed(axis: Sliding, used: range) -> Sliding:
    """Return the windows of the elements ``used`` alone, which lie where they did."""
    before, behind = used.start, axis.window - used.stop
    return replace(
        axis,
        window=len(used),
        low=axis.low - before * axis.spacing,
        high=axis.high - behind * axis.spacing,
    )


def _is_finite(at: Rewrite, value: ValueId) -> bool:
    """Return whether a value is a literal of finite numbers, or such a one seen in another way."""
    while (maker := at.maker(value, "Transpose", "Reshape")) is not None:
        (value,) = maker.operands
    literal = at.literal(value)
    return literal is not None and bool(np.isfinite(literal.array).all())
