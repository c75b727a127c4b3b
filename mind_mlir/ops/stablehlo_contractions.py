"""Rules of sums of products: dot products, matrix products, convolutions, and layer normalization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ops.accumulators import default_accumulator
from mind_mlir.ops.convolution_form import axes_of, general_attributes
from mind_mlir.ops.dot_general_lowering import roles_of
from mind_mlir.ops.stablehlo_conversion import converted
from mind_mlir.ops.stablehlo_reductions import combined

if TYPE_CHECKING:
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
    image, filter_ = (operand.type for operand in context.operands)
    general = general_attributes(context.attributes, image.extents, filter_.extents, image.dtype)
    return convolution(replace(context, attributes=general))


def convolution(context: StablehloContext) -> HloValue:
    """Rule of `Convolution`; what accumulates in less than f32 does so in f32, and is rounded once."""
    attributes, result = context.attributes, context.result_type
    accumulator = attributes["accum_dtype"]
    wide = default_accumulator(accumulator)
    image, filter_ = (
        context.convert(converted(context, each, accumulator), wide) for each in context.operands
    )
    if not result.element_count or not filter_.type.element_count:
        return context.constant(0, result)
    axes = axes_of(attributes, image.shape, filter_.shape)
    if not axes:
        return _without_space(context, image, filter_)
    space = "".join(f"{axis}, " for axis in range(len(axes)))
    numbers = f"[b, {space}f]x[{space}i, o]->[b, {space}f]"
    total = context.emit(
        "convolution",
        [image, filter_],
        result.with_dtype(wide),
        window_strides=context.integers([axis.stride for axis in axes]),
        padding=context.pairs([(axis.low, axis.high) for axis in axes]),
        lhs_dilation=context.integers([axis.base for axis in axes]),
        rhs_dilation=context.integers([axis.spacing for axis in axes]),
        dimension_numbers=context.attribute(f"#stablehlo.conv<{numbers}>"),
        feature_group_count=context.integer(attributes["groups"]),
        batch_group_count=context.integer(1),
    )
    return converted(context, context.convert(total, accumulator), attributes["out_dtype"])


def _without_space(context: StablehloContext, image: HloValue, filter_: HloValue) -> HloValue:
    """Append products of the channels of each group; StableHLO has no pairs of padding for no axes."""
    groups, dtype = context.attributes["groups"], context.attributes["out_dtype"]
    (rows, channels), columns = image.shape, filter_.shape[1]
    image = context.reshape(image, (rows, groups, channels // groups))
    filter_ = context.reshape(filter_, (channels // groups, groups, columns // groups))
    type_ = image.type.with_shape((groups, rows, columns // groups))
    total = _product(context, image, filter_, type_, ((1,), (1,)), ((2,), (0,)))
    total = context.reshape(context.transpose(total, (1, 0, 2)), (rows, columns))
    return converted(context, context.convert(total, context.attributes["accum_dtype"]), dtype)


def layer_norm(context: StablehloContext) -> HloValue:
    """Rule of `LayerNorm`, in f32 at least; complex numbers have the mean of squared magnitudes."""
    c, axis = context, context.attributes["feature_axis"]
    dtype = context.result_type.dtype
    x, gamma, beta = (c.convert(each, default_accumulator(dtype)) for each in c.operands)
    if not x.type.element_count:
        return c.operands[0]
    gamma, beta = (c.broadcast_in_dim(each, x.shape, [axis]) for each in (gamma, beta))
    if not dtype.is_complex:
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
