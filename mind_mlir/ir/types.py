"""Value types of the IR.

    ValueType  ::= TensorType | TupleType
    TensorType ::= dtype, shape              shape ::= (extent, ...)
    extent     ::= int | SymbolicDim         TupleType ::= (ValueType, ...)

All types are immutable and compare by value. Constructing a type brings its parts into the form above
(`TensorType("f32", [2, 3])` has the shape `(2, 3)`) and refuses only what is no dtype or no extent at all:
which of them are legal is a question of the profile, and the verifier's to answer, with a diagnostic.
"""

from __future__ import annotations

import math
from typing import TypeAlias, cast

from mind_mlir.ir.dtypes import DType, DTypeKind, dtype_of
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass

__all__ = [
    "MAX_BYTES",
    "MAX_RANK",
    "DType",
    "DTypeKind",
    "Dim",
    "Shape",
    "SymbolicDim",
    "TensorType",
    "TupleType",
    "ValueType",
    "dtype_of",
    "format_shape",
]

#: No object of an address space is larger; beyond it, byte offsets would overflow in compiled code.
MAX_BYTES = 2**63 - 1
#: No value has more dimensions: numpy's limit.
MAX_RANK = 64


@dataclass(frozen=True, slots=True)
class SymbolicDim:
    """An extent that is bound when the function is called (``?B``)."""

    name: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", argument_checks.text(self.name, "name"))

    def __str__(self) -> str:
        return f"?{self.name}"


Dim: TypeAlias = int | SymbolicDim
Shape: TypeAlias = tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class TensorType:
    """A dense tensor of ``dtype`` elements; a scalar has shape ``()``.

    Raises:
        TypeError: ``dtype`` is no `DType`, nor its name or numpy type; ``shape`` is no sequence of extents.
        ValueError: An extent has more digits than any integer of the IR.
    """

    dtype: DType
    shape: Shape = ()

    def __post_init__(self) -> None:
        if type(self.dtype) is not DType:
            object.__setattr__(self, "dtype", _dtype(self.dtype))
        shape = self.shape
        if type(shape) is not tuple or not all(type(d) is int and -_PLAIN < d < _PLAIN for d in shape):
            object.__setattr__(self, "shape", _shape(shape))

    @property
    def rank(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    @property
    def extents(self) -> tuple[int, ...]:
        """Return the shape of a static type as plain integers."""
        for extent in self.shape:
            if not isinstance(extent, int):
                raise ValueError(f"the extent must be known, but {extent} is symbolic")
        return cast("tuple[int, ...]", self.shape)

    @property
    def element_count(self) -> int:
        """Return the number of elements of a static type."""
        return math.prod(self.extents)

    @property
    def is_addressable(self) -> bool:
        """Return whether byte strides of a static type can be counted; numpy asks this of empty ones too."""
        return math.prod(extent or 1 for extent in self.extents) * self.dtype.itemsize <= MAX_BYTES

    def with_shape(self, shape: Shape) -> TensorType:
        """Return this type with another shape."""
        return TensorType(self.dtype, shape)

    def with_dtype(self, dtype: DType) -> TensorType:
        """Return this type with another element type."""
        return TensorType(dtype, self.shape)

    def __str__(self) -> str:
        return f"tensor<{self.dtype.core_name}{format_shape(self.shape)}>"


@dataclass(frozen=True, slots=True)
class TupleType:
    """The value of an operation with several results."""

    elements: tuple[ValueType, ...]

    def __post_init__(self) -> None:
        expected = "a sequence of TensorTypes and TupleTypes"
        elements = argument_checks.items(self.elements, "elements", expected)
        for element in elements:
            if not isinstance(element, (TensorType, TupleType)):
                argument_checks.reject("elements", expected, element)
        object.__setattr__(self, "elements", elements)

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.elements))}>"


ValueType: TypeAlias = TensorType | TupleType


def format_shape(shape: Shape) -> str:
    """Return ``shape`` as the Core text writes it, for example ``[2, 3]``."""
    return f"[{', '.join(map(str, shape))}]"


#: Extents below need no closer look.
_PLAIN = 2**63


def _dtype(value: object) -> DType:
    found = dtype_of(value)
    if found is None:
        argument_checks.reject("dtype", "a DType, such as DType.F32", value)
    return found


def _shape(value: object) -> Shape:
    extents = argument_checks.items(value, "shape", "a sequence of integers")
    return tuple(
        extent if isinstance(extent, SymbolicDim) else argument_checks.integer(extent, "each extent of shape")
        for extent in extents
    )
