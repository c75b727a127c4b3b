"""Operators of torch that are a layer: of a transformer's encoder, of attention with its projections."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mind_mlir.models.functions.activations import gelu, softmax
from mind_mlir.models.torch.rules.normalisation import layer_normalised, masked_softmax
from mind_mlir.models.torch.rules.products import product
from mind_mlir.models.torch.rules.values import cast, number, reshaped, select, truth
from mind_mlir.numpy.arrays import op

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray


def _hidden(mask: TracedArray, kind: int | None) -> TracedArray:
    """Return where scores ``[batch, heads, queries, keys]`` are hidden by a mask, which is true there."""
    hidden = truth(mask)
    if kind == 1:  # of keys, for each part of a batch
        return reshaped(hidden, (mask.shape[0], 1, 1, mask.shape[1]))
    return hidden


def _attended(
    x: TracedArray,
    heads: int,
    projections: tuple[TracedArray, TracedArray],
    output: tuple[TracedArray, TracedArray],
    mask: TracedArray | None,
    kind: int | None,
) -> TracedArray:
    """Return what attention among the parts of a sequence gives, projected."""
    batch, places, width = x.shape
    size = width // heads
    every = product(x, projections[0].T) + projections[1]
    parts = reshaped(every, (batch, places, 3, heads, size)).transpose((2, 0, 3, 1, 4))
    query, key, value = parts[0], parts[1], parts[2]
    scores = product(query, key.swapaxes(-1, -2)) * number(1 / math.sqrt(size), x.value.type.dtype)
    if mask is None:
        weights = softmax(scores, 3)
    else:
        hidden = _hidden(mask, kind)
        weights = masked_softmax(select(hidden, -math.inf, scores, x.value.type.dtype), 3)
    found = product(weights, value).transpose((0, 2, 1, 3))
    return product(reshaped(found, (batch, places, width)), output[0].T) + output[1]


def _encoder_layer(
    to: OperatorUse,
    x: TracedArray,
    _width: int,
    heads: int,
    qkv_weight: TracedArray,
    qkv_bias: TracedArray,
    output_weight: TracedArray,
    output_bias: TracedArray,
    use_gelu: bool,
    norm_first: bool,
    epsilon: float,
    scale_1: TracedArray,
    shift_1: TracedArray,
    scale_2: TracedArray,
    shift_2: TracedArray,
    weight_1: TracedArray,
    bias_1: TracedArray,
    weight_2: TracedArray,
    bias_2: TracedArray,
    mask: TracedArray | None = None,
    mask_type: int | None = None,
) -> TracedArray:
    def attend(x: TracedArray) -> TracedArray:
        return _attended(x, heads, (qkv_weight, qkv_bias), (output_weight, output_bias), mask, mask_type)

    def feed(x: TracedArray) -> TracedArray:
        inner = product(x, weight_1.T) + bias_1
        return product(gelu(inner) if use_gelu else op("Relu", inner), weight_2.T) + bias_2

    for part, scale, shift in ((attend, scale_1, shift_1), (feed, scale_2, shift_2)):
        if norm_first:
            x = x + part(layer_normalised(x, scale, shift, epsilon))
        else:
            x = layer_normalised(x + part(x), scale, shift, epsilon)
    return cast(x, to.dtype)


RULES: Mapping[str, Rule] = {"aten._transformer_encoder_layer_fwd": _encoder_layer}
