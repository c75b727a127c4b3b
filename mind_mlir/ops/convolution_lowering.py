"""Convolutions in linalg: one operation over windows, groups and channels, which reads the padded image.

What only spaces out the image is never written: with base dilation b and stride s, every
(b / gcd(b, s))-th result is a sum over the same places of the filter, which are those that meet elements of
the image rather than gaps. So there is a convolution without base dilation for each such phase of the result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mind_mlir.ops.accumulators import Accumulation
from mind_mlir.ops.complex_parts import products_of_parts
from mind_mlir.ops.conversion import converted
from mind_mlir.ops.convolution_form import axes_of
from mind_mlir.ops.dot_general_lowering import factor
from mind_mlir.ops.opdef import COMPLEX
from mind_mlir.ops.padding import padded
from mind_mlir.ops.reassociation import reshape, transposed
from mind_mlir.ops.sliding import Sliding

if TYPE_CHECKING:
    from mind_mlir.ir.types import TensorType
    from mind_mlir.mlir.context import LoweringContext

#: So many phases are convolutions of their own at most.
_PHASES = 64


class _Tensor(NamedTuple):
    """A tensor and its type in our terms."""

    value: Any
    type: TensorType

    @property
    def shape(self) -> tuple[int, ...]:
        """Return its extents."""
        return self.type.extents


def lower_convolution(context: LoweringContext) -> Any:
    """Append a Convolution."""
    result, accumulator = context.result_type, context.attributes["accum_dtype"]
    if result.element_count == 0:
        return context.empty(result)
    if any(type_.element_count == 0 for type_ in context.operand_types):
        return context.filled(result, 0)
    if accumulator in COMPLEX:
        return products_of_parts(context, lower_convolution)
    dtypes = Accumulation(context, accumulator, accumulator, result.dtype)
    computed = result.with_dtype(dtypes.computed)
    image, filter_ = (
        _Tensor(value, type_.with_dtype(dtype))
        for type_, (value, dtype) in zip(
            context.operand_types,
            (factor(context, place, accumulator, dtypes.computed) for place in (0, 1)),
            strict=True,
        )
    )
    axes = axes_of(context.attributes, image.shape, filter_.shape)
    return dtypes.result(_spaced(context, image, filter_, axes, computed), result)


# Base dilation


class _Phase(NamedTuple):
    """Every ``period``-th result along an axis: its windows, over elements of the image alone.

    Attributes:
        period: How far apart the results are.
        places: The places of the filter that they are sums over; none where they are all gaps.
        axis: The windows.
        results: How many results there are.
    """

    period: int
    places: range
    axis: Sliding
    results: int


def phases_of(axis: Sliding) -> list[_Phase]:
    """Return the phases of the results along an axis, by their first result."""
    common = math.gcd(axis.base, axis.stride)
    period = min(axis.base // common, axis.count)
    return [_phase(axis, period, first) for first in range(period)]


def _phase(axis: Sliding, period: int, first: int) -> _Phase:
    count = -(-(axis.count - first) // period)
    start = first * axis.stride - axis.low
    step = axis.base // math.gcd(axis.base, axis.spacing)
    begin = next(
        (at for at in range(min(step, axis.window)) if (start + at * axis.spacing) % axis.base == 0), 0
    )
    places = range(begin, axis.window, step)
    if (start + begin * axis.spacing) % axis.base:
        return _Phase(period, range(0), Sliding(axis.extent), count)
    stride = period * axis.stride // axis.base if count > 1 else 1
    low = -(start + begin * axis.spacing) // axis.base
    found = Sliding(axis.extent, len(places), stride, low, 0, 1, step * axis.spacing // axis.base)
    high = (count - 1) * stride + found.span - axis.extent - low
    return _Phase(
        period, places, Sliding(axis.extent, len(places), stride, low, high, 1, found.spacing), count
    )


def _spaced(
    context: LoweringContext, image: _Tensor, filter_: _Tensor, axes: Sequence[Sliding], type_: TensorType
) -> Any:
    """Append a convolution of ``type_`` that may have base dilation."""
    if all(axis.base == 1 for axis in axes):
        return _windows(context, image, filter_, axes, type_)
    if math.prod(min(axis.base // math.gcd(axis.base, axis.stride), axis.count) for axis in axes) > _PHASES:
        apart = [Sliding(axis.extent, base=axis.base) for axis in axes]
        batch, *_, channels = image.shape
        spread = image.type.with_shape((batch, *(axis.padded for axis in apart), channels))
        kept = [range(batch), *(axis.kept for axis in apart), range(channels)]
        value = padded(context, image.value, image.type, spread, kept, 0)
        dense = [
            Sliding(wide.padded, axis.window, axis.stride, axis.low, axis.high, 1, axis.spacing)
            for wide, axis in zip(apart, axes, strict=True)
        ]
        return _windows(context, _Tensor(value, spread), filter_, dense, type_)
    every = [phases_of(axis) for axis in axes]
    has_gaps = any(not phase.places for phases in every for phase in phases)
    total = context.filled(type_, 0) if has_gaps else context.empty(type_)
    batch, *_, features = type_.extents
    for chosen in itertools.product(*(enumerate(phases) for phases in every)):
        firsts, phases = zip(*chosen, strict=True)
        if not all(phase.places for phase in phases):
            continue
        counts = [phase.results for phase in phases]
        taps = _taps(context, filter_, [phase.places for phase in phases])
        part = type_.with_shape((batch, *counts, features))
        value = _windows(context, image, taps, [phase.axis for phase in phases], part)
        static: tuple[list[int], ...] = (
            [0, *firsts, 0],
            [batch, *counts, features],
            [1, *(phase.period for phase in phases), 1],
        )
        tensor = context.mlir.tensor
        place = tensor.extract_slice(value.type, total, [], [], [], *static)
        value = context.named("copy", [value], place, part)
        total = tensor.insert_slice(value, total, [], [], [], *static)
    return total


def _taps(context: LoweringContext, filter_: _Tensor, places: Sequence[range]) -> _Tensor:
    """Return the elements of a filter at some places of each axis."""
    shape = (*map(len, places), *filter_.shape[-2:])
    offsets, strides = [at.start for at in places], [at.step if len(at) > 1 else 1 for at in places]
    return _sliced(context, filter_, [*offsets, 0, 0], shape, [*strides, 1, 1])


def _sliced(
    context: LoweringContext,
    source: _Tensor,
    offsets: Sequence[int],
    shape: tuple[int, ...],
    strides: Sequence[int],
) -> _Tensor:
    if shape == source.shape:
        return source
    type_ = source.type.with_shape(shape)
    ir = context.mlir.ir
    wanted = ir.RankedTensorType.get(list(shape), context.element(type_.dtype))
    static = (list(offsets), list(shape), list(strides))
    return _Tensor(context.mlir.tensor.extract_slice(wanted, source.value, [], [], [], *static), type_)


# Windows


def _windows(
    context: LoweringContext, image: _Tensor, filter_: _Tensor, axes: Sequence[Sliding], type_: TensorType
) -> Any:
    """Append a convolution of ``type_`` without base dilation."""
    image = _within(context, image, axes)
    groups = image.shape[-1] // filter_.shape[-2]
    # A step over everything reaches nothing; as it is written, it may be beyond any address.
    strides = [min(axis.stride, max(1, extent)) for axis, extent in zip(axes, image.shape[1:-1], strict=True)]
    spacing = [axis.spacing if axis.window > 1 else 1 for axis in axes]
    window = filter_.shape[:-2]
    if groups == 1 and set(spacing) <= {1}:
        if {*window, *strides} <= {1}:
            return _product(context, image, filter_, math.prod(image.shape[:-1]), type_)
        if window == image.shape[1:-1]:
            return _product(context, image, filter_, image.shape[0], type_)
    if groups == 1 and len(axes) == 2 and {image.type.dtype, filter_.type.dtype} == {type_.dtype}:
        array, ir = np.array, context.mlir.ir
        lists = {
            "strides": ir.DenseElementsAttr.get(array(strides, np.int64)),
            "dilations": ir.DenseElementsAttr.get(array(spacing, np.int64)),
        }
        operands = [image.value, filter_.value]
        return context.named("conv_2d_nhwc_hwcf", operands, context.filled(type_, 0), type_, **lists)
    return _grouped(context, image, filter_, strides, spacing, type_)


def _within(context: LoweringContext, image: _Tensor, axes: Sequence[Sliding]) -> _Tensor:
    """Return the image with zeros around it, and without what padding below zero cuts off."""
    batch, *_, channels = image.shape
    inside = [range(max(0, -axis.low), min(axis.extent, axis.padded - axis.low)) for axis in axes]
    type_ = image.type.with_shape((batch, *(axis.padded for axis in axes), channels))
    if not all(inside):
        return _Tensor(context.filled(type_, 0), type_)
    offsets, shape = [0, *(each.start for each in inside), 0], (batch, *map(len, inside), channels)
    image = _sliced(context, image, offsets, shape, [1] * len(shape))
    if image.type == type_:
        return image
    low = [0, *(max(0, axis.low) for axis in axes), 0]
    high = [whole - first - part for whole, first, part in zip(type_.extents, low, shape, strict=True)]
    zero = context.scalar(0, type_.dtype)
    return _Tensor(context.pad(image.value, type_, low, high, zero), type_)


def _product(context: LoweringContext, image: _Tensor, filter_: _Tensor, rows: int, type_: TensorType) -> Any:
    """Append a convolution whose windows are disjoint runs of the image: one matrix product."""
    columns = filter_.shape[-1]
    inner = math.prod(filter_.shape[:-1])
    result = type_.with_shape((rows, columns))
    factors = [
        _Tensor(
            reshape(context, image.value, image.type, (rows, inner)), image.type.with_shape((rows, inner))
        ),
        _matrix(context, filter_),
    ]
    if {each.type.dtype for each in factors} == {type_.dtype}:
        operands = [each.value for each in factors]
        found = context.named("matmul", operands, context.filled(result, 0), result)
    else:
        found = _sums(context, factors, [[(0,), (2,)], [(2,), (1,)], [(0,), (1,)]], 1, result)
    return reshape(context, found, result, type_.extents)


def _matrix(context: LoweringContext, filter_: _Tensor) -> _Tensor:
    """Return a filter as a matrix whose columns are features.

    One of single elements that is transposed from ``[F, C, 1, ...]`` is a transposed matrix: products read
    through that, but not through what has more dimensions.
    """
    inner, columns = math.prod(filter_.shape[:-1]), filter_.shape[-1]
    type_ = filter_.type.with_shape((inner, columns))
    found = context.transposition(filter_.value) if inner == filter_.shape[-2] else None
    if found is not None:
        source, order = found
        if order[-1] < order[-2]:
            turned = filter_.type.with_shape((columns, inner))
            shape = [0] * len(order)
            for axis, extent in zip(order, filter_.shape, strict=True):
                shape[axis] = extent
            source = reshape(context, source, filter_.type.with_shape(tuple(shape)), turned.extents)
            return _Tensor(transposed(context, source, turned, (1, 0)), type_)
    return _Tensor(reshape(context, filter_.value, filter_.type, type_.extents), type_)


def _grouped(
    context: LoweringContext,
    image: _Tensor,
    filter_: _Tensor,
    strides: Sequence[int],
    spacing: Sequence[int],
    type_: TensorType,
) -> Any:
    """Append the sums of each group, over loops for its features and channels where it has several."""
    *window, inputs, outputs = filter_.shape
    groups = image.shape[-1] // inputs
    features = outputs // groups
    space = len(window)
    several = [*((groups,) if groups > 1 else ()), *((features,) if features > 1 or groups == 1 else ())]
    summed = [inputs] if inputs > 1 or groups == 1 else []
    result = type_.with_shape((*type_.extents[:-1], *several))
    loops = iter(range(1 + space + len(several) + space + len(summed)))
    batch, *places = (next(loops) for _ in range(1 + space))
    group = [next(loops)] if groups > 1 else []
    feature = [next(loops) for _ in several[len(group) :]]
    taps = [next(loops) for _ in range(space)]
    channel = list(loops)
    shapes = [
        (*image.shape[:-1], *([groups] if group else []), *summed),
        (*window, *summed, *several),
    ]
    factors = [
        _Tensor(reshape(context, each.value, each.type, shape), each.type.with_shape(shape))
        for each, shape in zip((image, filter_), shapes, strict=True)
    ]
    slides: list[tuple[Any, ...]] = [
        ((place, stride), (tap, step))
        for place, stride, tap, step in zip(places, strides, taps, spacing, strict=True)
    ]
    accesses = [
        [(batch,), *slides, *_alone(group), *_alone(channel)],
        [*_alone(taps), *_alone(channel), *_alone(group), *_alone(feature)],
        [(batch,), *_alone(places), *_alone(group), *_alone(feature)],
    ]
    found = _sums(context, factors, accesses, len(taps) + len(channel), result)
    return reshape(context, found, result, type_.extents)


def _alone(loops: Sequence[int]) -> list[tuple[int]]:
    return [(loop,) for loop in loops]


def _sums(
    context: LoweringContext,
    factors: Sequence[_Tensor],
    accesses: Sequence[Sequence[Sequence[Any]]],
    reductions: int,
    type_: TensorType,
) -> Any:
    """Append sums of products over the last loops.

    Args:
        context: Takes the operation.
        factors: What is multiplied.
        accesses: By which loops each factor and the result are read: a sum of loops for each dimension, or of
            pairs of a loop and its factor.
        reductions: How many of the loops are summed over.
        type_: The type of the result.
    """
    ir = context.mlir.ir
    count = type_.rank + reductions

    def index(terms: Sequence[Any]) -> Any:
        pairs = [term if isinstance(term, tuple) else (term, 1) for term in terms]
        found = [
            ir.AffineDimExpr.get(loop) * by if by > 1 else ir.AffineDimExpr.get(loop) for loop, by in pairs
        ]
        return sum(found[1:], start=found[0])

    maps = [ir.AffineMap.get(count, 0, [index(terms) for terms in access]) for access in accesses]
    arithmetic = context.arithmetic(type_.dtype)

    def body(left: Any, right: Any, total: Any) -> Any:
        terms = [
            converted(context, value, each.type.dtype, type_.dtype)
            for value, each in zip((left, right), factors, strict=True)
        ]
        return arithmetic.add(total, arithmetic.multiply(*terms))

    iterators = ["parallel"] * type_.rank + ["reduction"] * reductions
    values = [each.value for each in factors]
    (total,) = context.generic(values, maps, [context.filled(type_, 0)], iterators, body)
    return total
