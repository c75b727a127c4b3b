"""Quantised weights as GGUF has them: blocks of numbers with a scale each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

#: The layouts that are kept as they lie.
QuantizedKind = Literal["Q8_0", "Q4_0"]

#: How many numbers a block has.
BLOCK = 32


def _q8_0(blocks: npt.NDArray[np.uint8]) -> npt.NDArray[np.int8]:
    """Return the 32 integers of each block, which follow its scale."""
    return blocks[..., 2:].view(np.int8)


def _q4_0(blocks: npt.NDArray[np.uint8]) -> npt.NDArray[np.int8]:
    """Return the 32 integers of each block: the low halves of its 16 bytes, then the high ones, less 8."""
    packed = blocks[..., 2:]
    return np.concatenate([packed & 0xF, packed >> 4], axis=-1).view(np.int8) - np.int8(8)


class Layout(NamedTuple):
    """The layout of a block: an f16 scale, and integers.

    Attributes:
        size: How many bytes a block has.
        integers: Gives the integers of blocks.
    """

    size: int
    integers: Callable[[npt.NDArray[np.uint8]], npt.NDArray[np.int8]]


#: The layouts, by what llama.cpp calls them.
LAYOUTS: dict[QuantizedKind, Layout] = {"Q8_0": Layout(34, _q8_0), "Q4_0": Layout(18, _q4_0)}


@dataclass(frozen=True, eq=False, slots=True)
class QuantizedWeights:
    """A tensor whose rows are blocks of 32 numbers: an f16 scale, and small integers to be multiplied by it.

    It is a container of one array to functions of Python that are compiled (`mind_mlir.jit`).

    Attributes:
        blocks: The bytes as the file has them, ui8[..., blocks in a row, bytes of a block]; read-only.
        kind: ``Q8_0`` (34 bytes: the scale and 32 integers of 8 bits) or ``Q4_0`` (18 bytes: the scale and 16
            bytes with two integers of 4 bits each, offset by 8; the low halves are the first 16 numbers).
    """

    blocks: npt.NDArray[np.uint8]
    kind: QuantizedKind = field(metadata={"static": True})

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the numbers."""
        *rows, count, _ = self.blocks.shape
        return (*rows, count * BLOCK)

    @property
    def nbytes(self) -> int:
        """Return how many bytes there are."""
        return self.blocks.nbytes

    def dequantized(self) -> npt.NDArray[np.float32]:
        """Return the numbers, f32 of `shape`: each the product of its scale and its integer, rounded once."""
        scales = self.blocks[..., :2].view(np.float16).astype(np.float32)
        with np.errstate(invalid="ignore"):  # a scale may be infinite: its zeros are NaN
            products: npt.NDArray[np.float32] = scales * LAYOUTS[self.kind].integers(self.blocks)
        return products.reshape(self.shape)

    def __repr__(self) -> str:
        return f"<QuantizedWeights {self.kind} {list(self.shape)}>"
