"""Parts of arrays at places that are known when a model is traced, and margins around arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken, check_few, unsupported
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule

#: More parts, and wider margins that are no constants, are not made.
_MOST = 1 << 20


def _slice(use: NodeUse) -> Array:
    x = use[0]
    starts = use.attr("starts")
    if starts is None:
        starts, ends = use.ints(1, "the starts"), use.ints(2, "the ends")
    else:
        ends = use.needed("ends", tuple)
    axes: Sequence[int] | None = use.attr("axes")
    if axes is None and use.has(3):
        axes = use.ints(3, "the axes")
    axes = use.axes(tuple(range(len(starts))) if axes is None else axes, x.ndim)
    steps = use.ints(4, "the steps") if use.has(4) else (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        broken("its starts, ends, axes and steps are of different lengths")
    index: list[Any] = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if not step:
            broken("one of its steps is 0")
        index[axis] = _range(start, end, step, x.shape[axis])
    return x[tuple(index)]


def _range(start: int, end: int, step: int, extent: int) -> slice:
    """Return a range of an axis, whose ends are held between those of the axis."""
    first, last, by = slice(start, end, step).indices(extent)
    return slice(first, None if last < 0 else last, by)


def _split(use: NodeUse) -> tuple[Array, ...]:
    x = use[0]
    axis = use.axis(use.attr("axis", 0), x.ndim)
    extent, count = x.shape[axis], use.attr("num_outputs", len(use.node.outputs))
    sizes = use.attr("split")
    if sizes is None and use.has(1):
        sizes = use.ints(1, "the sizes of the parts")
    if sizes is None:
        if count < 1:
            broken(f"it has {count} parts")
        check_few(count, _MOST, "parts")
        part = -(-extent // count)
        sizes = [max(0, min(part, extent - part * place)) for place in range(count)]
    if sum(sizes) != extent or any(size < 0 for size in sizes):
        broken(f"parts of {list(sizes)} do not make up {extent}")
    return parts(x, sizes, axis)


def parts(x: Array, sizes: Sequence[int], axis: int) -> tuple[Array, ...]:
    """Return the parts of an array, one after the other along ``axis``."""
    found, start = [], 0
    for size in sizes:
        found.append(x[(*[slice(None)] * axis, slice(start, start + size))])
        start += size
    return tuple(found)


def _pad(use: NodeUse) -> Array:
    x, mode = use[0], use.attr("mode", "constant")
    widths = use.attr("pads")
    if widths is None:
        widths = use.ints(1, "the margins")
    axes = use.axes(use.ints(3, "the axes"), x.ndim) if use.has(3) else tuple(range(x.ndim))
    if len(widths) != 2 * len(axes):
        broken(f"its {len(widths)} margins are not two for each of {len(axes)} axes")
    low, high = [0] * x.ndim, [0] * x.ndim
    for place, axis in enumerate(axes):
        low[axis], high[axis] = widths[place], widths[len(axes) + place]
    if mode == "constant":
        return _with_constant(use, x, low, high)
    if mode not in ("edge", "reflect", "wrap"):
        broken(f"its mode is {mode}, none of constant, edge, reflect and wrap")
    for axis in range(x.ndim):
        x = extended(x, axis, low[axis], high[axis], mode)
    return x


def extended(x: Array, axis: int, low: int, high: int, mode: str) -> Array:
    """Return an array with margins along an axis, made of its own elements; negative ones are cut off."""
    if not low and not high:
        return x
    extent = x.shape[axis]
    check_few(abs(low) + abs(high), _MOST, "elements of margins")
    if not extent:
        broken("an axis without elements has none for margins")
    kept = np.arange(max(-low, 0), extent - max(-high, 0))
    if not kept.size:
        broken("its margins leave nothing")
    places = kept[np.pad(np.arange(kept.size), (max(low, 0), max(high, 0)), mode=mode)]  # type: ignore[call-overload]  # one of numpy's modes
    return mnp.take(x, places, axis)


def _with_constant(use: NodeUse, x: Array, low: Sequence[int], high: Sequence[int]) -> Array:
    value = use.attr("value", 0.0) if use.attr("pads") is not None else 0
    if use.has(2):
        if not use.is_known(2):
            return _with_traced(use[2].reshape(()), x, low, high)
        found = use.operands[2]
        if found.size != 1:
            broken("its constant is no scalar")
        value = found.reshape(()).item()
    if x.dtype == np.bool_:
        bits = _margins(x.astype("ui8"), low, high, int(value))
        return bits != 0
    return _margins(x, low, high, value if x.dtype.kind not in "iu" else int(value))


def _with_traced(value: Array, x: Array, low: Sequence[int], high: Sequence[int]) -> Array:
    inside = _margins(mnp.ones(x.shape, "ui8"), low, high, 0) != 0
    return mnp.where(inside, _margins(x, low, high, 0), value)


def _margins(x: Array, low: Sequence[int], high: Sequence[int], value: Any) -> Array:
    cut = [
        slice(max(-before, 0), extent - max(-after, 0))
        for before, after, extent in zip(low, high, x.shape, strict=True)
    ]
    if any(each.stop < each.start for each in cut):
        unsupported("its margins take more away than there is")
    widths = [(max(before, 0), max(after, 0)) for before, after in zip(low, high, strict=True)]
    whole = x[tuple(cut)] if x.ndim else x
    return mnp.pad(whole, widths, constant_values=value) if x.ndim else whole


RULES = {
    "Slice": OnnxRule(_slice, is_plain=True),
    "Split": OnnxRule(_split, is_plain=True),
    "Pad": OnnxRule(_pad),
}
