"""The derivative of QuantizedDot: products with weights as numbers, made of what the format holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType
from mind_mlir.ops.quantized_formats import BLOCK, FORMATS, SCALE_BYTES, WeightFormat

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import VjpContext


def vjp(context: VjpContext) -> Sequence[Value | None]:
    """Append the cotangents of ``x`` and of the scales, in f32."""
    x, weights, *parameters = context.operands
    kind = FORMATS[context.attributes["format"]]
    rows = math.prod(x.shape[:-1])
    none: list[Value | None] = [None] * len(context.operands)
    if 0 in (*x.shape, *weights.shape):
        return [context.zeros(each.type) if need else None for each, need in _needed(context)]
    cotangent = _reshaped(context, context.cast(context.cotangent, DType.F32), (rows, weights.shape[0]))
    steps, scales = _steps(context, kind)
    if context.needs[0]:
        spread = _spread(context, context.emit("ExpandDims", scales, axes=(2,)), steps.shape)
        numbers = context.emit("Mul", steps, spread)
        matrix = _reshaped(context, numbers, (weights.shape[0], x.shape[-1]))
        product = _product(context, cotangent, matrix)
        none[0] = _reshaped(context, context.cast(product, x.type.dtype), x.shape)
    if parameters and context.needs[2]:
        flat = _reshaped(context, context.cast(x, DType.F32), (rows, x.shape[-1]))
        turned = context.emit("Transpose", cotangent, permutation=(1, 0))
        outer = _reshaped(context, _product(context, turned, flat), steps.shape)
        sums = context.emit("Sum", context.emit("Mul", outer, steps), axes=(2,), keepdims=False)
        none[2] = context.cast(sums, parameters[0].type.dtype)
    return none


def _product(context: VjpContext, left: Value, right: Value) -> Value:
    """Append the product of two matrices of f32, as every profile has it."""
    form = {"contract_lhs": (1,), "contract_rhs": (0,), "accum_dtype": DType.F32, "out_dtype": DType.F32}
    return context.emit("DotGeneral", left, right, **form)


def _needed(context: VjpContext) -> Sequence[tuple[Value, bool]]:
    """Return the operands, and which of them get a cotangent: x and the scales, if these are a tensor."""
    floats = [place == 0 or place == 2 for place in range(len(context.operands))]
    return [
        (each, need and is_float)
        for each, need, is_float in zip(context.operands, context.needs, floats, strict=True)
    ]


def _steps(context: VjpContext, kind: WeightFormat) -> tuple[Value, Value]:
    """Append the weights in steps of their scales, ``[N, G, elements of a group]``, and the scales: f32."""
    weights, *parameters = context.operands[1:]
    rows = weights.shape[0]
    if kind.block_bytes:
        ends = (rows, weights.shape[1], SCALE_BYTES)
        head = context.emit("Slice", weights, starts=(0, 0, 0), ends=ends, steps=(1, 1, 1))
        scales = context.cast(context.emit("Bitcast", head, dtype=DType.F16), DType.F32)
        starts = (0, 0, SCALE_BYTES)
        held = context.emit("Slice", weights, starts=starts, ends=weights.shape, steps=(1, 1, 1))
        numbers = _numbers(context, kind, held, (rows, weights.shape[1], BLOCK))
    else:
        scales = context.cast(parameters[0], DType.F32)
        depth = weights.shape[1] * 8 // kind.bits
        numbers = _numbers(context, kind, weights, (rows, scales.shape[1], depth // scales.shape[1]))
    if len(parameters) > 1:
        zero = context.emit("ExpandDims", context.cast(parameters[1], DType.F32), axes=(2,))
        return context.emit("Sub", numbers, _spread(context, zero, numbers.shape)), scales
    if kind.middle:
        middle = context.builder.constant(float(kind.middle), DType.F32)
        return context.emit("Sub", numbers, _spread(context, middle, numbers.shape)), scales
    return numbers, scales


def _numbers(context: VjpContext, kind: WeightFormat, held: Value, shape: tuple[int, ...]) -> Value:
    """Append the numbers that ``held`` holds, as f32 of ``shape``."""
    if kind.bits == 4:
        dtype = held.type.dtype
        lowest, four = (
            _spread(context, context.builder.constant(each, dtype), held.shape) for each in (15, 4)
        )
        low = context.emit("And", held, lowest)
        high = context.emit("ShiftRightLogical", held, four)
        halves = [context.cast(each, DType.F32) for each in (low, high)]
        if kind.pairs:
            halves = [context.emit("ExpandDims", each, axes=(len(each.shape),)) for each in halves]
        held = context.emit("Concat", *halves, axis=len(halves[0].shape) - 1)
    elif held.type.dtype is DType.UI8:
        held = context.emit("Bitcast", held, dtype=DType.SI8)
    return _reshaped(context, context.cast(held, DType.F32), shape)


def _reshaped(context: VjpContext, value: Value, shape: tuple[int, ...]) -> Value:
    return value if value.shape == shape else context.emit("Reshape", value, new_shape=shape)


def _spread(context: VjpContext, value: Value, shape: tuple[int, ...]) -> Value:
    """Append ``value`` in a shape that it broadcasts to: not every profile broadcasts by itself."""
    return value if value.shape == shape else context.emit("BroadcastTo", value, result_shape=shape)
