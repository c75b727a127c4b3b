"""Rules of affine quantization, by arithmetic in f64.

StableHLO's own quantized types fix scales when the program is made; here they are values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType
from mind_mlir.ops.stablehlo_conversion import converted

if TYPE_CHECKING:
    from mind_mlir.mlir.stablehlo_builder import HloValue
    from mind_mlir.mlir.stablehlo_context import StablehloContext


def quantize(context: StablehloContext) -> HloValue:
    """Rule of `Quantize`."""
    x, scale, zero_point = _operands(context)
    return _saturated(context, context.divide(x, scale), zero_point)


def dequantize(context: StablehloContext) -> HloValue:
    """Rule of `Dequantize`."""
    x, scale, zero_point = _operands(context)
    steps = context.subtract(x, zero_point)
    return converted(context, context.multiply(steps, scale), context.result_type.dtype)


def requantize(context: StablehloContext) -> HloValue:
    """Rule of `Requantize`."""
    x, in_scale, in_zero_point, out_scale, out_zero_point = _operands(context)
    real = context.multiply(context.subtract(x, in_zero_point), in_scale)
    return _saturated(context, context.divide(real, out_scale), out_zero_point)


def _operands(context: StablehloContext) -> list[HloValue]:
    """Append the operands in f64, scales and zero points along their axis."""
    first, *parameters = (context.convert(each, DType.F64) for each in context.operands)
    axes = context.attributes["axis"]
    return [first, *(context.broadcast_in_dim(each, first.shape, axes) for each in parameters)]


def _saturated(context: StablehloContext, quotient: HloValue, zero_point: HloValue) -> HloValue:
    dtype = context.result_type.dtype
    least, greatest = limits(dtype)
    is_nan = context.compare("NotEqual", quotient, quotient)
    whole = context.unary("round_nearest_even", context.select(is_nan, 0, quotient))
    moved = context.add(whole, zero_point)
    return context.convert(context.minimum(context.maximum(moved, least), greatest), dtype)
