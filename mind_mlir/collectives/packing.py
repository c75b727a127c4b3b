"""Small arrays of several collectives as one message: a message costs more by itself than their bytes do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mind_mlir.collectives.exchange import Swap
    from mind_mlir.ir.attributes import Array

#: Arrays of fewer bytes go with others: a message takes some 10 us, in which 32 KB are copied twice.
PACKED = 32 << 10


@contextmanager
def packed(swaps: Sequence[Swap]) -> Iterator[Swap]:
    """Give what is to be sent and received for all of ``swaps``; in the end all that is in its place.

    Both sides pack alike: what one of them sends has the sizes that the other one receives.
    """
    going = [_split(each) for each in zip(*(sends for sends, _ in swaps), strict=True)]
    coming = [_split(each) for each in zip(*(receives for _, receives in swaps), strict=True)]
    rooms = [np.empty(sum(array.nbytes for array in small), np.uint8) for small, _ in coming]
    sends = [[*_joined(small), *large] for small, large in going]
    yield (
        sends,
        [[*([room] if small else []), *large] for room, (small, large) in zip(rooms, coming, strict=True)],
    )
    for room, (small, _) in zip(rooms, coming, strict=True):
        first = 0
        for array in small:
            bytes_of(array)[...] = room[first : first + array.nbytes]
            first += array.nbytes


def _split(lists: Sequence[Sequence[Array]]) -> tuple[list[Array], list[Array]]:
    """Return what goes to one process: arrays that make one message, and those that go by themselves."""
    arrays = [array for each in lists for array in each]
    small = [array for array in arrays if array.nbytes < PACKED]
    if len(small) < 2:
        return [], arrays
    return small, [array for array in arrays if array.nbytes >= PACKED]


def _joined(small: Sequence[Array]) -> Sequence[Array]:
    return [np.concatenate([bytes_of(array) for array in small])] if small else []


def bytes_of(array: Array) -> Array:
    """Return the bytes of a contiguous array, in place."""
    return array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
