"""Sequences and optional values: lists while a model is traced, which leave no trace of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import Rule
from mind_mlir.models.onnx.rules.slicing import parts

if TYPE_CHECKING:
    from mind_mlir.models.onnx.graphs.use import Array, Use, Value


def _place(use: Use, at: int, length: int, default: int) -> int:
    if not use.has(at):
        return default
    place = int(use.known(at, "the place in a sequence").reshape(()))
    if not -length <= place <= length:
        broken(f"place {place} is beyond a sequence of {length}")
    return place + length if place < 0 else place


def _at(use: Use) -> Array:
    listed = use.sequence(0)
    return listed[_place(use, 1, len(listed), 0)]


def _insert(use: Use) -> list[Array]:
    listed = list(use.sequence(0))
    listed.insert(_place(use, 2, len(listed), len(listed)), use.operands[1])
    return listed


def _erase(use: Use) -> list[Array]:
    listed = list(use.sequence(0))
    del listed[_place(use, 1, len(listed), len(listed) - 1)]
    return listed


def _split(use: Use) -> list[Array]:
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


def _concat(use: Use) -> Array:
    listed = use.sequence(0)
    axis, is_new = use.needed("axis", int), bool(use.attr("new_axis", 0))
    if not listed:
        broken("it joins a sequence of nothing")
    axis = use.axis(axis, listed[0].ndim + is_new)
    if all(isinstance(each, np.ndarray) for each in listed):
        return np.stack(listed, axis) if is_new else np.concatenate(listed, axis)
    arrays = [use.array(each) for each in listed]
    return mnp.stack(arrays, axis) if is_new else mnp.concatenate(arrays, axis)


def _is_there(use: Use) -> Array:
    return np.array(use.has(0))


def _element(use: Use) -> Value:
    if not use.has(0):
        broken("it asks an empty optional for its value")
    return use.operands[0]


def _optional(use: Use) -> Value:
    return use.operands[0] if use.operands else None


RULES = {
    "SequenceEmpty": Rule(lambda _: []),
    "SequenceConstruct": Rule(lambda use: list(use.operands)),
    "SequenceAt": Rule(_at, is_plain=True),
    "SequenceInsert": Rule(_insert, is_plain=True),
    "SequenceErase": Rule(_erase, is_plain=True),
    "SequenceLength": Rule(lambda use: np.array(len(use.sequence(0)), np.int64), is_plain=True),
    "SplitToSequence": Rule(_split, is_plain=True),
    "ConcatFromSequence": Rule(_concat, is_plain=True),
    "Optional": Rule(_optional, is_plain=True),
    "OptionalHasElement": Rule(_is_there, is_plain=True),
    "OptionalGetElement": Rule(_element, is_plain=True),
}
