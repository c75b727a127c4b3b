"""The images of the demo, shuffled and dealt out in minibatches."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator

Images: TypeAlias = npt.NDArray[np.float32]
Labels: TypeAlias = npt.NDArray[np.int64]

#: A line for each image: 64 pixels, then the digit.
FILE = Path(__file__).parent / "digits.csv.gz"
_BRIGHTEST = 16


@dataclass(frozen=True, slots=True)
class Samples:
    """Images, f32 of shape ``[n, 64]`` between 0 and 1, and the digits they show, i64 of shape ``[n]``."""

    images: Images
    labels: Labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, chosen: slice | npt.NDArray[Any]) -> Samples:
        return Samples(self.images[chosen], self.labels[chosen])

    def minibatches(self, size: int) -> Iterator[Samples]:
        """Yield all samples in order, ``size`` at a time; fewer than ``size`` at the end are left out."""
        for start in range(0, len(self) - size + 1, size):
            yield self[start : start + size]


def load() -> Samples:
    """Return all 1,797 samples."""
    with gzip.open(FILE, "rt") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.float32)
    return Samples(np.ascontiguousarray(table[:, :-1] / _BRIGHTEST), table[:, -1].astype(np.int64))


def split(samples: Samples, held_out: int, random: np.random.Generator) -> tuple[Samples, Samples]:
    """Return a training set and ``held_out`` other samples that training never sees."""
    order = random.permutation(len(samples))
    return samples[order[held_out:]], samples[order[:held_out]]
