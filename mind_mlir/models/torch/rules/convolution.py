"""Convolutions of batches of channels, and their gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.models.torch.rules.reductions import summed
from mind_mlir.models.torch.rules.use import UnreadUse
from mind_mlir.models.torch.rules.values import cast, dtype_of, inner_dtype, reshaped
from mind_mlir.numpy.arrays import op
from mind_mlir.tracing.transforms import vjp

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray

    #: Strides, padding and dilation of each spatial dimension.
    Window = tuple[Sequence[int], Sequence[int], Sequence[int]]


def _spread(numbers: Sequence[int], rank: int) -> list[int]:
    return list(numbers) * rank if len(numbers) == 1 else list(numbers)


def convolved(x: TracedArray, filter_: TracedArray, window: Window, groups: int) -> TracedArray:
    """Return the convolution of ``[N, C_in, space...]`` with ``[C_out, C_in / groups, window...]``."""
    strides, padding, dilation = window
    space = list(range(2, x.ndim))
    found = op(
        "Convolution",
        x.transpose([0, *space, 1]),
        filter_.transpose([*space, 1, 0]),
        strides=list(strides),
        padding_low=list(padding),
        padding_high=list(padding),
        window_dilation=list(dilation),
        groups=groups,
    )
    return found.transpose([0, x.ndim - 1, *range(1, x.ndim - 1)])


def _transposed(
    x: TracedArray, filter_: TracedArray, window: Window, more: Sequence[int], groups: int
) -> TracedArray:
    """Return what the gradient of a convolution does: each element spreads over a window.

    The elements lie as far apart as the strides are, and the filter ``[C_in, C_out / groups, window...]`` is
    turned round.
    """
    strides, padding, dilation = window
    inputs, outputs, *extents = filter_.shape
    space = list(range(2, x.ndim))
    around = [dilation[axis] * (extent - 1) - padding[axis] for axis, extent in enumerate(extents)]
    apart = reshaped(filter_, (groups, inputs // groups, outputs, *extents))
    taps = apart.transpose([*(axis + 1 for axis in space), 1, 0, 2])
    taps = taps[tuple(slice(None, None, -1) for _ in space)]
    found = op(
        "Convolution",
        x.transpose([0, *space, 1]),
        reshaped(taps, (*extents, inputs // groups, groups * outputs)),
        padding_low=around,
        padding_high=[each + extra for each, extra in zip(around, more, strict=True)],
        base_dilation=list(strides),
        window_dilation=list(dilation),
        groups=groups,
    )
    return found.transpose([0, x.ndim - 1, *range(1, x.ndim - 1)])


def _convolution(
    to: OperatorUse,
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
    inner = inner_dtype(to.dtype)
    rank = filter_.ndim - 2
    window = (_spread(stride, rank), _spread(padding, rank), _spread(dilation, rank))
    wide = cast(x, inner)
    single = x.ndim == rank + 1
    if single:
        wide = op("ExpandDims", wide, axes=[0])
    if not wide.size or not filter_.size:
        raise UnreadUse("an operand of it has no elements")
    if is_transposed:
        found = _transposed(wide, cast(filter_, inner), window, _spread(more, rank), groups)
    else:
        found = convolved(wide, cast(filter_, inner), window, groups)
    if bias is not None:
        found = found + reshaped(cast(bias, inner), (1, bias.shape[0], *(1,) * rank))
    return cast(found.squeeze(0) if single else found, to.dtype)


def _backward(
    _: OperatorUse,
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
    dtype, rank = dtype_of(x), filter_.ndim - 2
    inner = inner_dtype(dtype)
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
