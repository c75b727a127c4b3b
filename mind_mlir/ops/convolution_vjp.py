"""The derivatives of Conv2d: products of windows, and convolutions of phases.

With stride s and low padding p along a spatial axis, ``y[o] = sum over i of x[o * s + i - p] * w[i]``, so

    dw[i] = sum over o of x[o * s + i - p] * dy[o]       the patches of x, times dy
    dx[h] = sum over i of dy[(h + p - i) / s] * w[i]     for the i that s divides h + p - i for

The second one is, for all ``h`` of one remainder by s, a convolution of unit stride with every s-th element
of the filter. Where the filter is no larger than the strides, it is one product: parts lie side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.attributes import Padding, PaddingMode, TensorLiteral
from mind_mlir.ops.phases import has_few, joined, margins, phases, spanned
from mind_mlir.ops.sliding import Sliding, spatial_padding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.value import Value
    from mind_mlir.ops.phases import Phase
    from mind_mlir.ops.sliding import Pairs
    from mind_mlir.ops.vjp import VjpContext

_VALID = Padding(PaddingMode.VALID)
#: So many phases are convolutions of their own at most.
_PHASES = 16


def conv2d_vjp(context: VjpContext) -> Sequence[Value | None]:
    """Derivative rule of `Conv2d` (autodiff.md, "Linear and tensor algebra"); an extension of Core v1."""
    image, filter_ = context.operands
    if 0 in (*image.shape, *filter_.shape):
        pairs = zip(context.operands, context.needs, strict=True)
        return [context.zeros(operand.type) if needed else None for operand, needed in pairs]
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
    if kernel[0] <= strides[0] and kernel[1] <= strides[1]:
        return _side_by_side(context, padding)
    axes = [Sliding(image.shape[0]), *_axes(context, padding), Sliding(image.shape[3])]
    if not has_few(axes, _PHASES):
        return _spaced_out(context, padding)
    every = [phases(axis) for axis in axes]
    lows, highs = margins(every, context.cotangent.shape)
    lows[3] = highs[3] = 0  # these are other channels
    spans = [
        (-low, extent + high) for low, extent, high in zip(lows, context.cotangent.shape, highs, strict=True)
    ]
    given = spanned(context, context.cotangent, spans)

    def part(chosen: tuple[Phase, ...]) -> Value:
        height, width = chosen[1:3]
        if not height.places or not width.places:
            return context.zeros(image.type.with_shape(tuple(phase.count for phase in chosen)))
        reach = [
            (0, given.shape[0]),
            *(
                (low + at.shifts[0], low + at.shifts[-1] + at.count)
                for low, at in zip(lows[1:3], (height, width), strict=True)
            ),
            (0, given.shape[3]),
        ]
        taps = _taps(context, filter_, (height.places, width.places))
        taps = context.emit("Transpose", taps, permutation=(0, 1, 3, 2))  # [H_k, W_k, C_out, C_in]
        return context.emit("Conv2d", spanned(context, given, reach), taps, strides=(1, 1), padding=_VALID)

    return joined(context, axes, part)


def _axes(context: VjpContext, padding: Pairs) -> list[Sliding]:
    """Return the windows along height and width."""
    image, filter_ = context.operands
    return [
        Sliding(
            image.shape[axis + 1], filter_.shape[axis], context.attributes["strides"][axis], *padding[axis]
        )
        for axis in (0, 1)
    ]


def _side_by_side(context: VjpContext, padding: Pairs) -> Value:
    """Return the cotangent of the image where windows do not overlap: each pixel's part is one product."""
    image, filter_ = context.operands
    dtype = image.type.dtype
    parts = context.emit(
        "DotGeneral",
        context.cotangent,
        filter_,
        batch_lhs=(),
        batch_rhs=(),
        contract_lhs=(3,),
        contract_rhs=(3,),
        accum_dtype=dtype,
        out_dtype=dtype,
    )  # [N, H_out, W_out, H_k, W_k, C_in]
    batch, height, width, *kernel, channels = parts.shape
    # A step beyond the image leaves one window.
    strides = [
        kernel[axis] if extent == 1 else context.attributes["strides"][axis]
        for axis, extent in enumerate((height, width))
    ]
    whole = [(0, extent) for extent in parts.shape]
    parts = spanned(context, parts, [*whole[:3], (0, strides[0]), (0, strides[1]), whole[5]])
    parts = context.emit("Transpose", parts, permutation=(0, 1, 3, 2, 4, 5))
    rows = (batch, height * strides[0], width * strides[1], channels)
    value = context.emit("Reshape", parts, new_shape=rows)
    spans = [(padding[axis][0], padding[axis][0] + image.shape[axis + 1]) for axis in (0, 1)]
    return spanned(context, value, [(0, batch), *spans, (0, channels)])


