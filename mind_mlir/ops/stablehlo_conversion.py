"""Numbers of one dtype as those of another, as `Cast` has it: StableHLO says nothing of what does not fit."""

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
