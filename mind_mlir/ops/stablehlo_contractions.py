"""Rules of sums of products: dot products, matrix products, convolutions, and layer normalization."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ops.accumulators import default_accumulator
from mind_mlir.ops.complex_numbers import PARTS
from mind_mlir.ops.dot_general_roles import roles_of
from mind_mlir.ops.stablehlo_conversion import converted
from mind_mlir.ops.stablehlo_reductions import combined
from mind_mlir.ops.windows import spatial_padding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.types import TensorType
    from mind_mlir.mlir.stablehlo_builder import HloValue
    from mind_mlir.mlir.stablehlo_context import StablehloContext


def dot(context: StablehloContext) -> HloValue:
    """Rule of `Dot`."""
    left, right = context.operands
    return _product(context, left, right, context.result_type, ((), ()), ((left.rank - 1,), (0,)))


def matmul(context: StablehloContext) -> HloValue:
    """Rule of `MatMul`; StableHLO does not stretch batches."""
    left, right = context.operands
    if math.prod(right.shape[:-2]) == 1 and left.rank >= right.rank:
        right = context.reshape(right, right.shape[-2:])
        return _product(context, left, right, context.result_type, ((), ()), ((left.rank - 1,), (0,)))
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    left, right = (context.broadcast(each, (*batch, *each.shape[-2:])) for each in (left, right))
    axes, rank = range(len(batch)), len(batch) + 2
    return _product(context, left, right, context.result_type, (axes, axes), ((rank - 1,), (rank - 2,)))


def dot_general(context: StablehloContext) -> HloValue:
    """Rule of `DotGeneral`; what accumulates in less than f32 does so in f32, and is rounded once."""
    attributes = context.attributes
    accumulator = attributes["accum_dtype"]
    wide = default_accumulator(accumulator)
    left, right = (context.convert(converted(context, each, accumulator), wide) for each in context.operands)
    lhs, rhs = (roles_of(attributes, *each) for each in (("lhs", left.rank), ("rhs", right.rank)))
    type_ = context.result_type.with_dtype(wide)
    pairs = (lhs.batch, rhs.batch), (lhs.contracted, rhs.contracted)
    total = context.convert(_product(context, left, right, type_, *pairs), accumulator)
    return converted(context, total, attributes["out_dtype"])


def _product(
    context: StablehloContext,
    left: HloValue,
    right: HloValue,
    type_: TensorType,
    batch: tuple[Sequence[int], Sequence[int]],
    contracted: tuple[Sequence[int], Sequence[int]],
) -> HloValue:
    if not left.type.element_count or not right.type.element_count:
        return context.constant(0, type_)  # the reference interpreter ends the process on such a product
    return context.structured.dot_general(left, right, type_, batch, contracted)


def conv2d(context: StablehloContext) -> HloValue:
    """Rule of `Conv2d`."""
    image, filter_ = context.operands
    result, strides = context.result_type, context.attributes["strides"]
    if not result.element_count or not filter_.type.element_count:
        return context.constant(0, result)
    padding = spatial_padding(context.attributes["padding"], image.shape[1:3], filter_.shape[:2], strides)
    numbers = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
    return context.emit(
        "convolution",
        [image, filter_],
        result,
        window_strides=context.integers(strides),
        padding=context.pairs(padding),
        dimension_numbers=context.attribute(f"#stablehlo.conv<{numbers}>"),
        feature_group_count=context.integer(1),
        batch_group_count=context.integer(1),
    )


def layer_norm(context: StablehloContext) -> HloValue:
    """Rule of `LayerNorm`, in f32 at least; complex numbers have the mean of squared magnitudes."""
    c, axis = context, context.attributes["feature_axis"]
    dtype = context.result_type.dtype
    x, gamma, beta = (c.convert(each, default_accumulator(dtype)) for each in c.operands)
    if not x.type.element_count:
        return c.operands[0]
    gamma, beta = (c.broadcast_in_dim(each, x.shape, [axis]) for each in (gamma, beta))
    if dtype not in PARTS:
        centered = _centered(c, x, axis)
        scale = _scale(c, c.multiply(centered, centered), axis)
        return c.convert(c.add(c.multiply(c.multiply(centered, scale), gamma), beta), dtype)
    real, imaginary = (_centered(c, part, axis) for part in c.parts(x))
    scale = _scale(c, c.add(c.multiply(real, real), c.multiply(imaginary, imaginary)), axis)
    unit = c.complex_of(c.multiply(real, scale), c.multiply(imaginary, scale))
    return c.add(c.multiply(unit, gamma), beta)


def _mean(context: StablehloContext, x: HloValue, axis: int) -> HloValue:
    """Append the mean along an axis, in the shape of ``x``."""
    kept = [dim for dim in range(x.rank) if dim != axis]
    found = context.divide(combined(context, x, [axis], "Sum"), x.shape[axis])
    return context.broadcast_in_dim(found, x.shape, kept)


def _centered(context: StablehloContext, x: HloValue, axis: int) -> HloValue:
    return context.subtract(x, _mean(context, x, axis))


def _scale(context: StablehloContext, squares: HloValue, axis: int) -> HloValue:
    """Append one over the standard deviation."""
    variance = context.add(_mean(context, squares, axis), context.attributes["epsilon"])
    return context.unary("rsqrt", variance)
