"""Fourier transforms, and the matrix of mel frequencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.builders.compositions import fourier
from mind_mlir.models.onnx.graphs.refusals import broken, check_few
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule, dtype_for
from mind_mlir.tracing.composing import composed

if TYPE_CHECKING:
    from mind_mlir.builders.compositions.composer import Composer
    from mind_mlir.ir.value import Value

#: Longer transforms are none that a model has.
_MAX_LENGTH = 1 << 24


def _dft(use: NodeUse) -> Array:
    x = use[0]
    inverse, one_sided = bool(use.attr("inverse", 0)), bool(use.attr("onesided", 0))
    if use.version >= 20:
        axis = int(use.known(2, "the axis").reshape(())) if use.has(2) else -2
    else:
        axis = use.attr("axis", 1)
    axis = use.axis(axis, x.ndim)
    if axis == x.ndim - 1 or x.shape[-1] not in (1, 2):
        broken(f"it transforms axis {axis} of {list(x.shape)}, whose last one holds the parts of numbers")
    length = 2 * (x.shape[axis] - 1) if inverse and one_sided else x.shape[axis]
    if use.has(1):
        length = int(use.known(1, "the length").reshape(()))
    return transformed(x, axis, length, inverse=inverse, one_sided=one_sided)


def transformed(x: Array, axis: int, length: int, *, inverse: bool, one_sided: bool) -> Array:
    """Return the Fourier transform of numbers, whose parts are the last axis, along another one."""
    if length < 1:
        broken(f"a transform of length {length}")
    check_few(length, _MAX_LENGTH, "numbers in a transform")
    wanted = length // 2 + 1 if inverse and one_sided else length
    rows = x[(*[slice(None)] * axis, slice(0, wanted))]
    if rows.shape[axis] < wanted:
        rows = mnp.pad(
            rows, [(0, wanted - rows.shape[axis] if each == axis else 0) for each in range(x.ndim)]
        )
    parts = [rows[..., part] for part in range(x.shape[-1])]

    def append(to: Composer, real: Value, *imaginary: Value) -> Sequence[Value]:
        pair = fourier.Pair(real, imaginary[0] if imaginary else None)
        if inverse and one_sided:
            found = fourier.Pair(fourier.to_real(to, pair, [axis], length), None)
        elif one_sided and not imaginary:
            found = fourier.of_real(to, real, [axis], one_sided=True)
        else:
            found = fourier.of_complex(to, pair, [axis], inverse=inverse)
        found = fourier.scaled(to, found, 1 / length) if inverse else found
        return [part for part in found if part is not None]

    found: list[Array] = composed(append, *parts)
    half = slice(0, length // 2 + 1 if one_sided and not inverse else None)
    if not (inverse and one_sided) and len(found) == 1:
        found.append(mnp.zeros_like(found[0]))
    return mnp.stack([part[(*[slice(None)] * axis, half)] for part in found], -1)


def _short_time(use: NodeUse) -> Array:
    x, step = use[0], int(use.known(1, "the step of the frames").reshape(()))
    window = use.get(2)
    length = int(use.known(3, "the length of a frame").reshape(())) if use.has(3) else None
    if length is None:
        if window is None:
            broken("it is given neither a window nor the length of a frame")
        length = window.shape[0]
    if x.ndim != 3 or step < 1 or not 1 <= length <= x.shape[1]:
        broken(f"frames of {length} at steps of {step} are none of {list(x.shape)}")
    count = (x.shape[1] - length) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(length)
    frames = mnp.take(x, places, 1)
    if window is not None:
        frames = frames * window.reshape((-1, 1)).astype(x.dtype)
    return transformed(frames, 2, length, inverse=False, one_sided=bool(use.attr("onesided", 1)))


def _mel(use: NodeUse) -> Array:
    bins, length, rate, low, high = [
        use.known(place, "the frequencies").reshape(()).item() for place in range(5)
    ]
    if not 1 <= bins <= 2**16 or not 1 <= length <= 2**20 or rate <= 0:
        broken(f"{bins} bins of {length} numbers at a rate of {rate}")
    ends = [2595 * np.log10(1 + each / 700) for each in (low, high)]
    mels = ends[0] + np.arange(bins + 2) * ((ends[1] - ends[0]) / (bins + 2))
    edges = ((length + 1) * (700 * (10 ** (mels / 2595) - 1)) // rate).astype(np.int64)
    at = np.arange(length // 2 + 1)[:, None]
    left, middle, right = edges[:-2], edges[1:-1], edges[2:]
    rising = np.where((at >= left) & (at <= middle), (at - left) / np.maximum(middle - left, 1), 0.0)
    rising = np.where(middle == left, (at == middle).astype(np.float64), rising)
    falling = np.where((at >= middle) & (at < right), (right - at) / np.maximum(right - middle, 1), 0.0)
    found = np.where((at >= middle) & (right > middle) & (at < right), falling, rising)
    return found.astype(dtype_for(use, use.attr("output_datatype", 1)))


RULES = {
    "DFT": OnnxRule(_dft),
    "STFT": OnnxRule(_short_time),
    "MelWeightMatrix": OnnxRule(_mel, is_plain=True),
}
