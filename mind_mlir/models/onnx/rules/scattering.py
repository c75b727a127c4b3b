"""Arrays with other elements at places that arrays of integers say."""

from __future__ import annotations

from typing import Any

import numpy as np

from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule

_METHODS = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}


def updated(x: Array, index: tuple[Any, ...], values: Array, reduction: str) -> Array:
    """Return an array with values combined with those at ``index``."""
    if reduction not in _METHODS:
        broken(f"its reduction is {reduction}, none of {', '.join(_METHODS)}")
    return getattr(x.at[index], _METHODS[reduction])(values)


def along(shape: tuple[int, ...], axis: int) -> np.ndarray[Any, Any]:
    """Return the numbers of an axis, in the rank of ``shape``."""
    extents = [1] * len(shape)
    extents[axis] = shape[axis]
    return np.arange(shape[axis]).reshape(extents)


def _scatter_elements(use: NodeUse) -> Array:
    x, places, values = use[0], use[1], use[2]
    axis = use.axis(use.attr("axis", 0), x.ndim)
    if places.shape != values.shape:
        broken(f"indices of {list(places.shape)} have updates of {list(values.shape)}")
    if not places.size:
        return x
    index = tuple([places if at == axis else along(places.shape, at) for at in range(x.ndim)])
    return updated(x, index, values, use.attr("reduction", "none"))


def _scatter_nd(use: NodeUse) -> Array:
    x, places, values = use[0], use[1], use[2]
    if not places.size:
        return x
    index = tuple([places[..., at] for at in range(places.shape[-1])])
    return updated(x, index, values, use.attr("reduction", "none"))


def _tensor_scatter(use: NodeUse) -> Array:
    past, new = use[0], use[1]
    axis = use.axis(use.attr("axis", -2), past.ndim)
    extent = past.shape[axis]
    steps = along(new.shape, axis)
    if use.has(2):
        starts = use[2].astype("i64").reshape((-1, *[1] * (past.ndim - 1)))
        steps = starts + steps
    if use.attr("mode", "linear") == "circular":
        steps = steps % extent
    index = tuple([steps if at == axis else along(new.shape, at) for at in range(past.ndim)])
    return updated(past, index, new, "none")


RULES = {
    "Scatter": OnnxRule(_scatter_elements),
    "ScatterElements": OnnxRule(_scatter_elements),
    "ScatterND": OnnxRule(_scatter_nd),
    "TensorScatter": OnnxRule(_tensor_scatter),
}
