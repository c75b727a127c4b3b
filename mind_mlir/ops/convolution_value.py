"""The numpy rule of convolutions: for each place in a window, a product of what lies there of all windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ops import numbers
from mind_mlir.ops.complex_numbers import product
from mind_mlir.ops.conversion import cast_array
from mind_mlir.ops.convolution_form import axes_of

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ops.contexts import EvalContext
    from mind_mlir.ops.sliding import Sliding


#: So many places are added up one after the other.
_BLOCK = 64


def evaluate_convolution(context: EvalContext) -> Array:
    """Return the value of a Convolution."""
    (image, filter_), attributes = context.operands, context.attributes
    accumulator, groups = attributes["accum_dtype"], attributes["groups"]
    if 0 in (*image.shape, *filter_.shape, *context.result_type.extents):
        return np.zeros(context.result_type.extents, context.result_type.dtype.numpy)
    axes = axes_of(attributes, image.shape, filter_.shape)
    image, filter_ = (numbers.widened(cast_array(each, accumulator)) for each in (image, filter_))
    (batch, *_, channels), (*window, inputs, outputs) = image.shape, filter_.shape
    whole = np.zeros((batch, *(axis.padded for axis in axes), channels), image.dtype)
    _place(whole, image, axes)
    # Of one group, matrices; of several, one for each.
    taps = filter_.reshape(*window, inputs, groups, outputs // groups)
    total = np.zeros((batch, *(axis.count for axis in axes), outputs), image.dtype)
    for first in range(0, math.prod(window), _BLOCK):
        part = np.zeros_like(total)
        for number in range(first, min(first + _BLOCK, math.prod(window))):
            places = tuple(map(int, np.unravel_index(number, window)))
            steps = [axis.terms(place) for axis, place in zip(axes, places, strict=True)]
            found = whole[:, *(axis.elements(place) for axis, place in zip(axes, places, strict=True))]
            found = found[:, *steps]
            rows = found.reshape(math.prod(found.shape[:-1]), groups, inputs).swapaxes(0, 1)
            products = product(np.matmul, rows, taps[places].swapaxes(0, 1)).swapaxes(0, 1)
            part[:, *steps] += products.reshape(*found.shape[:-1], outputs)
        total += part
    result = cast_array(numbers.rounded(total, accumulator), context.result_type.dtype)
    return result.reshape(context.result_type.extents)


def _place(whole: Array, image: Array, axes: Sequence[Sliding]) -> None:
    """Write ``image`` to where it lies in ``whole``, as far as padding below zero leaves it there."""
    kept, places = [], []
    for axis in axes:
        at = np.arange(axis.extent) * axis.base + axis.low
        inside = (at >= 0) & (at < axis.padded)
        kept.append(np.flatnonzero(inside))
        places.append(at[inside])
    batch, channels = np.arange(image.shape[0]), np.arange(image.shape[-1])
    whole[np.ix_(batch, *places, channels)] = image[np.ix_(batch, *kept, channels)]
