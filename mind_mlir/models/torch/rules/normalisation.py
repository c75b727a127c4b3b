"""Softmax, norms of layers, groups and batches, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.models.functions.activations import log_softmax, softmax, standardised
from mind_mlir.models.torch.rules.reductions import summed
from mind_mlir.models.torch.rules.values import axis_of, cast, dtype_of, full, inner_dtype, number, reshaped
from mind_mlir.numpy.arrays import op
from mind_mlir.tracing.operators import choose, compare

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray


def _softmax(to: OperatorUse, x: TracedArray, dim: int, *_: Any) -> TracedArray:
    if not x.ndim or not x.size:
        return full(x.shape, 1, to.dtype)
    return cast(softmax(cast(x, inner_dtype(to.dtype)), axis_of(dim, x.ndim)), to.dtype)


def masked_softmax(x: TracedArray, axis: int) -> TracedArray:
    """Return the softmax, which is 0 where all numbers along the axis are -Inf."""
    zero, one = number(0.0, dtype_of(x)), number(1.0, dtype_of(x))
    top = x.max(axis, keepdims=True)
    nothing = compare("Equal", top, number(-math.inf, dtype_of(x)))
    powers = op("Exp", x - choose(nothing, zero, top))
    total = powers.sum(axis, keepdims=True)
    return powers / choose(nothing, one, total)


def _log_softmax(to: OperatorUse, x: TracedArray, dim: int, *_: Any) -> TracedArray:
    if not x.ndim or not x.size:
        return full(x.shape, 0, to.dtype)
    axis, x = axis_of(dim, x.ndim), cast(x, inner_dtype(to.dtype))
    return cast(log_softmax(x, axis), to.dtype)


def _softmax_backward(
    to: OperatorUse, gradient: TracedArray, y: TracedArray, dim: int, *_: Any
) -> TracedArray:
    if not y.ndim or not y.size:
        return full(y.shape, 0, to.dtype)
    inner = inner_dtype(dtype_of(y))
    gradient, y = cast(gradient, inner), cast(y, inner)
    weighted = gradient * y
    return cast(weighted - y * weighted.sum(axis_of(dim, y.ndim), keepdims=True), to.dtype)


def _log_softmax_backward(
    to: OperatorUse, gradient: TracedArray, y: TracedArray, dim: int, *_: Any
) -> TracedArray:
    if not y.ndim or not y.size:
        return full(y.shape, 0, to.dtype)
    inner = inner_dtype(dtype_of(y))
    gradient, y = cast(gradient, inner), cast(y, inner)
    total = gradient.sum(axis_of(dim, y.ndim), keepdims=True)
    return cast(gradient - op("Exp", y) * total, to.dtype)


def layer_normalised(x: TracedArray, weight: TracedArray, bias: TracedArray, epsilon: float) -> TracedArray:
    """Return the last dimension of mean 0 and variance 1, scaled and shifted."""
    inner = inner_dtype(dtype_of(x))
    found, _, _ = standardised(cast(x, inner), [x.ndim - 1], epsilon)
    return cast(found * cast(weight, inner) + cast(bias, inner), dtype_of(x))


def _layer_norm(
    to: OperatorUse,
    x: TracedArray,
    shape: Sequence[int],
    weight: TracedArray | None,
    bias: TracedArray | None,
    epsilon: float,
) -> list[TracedArray]:
    dtype, inner, rank = to.dtype, inner_dtype(to.dtype), len(shape)
    axes = list(range(x.ndim - rank, x.ndim))
    x = cast(x, inner)
    if not x.size:
        ends = (*x.shape[: x.ndim - rank], *(1,) * rank)
        return [cast(x, dtype), *(full(ends, 0, to.dtype_of(place)) for place in (1, 2))]
    found, mean, scale = standardised(x, axes, epsilon)
    if weight is not None:
        found = found * cast(weight, inner)
    if bias is not None:
        found = found + cast(bias, inner)
    return [cast(found, dtype), cast(mean, to.dtype_of(1)), cast(scale, to.dtype_of(2))]


def _layer_norm_backward(
    to: OperatorUse,
    gradient: TracedArray,
    x: TracedArray,
    shape: Sequence[int],
    mean: TracedArray,
    scale: TracedArray,
    weight: TracedArray | None,
    bias: TracedArray | None,
    wanted: Sequence[bool],
) -> list[TracedArray | None]:
    dtype = dtype_of(x)
    inner = inner_dtype(dtype)
    gradient, x, mean, scale = (cast(each, inner) for each in (gradient, x, mean, scale))
    axes, outer = list(range(x.ndim - len(shape), x.ndim)), list(range(x.ndim - len(shape)))
    normal = (x - mean) * scale
    shaped = gradient if weight is None else gradient * cast(weight, inner)
    along = normal * (shaped * normal).mean(axes, keepdims=True)
    of_input = (shaped - shaped.mean(axes, keepdims=True) - along) * scale
    of_weight = summed(gradient * normal, outer, keepdim=False) if wanted[1] and weight is not None else None
    of_bias = summed(gradient, outer, keepdim=False) if wanted[2] and bias is not None else None
    found = [of_input if wanted[0] else None, of_weight, of_bias]
    return [None if each is None else cast(each, dtype) for each in found]


def _along_channels(x: TracedArray, rank: int) -> TracedArray:
    """Return a vector of channels as an array that stretches over batches and places."""
    return reshaped(x, (1, x.shape[0], *(1,) * (rank - 2)))


def _others(rank: int) -> list[int]:
    return [axis for axis in range(rank) if axis != 1]


def normalised(
    x: TracedArray,
    weight: TracedArray | None,
    bias: TracedArray | None,
    mean: TracedArray,
    variance: TracedArray,
    epsilon: float,
) -> TracedArray:
    """Return channels of given means and variances, as what each is multiplied by and added to."""
    inner = inner_dtype(dtype_of(x))
    factor = op("Rsqrt", cast(variance, inner) + number(epsilon, inner))
    if weight is not None:
        factor = factor * cast(weight, inner)
    offset = -cast(mean, inner) * factor
    if bias is not None:
        offset = offset + cast(bias, inner)
    return cast(x, inner) * _along_channels(factor, x.ndim) + _along_channels(offset, x.ndim)


def _batch_norm_inference(
    to: OperatorUse,
    x: TracedArray,
    weight: TracedArray | None,
    bias: TracedArray | None,
    mean: TracedArray,
    variance: TracedArray,
    _momentum: float,
    epsilon: float,
) -> list[TracedArray]:
    found = normalised(x, weight, bias, mean, variance, epsilon)
    return [cast(found, to.dtype), full((0,), 0, to.dtype_of(1)), full((0,), 0, to.dtype_of(2))]


def _batch_norm_training(
    to: OperatorUse,
    x: TracedArray,
    weight: TracedArray | None,
    bias: TracedArray | None,
    running_mean: TracedArray | None,
    running_variance: TracedArray | None,
    momentum: float,
    epsilon: float,
) -> list[TracedArray | None]:
    """Return the normalised array, mean and reciprocal deviation of the batch, and the running statistics."""
    inner = inner_dtype(dtype_of(x))
    wide, axes = cast(x, inner), _others(x.ndim)
    mean = wide.mean(axes)
    apart = wide - _along_channels(mean, x.ndim)
    variance = (apart * apart).mean(axes)
    scale = op("Rsqrt", variance + number(epsilon, inner))
    factor = scale if weight is None else scale * cast(weight, inner)
    found = apart * _along_channels(factor, x.ndim)
    if bias is not None:
        found = found + _along_channels(cast(bias, inner), x.ndim)
    count = x.size // max(x.shape[1], 1)
    unbiased = variance * number(count / max(count - 1, 1), inner)
    running = [
        None if old is None else cast(_moved(cast(old, inner), new, momentum), dtype_of(old))
        for old, new in ((running_mean, mean), (running_variance, unbiased))
    ]
    return [cast(found, to.dtype), cast(mean, to.dtype_of(1)), cast(scale, to.dtype_of(2)), *running]


def _moved(old: TracedArray, new: TracedArray, momentum: float) -> TracedArray:
    """Return a running mean after one more number."""
    return old * number(1 - momentum, dtype_of(old)) + new * number(momentum, dtype_of(old))


def _batch_norm(
    to: OperatorUse,
    x: TracedArray,
    weight: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    training: bool,
    *how: float,
) -> list[TracedArray | None]:
    if training:
        return _batch_norm_training(to, x, weight, bias, mean, variance, *how)
    return [*_batch_norm_inference(to, x, weight, bias, mean, variance, *how), mean, variance]


def _batch_norm_backward(
    _: OperatorUse,
    gradient: TracedArray,
    x: TracedArray,
    weight: TracedArray | None,
    running_mean: TracedArray | None,
    running_variance: TracedArray | None,
    mean: TracedArray | None,
    scale: TracedArray | None,
    training: bool,
    epsilon: float,
    wanted: Sequence[bool],
) -> list[TracedArray | None]:
    dtype, inner, rank = dtype_of(x), inner_dtype(dtype_of(x)), x.ndim
    axes = _others(rank)
    if not training or mean is None or scale is None:
        assert running_mean is not None, "statistics are those of the batch, or those that run"
        assert running_variance is not None, "both run"
        mean = running_mean
        scale = op("Rsqrt", cast(running_variance, inner) + number(epsilon, inner))
    wide_gradient, scale = cast(gradient, inner), cast(scale, inner)
    normal = (cast(x, inner) - _along_channels(cast(mean, inner), rank)) * _along_channels(scale, rank)
    of_bias, of_weight = wide_gradient.sum(axes), (wide_gradient * normal).sum(axes)
    factor = scale if weight is None else scale * cast(weight, inner)
    of_input = wide_gradient
    if training:
        share = number(x.shape[1] / x.size, inner)
        away = _along_channels(of_bias * share, rank) + normal * _along_channels(of_weight * share, rank)
        of_input = wide_gradient - away
    of_input = of_input * _along_channels(factor, rank)
    like = dtype if weight is None else dtype_of(weight)
    return [
        cast(of_input, dtype) if wanted[0] else None,
        cast(of_weight, like) if wanted[1] else None,
        cast(of_bias, like) if wanted[2] else None,
    ]


def _group_norm(
    to: OperatorUse,
    x: TracedArray,
    weight: TracedArray | None,
    bias: TracedArray | None,
    batch: int,
    channels: int,
    places: int,
    groups: int,
    epsilon: float,
) -> list[TracedArray]:
    inner = inner_dtype(to.dtype)
    grouped = reshaped(cast(x, inner), (batch, groups, channels // groups * places))
    found, mean, scale = standardised(grouped, [2], epsilon)
    found = reshaped(found, x.shape)
    if weight is not None:
        found = found * _along_channels(cast(weight, inner), x.ndim)
    if bias is not None:
        found = found + _along_channels(cast(bias, inner), x.ndim)
    ends = [cast(reshaped(each, (batch, groups)), to.dtype_of(1)) for each in (mean, scale)]
    return [cast(found, to.dtype), *ends]


def _weight_norm(to: OperatorUse, v: TracedArray, g: TracedArray, dim: int = 0) -> list[TracedArray]:
    inner = to.dtype_of(1)
    axes = [axis for axis in range(v.ndim) if axis != dim]
    wide = cast(v, inner)
    size = op("Sqrt", summed(wide * wide, axes, keepdim=True))
    return [cast(wide * (cast(g, inner) / size), to.dtype), size]


def _weight_norm_backward(
    _: OperatorUse, gradient: TracedArray, v: TracedArray, g: TracedArray, size: TracedArray, dim: int
) -> list[TracedArray]:
    inner = dtype_of(size)
    axes = [axis for axis in range(v.ndim) if axis != dim]
    wide, slope, factor = cast(v, inner), cast(gradient, inner), cast(g, inner)
    along = summed(wide * slope, axes, keepdim=True) / size
    of_v = (slope - wide * (along / size)) * (factor / size)
    return [cast(of_v, dtype_of(v)), cast(along, dtype_of(g))]


RULES: Mapping[str, Rule] = {
    "aten._softmax": _softmax,
    "aten._safe_softmax": lambda to, x, dim, *_: cast(
        masked_softmax(cast(x, inner_dtype(to.dtype)), axis_of(dim, x.ndim)), to.dtype
    ),
    "aten._log_softmax": _log_softmax,
    "aten._softmax_backward_data": _softmax_backward,
    "aten._log_softmax_backward_data": _log_softmax_backward,
    "aten.native_layer_norm": _layer_norm,
    "aten.native_layer_norm_backward": _layer_norm_backward,
    "aten.native_group_norm": _group_norm,
    "aten._weight_norm_interface": _weight_norm,
    "aten._weight_norm_interface_backward": _weight_norm_backward,
    "aten.native_batch_norm_backward": _batch_norm_backward,
    "aten._native_batch_norm_legit_no_training": _batch_norm_inference,
    "aten._native_batch_norm_legit_functional": _batch_norm,
    "aten._native_batch_norm_legit.no_stats": lambda to, x, weight, bias, training, *how: (
        _batch_norm_training(to, x, weight, bias, None, None, *how)[:3]
    ),
}
