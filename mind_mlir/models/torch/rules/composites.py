"""Operators that torch takes apart itself: graphs that have no others need not be taken apart by torch.

Graphs that torch takes apart never have these. Each is what torch makes of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType
from mind_mlir.models.torch.rules import (
    convolution,
    elementwise,
    normalisation,
    pooling,
    reductions,
    shaping,
)
from mind_mlir.models.torch.rules.use import OperatorUse, UnreadUse
from mind_mlir.models.torch.rules.values import axis_of, cast, dtype_of, reshaped
from mind_mlir.numpy.arrays import op

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import Rule
    from mind_mlir.tracing.array import TracedArray


def _first(rule: Rule, to: OperatorUse, *args: Any) -> Any:
    """Return the first of three results of an operator, the others of which nobody reads."""
    return rule(OperatorUse(replace(to.node, types=to.node.types * 3), to.shared), *args)[0]


def _layer_norm(
    to: OperatorUse,
    x: TracedArray,
    shape: Sequence[int],
    weight: TracedArray | None = None,
    bias: TracedArray | None = None,
    eps: float = 1e-5,
    *_: Any,
) -> Any:
    rule = normalisation.RULES["aten.native_layer_norm"]
    return _first(rule, to, x, shape, weight, bias, eps)


def _batch_norm(
    to: OperatorUse,
    x: TracedArray,
    weight: TracedArray | None,
    bias: TracedArray | None,
    mean: TracedArray,
    variance: TracedArray,
    training: bool,
    momentum: float,
    epsilon: float,
    *_: Any,
) -> Any:
    if training:
        raise UnreadUse("it changes statistics")
    rule = normalisation.RULES["aten._native_batch_norm_legit_no_training"]
    return _first(rule, to, x, weight, bias, mean, variance, momentum, epsilon)


def _dropout(_: OperatorUse, x: TracedArray, rate: float, train: bool) -> TracedArray:
    if train and rate:
        raise UnreadUse("it draws random numbers")
    return x


def _convolution(
    to: OperatorUse,
    x: TracedArray,
    filter_: TracedArray,
    bias: TracedArray | None = None,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    groups: int = 1,
) -> Any:
    rule = convolution.RULES["aten.convolution"]
    return rule(to, x, filter_, bias, stride, padding, dilation, False, [0], groups)


def _adaptive_avg_pool(to: OperatorUse, x: TracedArray, sizes: Sequence[int]) -> Any:
    if list(sizes) == [1, 1]:
        return reductions.RULES["aten.mean"](to, x, [-1, -2], keepdim=True)
    return pooling.RULES["aten._adaptive_avg_pool2d"](to, x, sizes)


def _to_dtype(to: OperatorUse, x: TracedArray, *_: Any, **__: Any) -> TracedArray:
    return cast(x, to.dtype)


def _flatten(_: OperatorUse, x: TracedArray, start: int = 0, end: int = -1) -> TracedArray:
    if not x.ndim:
        return reshaped(x, (1,))
    first, last = axis_of(start, x.ndim), axis_of(end, x.ndim)
    whole = math.prod(x.shape[first : last + 1])
    return reshaped(x, (*x.shape[:first], whole, *x.shape[last + 1 :]))


def _diff(
    _: OperatorUse,
    x: TracedArray,
    n: int = 1,
    dim: int = -1,
    prepend: TracedArray | None = None,
    append: TracedArray | None = None,
) -> TracedArray:
    axis = axis_of(dim, x.ndim)
    parts = [each for each in (prepend, x, append) if each is not None]
    x = op("Concat", *parts, axis=axis) if len(parts) > 1 else x
    for _turn in range(n):
        later = shaping.sliced(x, axis, 1, None)
        earlier = shaping.sliced(x, axis, 0, x.shape[axis] - 1)
        x = op("Xor" if dtype_of(x) is DType.I1 else "Sub", later, earlier)
    return x


RULES: Mapping[str, Rule] = {
    "aten.layer_norm.default": _layer_norm,
    "aten.batch_norm.default": _batch_norm,
    "aten.dropout.default": _dropout,
    "aten.conv1d.default": _convolution,
    "aten.conv2d.default": _convolution,
    "aten.conv3d.default": _convolution,
    "aten.max_pool2d.default": lambda to, *args: _first(
        pooling.RULES["aten.max_pool2d_with_indices"], to, *args
    ),
    "aten.adaptive_avg_pool2d.default": _adaptive_avg_pool,
    "aten.softmax.int": lambda to, x, dim, *_: normalisation.RULES["aten._softmax"](
        to, cast(x, to.dtype), dim, False
    ),
    **dict.fromkeys(
        (
            "aten.to.dtype",
            "aten.to.dtype_layout",
            "aten.to.device",
            "aten.type_as.default",
            "aten.float.default",
        ),
        _to_dtype,
    ),
    "aten.flatten.using_ints": _flatten,
    "aten.diff.default": _diff,
    "aten.__and__.Tensor": elementwise.RULES["aten.bitwise_and"],
    "aten.__or__.Tensor": elementwise.RULES["aten.bitwise_or"],
}
