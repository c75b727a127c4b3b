"""numba: loops written by hand, for what is not a product."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numba import njit, prange

from benchmarks.peers.peer import NotWrittenError, Prepared, as_arrays

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.peers.draws import Array
    from benchmarks.peers.workloads import Workload

_ZERO, _ONE, _TWO, _EPSILON = np.float32(0), np.float32(1), np.float32(2), np.float32(1e-5)
_LEAST = np.float32(-3e38)
_PARTS, _SQUARE = 16, 32


def _scalar(x: Any) -> Any:
    return x * _TWO + _ONE


def _chain(x: Any, a: Any, b: Any, c: Any) -> Any:
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            value = x[i, j]
            out[i, j] = max(value * a[j] + b[j], _ZERO) * np.exp(-c[j] * value) + value
    return out


def _softmax(x: Any) -> Any:
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        greatest = _LEAST
        for j in range(x.shape[1]):
            greatest = max(greatest, x[i, j])
        total = _ZERO
        for j in range(x.shape[1]):
            value = np.exp(x[i, j] - greatest)
            out[i, j] = value
            total += value
        inverse = _ONE / total
        for j in range(x.shape[1]):
            out[i, j] *= inverse
    return out


def _layer_norm(x: Any, g: Any, b: Any) -> Any:
    out = np.empty_like(x)
    count = np.float32(x.shape[1])
    for i in prange(x.shape[0]):
        total = _ZERO
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total / count
        squares = _ZERO
        for j in range(x.shape[1]):
            centred = x[i, j] - mean
            squares += centred * centred
        inverse = _ONE / np.sqrt(squares / count + _EPSILON)
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * inverse * g[j] + b[j]
    return out


def _sum_axis0(x: Any) -> Any:
    width = x.shape[1] // _PARTS
    out = np.zeros(x.shape[1], np.float32)
    for part in prange(_PARTS):
        sums = np.zeros(width, np.float32)
        for i in range(x.shape[0]):
            for j in range(width):
                sums[j] += x[i, part * width + j]
        out[part * width : (part + 1) * width] = sums
    return out


def _sum_axis1(x: Any) -> Any:
    out = np.empty(x.shape[0], np.float32)
    for i in prange(x.shape[0]):
        total = _ZERO
        for j in range(x.shape[1]):
            total += x[i, j]
        out[i] = total
    return out


def _transpose(x: Any) -> Any:
    rows, columns = x.shape
    out = np.empty((columns, rows), np.float32)
    for row in prange(rows // _SQUARE):
        for column in range(columns // _SQUARE):
            for j in range(column * _SQUARE, (column + 1) * _SQUARE):
                for i in range(row * _SQUARE, (row + 1) * _SQUARE):
                    out[j, i] = x[i, j]
    return out


def _gather(tab: Any, idx: Any) -> Any:
    out = np.empty((idx.shape[0], tab.shape[1]), np.float32)
    for i in prange(idx.shape[0]):
        out[i] = tab[idx[i]]
    return out


def _depthwise(x: Any, w: Any) -> Any:
    count, rows, columns, depth = x.shape
    out = np.zeros_like(x)
    for place in prange(count * rows):
        n, row = place // rows, place % rows
        for column in range(columns):
            for i in range(max(0, 1 - row), min(3, rows + 1 - row)):
                for j in range(max(0, 1 - column), min(3, columns + 1 - column)):
                    for c in range(depth):
                        out[n, row, column, c] += x[n, row + i - 1, column + j - 1, c] * w[i, j, c]
    return out


def _heat(start: Any, rate: Any) -> Any:
    now, following = start.copy(), start.copy()
    count = 0
    while True:
        moved = 0.0
        for i in range(1, now.shape[0] - 1):
            for j in range(1, now.shape[1] - 1):
                near = (now[i - 1, j] + now[i + 1, j]) + (now[i, j - 1] + now[i, j + 1])
                change = rate[()] * (near - 4 * now[i, j])
                following[i, j] = now[i, j] + change
                moved += change * change
        now, following = following, now
        count += 1
        if moved <= 1e-12 or count >= 5000:
            return now, count


_LOOPS: Mapping[str, Callable[..., Any]] = {
    "chain": _chain,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "sum_axis0": _sum_axis0,
    "sum_axis1": _sum_axis1,
    "transpose": _transpose,
    "gather": _gather,
    "depthwise": _depthwise,
}


_PLAIN: Mapping[str, Callable[..., Any]] = {"scalar": _scalar, "heat": _heat}


class NumbaPeer:
    """numba."""

    versions: Mapping[str, str] = {"numba": numba.__version__}

    def prepare(self, workload: Workload) -> Prepared:
        """See `Peer`; a function is compiled anew each time."""
        if workload.narrow:
            raise NotWrittenError("numba has no bf16")
        if workload.kind in _PLAIN:
            function = njit(_PLAIN[workload.kind], fastmath=workload.kind == "heat")
        elif workload.kind in _LOOPS:
            function = njit(parallel=True, fastmath=True)(_LOOPS[workload.kind])
        else:
            raise NotWrittenError("elementwise operations, reductions and moves only")
        arguments = list(workload.inputs().values())
        return Prepared(lambda: function(*arguments), _arrays, None, compiles_at_first_call=True)


def _arrays(result: Any) -> list[Array]:
    return [np.asarray(each) for each in as_arrays(result)]


def peer(_name: str, threads: int) -> NumbaPeer:
    """Return the peer, warm."""
    numba.set_num_threads(threads)
    njit(parallel=True)(lambda x: x - _ONE)(np.ones(17, np.float32))
    return NumbaPeer()
