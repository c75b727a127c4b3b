"""Rules of reductions along axes: sums, means, extremes, their places, and the first of an order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType, DTypeKind, TensorType
from mind_mlir.ops.accumulators import default_accumulator
from mind_mlir.ops.extremes import identity_number
from mind_mlir.ops.stablehlo_conversion import converted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