def _spaced_out(context: VjpContext, padding: Pairs) -> Value:
    """Return the cotangent of the image from one of the result that is spaced out with zeros."""
    image, filter_ = context.operands
    kernel, strides = filter_.shape[:2], context.attributes["strides"]
    given = context.cotangent
    interior = (0, strides[0] - 1, strides[1] - 1, 0)
    zero = TensorLiteral.of(0, given.type.dtype)
    none = (0, 0, 0, 0)
    given = context.emit("Pad", given, low=none, high=none, interior=interior, pad_value=zero)
    spans = [
        (padding[axis][0] - kernel[axis] + 1, padding[axis][0] + image.shape[axis + 1]) for axis in (0, 1)
    ]
    given = spanned(context, given, [(0, given.shape[0]), *spans, (0, given.shape[3])])
    taps = _taps(context, filter_, (range(kernel[0])[::-1], range(kernel[1])[::-1]))
    taps = context.emit("Transpose", taps, permutation=(0, 1, 3, 2))
    return context.emit("Conv2d", given, taps, strides=(1, 1), padding=_VALID)


def _filter_gradient(context: VjpContext, padding: Pairs) -> Value:
    image, filter_ = context.operands
    dtype = image.type.dtype
    low, high = (tuple(pair[side] for pair in padding) for side in (0, 1))
    padded = [extent + sum(pair) for extent, pair in zip(image.shape[1:3], padding, strict=True)]
    patches = context.emit(
        "ExtractPatches",
        image,
        window=filter_.shape[:2],
        # A step over everything reaches nothing; as it is written, it may be beyond any address.
        strides=tuple(min(pair) for pair in zip(context.attributes["strides"], padded, strict=True)),
        dilation=(1, 1),
        padding_low=low,
        padding_high=high,
        pad_value=TensorLiteral.of(0, dtype),
    )
    product = context.emit(
        "DotGeneral",
        patches,
        context.cotangent,
        batch_lhs=(),
        batch_rhs=(),
        contract_lhs=(0, 1, 2),
        contract_rhs=(0, 1, 2),
        accum_dtype=dtype,
        out_dtype=dtype,
    )
    return context.emit("Reshape", product, new_shape=filter_.shape)


def _taps(context: VjpContext, filter_: Value, places: tuple[Sequence[int], Sequence[int]]) -> Value:
    """Return the elements of the filter at evenly spaced places, the last one first, of height and width."""
    # Evenly spaced, as many as there are, from the first one on: all of them, in order.
    if all(len(at) == extent and at[0] == 0 for at, extent in zip(places, filter_.shape[:2], strict=True)):
        return filter_
    channels = filter_.shape[2:]
    steps = [at[1] - at[0] if len(at) > 1 else 1 for at in places]
    # A negative end counts from the end, so the end before index 0 is -extent - 1.
    ends = [
        at[-1] + 1 if step > 0 else at[-1] - 1 if at[-1] else -extent - 1
        for at, step, extent in zip(places, steps, filter_.shape[:2], strict=True)
    ]
    return context.emit(
        "Slice",
        filter_,
        starts=(places[0][0], places[1][0], 0, 0),
        ends=(*ends, *channels),
        steps=(*steps, 1, 1),
    )
