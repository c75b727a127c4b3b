"""Recipes of operations that give elements another shape or place, whatever they are (`recipes`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from growth import MAX_RANK, SMALL, Growth

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ops.opdef import ANY, NUMERIC

if TYPE_CHECKING:
    from growth import Shape

    from mind_mlir.ir.value import Value


def _factor(g: Growth, count: int) -> Shape:
    """Return a shape of ``count`` elements, its prime factors distributed at random."""
    extents = [1] * g.number(0 if count == 1 else 1, MAX_RANK)
    factor = 2
    while count > 1:
        while count % factor:
            factor += 1
        count //= factor
        extents[g.number(0, len(extents) - 1)] *= factor
    return tuple(extents)


def reshape(g: Growth) -> Value:
    operand = g.operand(ANY)
    count = operand.type.element_count
    if count == 0:
        others = tuple(g.pick(SMALL.extents) for _ in range(g.number(0, MAX_RANK - 1)))
        at = g.number(0, len(others))
        return g.emit("Reshape", operand, new_shape=(*others[:at], -1, *others[at:]))
    shape = list(_factor(g, count))
    if shape and g.flag():
        shape[g.number(0, len(shape) - 1)] = -1
    return g.emit("Reshape", operand, new_shape=tuple(shape))


def expand_dims(g: Growth) -> Value:
    operand = g.operand(ANY)
    rank = operand.type.rank
    axes = [g.number(0, rank) for _ in range(g.number(0, MAX_RANK - rank))]
    return g.emit("ExpandDims", operand, axes=tuple(axes))


def squeeze(g: Growth) -> Value:
    operand = g.operand(ANY, wanted=lambda value: 1 in value.shape)
    ones = [axis for axis, extent in enumerate(operand.shape) if extent == 1]
    return g.emit("Squeeze", operand, axes=tuple(g.subset(ones)))


def transpose(g: Growth) -> Value:
    operand = g.operand(ANY)
    axes = list(range(operand.type.rank))
    permutation: list[int] = []
    while axes:
        permutation.append(axes.pop(g.number(0, len(axes) - 1)))
    return g.emit("Transpose", operand, permutation=tuple(permutation))


def broadcast_to(g: Growth) -> Value:
    operand = g.operand(ANY)
    shape = list(operand.shape)
    smallest = 0 if g.empties else 1
    while len(shape) < MAX_RANK and g.flag():
        shape.insert(0, 1)
    for axis, extent in enumerate(shape):
        if extent == 1 and g.flag():
            room = g.sizes.elements // max(math.prod(shape), 1)
            extents = [e for e in (*g.sizes.extents, 0) if smallest <= e <= room]
            shape[axis] = g.pick(extents)
    return g.emit("BroadcastTo", operand, result_shape=tuple(shape))


def concat(g: Growth) -> Value:
    operand = g.operand(ANY, (1, MAX_RANK))
    axis = g.number(-operand.type.rank, operand.type.rank - 1)
    shape = list(operand.shape)
    shape[axis] = g.extent(tuple(extent for at, extent in enumerate(shape) if at != axis % len(shape)))
    shape[axis] = min(shape[axis], max(operand.shape[axis], 1))
    return g.emit("Concat", operand, g.of_type(operand.type.with_shape(tuple(shape))), axis=axis)


def tile(g: Growth) -> Value:
    operand = g.operand(ANY)
    repeats, shape = [], list(operand.shape)
    for axis, extent in enumerate(operand.shape):
        repeats.append(g.number(0 if g.empties else 1, 2))
        shape[axis] = extent * repeats[-1]
        if not g.sizes.fit(tuple(shape)):
            repeats[-1], shape[axis] = 1, extent
    return g.emit("Tile", operand, repeats=tuple(repeats))


def iota(g: Growth) -> Value:
    shape = g.shape(1)
    return g.emit("Iota", shape=shape, dtype=g.dtype(NUMERIC), axis=g.number(-len(shape), len(shape) - 1))


def pad(g: Growth) -> Value:
    operand = g.operand(ANY)
    low, high, interior = [], [], []
    shape = list(operand.shape)
    for axis, extent in enumerate(operand.shape):
        amounts = (g.number(0, 2), g.number(0, 2), g.number(0, 2)) if g.flag() else (0, 0, 0)
        shape[axis] = amounts[0] + extent + amounts[1] + max(extent - 1, 0) * amounts[2]
        if not g.sizes.fit(tuple(shape)):
            amounts, shape[axis] = (0, 0, 0), extent
        low.append(amounts[0])
        high.append(amounts[1])
        interior.append(amounts[2])
    value = TensorLiteral.of(g.number(0, 1), operand.type.dtype)
    return g.emit("Pad", operand, low=tuple(low), high=tuple(high), interior=tuple(interior), pad_value=value)
