"""Rules of what slides windows along a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ir.types import TensorType
from mind_mlir.ops.accumulators import default_accumulator
from mind_mlir.ops.extremes import identity_number
from mind_mlir.ops.stablehlo_conversion import converted
from mind_mlir.ops.stablehlo_reductions import COMBINERS

if TYPE_CHECKING:
    from mind_mlir.mlir.stablehlo_builder import HloValue
    from mind_mlir.mlir.stablehlo_context import StablehloContext


def reduce_window(context: StablehloContext) -> HloValue:
    """Rule of `ReduceWindow`."""
    (x,), a = context.operands, context.attributes
    accumulator, kind, result = a["accum_dtype"], a["reduce"], context.result_type
    if not result.element_count or not x.type.element_count:
        nothing = context.constant(identity_number(kind, accumulator), result.with_dtype(accumulator))
        return converted(context, nothing, result.dtype)
    wide = default_accumulator(accumulator) if kind == "Sum" else accumulator
    terms = context.convert(converted(context, x, accumulator), wide)
    if x.rank:
        terms = context.structured.reduce_window(
            terms,
            context.constant(identity_number(kind, wide), TensorType(wide)),
            result.with_dtype(wide),
            lambda so_far, element: context.binary(COMBINERS[kind], so_far, element),
            dims=a["window_dims"],
            strides=a["strides"],
            padding=list(zip(a["padding_low"], a["padding_high"], strict=True)),
            base_dilation=a["base_dilation"],
            dilation=a["window_dilation"],
        )
    return converted(context, context.convert(terms, accumulator), result.dtype)


def extract_patches(context: StablehloContext) -> HloValue:
    """Rule of `ExtractPatches`: a strided slice for each place in the window, one beside the other."""
    (x,), a = context.operands, context.attributes
    result = context.result_type
    if not result.element_count:
        return context.constant(0, result)
    low, high = ((0, *a[side], 0) for side in ("padding_low", "padding_high"))
    whole = context.pad(x, context.literal(a["pad_value"]), low, high)
    counts = result.extents[1:-1]
    parts = []
    for places in np.ndindex(*a["window"]):
        starts = [place * dilation for place, dilation in zip(places, a["dilation"], strict=True)]
        ends = [
            start + (count - 1) * stride + 1
            for start, count, stride in zip(starts, counts, a["strides"], strict=True)
        ]
        limits = (x.shape[0], *ends, x.shape[-1])
        part = context.slice(whole, (0, *starts, 0), limits, (1, *a["strides"], 1))
        parts.append(context.reshape(part, (*part.shape[:-1], 1, part.shape[-1])))
    stacked = context.concatenate(parts, len(result.extents) - 1)
    return context.reshape(stacked, result.extents)
