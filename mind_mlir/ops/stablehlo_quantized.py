"""The rule of QuantizedDot: weights as numbers, and a product of f32 for each block."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.quantized_formats import BLOCK, FORMATS, GREATEST, SCALE_BYTES, WeightFormat

if TYPE_CHECKING:
    from mind_mlir.mlir.stablehlo_builder import HloValue
    from mind_mlir.mlir.stablehlo_context import StablehloContext


def quantized_dot(context: StablehloContext) -> HloValue:
    """Append the product."""
    x, weights = context.operands[:2]
    kind, result = FORMATS[context.attributes["format"]], context.result_type
    rows, columns, blocks = math.prod(x.shape[:-1]), weights.shape[0], x.shape[-1] // BLOCK
    steps = context.reshape(context.convert(x, DType.F32), (rows, blocks, BLOCK))
    scales = None
    if context.attributes["activations"] == "int8":
        steps, scales = _in_8_bits(context, steps)
    held, factors = _weights(context, kind, (columns, blocks, BLOCK))
    sums_type = TensorType(DType.F32, (blocks, rows, columns))
    sums = context.structured.dot_general(steps, held, sums_type, ((1,), (1,)), ((2,), (2,)))
    by_column = context.broadcast_in_dim(factors, sums.shape, (2, 0))
    products = context.multiply(sums, by_column)
    if scales is not None:
        products = context.multiply(products, context.broadcast_in_dim(scales, sums.shape, (1, 0)))
    ones = context.constant(1, TensorType(DType.F32, (blocks,)))
    total = context.structured.dot_general(
        ones, products, TensorType(DType.F32, (rows, columns)), ((), ()), ((0,), (0,))
    )
    return context.reshape(context.convert(total, result.dtype), result.extents)


def _in_8_bits(context: StablehloContext, blocks: HloValue) -> tuple[HloValue, HloValue]:
    """Append activations as integers, in f32, and the scale of each block."""
    magnitudes = context.unary("abs", blocks)
    start = context.constant(0, TensorType(DType.F32, ()))
    (greatest,) = context.structured.reduce([magnitudes], [start], [2], context.maximum)
    scales = context.divide(greatest, float(GREATEST))
    quotients = context.divide(blocks, context.broadcast_in_dim(scales, blocks.shape, (0, 1)))
    is_nan = context.compare("NotEqual", quotients, quotients)
    steps = context.unary("round_nearest_even", context.select(is_nan, 0, quotients))
    return context.minimum(context.maximum(steps, -GREATEST), GREATEST), scales


def _weights(
    context: StablehloContext, kind: WeightFormat, shape: tuple[int, ...]
) -> tuple[HloValue, HloValue]:
    """Append the numbers of the weights as f32 of ``shape``, and a scale for each block."""
    weights, *parameters = context.operands[1:]
    rows, blocks, _ = shape
    held = weights
    if kind.block_bytes:
        head = context.part(weights, 2, 0, SCALE_BYTES)
        scales = context.emit("bitcast_convert", [head], TensorType(DType.F16, (rows, blocks)))
        held = context.part(weights, 2, SCALE_BYTES, kind.block_bytes)
    else:
        scales = _of_blocks(context, parameters[0], blocks)
    numbers = context.reshape(_numbers(context, kind, held), shape)
    if len(parameters) > 1:
        zero = _of_blocks(context, context.convert(parameters[1], DType.F32), blocks)
        numbers = context.subtract(numbers, context.broadcast_in_dim(zero, shape, (0, 1)))
    elif kind.middle:
        numbers = context.subtract(numbers, kind.middle)
    return numbers, context.convert(scales, DType.F32)


def _of_blocks(context: StablehloContext, values: HloValue, blocks: int) -> HloValue:
    """Append what groups have, for each of their blocks."""
    rows, groups = values.shape
    spread = context.broadcast_in_dim(values, (rows, groups, blocks // groups), (0, 1))
    return context.reshape(spread, (rows, blocks))


def _numbers(context: StablehloContext, kind: WeightFormat, held: HloValue) -> HloValue:
    if kind.bits == 8:
        signed = context.bitcast(held, DType.SI8) if held.dtype is DType.UI8 else held
        return context.convert(signed, DType.F32)
    low = context.emit("and", [held, context.like(15, held)], held.type)
    high = context.emit("shift_right_logical", [held, context.like(4, held)], held.type)
    halves = [context.convert(each, DType.F32) for each in (low, high)]
    if kind.pairs:
        halves = [context.reshape(each, (*each.shape, 1)) for each in halves]
    return context.concatenate(halves, halves[0].rank - 1)
