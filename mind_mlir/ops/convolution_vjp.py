"""The derivatives of Conv2d, which are convolutions too.

With stride s, kernel extent k, low padding p and output extent O along
a spatial axis, ``y[o] = sum over i of x[o * s + i - p] * w[i]``, so

    dx[h] = sum over j of G[h + p - (k - 1) + j] * w[k - 1 - j]        (unit stride)
    dw[i] = sum over t of x[t + i - p] * G[t]                          (unit stride)

where ``G`` is the cotangent with s - 1 zeros between its elements: ``G[o * s] = dy[o]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.attributes import Padding, PaddingMode, TensorLiteral
from mind_mlir.ops.windows import spatial_padding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import VjpContext
    from mind_mlir.ops.windows import Pairs

_VALID = Padding(PaddingMode.VALID)


def conv2d_vjp(context: VjpContext) -> Sequence[Value | None]:
    """Derivative rule of `Conv2d` (autodiff.md, "Linear and tensor algebra"); an extension of Core v1."""
    image, filter_ = context.operands
    padding = spatial_padding(
        context.attributes["padding"], image.shape[1:3], filter_.shape[:2], context.attributes["strides"]
    )
    return (
        _input_gradient(context, padding) if context.needs[0] else None,
        _filter_gradient(context, padding) if context.needs[1] else None,
    )


def _input_gradient(context: VjpContext, padding: Pairs) -> Value:
    image, filter_ = context.operands
    kernel, strides = filter_.shape[:2], context.attributes["strides"]
    low = [kernel[axis] - 1 - padding[axis][0] for axis in (0, 1)]
    spread = [(context.cotangent.shape[axis + 1] - 1) * strides[axis] + 1 for axis in (0, 1)]
    high = [image.shape[axis + 1] + kernel[axis] - 1 - spread[axis] - low[axis] for axis in (0, 1)]
    gradient = _padded(context, context.cotangent, low, high, [stride - 1 for stride in strides])
    flipped = context.emit(
        "Transpose", _flipped(context, filter_), permutation=(0, 1, 3, 2)
    )  # [H_k, W_k, C_out, C_in]
    return context.emit("Conv2d", gradient, flipped, strides=(1, 1), padding=_VALID)


def _filter_gradient(context: VjpContext, padding: Pairs) -> Value:
    image, filter_ = context.operands
    strides = context.attributes["strides"]
    spread = [(context.cotangent.shape[axis + 1] - 1) * strides[axis] + 1 for axis in (0, 1)]
    low = [padding[axis][0] for axis in (0, 1)]
    # What the last window does not reach, padding included, is cut off.
    high = [spread[axis] + filter_.shape[axis] - 1 - image.shape[axis + 1] - low[axis] for axis in (0, 1)]
    # The channels become the batch, and the batch is what is summed over.
    channels = context.emit("Transpose", image, permutation=(3, 1, 2, 0))
    windows = context.emit("Transpose", context.cotangent, permutation=(1, 2, 0, 3))
    none = (0, 0, 0, 0)
    product = context.emit(
        "Conv2d",
        _padded(context, channels, low, high, [0, 0]),
        _pad(context, windows, none, none, (strides[0] - 1, strides[1] - 1, 0, 0)),
        strides=(1, 1),
        padding=_VALID,
    )  # [C_in, H_k, W_k, C_out]
    return context.emit("Transpose", product, permutation=(1, 2, 0, 3))


def _flipped(context: VjpContext, filter_: Value) -> Value:
    height, width, *channels = filter_.shape
    if height == width == 1:
        return filter_
    # A negative end counts from the end, so the end before index 0 is -extent - 1.
    return context.emit(
        "Slice",
        filter_,
        starts=(height - 1, width - 1, 0, 0),
        ends=(-height - 1, -width - 1, *channels),
        steps=(-1, -1, 1, 1),
    )


def _padded(
    context: VjpContext, value: Value, low: Sequence[int], high: Sequence[int], interior: Sequence[int]
) -> Value:
    """Pad axes 1 and 2 with zeros, or cut them where an amount is negative."""
    value = _pad(
        context,
        value,
        (0, *(max(amount, 0) for amount in low), 0),
        (0, *(max(amount, 0) for amount in high), 0),
        (0, *interior, 0),
    )
    cut_low, cut_high = ([max(-amount, 0) for amount in amounts] for amounts in (low, high))
    if not any((*cut_low, *cut_high)):
        return value
    batch, height, width, channels = value.shape
    return context.emit(
        "Slice",
        value,
        starts=(0, *cut_low, 0),
        ends=(batch, height - cut_high[0], width - cut_high[1], channels),
        steps=(1, 1, 1, 1),
    )


def _pad(
    context: VjpContext, value: Value, low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...]
) -> Value:
    if not any((*low, *high, *interior)):
        return value
    zero = TensorLiteral.of(0, value.type.dtype)
    return context.emit("Pad", value, low=low, high=high, interior=interior, pad_value=zero)
