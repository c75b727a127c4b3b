"""How weights of few bits lie in memory, as data and as arrays of numpy.

Weights are a matrix ``[N, K]``, a row for each result. Along a row, blocks of 32 elements, or longer groups,
share a scale. Scales stand within the blocks (the formats of GGUF files), or in a tensor of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ir.types import DType
from mind_mlir.ops import numbers
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

#: Elements of a block: activations of 8 bits share a scale, and groups are made of blocks.
BLOCK = 32
#: The greatest magnitude of activations of 8 bits.
GREATEST = 127
#: Bytes of the scale that a block of a GGUF file begins with, an f16.
SCALE_BYTES = 2

#: The floats of 8 bits that weights may be.
EIGHT_BITS = (DType.FP8_E4M3, DType.FP8_E5M2)


@dataclass(frozen=True)
class WeightFormat:
    """A format of weights.

    Attributes:
        name: What attributes call it.
        dtypes: What the tensor of weights may hold.
        block_bytes: Bytes of a block with its scale, the last dimension of a tensor of rank 3; 0 where scales
            are a tensor of their own.
        bits: Bits of an element.
        middle: What is subtracted from each number where there are no zero points.
        pairs: Whether a byte holds neighbours, the first one low; else, of 4 bits, one of the first half of a
            block low, and one of the second half high.
        zero_points: Whether a tensor of zero points may follow the scales.
    """

    name: str
    dtypes: tuple[DType, ...]
    block_bytes: int = 0
    bits: int = 8
    middle: int = 0
    pairs: bool = False
    zero_points: bool = False

    @property
    def is_float(self) -> bool:
        """Return whether elements are floats."""
        return self.dtypes[0].is_float

    @property
    def depth_bytes(self) -> int:
        """Return the bytes of the elements of a block."""
        return BLOCK * self.bits // 8


FORMATS = {
    each.name: each
    for each in (
        WeightFormat("q8_0", (DType.UI8,), SCALE_BYTES + BLOCK),
        WeightFormat("q4_0", (DType.UI8,), SCALE_BYTES + BLOCK // 2, bits=4, middle=8),
        WeightFormat("int8", (DType.SI8,), zero_points=True),
        WeightFormat("int4", (DType.UI8,), bits=4, middle=8, pairs=True, zero_points=True),
        WeightFormat("fp8", EIGHT_BITS),
    )
}


def dequantized(kind: WeightFormat, weights: Array, parameters: Sequence[Array]) -> Array:
    """Return weights as numbers of f64, exactly, in shape ``[N, K]``.

    Args:
        kind: How they lie.
        weights: Their tensor.
        parameters: Scales and zero points, where these are tensors of their own.
    """
    steps, scales = steps_and_scales(kind, weights, parameters)
    with np.errstate(all="ignore"):
        return np.asarray(steps * scales[:, :, np.newaxis]).reshape(weights.shape[0], -1)


def steps_and_scales(kind: WeightFormat, weights: Array, parameters: Sequence[Array]) -> tuple[Array, Array]:
    """Return weights in steps of their scales ``[N, B, 32]``, and the scales ``[N, B]`` of blocks, both f64.

    Args:
        kind: How they lie.
        weights: Their tensor.
        parameters: Scales and zero points, where these are tensors of their own.
    """
    rows = weights.shape[0]
    if kind.block_bytes:
        scales = np.ascontiguousarray(weights[:, :, :SCALE_BYTES]).view(np.float16)[:, :, 0]
        steps = _unpacked(kind, np.ascontiguousarray(weights[:, :, SCALE_BYTES:]))
        return steps - kind.middle, scales.astype(np.float64)
    blocks = weights.shape[1] * 8 // kind.bits // BLOCK

    def of_blocks(array: Array) -> Array:
        wide = numbers.widened(array).astype(np.float64)
        return np.repeat(wide, blocks // array.shape[1], axis=1)

    steps = _unpacked(kind, weights).reshape(rows, blocks, BLOCK)
    zero = of_blocks(parameters[1])[:, :, np.newaxis] if len(parameters) > 1 else kind.middle
    return steps - zero, of_blocks(parameters[0])


def _unpacked(kind: WeightFormat, held: Array) -> Array:
    """Return the numbers that bytes hold, as f64, in the order of elements along the last dimension."""
    if kind.is_float:
        return numbers.widened(held).astype(np.float64)
    if kind.bits == 8:
        return held.view(np.int8).astype(np.float64)
    halves = held & 15, held >> 4
    if kind.pairs:
        return np.stack(halves, axis=-1).reshape(*held.shape[:-1], -1).astype(np.float64)
    return np.concatenate(halves, axis=-1).astype(np.float64)


def in_8_bits(x: Array) -> tuple[Array, Array]:
    """Return activations ``[M, K]`` in blocks as integers ``[M, B, 32]`` and scales ``[M, B]``, both f32.

    A scale is the greatest magnitude in a block over 127; integers are quotients by it, rounded to nearest
    even. Of a block of zeros both are zeros; where a number is infinite or NaN, so is the scale.
    """
    blocks = numbers.widened(x).astype(np.float32).reshape(x.shape[0], x.shape[1] // BLOCK, BLOCK)
    with np.errstate(all="ignore"):
        scales = np.max(np.abs(blocks), axis=2, initial=0) / np.float32(GREATEST)
        steps = np.rint(blocks / scales[:, :, np.newaxis])
        steps = np.clip(np.where(np.isnan(steps), np.float32(0), steps), -GREATEST, GREATEST)
    return steps, scales
