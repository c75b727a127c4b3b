"""Weights of floats as numbers of few bits, in the formats that `QuantizedDot` multiplies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.types import DType
from mind_mlir.ops import numbers
from mind_mlir.ops.quantized_formats import BLOCK, FORMATS, dequantized
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from mind_mlir.ir.attributes import Array

#: Elements of a group, where the caller does not say.
GROUP = 64
#: The greatest number of fp8_e4m3.
_GREATEST_FP8 = 448.0


@public
def encode_weights(weights: npt.ArrayLike, *, format: str, group: int = GROUP) -> tuple[Array, ...]:  # noqa: A002 -- as QuantizedDot calls it
    """Return a matrix of floats as `QuantizedDot` takes it: its numbers, and scales and zero points if any.

    Each scale is the least that all numbers of its block or group fit with; numbers are the nearest steps.

    Args:
        weights: Floats of shape ``[N, K]``, a row for each result; K is a multiple of 32.
        format: ``q8_0``, ``q4_0``, ``int8``, ``int4`` or ``fp8``, which is ``fp8_e4m3``.
        group: Elements that share a scale where scales are a tensor of their own: a multiple of 32 that
            divides K.

    Raises:
        TypeError: An argument is not of the type above.
        ValueError: ``format`` is none of those, or the shape, or the group, is none for it.
    """
    argument_checks.choice(format, tuple(FORMATS), "format")
    size = argument_checks.integer(group, "group")
    array = np.asarray(weights)
    if array.ndim != 2:
        raise ValueError(f"weights must be a matrix, not of shape {array.shape}")
    size = BLOCK if FORMATS[format].block_bytes else size
    if size < 1 or size % BLOCK or array.shape[1] % size or not array.shape[1]:
        raise ValueError(
            f"group must be a multiple of {BLOCK} that divides the {array.shape[1]} elements of a row, "
            f"not {size}"
        )
    wide = numbers.widened(array).astype(np.float64)
    return _ENCODINGS[format](wide.reshape(array.shape[0], -1, size))


@public
def decode_weights(encoded: tuple[Array, ...], *, format: str) -> Array:  # noqa: A002 -- as above
    """Return what `encode_weights` has made as f64 of shape ``[N, K]``, exactly."""
    argument_checks.choice(format, tuple(FORMATS), "format")
    return dequantized(FORMATS[format], encoded[0], encoded[1:])


def _steps(groups: Array, scales: Array) -> Array:
    """Return groups in steps of their scales, to nearest even; 0 where a scale is."""
    wide = scales.astype(np.float64)[:, :, np.newaxis]
    return np.rint(np.divide(groups, wide, out=np.zeros_like(groups), where=wide != 0))


def _blocks(scales: Array, numbers_: Array) -> Array:
    head = np.ascontiguousarray(scales)[:, :, np.newaxis].view(np.uint8)
    return np.concatenate([head, numbers_], axis=2)


def _q8_0(groups: Array) -> tuple[Array, ...]:
    scales = (np.max(np.abs(groups), axis=2, initial=0) / 127).astype(np.float16)
    steps = np.clip(_steps(groups, scales), -127, 127).astype(np.int8)
    return (_blocks(scales, steps.view(np.uint8)),)


def _q4_0(groups: Array) -> tuple[Array, ...]:
    """Let the number of the greatest magnitude be -8: there is one step more on that side."""
    places = np.argmax(np.abs(groups), axis=2)[:, :, np.newaxis]
    scales = (np.take_along_axis(groups, places, axis=2)[:, :, 0] / -8).astype(np.float16)
    steps = np.clip(_steps(groups, scales) + 8, 0, 15).astype(np.uint8)
    low, high = steps[:, :, : BLOCK // 2], steps[:, :, BLOCK // 2 :]
    return (_blocks(scales, low | high << 4),)


def _int8(groups: Array) -> tuple[Array, ...]:
    scales = (np.max(np.abs(groups), axis=2, initial=0) / 127).astype(np.float32)
    steps = np.clip(_steps(groups, scales), -127, 127).astype(np.int8)
    return steps.reshape(groups.shape[0], -1), scales


def _int4(groups: Array) -> tuple[Array, ...]:
    """Let 0 be a number, and the zero point of its group: what is 0 stays that."""
    least = np.min(groups, axis=2, initial=0)
    scales = ((np.max(groups, axis=2, initial=0) - least) / 15).astype(np.float32)
    zeros = np.clip(_steps(-least[:, :, np.newaxis], scales), 0, 15)
    steps = np.clip(_steps(groups, scales) + zeros, 0, 15).astype(np.uint8)
    flat = steps.reshape(groups.shape[0], -1)
    return flat[:, ::2] | flat[:, 1::2] << 4, scales, zeros[:, :, 0].astype(np.uint8)


def _fp8(groups: Array) -> tuple[Array, ...]:
    dtype = DType.FP8_E4M3.numpy
    greatest = _GREATEST_FP8
    scales = (np.max(np.abs(groups), axis=2, initial=0) / greatest).astype(np.float32)
    wide = scales.astype(np.float64)[:, :, np.newaxis]
    parts = np.divide(groups, wide, out=np.zeros_like(groups), where=wide != 0)
    held = np.clip(parts, -greatest, greatest).astype(dtype)
    return held.reshape(groups.shape[0], -1), scales


_ENCODINGS: dict[str, Callable[[Array], tuple[Array, ...]]] = {
    "q8_0": _q8_0,
    "q4_0": _q4_0,
    "int8": _int8,
    "int4": _int4,
    "fp8": _fp8,
}
