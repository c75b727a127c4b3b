"""Words of 64 bits in memory, wherever they lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from mind_mlir.image.relocations import Bytes, Numbers


def store_64(memory: Bytes, places: Numbers, values: Numbers) -> None:
    """Write numbers of 64 bits; places need not be aligned."""
    memory[places[:, None] + np.arange(8)] = values.astype("<i8").view(np.uint8).reshape(-1, 8)


def load_64(memory: Bytes, places: npt.NDArray[np.int64] | npt.NDArray[np.uint32]) -> Numbers:
    """Return the numbers of 64 bits at places, which need not be aligned."""
    rows = memory[places.astype(np.int64)[:, None] + np.arange(8)]
    return np.ascontiguousarray(rows).view("<i8").reshape(-1)
