"""How the inputs of workloads are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Draw: TypeAlias = "Callable[[np.random.Generator], Array]"

#: Elements that are drawn at a time, as f64: all of them at once would be the peak of a process.
_PIECE = 1 << 15


def normal(*shape: int, scale: float = 1.0, mean: float = 0.0, dtype: npt.DTypeLike = np.float32) -> Draw:
    """Return what draws normally distributed numbers."""

    def draw(generator: np.random.Generator) -> Array:
        drawn = np.empty(shape, dtype)
        flat = drawn.reshape(-1)
        for start in range(0, flat.size, _PIECE):
            piece = flat[start : start + _PIECE]
            piece[:] = scale * generator.standard_normal(piece.size) + mean
        return drawn

    return draw


def indices(count: int) -> Draw:
    """Return what draws rows of a table of 50,000, as si32."""
    return lambda generator: generator.integers(0, 50000, count).astype(np.int32)


def labels(count: int) -> Draw:
    """Return what draws zeros and ones, as f64."""
    return lambda generator: generator.integers(0, 2, count).astype(np.float64)


def plate(size: int) -> Draw:
    """Return what draws a square of temperatures, f64, whose edge is cold on three sides and hot on one."""

    def draw(generator: np.random.Generator) -> Array:
        drawn = np.zeros((size, size))
        drawn[1:-1, 1:-1] = generator.random((size - 2, size - 2))
        drawn[0] = 1.0
        return drawn

    return draw
