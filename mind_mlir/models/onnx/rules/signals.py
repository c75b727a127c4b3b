"""Fourier transforms, as products with the matrix of one; and the matrix of mel frequencies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken, unsupported
from mind_mlir.models.onnx.graphs.use import OnnxRule, dtype_for

if TYPE_CHECKING:
    import numpy.typing as npt

    from mind_mlir.models.onnx.graphs.use import Array, NodeUse

#: Longer transforms would take a matrix of too many numbers.
_MAX_LENGTH = 4096


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
    if not 1 <= length <= _MAX_LENGTH:
        unsupported(f"a transform of length {length}; there are those of up to {_MAX_LENGTH}")
    wanted = length // 2 + 1 if inverse and one_sided else length
    rows = x[(*[slice(None)] * axis, slice(0, wanted))]
    given = rows.shape[axis]
    parts = [mnp.moveaxis(rows[..., part], axis, -1) for part in range(x.shape[-1])]
    eye = np.eye(given)
    if inverse and one_sided:
        real = parts[0] @ _of(np.fft.irfft(eye, length), x)
        if len(parts) == 2:
            real = real + parts[1] @ _of(np.fft.irfft(1j * eye, length), x)
        return mnp.expand_dims(mnp.moveaxis(real, -1, axis), -1)
    matrix = (np.fft.ifft if inverse else np.fft.fft)(eye, length)
    if one_sided:
        matrix = matrix[:, : length // 2 + 1]
    cos, sin = _of(matrix.real, x), _of(matrix.imag, x)
    real, imaginary = parts[0] @ cos, parts[0] @ sin
    if len(parts) == 2:
        real, imaginary = real - parts[1] @ sin, imaginary + parts[1] @ cos
    return mnp.stack([mnp.moveaxis(real, -1, axis), mnp.moveaxis(imaginary, -1, axis)], -1)


def _of(matrix: npt.NDArray[Any], like: Array) -> Array:
    return mnp.asarray(np.ascontiguousarray(matrix).astype(like.dtype))


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
