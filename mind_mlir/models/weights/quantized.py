"""Quantised weights as GGUF has them: blocks of numbers with a scale each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

    _Floats = npt.NDArray[np.float32]

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


def _to_q8_0(rows: _Floats) -> tuple[_Floats, npt.NDArray[np.uint8]]:
    """Return scales and bytes of blocks: the greatest magnitude is 127, halves are rounded away from zero."""
    scales = np.abs(rows).max(axis=-1, keepdims=True) / np.float32(127)
    steps = rows * _inverse(scales)
    away = np.trunc(steps + np.copysign(np.float32(0.5), steps))
    return scales, away.astype(np.int8).view(np.uint8)


def _to_q4_0(rows: _Floats) -> tuple[_Floats, npt.NDArray[np.uint8]]:
    """Return scales and bytes of blocks: the number of the greatest magnitude, with its sign, is -8."""
    places = np.abs(rows).argmax(axis=-1)[..., np.newaxis]
    scales = np.take_along_axis(rows, places, axis=-1) / np.float32(-8)
    steps = np.minimum(15, (rows * _inverse(scales) + np.float32(8.5)).astype(np.int8)).astype(np.uint8)
    halves: npt.NDArray[np.uint8] = steps[..., : BLOCK // 2] | (steps[..., BLOCK // 2 :] << np.uint8(4))
    return scales, halves


def _inverse(scales: _Floats) -> _Floats:
    return np.divide(np.float32(1), scales, out=np.zeros_like(scales), where=scales != 0)


class Layout(NamedTuple):
    """The layout of a block: an f16 scale, and integers.

    Attributes:
        size: How many bytes a block has.
        integers: Gives the integers of blocks.
        quantize: Gives the scales and the bytes of integers of numbers f32[..., blocks, 32].
    """

    size: int
    integers: Callable[[npt.NDArray[np.uint8]], npt.NDArray[np.int8]]
    quantize: Callable[[_Floats], tuple[_Floats, npt.NDArray[np.uint8]]]


#: The layouts, by what llama.cpp calls them.
LAYOUTS: dict[QuantizedKind, Layout] = {
    "Q8_0": Layout(34, _q8_0, _to_q8_0),
    "Q4_0": Layout(18, _q4_0, _to_q4_0),
}


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

    @classmethod
    def of(cls, numbers: npt.ArrayLike, kind: QuantizedKind) -> QuantizedWeights:
        """Return numbers in blocks, rounded as llama.cpp rounds them.

        Args:
            numbers: Floats, finite and within f16, f32[..., a multiple of 32].
            kind: The layout.

        Raises:
            ValueError: Rows are no blocks of 32 numbers, or there is no such layout.
        """
        argument_checks.choice(kind, tuple(LAYOUTS), "kind")
        given = np.asarray(numbers, np.float32)
        if not given.ndim or given.shape[-1] % BLOCK:
            raise ValueError(f"numbers must have rows of a multiple of {BLOCK}, not shape {given.shape}")
        rows = given.reshape(*given.shape[:-1], given.shape[-1] // BLOCK, BLOCK)
        scales, integers = LAYOUTS[kind].quantize(rows)
        return cls(np.concatenate([scales.astype(np.float16).view(np.uint8), integers], axis=-1), kind)

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
