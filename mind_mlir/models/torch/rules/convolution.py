"""Convolutions of batches of channels, and their gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.ir.attributes import Padding, PaddingMode
from mind_mlir.ir.types import DType
from mind_mlir.models.torch.rules.reductions import summed
from mind_mlir.models.torch.rules.shaping import padded, sliced
from mind_mlir.models.torch.rules.use import Unsupported
from mind_mlir.models.torch.rules.values import cast, dtype_of, full, reshaped
from mind_mlir.numpy.arrays import op
from mind_mlir.tracing.transforms import vjp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.models.torch.rules.use import Rule, Use
    from mind_mlir.tracing.array import TracedArray

    #: Strides, padding and dilation of each spatial dimension.
    Window = tuple[Sequence[int], Sequence[int], Sequence[int]]


def _spread(numbers: Sequence[int], rank: int) -> list[int]:
    return list(numbers) * rank if len(numbers) == 1 else list(numbers)


def convolved(x: TracedArray, filter_: TracedArray, window: Window, groups: int) -> TracedArray:
    """Return the convolution of ``[N, C_in, spatial]`` with ``[C_out, C_in / groups, spatial]``.

    Products of each place of the window are added up where each channel has filters of its own; other groups
    are convolutions side by side.
    """
    rank = x.ndim - 2
    if rank == 1:
        strides, padding, dilation = window
        wide = convolved(
            reshaped(x, (*x.shape[:2], 1, x.shape[2])),
            reshaped(filter_, (*filter_.shape[:2], 1, filter_.shape[2])),
            ((1, *strides), (0, *padding), (1, *dilation)),
            groups,
        )
        return reshaped(wide, (*wide.shape[:2], wide.shape[3]))
    if rank != 2:
        raise Unsupported(f"it has {rank} spatial dimensions")
    if groups == 1:
        return _plain(x, filter_, window)
    if filter_.shape[1] == 1:
        return _of_channels(x, filter_, window)
    inputs, outputs = filter_.shape[1], filter_.shape[0] // groups
    parts = [
        _plain(
            sliced(x, 1, place * inputs, (place + 1) * inputs),
            sliced(filter_, 0, place * outputs, (place + 1) * outputs),
            window,
        )
        for place in range(groups)
    ]
    return op("Concat", *parts, axis=1)


def _plain(x: TracedArray, filter_: TracedArray, window: Window) -> TracedArray:
    strides, padding, dilation = window
    taps = filter_.transpose((2, 3, 1, 0))
    if any(step != 1 for step in dilation):
        interior = [*(step - 1 for step in dilation), 0, 0]
        taps = op("Pad", taps, low=[0] * 4, high=[0] * 4, interior=interior, pad_value=0)
    image = x.transpose((0, 2, 3, 1))
    around = Padding(PaddingMode.CUSTOM, tuple([(each, each) for each in padding]))
    found = op("Conv2d", image, taps, strides=list(strides), padding=around)
    return found.transpose((0, 3, 1, 2))


def _of_channels(x: TracedArray, filter_: TracedArray, window: Window) -> TracedArray:
    """Return the convolution where each channel has filters of its own."""
    strides, padding, dilation = window
    channels, more = x.shape[1], filter_.shape[0] // x.shape[1]
    image = padded(x, (0, 0, *padding), (0, 0, *padding)).transpose((0, 2, 3, 1))
    taps = filter_.transpose((2, 3, 1, 0))
    height, width = filter_.shape[2:]
    counts = [
        (image.shape[axis + 1] - dilation[axis] * (filter_.shape[axis + 2] - 1) - 1) // strides[axis] + 1
        for axis in (0, 1)
    ]
    if more != 1:
        image = op("Concat", *[op("ExpandDims", image, axes=[4])] * more, axis=4)
        image = reshaped(image, (*image.shape[:3], channels * more))
    total = None
    for row in range(height):
        for column in range(width):
            part = image
            for axis, place in ((1, row), (2, column)):
                start, step = place * dilation[axis - 1], strides[axis - 1]
                part = sliced(part, axis, start, start + (counts[axis - 1] - 1) * step + 1, step)
            term = part * taps[row, column, 0]
            total = term if total is None else total + term
    assert total is not None, "a filter has elements"
    return total.transpose((0, 3, 1, 2))


def _transposed(
    x: TracedArray, filter_: TracedArray, window: Window, more: Sequence[int], groups: int
) -> TracedArray:
    """Return what the gradient of a convolution does: each element spreads over a window."""
    strides, padding, dilation = window
    extents = [
        (extent - 1) * strides[axis]
        - 2 * padding[axis]
        + dilation[axis] * (filter_.shape[axis + 2] - 1)
        + more[axis]
        + 1
        for axis, extent in enumerate(x.shape[2:])
    ]
    like = full((x.shape[0], filter_.shape[1] * groups, *extents), 0, dtype_of(x))
    shape, pull = vjp(lambda like: convolved(like, filter_, window, groups), like)
    # Beyond the windows of the elements there may be room for more of them.
    rest = [wanted - given for wanted, given in zip(shape.shape, x.shape, strict=True)]
    found: TracedArray = pull(padded(x, [0] * x.ndim, rest))[0]
    return found


def _convolution(
    to: Use,
    x: TracedArray,
    filter_: TracedArray,
    bias: TracedArray | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    is_transposed: bool,
    more: Sequence[int],
    groups: int,
) -> TracedArray:
    inner = DType.F32 if to.dtype.is_narrow else to.dtype
    rank = filter_.ndim - 2
    window = (_spread(stride, rank), _spread(padding, rank), _spread(dilation, rank))
    wide = cast(x, inner)
    single = x.ndim == rank + 1
    if single:
        wide = op("ExpandDims", wide, axes=[0])
    if not wide.size or not filter_.size:
        raise Unsupported("an operand of it has no elements")
    if is_transposed:
        found = _transposed(wide, cast(filter_, inner), window, _spread(more, rank), groups)
    else:
        found = convolved(wide, cast(filter_, inner), window, groups)
    if bias is not None:
        found = found + reshaped(cast(bias, inner), (1, bias.shape[0], *(1,) * rank))
    return cast(found.squeeze(0) if single else found, to.dtype)


def _backward(
    _: Use,
    gradient: TracedArray,
    x: TracedArray,
    filter_: TracedArray,
    bias_sizes: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    is_transposed: bool,
    more: Sequence[int],
    groups: int,
    wanted: Sequence[bool],
) -> list[TracedArray | None]:
    del bias_sizes
    dtype, rank = dtype_of(x), filter_.ndim - 2
    inner = DType.F32 if dtype.is_narrow else dtype
    window = (_spread(stride, rank), _spread(padding, rank), _spread(dilation, rank))
    gradient, wide, taps = (cast(each, inner) for each in (gradient, x, filter_))

    def forward(x: TracedArray, filter_: TracedArray) -> TracedArray:
        return convolved(x, filter_, window, groups)

    found: list[TracedArray | None] = [None, None, None]
    if is_transposed:
        found[0] = convolved(gradient, taps, window, groups) if wanted[0] else None
        if wanted[1]:
            found[1] = vjp(lambda w: forward(gradient, w), taps)[1](wide)[0]
    elif wanted[0] or wanted[1]:
        pulled = vjp(forward, wide, taps)[1](gradient)
        found[:2] = [each if want else None for each, want in zip(pulled, wanted[:2], strict=True)]
    if wanted[2]:
        found[2] = summed(gradient, [0, *range(2, gradient.ndim)], keepdim=False)
    return [None if each is None else cast(each, dtype) for each in found]


RULES: Mapping[str, Rule] = {
    "aten.convolution": _convolution,
    "aten.convolution_backward": _backward,
}
