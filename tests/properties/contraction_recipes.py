"""Recipes of contractions (`recipes`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from growth import MAX_RANK, SMALL, Growth, has_elements

from mind_mlir.ir.attributes import Padding, PaddingMode
from mind_mlir.ops.opdef import NUMERIC

if TYPE_CHECKING:
    from growth import Shape

    from mind_mlir.ir.value import Value


def dot(g: Growth) -> Value:
    left = g.operand(NUMERIC, (1, 2))
    shape: Shape = left.shape[-1:]
    if g.flag():
        shape = (*shape, g.extent(max(left.shape[:-1], left.shape[-1:], key=math.prod)))
    return g.accumulated(g.emit("Dot", left, g.of_type(left.type.with_shape(shape))))


def matmul(g: Growth) -> Value:
    left = g.operand(NUMERIC, (2, MAX_RANK))
    batch = left.shape[g.number(0, left.type.rank - 2) : -2]
    batch = tuple(1 if g.number(0, 2) == 0 else extent for extent in batch)
    columns = g.extent(max(left.shape[:-1], (*batch, left.shape[-1]), key=math.prod))
    right = g.of_type(left.type.with_shape((*batch, left.shape[-1], columns)))
    return g.accumulated(g.emit("MatMul", left, right))


def dot_general(g: Growth) -> Value:
    left = g.operand(NUMERIC, (0, 3), has_elements)
    axes = list(range(left.type.rank))
    paired = g.subset(axes)
    batch = tuple(axis for axis in paired if g.flag())
    contract = tuple(axis for axis in paired if axis not in batch)
    free = () if g.flag() else (g.pick(SMALL.extents[:3]),)
    shape = (*(left.shape[axis] for axis in (*contract, *batch)), *free)
    right = g.of_type(left.type.with_shape(shape))
    places = range(len(paired))
    value = g.emit(
        "DotGeneral",
        left,
        right,
        batch_lhs=batch,
        batch_rhs=tuple(places[len(contract) :]),
        contract_lhs=contract,
        contract_rhs=tuple(places[: len(contract)]),
        accum_dtype=left.type.dtype,
        out_dtype=left.type.dtype,
    )
    return g.accumulated(value)


def convolution(g: Growth) -> Value:
    image = g.operand(NUMERIC, (3, 4), wanted=has_elements)
    count = len(image.shape) - 2
    window = tuple(g.number(1, min(extent, 3)) for extent in image.shape[1:-1])
    groups = g.pick([each for each in (1, 2, 3) if image.shape[-1] % each == 0])
    outputs = groups * g.number(1, 3)
    filter_ = g.of_type(image.type.with_shape((*window, image.shape[-1] // groups, outputs)))
    value = g.emit(
        "Convolution",
        image,
        filter_,
        strides=[g.number(1, 3) for _ in range(count)],
        padding_low=[g.number(0, 2) for _ in range(count)],
        padding_high=[g.number(0, 2) for _ in range(count)],
        base_dilation=[g.number(1, 2) for _ in range(count)],
        window_dilation=[1] * count,
        groups=groups,
        accum_dtype=image.type.dtype,
        out_dtype=image.type.dtype,
    )
    return g.accumulated(value)


def conv2d(g: Growth) -> Value:
    image = g.operand(NUMERIC, (4, 4), wanted=has_elements)
    kernel = tuple(g.number(1, min(extent, 3)) for extent in image.shape[1:3])
    filter_ = g.of_type(image.type.with_shape((*kernel, image.shape[3], g.pick(SMALL.extents[:3]))))
    padding = Padding(g.pick(list(PaddingMode)))
    if padding.mode is PaddingMode.CUSTOM:
        (top, bottom), (left, right) = ((g.number(0, 2), g.number(0, 2)) for _ in range(2))
        padding = Padding(padding.mode, ((top, bottom), (left, right)))
    strides = (g.number(1, 3), g.number(1, 3))
    return g.accumulated(g.emit("Conv2d", image, filter_, strides=strides, padding=padding))
