"""Reductions along axes, which are an attribute or, later, an operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.functions.activations import log_sum_exp
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule


def axes_of(use: NodeUse, rank: int, place: int = 1) -> tuple[int, ...] | None:
    """Return the axes that a node names as attribute or operand; None where it names none."""
    axes = use.attr("axes")
    if axes is None and use.has(place):
        axes = use.ints(place, "the axes")
    return None if axes is None or not len(axes) else use.axes(axes, rank)


def _reduction(function: Callable[[Array, tuple[int, ...], bool], Array]) -> OnnxRule:
    def emit(use: NodeUse) -> Array:
        x = use[0]
        axes = axes_of(use, x.ndim)
        if axes is None:
            if use.attr("noop_with_empty_axes", 0):
                return function(x, (), True)
            axes = tuple(range(x.ndim))
        return function(x, axes, bool(use.attr("keepdims", 1)))

    return OnnxRule(emit)


def total(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Return sums in the dtype of ``x``."""
    return mnp.reduce(x, kind="Sum", axes=axes, keepdims=keepdims)


def _mean(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    if x.dtype.kind == "f" and count:
        return x.mean(axis=axes, keepdims=keepdims) if axes else x
    return mnp.div(total(x, axes, keepdims), mnp.full((), count, x.dtype))


def _extreme(kind: Literal["Max", "Min"]) -> Callable[[Array, tuple[int, ...], bool], Array]:
    def reduce(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        return mnp.reduce(x, kind=kind, axes=axes, keepdims=keepdims)

    return reduce


def _squares(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    return total(x * x, axes, keepdims)


def _log_sum_exp(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    def reduce(y: Array) -> Array:
        if not y.size or not axes:
            return mnp.log(total(mnp.exp(y), axes, keepdims))
        sums = log_sum_exp(y, axes)
        return sums if keepdims else sums.squeeze(axes)

    return _through_floats(x, reduce)


def _through_floats(x: Array, function: Callable[[Array], Array]) -> Array:
    """Return a function of floats of an array, whose integers it takes as floats."""
    return function(x) if x.dtype.kind not in "iu" else function(x.astype("f64")).astype(x.dtype)


def _place_of_extreme(*, least: bool) -> OnnxRule:
    def emit(use: NodeUse) -> Array:
        x = use[0]
        axis = use.axis(use.attr("axis", 0), max(x.ndim, 1))
        if not x.ndim:
            broken("it is given a scalar, which has no axis")
        keepdims, last = bool(use.attr("keepdims", 1)), bool(use.attr("select_last_index", 0))
        seen = mnp.flip(x, axis) if last else x
        found = (seen.argmin if least else seen.argmax)(axis=axis, keepdims=keepdims)
        return (x.shape[axis] - 1) - found if last else found

    return OnnxRule(emit)


RULES = {
    "ReduceSum": _reduction(total),
    "ReduceMean": _reduction(_mean),
    "ReduceMax": _reduction(_extreme("Max")),
    "ReduceMin": _reduction(_extreme("Min")),
    "ReduceProd": _reduction(lambda x, axes, keepdims: mnp.reduce_prod(x, axes=axes, keepdims=keepdims)),
    "ReduceL1": _reduction(lambda x, axes, keepdims: total(abs(x), axes, keepdims)),
    "ReduceL2": _reduction(
        lambda x, axes, keepdims: _through_floats(x, lambda y: mnp.sqrt(_squares(y, axes, keepdims)))
    ),
    "ReduceSumSquare": _reduction(_squares),
    "ReduceLogSum": _reduction(
        lambda x, axes, keepdims: _through_floats(x, lambda y: mnp.log(total(y, axes, keepdims)))
    ),
    "ReduceLogSumExp": _reduction(_log_sum_exp),
    "ArgMax": _place_of_extreme(least=False),
    "ArgMin": _place_of_extreme(least=True),
}
