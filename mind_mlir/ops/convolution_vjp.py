"""The derivatives of convolutions: a convolution of the cotangent, and products of windows with it.

With stride s, low padding p, base dilation b and window dilation d along an axis,

    y[o] = sum over i of x[(o * s + i * d - p) / b] * w[i]     for the i that b divides o * s + i * d - p for

    dx[h] = sum over i of dy[(h * b + p - i * d) / s] * w[i]   for the i that s divides h * b + p - i * d for
    dw[i] = sum over o of x[(o * s + i * d - p) / b] * dy[o]

So dx is a convolution of dy whose stride is b and whose base dilation is s, with the filter turned round, and
dw is the product of the windows of x and dy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ops.accumulators import holds
from mind_mlir.ops.convolution_form import attributes_of_axes, axes_of, general_attributes
from mind_mlir.ops.phases import spanned
from mind_mlir.ops.sliding import Sliding

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import VjpContext


def conv2d_vjp(context: VjpContext) -> Sequence[Value | None]:
    """Derivative rule of `Conv2d` (autodiff.md, "Linear and tensor algebra"); an extension of Core v1."""
    image, filter_ = (operand.type for operand in context.operands)
    attributes = general_attributes(context.attributes, image.extents, filter_.extents, image.dtype)
    return _gradients(context, attributes)


def convolution_vjp(context: VjpContext) -> Sequence[Value | None]:
    """Derivative rule of `Convolution`; there is one of floats alone."""
    dtypes = (context.result.type.dtype, context.attributes["accum_dtype"])
    if not all(dtype.is_float for dtype in dtypes):
        return None, None
    return _gradients(context, context.attributes)


def _gradients(context: VjpContext, attributes: Mapping[str, Any]) -> Sequence[Value | None]:
    image, filter_ = context.operands
    if 0 in (*image.shape, *filter_.shape, *context.result.shape):
        pairs = zip(context.operands, context.needs, strict=True)
        return [context.zeros(operand.type) if needed else None for operand, needed in pairs]
    axes = axes_of(attributes, image.type.extents, filter_.type.extents)
    rules = (_input_gradient, _filter_gradient)
    return [
        rule(context, attributes, axes) if needed else None
        for rule, needed in zip(rules, context.needs, strict=True)
    ]


def _input_gradient(context: VjpContext, attributes: Mapping[str, Any], axes: Sequence[Sliding]) -> Value:
    image, filter_ = context.operands
    given, taps = _alike(context, filter_, image)
    return context.emit(
        "Convolution",
        given,
        _turned(context, taps, attributes["groups"]),
        **attributes_of_axes([_back(axis) for axis in axes]),
        groups=attributes["groups"],
        accum_dtype=attributes["accum_dtype"],
        out_dtype=image.type.dtype,
    )


def _back(axis: Sliding) -> Sliding:
    """Return the windows of the cotangent that the elements of an axis are sums over."""
    spread = (axis.extent - 1) * axis.base + 1
    low = axis.span - 1 - axis.low
    high = spread + axis.span - 1 - low - ((axis.count - 1) * axis.stride + 1)
    return Sliding(axis.count, axis.window, axis.base, low, high, axis.stride, axis.spacing)


def _turned(context: VjpContext, filter_: Value, groups: int) -> Value:
    """Return a filter with its windows turned round, and its inputs and outputs exchanged in each group."""
    *window, inputs, outputs = filter_.shape
    space, features = len(window), outputs // groups
    if any(extent > 1 for extent in window):
        filter_ = context.emit(
            "Slice",
            filter_,
            starts=(*(extent - 1 for extent in window), 0, 0),
            # A negative end counts from the end, so the end before index 0 is -extent - 1.
            ends=(*(-extent - 1 for extent in window), inputs, outputs),
            steps=(*(-1 for _ in window), 1, 1),
        )
    order = tuple(range(space))
    if groups == 1:
        return context.emit("Transpose", filter_, permutation=(*order, space + 1, space))
    if inputs == features == 1:
        return filter_
    apart = context.emit("Reshape", filter_, new_shape=(*window, inputs, groups, features))
    apart = context.emit("Transpose", apart, permutation=(*order, space + 2, space + 1, space))
    return context.emit("Reshape", apart, new_shape=(*window, features, groups * inputs))


def _filter_gradient(context: VjpContext, attributes: Mapping[str, Any], axes: Sequence[Sliding]) -> Value:
    image, filter_ = context.operands
    given, image = _alike(context, image, filter_)
    inputs, outputs = filter_.shape[-2:]
    groups: int = attributes["groups"]
    patches = _patches(context, image, axes)
    over = tuple(range(len(axes) + 1))
    channel = len(over)
    dtypes = {"accum_dtype": attributes["accum_dtype"], "out_dtype": filter_.type.dtype}
    if groups == 1:
        pairs = {"batch_lhs": (), "batch_rhs": (), "contract_lhs": over, "contract_rhs": over}
        product = context.emit("DotGeneral", patches, given, **pairs, **dtypes)
        return context.emit("Reshape", product, new_shape=filter_.shape)
    outer, count = patches.shape[:-1], patches.shape[-1] // (groups * inputs)
    patches = context.emit("Reshape", patches, new_shape=(*outer, count, groups, inputs))
    given = context.emit("Reshape", given, new_shape=(*outer, groups, outputs // groups))
    pairs = {"batch_lhs": (channel + 1,), "batch_rhs": (channel,), "contract_lhs": over, "contract_rhs": over}
    product = context.emit(
        "DotGeneral", patches, given, **pairs, **dtypes
    )  # [groups, window, inputs, outputs]
    product = context.emit("Transpose", product, permutation=(1, 2, 0, 3))
    return context.emit("Reshape", product, new_shape=filter_.shape)


def _patches(context: VjpContext, image: Value, axes: Sequence[Sliding]) -> Value:
    """Return the windows of the image as rows."""
    batch, *_, channels = image.shape
    dtype = image.type.dtype
    if any(axis.base > 1 for axis in axes):
        interior = (0, *(axis.base - 1 for axis in axes), 0)
        none, zero = (0,) * len(interior), TensorLiteral.of(0, dtype)
        image = context.emit("Pad", image, low=none, high=none, interior=interior, pad_value=zero)
    if any(min(axis.low, axis.high) < 0 for axis in axes):
        spans = [(-axis.low, axis.padded - axis.low) for axis in axes]
        image = spanned(context, image, [(0, batch), *spans, (0, channels)])
        low = high = (0,) * len(axes)
    else:
        low, high = tuple(axis.low for axis in axes), tuple(axis.high for axis in axes)
    return context.emit(
        "ExtractPatches",
        image,
        window=tuple(axis.window for axis in axes),
        # A step over everything reaches nothing; as it is written, it may be beyond any address.
        strides=tuple(min(axis.stride, max(1, axis.padded)) for axis in axes),
        dilation=tuple(axis.spacing for axis in axes),
        padding_low=low,
        padding_high=high,
        pad_value=TensorLiteral.of(0, dtype),
    )


def _alike(context: VjpContext, factor: Value, wanted: Value) -> tuple[Value, Value]:
    """Return the cotangent and a factor, the narrower of the two in the dtype that holds all its numbers."""
    result, dtype = context.result.type.dtype, wanted.type.dtype
    wide = result if holds(result, dtype) else dtype
    return context.cast(context.cotangent, wide), context.cast(factor, wide)
