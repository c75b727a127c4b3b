"""Arithmetic of integers of a dtype on those of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.elements import limits

if TYPE_CHECKING:
    from mind_mlir.ir.types import DType


def wrapped(number: int, dtype: DType) -> int:
    """Return ``number`` as an integer of ``dtype``, wrapped around.

    Example:
        >>> from mind_mlir.ir.types import DType
        >>> wrapped(130, DType.SI8), wrapped(-1, DType.UI4)
        (-126, 15)
    """
    least, _ = limits(dtype)
    return (number - least) % (1 << dtype.bits) + least
