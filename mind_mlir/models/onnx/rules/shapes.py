"""Other shapes for the same elements; extents are known when a model is traced."""

from __future__ import annotations

import math

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule
from mind_mlir.models.onnx.rules.reductions import axes_of


def _reshape(use: NodeUse) -> Array:
    x = use[0]
    wanted = use.attr("shape") if not use.has(1) else use.ints(1, "the shape")
    if wanted is None:
        broken("it is given no shape")
    keeps_zeros = bool(use.attr("allowzero", 0))
    extents = []
    for place, extent in enumerate(wanted):
        is_kept = extent == 0 and not keeps_zeros
        if is_kept and place >= x.ndim:
            broken(f"its shape {list(wanted)} takes extent {place} of rank {x.ndim}")
        extents.append(x.shape[place] if is_kept else extent)
    open_ = [place for place, extent in enumerate(extents) if extent < 0]
    if open_:
        rest = math.prod(extent for extent in extents if extent >= 0)
        if len(open_) > 1 or not rest or math.prod(x.shape) % rest:
            broken(f"{list(x.shape)} has no shape {list(wanted)}")
        extents[open_[0]] = math.prod(x.shape) // rest
    return x.reshape(tuple(extents))


def _transpose(use: NodeUse) -> Array:
    x = use[0]
    return x.transpose(use.attr("perm", tuple(range(x.ndim))[::-1]))


def _squeeze(use: NodeUse) -> Array:
    x = use[0]
    axes = axes_of(use, x.ndim)
    if axes is None:
        axes = tuple([axis for axis, extent in enumerate(x.shape) if extent == 1])
    if any(x.shape[axis] != 1 for axis in axes):
        broken(f"axes {list(axes)} of {list(x.shape)} are not all of extent 1")
    return x.reshape([extent for axis, extent in enumerate(x.shape) if axis not in axes])


def _unsqueeze(use: NodeUse) -> Array:
    x = use[0]
    axes = use.attr("axes")
    if axes is None:
        axes = use.ints(1, "the axes")
    places = use.axes(axes, x.ndim + len(axes))
    extents = iter(x.shape)
    return x.reshape([1 if place in places else next(extents) for place in range(x.ndim + len(places))])


def _flatten(use: NodeUse) -> Array:
    x = use[0]
    axis = use.attr("axis", 1)
    if not -x.ndim <= axis <= x.ndim:
        broken(f"axis {axis} is beyond rank {x.ndim}")
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape((math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


def _concat(use: NodeUse) -> Array:
    parts = use.all()
    if not parts:
        broken("it is given nothing")
    axis = use.axis(use.needed("axis", int), parts[0].ndim)
    if use.stays:
        return np.concatenate(parts, axis)
    behind = [use.evaluator.layouts.find(each) for each in parts]
    if axis == 1 and all(each is not None for each in behind):
        return use.in_front(mnp.concatenate(behind, -1))
    return mnp.concatenate(parts, axis)


def _shape(use: NodeUse) -> Array:
    x = use.operands[0]
    shape = use[0].shape if x is not None else ()
    start, end = use.attr("start", 0), use.attr("end", len(shape))
    return np.array(shape[start:end] if end >= start or end < 0 else (), np.int64)


def _expand(use: NodeUse) -> Array:
    x, wanted = use[0], use.ints(1, "the shape")
    if any(extent < 0 for extent in wanted):
        broken(f"its shape is {list(wanted)}")
    shape = np.broadcast_shapes(x.shape, wanted)
    return np.broadcast_to(x, shape) if use.stays else mnp.broadcast_to(x, shape)


def _tile(use: NodeUse) -> Array:
    x, repeats = use[0], use.ints(1, "the repeats")
    if len(repeats) != x.ndim or any(count < 0 for count in repeats):
        broken(f"its repeats are {list(repeats)} for rank {x.ndim}")
    if 0 in repeats:
        return mnp.zeros([extent * count for extent, count in zip(x.shape, repeats, strict=True)], x.dtype)
    return mnp.tile(x, repeats)


def _depth_to_space(use: NodeUse) -> Array:
    x, size = use[0], use.needed("blocksize", int)
    batch, channels, height, width = x.shape
    rest = channels // size**2
    if use.attr("mode", "DCR") == "DCR":
        split = x.reshape((batch, size, size, rest, height, width)).transpose((0, 3, 4, 1, 5, 2))
    else:
        split = x.reshape((batch, rest, size, size, height, width)).transpose((0, 1, 4, 2, 5, 3))
    return split.reshape((batch, rest, height * size, width * size))


def _space_to_depth(use: NodeUse) -> Array:
    x, size = use[0], use.needed("blocksize", int)
    batch, channels, height, width = x.shape
    split = x.reshape((batch, channels, height // size, size, width // size, size))
    order = (0, 3, 5, 1, 2, 4) if use.attr("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return split.transpose(order).reshape((batch, channels * size**2, height // size, width // size))


def _triangle(use: NodeUse) -> Array:
    x = use[0]
    k = int(use.known(1, "the diagonal").reshape(())) if use.has(1) else 0
    if x.ndim < 2:
        broken(f"it is given rank {x.ndim}, no matrices")
    rows, columns = x.shape[-2:]
    places = mnp.iota(shape=(rows, columns), dtype="i64", axis=1) - mnp.iota(
        shape=(rows, columns), dtype="i64", axis=0
    )
    kept = places >= k if use.attr("upper", 1) else places <= k
    return mnp.where(kept, x, mnp.zeros_like(x))


RULES = {
    "Reshape": OnnxRule(_reshape, is_plain=True),
    "Transpose": OnnxRule(_transpose, is_plain=True),
    "Squeeze": OnnxRule(_squeeze, is_plain=True),
    "Unsqueeze": OnnxRule(_unsqueeze, is_plain=True),
    "Flatten": OnnxRule(_flatten, is_plain=True),
    "Concat": OnnxRule(_concat, is_plain=True),
    "Shape": OnnxRule(_shape, is_plain=True),
    "Size": OnnxRule(lambda use: np.array(math.prod(use[0].shape), np.int64), is_plain=True),
    "Expand": OnnxRule(_expand, is_plain=True),
    "Tile": OnnxRule(_tile),
    "DepthToSpace": OnnxRule(_depth_to_space),
    "SpaceToDepth": OnnxRule(_space_to_depth),
    "Trilu": OnnxRule(_triangle),
}
