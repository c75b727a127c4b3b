"""Sequences and optional values: lists while a model is traced, which leave no trace of themselves."""

from __future__ import annotations

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule, Value
from mind_mlir.models.onnx.rules.slicing import parts


def _place(use: NodeUse, at: int, length: int, default: int) -> int:
    if not use.has(at):
        return default
    place = int(use.known(at, "the place in a sequence").reshape(()))
    if not -length <= place <= length:
        broken(f"place {place} is beyond a sequence of {length}")
    return place + length if place < 0 else place


def _at(use: NodeUse) -> Array:
    listed = use.sequence(0)
    return listed[_place(use, 1, len(listed), 0)]


def _insert(use: NodeUse) -> list[Array]:
    listed = list(use.sequence(0))
    listed.insert(_place(use, 2, len(listed), len(listed)), use.operands[1])
    return listed


def _erase(use: NodeUse) -> list[Array]:
    listed = list(use.sequence(0))
    del listed[_place(use, 1, len(listed), len(listed) - 1)]
    return listed


def _split(use: NodeUse) -> list[Array]:
    x = use[0]
    axis = use.axis(use.attr("axis", 0), x.ndim)
    extent = x.shape[axis]
    if not use.has(1):
        single = parts(x, [1] * extent, axis)
        if use.attr("keepdims", 1):
            return list(single)
        shape = [size for at, size in enumerate(x.shape) if at != axis]
        return [each.reshape(shape) for each in single]
    given = use.known(1, "the sizes of the parts")
    if given.ndim:
        sizes = [int(each) for each in given]
    else:
        size = int(given)
        if size < 1:
            broken(f"its parts have {size} slices")
        sizes = [min(size, extent - start) for start in range(0, extent, size)]
    if sum(sizes) != extent or any(size < 0 for size in sizes):
        broken(f"parts of {sizes} do not make up {extent}")
    return list(parts(x, sizes, axis))


def _concat(use: NodeUse) -> Array:
    listed = use.sequence(0)
    axis, is_new = use.needed("axis", int), bool(use.attr("new_axis", 0))
    if not listed:
        broken("it joins a sequence of nothing")
    axis = use.axis(axis, listed[0].ndim + is_new)
    if all(isinstance(each, np.ndarray) for each in listed):
        return np.stack(listed, axis) if is_new else np.concatenate(listed, axis)
    arrays = [use.array(each) for each in listed]
    return mnp.stack(arrays, axis) if is_new else mnp.concatenate(arrays, axis)


def _element(use: NodeUse) -> Value:
    if not use.has(0):
        broken("it asks an empty optional for its value")
    return use.operands[0]


RULES = {
    "SequenceEmpty": OnnxRule(lambda _: []),
    "SequenceConstruct": OnnxRule(lambda use: list(use.operands)),
    "SequenceAt": OnnxRule(_at, is_plain=True),
    "SequenceInsert": OnnxRule(_insert, is_plain=True),
    "SequenceErase": OnnxRule(_erase, is_plain=True),
    "SequenceLength": OnnxRule(lambda use: np.array(len(use.sequence(0)), np.int64), is_plain=True),
    "SplitToSequence": OnnxRule(_split, is_plain=True),
    "ConcatFromSequence": OnnxRule(_concat, is_plain=True),
    "Optional": OnnxRule(lambda use: use.operands[0] if use.operands else None, is_plain=True),
    "OptionalHasElement": OnnxRule(lambda use: np.array(use.has(0)), is_plain=True),
    "OptionalGetElement": OnnxRule(_element, is_plain=True),
}
