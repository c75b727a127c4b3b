"""Elements at places that arrays of integers say; negative ones count from the end."""

from __future__ import annotations

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule


def _gather(use: NodeUse) -> Array:
    x, places = use[0], use[1]
    axis = use.axis(use.attr("axis", 0), x.ndim)
    if use.stays:
        return np.asarray(np.take(x, places, axis))
    if use.is_known(1) and use.operands[1].size == 1:
        return _one(x, int(use.operands[1].reshape(())), axis, places.ndim)
    return mnp.take(x, places, axis)


def _one(x: Array, place: int, axis: int, rank: int) -> Array:
    """Return one slice of an array, at a place that is known."""
    extent = x.shape[axis]
    if not -extent <= place < extent:
        broken(f"index {place} is none of the {extent} that there are")
    found = x[(*[slice(None)] * axis, slice(place % extent, place % extent + 1))]
    return found.reshape((*x.shape[:axis], *[1] * rank, *x.shape[axis + 1 :]))


def _gather_elements(use: NodeUse) -> Array:
    x, places = use[0], use[1]
    axis = use.axis(use.attr("axis", 0), x.ndim)
    if any(
        one > other for at, (one, other) in enumerate(zip(places.shape, x.shape, strict=True)) if at != axis
    ):
        broken(f"indices of {list(places.shape)} are beyond {list(x.shape)}")
    cut = tuple([slice(None) if at == axis else slice(0, extent) for at, extent in enumerate(places.shape)])
    return mnp.take_along_axis(x[cut], places, axis)


def _gather_nd(use: NodeUse) -> Array:
    x, places = use[0], use[1]
    batch = use.attr("batch_dims", 0)
    depth = places.shape[-1]
    if not 0 <= batch < min(x.ndim, places.ndim) or batch + depth > x.ndim:
        broken(f"indices of {list(places.shape)} with {batch} batch axes are none of {list(x.shape)}")
    index = []
    for axis in range(batch):
        shape = [1] * (places.ndim - 1)
        shape[axis] = x.shape[axis]
        index.append(np.arange(x.shape[axis]).reshape(shape))
    index += [places[..., at] for at in range(depth)]
    return x[tuple(index)]


def _compress(use: NodeUse) -> Array:
    x, chosen = use[0], np.flatnonzero(use.known(1, "which slices are kept"))
    axis = use.attr("axis")
    if axis is None:
        return mnp.take(x.reshape(-1), chosen, 0)
    return mnp.take(x, chosen, use.axis(axis, x.ndim))


def _non_zero(use: NodeUse) -> Array:
    x = use.known(0, "how many elements the result has")
    found = np.nonzero(x) if x.ndim else (np.zeros(int(bool(x)), np.int64),)
    return np.array(found, np.int64).reshape((x.ndim, -1) if x.ndim else (0, int(bool(x))))


def _unique(use: NodeUse) -> tuple[Array, ...]:
    x = use.known(0, "how many elements the result has")
    axis = use.attr("axis")
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not use.attr("sorted", 1):
        order = np.argsort(first)
        values = np.take(values, order, axis=0 if axis is None else axis)
        inverse, first, counts = np.argsort(order)[inverse], first[order], counts[order]
    return values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)


def _reverse_sequence(use: NodeUse) -> Array:
    x, lengths = use[0], use[1]
    time, batch = use.attr("time_axis", 0), use.attr("batch_axis", 1)
    if x.ndim < 2 or {time, batch} != {0, 1}:
        broken(f"its axes are {time} of time and {batch} of the batch")
    steps = mnp.iota(shape=x.shape[:2], dtype="i64", axis=time)
    ends = mnp.broadcast_to(mnp.expand_dims(lengths.astype("i64"), time), x.shape[:2])
    places = mnp.where(steps < ends, ends - 1 - steps, steps)
    rest = tuple(range(2, x.ndim))
    whole = mnp.broadcast_to(mnp.expand_dims(places, rest) if rest else places, x.shape)
    return mnp.take_along_axis(x, whole, time)


RULES = {
    "Gather": OnnxRule(_gather, is_plain=True),
    "GatherElements": OnnxRule(_gather_elements),
    "GatherND": OnnxRule(_gather_nd),
    "Compress": OnnxRule(_compress),
    "NonZero": OnnxRule(_non_zero, is_plain=True),
    "Unique": OnnxRule(_unique, is_plain=True),
    "ReverseSequence": OnnxRule(_reverse_sequence),
    ("ai.onnx.ml", "ArrayFeatureExtractor"): OnnxRule(
        lambda use: mnp.take(use[0], use[1].reshape(-1), use[0].ndim - 1)
    ),
}
