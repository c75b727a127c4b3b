"""Attention, as products with the softmax between them, which the compiler's scheduler knows as one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType
from mind_mlir.models.functions.activations import softmax
from mind_mlir.models.torch.rules.normalisation import masked_softmax
from mind_mlir.models.torch.rules.random import kept
from mind_mlir.models.torch.rules.values import (
    cast,
    dtype_of,
    expanded,
    inner_dtype,
    number,
    reshaped,
    select,
)
from mind_mlir.numpy.arrays import op
from mind_mlir.tracing.operators import choose, compare, matmul

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray


def _scores(
    query: TracedArray,
    key: TracedArray,
    mask: TracedArray | None,
    *,
    is_causal: bool,
    scale: float | None,
) -> TracedArray:
    """Return how much each query has to do with each key; -Inf where it may not see it."""
    dtype = dtype_of(query)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    found = matmul(query, key.swapaxes(-1, -2)) * number(factor, dtype)
    if is_causal:
        extents = found.shape[-2:]
        rows, columns = (op("Iota", shape=extents, dtype="i64", axis=axis) for axis in (0, 1))
        found = select(compare("LessEqual", columns, rows), found, -math.inf, dtype)
    if mask is None:
        return found
    if dtype_of(mask) is DType.I1:
        return select(mask, found, -math.inf, dtype)
    return found + cast(mask, dtype)


def _repeated(x: TracedArray, heads: int) -> TracedArray:
    """Return keys or values of fewer heads, each for as many heads of queries that follow one another."""
    own = x.shape[-3]
    if own == heads:
        return x
    *batch, _, places, width = x.shape
    spread = expanded(
        reshaped(x, (*batch, own, 1, places, width)), (*batch, own, heads // own, places, width)
    )
    return reshaped(spread, (*batch, heads, places, width))


def _attention(
    to: OperatorUse,
    query: TracedArray,
    key: TracedArray,
    value: TracedArray,
    attn_mask: TracedArray | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> TracedArray:
    inner = inner_dtype(to.dtype)
    query, key, value = (cast(each, inner) for each in (query, key, value))
    if enable_gqa:
        key, value = (_repeated(each, query.shape[-3]) for each in (key, value))
    scores = _scores(query, key, attn_mask, is_causal=is_causal, scale=scale)
    weights = (
        softmax(scores, scores.ndim - 1) if attn_mask is None else masked_softmax(scores, scores.ndim - 1)
    )
    if dropout_p > 0:
        weights = kept(to, weights, dropout_p)[0]
    return cast(matmul(weights, value), to.dtype)


def _flash(
    to: OperatorUse,
    query: TracedArray,
    key: TracedArray,
    value: TracedArray,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: TracedArray | None = None,
    scale: float | None = None,
    **_: Any,
) -> list[TracedArray]:
    found = _attention(to, query, key, value, attn_mask, dropout_p, is_causal, scale=scale)
    inner = to.dtype_of(1)
    scores = _scores(cast(query, inner), cast(key, inner), attn_mask, is_causal=is_causal, scale=scale)
    top = scores.max(-1, keepdims=True)
    nothing = compare("Equal", top, number(-math.inf, inner))
    top = choose(nothing, number(0.0, inner), top)
    total = op("Log", op("Exp", scores - top).sum(-1, keepdims=True)) + top
    return [found, total.squeeze(-1)]


def _flash_backward(
    to: OperatorUse,
    gradient: TracedArray,
    query: TracedArray,
    key: TracedArray,
    value: TracedArray,
    out: TracedArray,
    logsumexp: TracedArray,
    _dropout: float,
    is_causal: bool,
    *,
    attn_mask: TracedArray | None = None,
    scale: float | None = None,
) -> list[TracedArray]:
    inner = dtype_of(logsumexp)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    gradient, query, key, value, out = (cast(each, inner) for each in (gradient, query, key, value, out))
    scores = _scores(query, key, attn_mask, is_causal=is_causal, scale=scale)
    total = op("ExpandDims", logsumexp, axes=[logsumexp.ndim])
    nothing = compare("Equal", total, number(-math.inf, inner))
    weights = op("Exp", scores - choose(nothing, number(0.0, inner), total))
    of_value = matmul(weights.swapaxes(-1, -2), gradient)
    of_weights = matmul(gradient, value.swapaxes(-1, -2))
    share = (gradient * out).sum(-1, keepdims=True)
    of_scores = weights * (of_weights - share) * number(factor, inner)
    found = [matmul(of_scores, key), matmul(of_scores.swapaxes(-1, -2), query), of_value]
    return [cast(each, to.dtype) for each in found]


RULES: Mapping[str, Rule] = {
    "aten.scaled_dot_product_attention": _attention,
    "aten._scaled_dot_product_flash_attention_for_cpu": _flash,
    "aten._scaled_dot_product_flash_attention_for_cpu_backward": _flash_backward,
}
