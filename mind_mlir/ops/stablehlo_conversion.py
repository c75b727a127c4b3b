"""Rules of conversions and of affine quantization.

Numbers of one dtype become those of another as `Cast` has it: StableHLO says nothing of what does not fit.
Its quantized types fix scales when the program is made; here they are values, and the arithmetic is in f64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType

if TYPE_CHECKING:
    from mind_mlir.mlir.stablehlo_builder import HloValue, StablehloBuilder
    from mind_mlir.mlir.stablehlo_context import StablehloContext


def cast(context: StablehloContext) -> HloValue:
    """Rule of `Cast`."""
    return converted(context, context.operands[0], context.result_type.dtype)


def converted(builder: StablehloBuilder, x: HloValue, target: DType) -> HloValue:
    """Append ``x`` as numbers of ``target``: integers saturate, and NaN becomes 0."""
    if x.dtype is target:
        return x
    if target.is_complex:
        return _to_complex(builder, x, target)
    if target is DType.I1:
        return builder.compare("NotEqual", x, 0)
    if target.is_float or x.dtype is DType.I1:
        return builder.convert(x, target)
    return _truncated(builder, x, target) if x.dtype.is_float else _clamped(builder, x, target)


def _to_complex(builder: StablehloBuilder, x: HloValue, target: DType) -> HloValue:
    part = target.part
    if x.dtype.is_complex:
        real, imaginary = (builder.convert(each, part) for each in builder.parts(x))
    else:
        real = builder.convert(x, part)
        imaginary = builder.like(0, real)
    return builder.complex_of(real, imaginary)


def _truncated(builder: StablehloBuilder, x: HloValue, target: DType) -> HloValue:
    """Append floats as integers; only those that fit are given to the conversion."""
    x = builder.convert(x, DType.F32) if x.dtype.bits < 32 else x  # which has all limits, one beyond the last
    least, greatest = limits(target)
    is_high = builder.compare("GreaterEqual", x, greatest + 1)
    is_low = builder.compare("Less", x, least)
    is_nan = builder.compare("NotEqual", x, x)
    unfit = builder.either(builder.either(is_high, is_low), is_nan)
    whole = builder.convert(builder.select(unfit, 0, x), target)
    return builder.select(is_low, least, builder.select(is_high, greatest, whole))


def _clamped(builder: StablehloBuilder, x: HloValue, target: DType) -> HloValue:
    (lowest, highest), (least, greatest) = limits(x.dtype), limits(target)
    x = builder.maximum(x, least) if lowest < least else x
    x = builder.minimum(x, greatest) if highest > greatest else x
    return builder.convert(x, target)


# Quantization


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
