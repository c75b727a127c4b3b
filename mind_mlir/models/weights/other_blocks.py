"""Layouts of quantised blocks that are not kept as they lie: the package gguf makes numbers of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.models.weights.errors import UnknownType
from mind_mlir.models.weights.mapped_file import settled

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class OtherLayout(NamedTuple):
    """A layout of blocks.

    Attributes:
        width: How many numbers a block has.
        size: How many bytes.
        numbers: Gives the numbers of ui8[..., blocks, size], in row-major order.
    """

    width: int
    size: int
    numbers: Callable[[npt.NDArray[np.uint8]], npt.NDArray[np.float32]]


def other_layout(kind: int, name: str) -> OtherLayout:
    """Return the layout of which the format has number ``kind``, for the tensor called ``name``.

    Raises:
        UnknownType: The package does not know it, or cannot make numbers of it.
        UnsupportedError: E7003, the package is not installed.
    """
    try:
        import gguf  # noqa: PLC0415 -- optional, and of use for these layouts alone
    except ImportError:
        message = (
            f"tensor '{name}' is quantised in a layout that the package gguf reads, which is not installed"
        )
        raise UnsupportedError(Diagnostic("E7003", message, help="run: pip install gguf")) from None
    try:
        found = gguf.GGMLQuantizationType(kind)
        count, size = gguf.GGML_QUANT_SIZES[found]
    except (ValueError, KeyError):
        raise UnknownType(
            f"tensor '{name}' is of type {kind}, which is unknown", "a newer gguf may know it"
        ) from None

    def numbers(blocks: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        try:
            made = gguf.quants.dequantize(blocks.reshape(-1, size), found)
        except NotImplementedError:
            raise UnknownType(
                f"tensor '{name}' is of {found.name}, of which the package gguf makes no numbers",
                "convert the file to Q8_0 or F16",
            ) from None
        result: npt.NDArray[np.float32] = settled(made)
        return result

    return OtherLayout(count, size, numbers)
