"""Attribute values: what stands between the braces of an operation.

    AttributeValue ::= bool | int | float | str | DType | TensorLiteral | Padding | (AttributeValue, ...)

All are immutable and compare by value, so that operations do; literals compare by their bytes, which keeps
NaNs equal to themselves and tells -0.0 from 0.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mind_mlir.ir.types import DType, TensorType

if TYPE_CHECKING:
    from collections.abc import Callable

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class TensorLiteral:
    """Constant data of a dtype and shape, held as a read-only C-contiguous numpy array."""

    array: Array

    @classmethod
    def of(cls, data: npt.ArrayLike, dtype: DType) -> TensorLiteral:
        """Copy ``data`` into a literal of ``dtype``; its shape is the data's."""
        array = np.array(data, dtype=dtype.numpy, order="C")
        array.setflags(write=False)
        return cls(array)

    @property
    def type(self) -> TensorType:
        """Return the tensor type of the literal."""
        dtype = DType.from_numpy(self.array.dtype)
        assert dtype is not None, "a literal is only made from a DType"
        return TensorType(dtype, self.array.shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorLiteral):
            return NotImplemented
        mine, theirs = self.array, other.array
        return (
            mine.dtype == theirs.dtype and mine.shape == theirs.shape and mine.tobytes() == theirs.tobytes()
        )

    def __hash__(self) -> int:
        return hash((self.array.dtype, self.array.shape, self.array.tobytes()))

    def __reduce__(self) -> tuple[Callable[[Array], TensorLiteral], tuple[Array]]:
        return _read_only, (self.array,)


def _read_only(array: Array) -> TensorLiteral:
    """Return a literal of an array that nothing else holds; copies of read-only arrays can be written."""
    array.setflags(write=False)
    return TensorLiteral(array)


class PaddingMode(Enum):
    """How Conv2d chooses its padding."""

    VALID = "Valid"
    SAME = "Same"
    CUSTOM = "Custom"


@dataclass(frozen=True, slots=True)
class Padding:
    """Conv2d padding; ``pairs`` is ``((top, bottom), (left, right))``, given for Custom only."""

    mode: PaddingMode
    pairs: tuple[tuple[int, ...], ...] = ()

    def __str__(self) -> str:
        if self.mode is not PaddingMode.CUSTOM:
            return str(self.mode.value)
        return f"Custom([{', '.join(str(list(pair)) for pair in self.pairs)}])"


AttributeValue: TypeAlias = (
    bool | int | float | str | DType | TensorLiteral | Padding | tuple["AttributeValue", ...]
)
