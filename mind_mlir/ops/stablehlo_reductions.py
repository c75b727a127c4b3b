"""Rules of reductions along axes and of windows, of places of extremes, and of orders."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ir.types import DType, DTypeKind, TensorType
from mind_mlir.ops.accumulators import default_accumulator, identity_number
from mind_mlir.ops.stablehlo_conversion import converted

if TYPE_CHECKING:
    from mind_mlir.mlir.stablehlo_builder import HloValue
    from mind_mlir.mlir.stablehlo_context import StablehloContext


#: What combines two numbers.
COMBINERS = {"Sum": "add", "Max": "maximum", "Min": "minimum"}


def sum_(context: StablehloContext) -> HloValue:
    """Rule of `Sum`."""
    (x,) = context.operands
    axes = context.attributes["axes"] or range(x.rank)  # none are all of them
    return context.reshape(combined(context, x, axes, "Sum"), context.result_type.extents)


def mean(context: StablehloContext) -> HloValue:
    """Rule of `Mean`; that of integers is taken in i64, and of none is 0."""
    (x,) = context.operands
    axes, dtype = context.attributes["axes"] or range(x.rank), x.dtype
    count = math.prod(x.shape[axis] for axis in axes)
    if dtype.is_float:
        found = context.divide(combined(context, x, axes, "Sum"), count)
    else:
        total = combined(context, context.convert(x, DType.SI64), axes, "Sum")
        found = context.convert(context.divide(total, max(count, 1)), dtype)
    return context.reshape(found, context.result_type.extents)


def reduce(context: StablehloContext) -> HloValue:
    """Rule of `Reduce`."""
    attributes = context.attributes
    x = converted(context, context.operands[0], attributes["accum_dtype"])
    total = accumulated(context, x, attributes["axes"], attributes["kind"])
    found = converted(context, total, attributes["out_dtype"])
    return context.reshape(found, context.result_type.extents)


def accumulated(context: StablehloContext, x: HloValue, axes: Sequence[int], kind: str) -> HloValue:
    """Append a reduction in which floats narrower than f32 are added in f32, and rounded once.

    Along no axes it is ``x`` itself: a sum that begins with 0.0 would lose the sign of -0.0.
    """
    if not axes:
        return x
    wide = default_accumulator(x.dtype) if kind == "Sum" else x.dtype
    return context.convert(combined(context, context.convert(x, wide), axes, kind), x.dtype)


def combined(context: StablehloContext, x: HloValue, axes: Sequence[int], kind: str) -> HloValue:
    """Append the sum, or the greatest or least number, along ``axes``; no elements give what changes none."""
    start = context.constant(identity_number(kind, x.dtype), TensorType(x.dtype))
    (found,) = context.structured.reduce(
        [x], [start], axes, lambda so_far, element: context.binary(COMBINERS[kind], so_far, element)
    )
    return found


def reduce_with(kind: str) -> Callable[[StablehloContext], HloValue]:
    """Return the rule of a product, or of bits."""
    name = {"Prod": "multiply", "And": "and", "Or": "or", "Xor": "xor"}[kind]

    def rule(context: StablehloContext) -> HloValue:
        (x,) = context.operands
        wide = default_accumulator(x.dtype)
        all_bits = -1 if x.dtype.kind is DTypeKind.SIGNED else (1 << x.dtype.bits) - 1
        number = {"Prod": 1, "And": all_bits}.get(kind, 0)
        start = context.constant(number, TensorType(wide))
        (found,) = context.structured.reduce(
            [context.convert(x, wide)],
            [start],
            context.attributes["axes"],
            lambda so_far, element: context.binary(name, so_far, element),
        )
        return context.reshape(context.convert(found, x.dtype), context.result_type.extents)

    return rule


def arg_max(context: StablehloContext) -> HloValue:
    """Rule of `ArgMax`: a reduction of pairs, in which the first of equal numbers wins in whatever order."""
    c = context
    (x,), axis, dtype = c.operands, c.attributes["axis"], c.result_type.dtype
    scalar = TensorType(dtype)
    starts = [
        c.constant(identity_number("Max", x.dtype), TensorType(x.dtype)),
        c.constant(x.shape[axis] - 1, scalar),
    ]

    def body(most: HloValue, place: HloValue, element: HloValue, index: HloValue) -> list[HloValue]:
        better, equal = c.compare("Greater", element, most), c.compare("Equal", element, most)
        if x.dtype.is_float:
            is_nan, was_nan = c.compare("NotEqual", element, element), c.compare("NotEqual", most, most)
            better = c.either(better, c.both(is_nan, c.negation(was_nan)))
            equal = c.either(equal, c.both(is_nan, was_nan))
        is_first = c.both(equal, c.compare("Less", index, place))
        chosen = c.either(better, is_first)
        return [c.select(chosen, element, most), c.select(chosen, index, place)]

    indices = c.iota(x.type.with_dtype(dtype), axis)
    _, found = c.structured.reduce([x, indices], starts, [axis], body)
    return c.reshape(found, c.result_type.extents)


def arg_sort(context: StablehloContext) -> HloValue:
    """Rule of `ArgSort`: the indices are sorted with the keys."""
    c = context
    keys, attributes = c.operands, c.attributes
    axis, descending = attributes["axis"], attributes["descending"]
    indices = c.iota(c.result_type, axis)

    def before(*pairs: HloValue) -> HloValue:
        found = c.constant(False, TensorType(DType.I1))
        for place in reversed(range(len(keys))):
            left, right = (
                _in_order(c, each, total=attributes["total_order"]) if each.dtype.is_float else each
                for each in pairs[2 * place : 2 * place + 2]
            )
            less = c.compare("Greater" if descending else "Less", left, right)
            found = c.either(less, c.both(c.compare("Equal", left, right), found))
        return found

    return c.structured.sort([*keys, indices], axis, before)[-1]


def _in_order(c: StablehloContext, x: HloValue, *, total: bool) -> HloValue:
    """Append integers that are in the order of floats."""
    dtype = {8: DType.SI8, 16: DType.SI16, 32: DType.SI32, 64: DType.SI64}[x.dtype.bits]
    bits, most = c.bitcast(x, dtype), (1 << (dtype.bits - 1)) - 1
    if not total:
        bits = c.select(c.compare("Equal", x, 0.0), 0, bits)
        bits = c.select(c.compare("NotEqual", x, x), c.constant(most, bits.type), bits)
    return c.select(c.compare("Less", bits, 0), c.binary("xor", bits, most), bits)


def top_k(context: StablehloContext) -> list[HloValue]:
    """Rule of `TopK`: the first of all in order; NaN counts as the greatest number."""
    c = context
    (x,), attributes = c.operands, c.attributes
    axis = attributes["axis"] % x.rank
    indices = c.iota(x.type.with_dtype(c.result_types[1].dtype), axis)
    largest = attributes["largest"]

    def before(left: HloValue, right: HloValue, _first: HloValue, _second: HloValue) -> HloValue:
        ordered = c.compare("Greater" if largest else "Less", left, right)
        if not x.dtype.is_float:
            return ordered
        nans = [c.compare("NotEqual", each, each) for each in (left, right)]
        first, second = nans if largest else nans[::-1]
        return c.either(ordered, c.both(first, c.negation(second)))

    found = c.structured.sort([x, indices], axis, before)
    return [c.part(each, axis, 0, attributes["k"]) for each in found]


# Windows


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


def cumulate(context: StablehloContext) -> HloValue:
    """Rule of `Cumulate`: windows that begin before the axis and end at each element, or the other way."""
    (x,), a = context.operands, context.attributes
    if not x.type.element_count:
        return x
    kind, axis, extent = a["kind"], a["axis"] % x.rank, x.shape[a["axis"]]
    narrow = kind in ("Sum", "Prod")
    wide = default_accumulator(x.dtype) if narrow else x.dtype
    number = 1 if kind == "Prod" else identity_number(kind, x.dtype)
    terms, start = context.convert(x, wide), context.constant(number, TensorType(wide))
    low, high = ([extent - 1 if each == axis and side else 0 for each in range(x.rank)] for side in (1, 1))
    (high if not a["reverse"] else low)[axis] = 0
    if a["exclusive"]:
        by = [(-1 if a["reverse"] else 1) if each == axis else 0 for each in range(x.rank)]
        terms = context.pad(terms, start, by, [-each for each in by])
    name = "multiply" if kind == "Prod" else COMBINERS[kind]
    ones = (1,) * x.rank
    found = context.structured.reduce_window(
        terms,
        start,
        terms.type,
        lambda so_far, element: context.binary(name, so_far, element),
        dims=[extent if each == axis else 1 for each in range(x.rank)],
        strides=ones,
        padding=list(zip(low, high, strict=True)),
        base_dilation=ones,
        dilation=ones,
    )
    return context.convert(found, x.dtype)


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
