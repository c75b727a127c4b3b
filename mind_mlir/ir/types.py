"""Value types of the IR.

    ValueType  ::= TensorType | TupleType
    TensorType ::= dtype, shape              shape ::= (extent, ...)
    extent     ::= int | SymbolicDim         TupleType ::= (ValueType, ...)

All types are immutable and compare by value. Constructing a type brings its parts into the form above
(`TensorType("f32", [2, 3])` has the shape `(2, 3)`) and refuses only what is no dtype or no extent at all:
which of them are legal is a question of the profile, and the verifier's to answer, with a diagnostic.
"""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias, cast

import numpy as np

from mind_mlir.support import argument_checks

#: No object of an address space is larger; beyond it, byte offsets would overflow in compiled code.
MAX_BYTES = 2**63 - 1
#: No value has more dimensions: numpy's limit.
MAX_RANK = 64


class DTypeKind(Enum):
    """The meaning of the bits of an element."""

    BOOL = "bool"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    COMPLEX = "complex"


class DType(Enum):
    """An element type of any profile: name, width in bits, kind and numpy equivalent.

    `value` is the name PTIR uses; `core_name` the one that the Core IR text uses; `numpy_name` how Python
    code spells the numpy type: ``float32``, ``ml_dtypes.bfloat16``.
    """

    I1 = "i1"
    SI4 = "si4"
    UI4 = "ui4"
    SI8 = "si8"
    UI8 = "ui8"
    SI16 = "si16"
    UI16 = "ui16"
    SI32 = "si32"
    UI32 = "ui32"
    SI64 = "si64"
    UI64 = "ui64"
    FP8_E4M3 = "fp8_e4m3"
    FP8_E5M2 = "fp8_e5m2"
    BF16 = "bf16"
    F16 = "f16"
    F32 = "f32"
    F64 = "f64"
    CF32 = "cf32"
    CF64 = "cf64"

    kind: DTypeKind
    bits: int
    core_name: str
    numpy_name: str

    @functools.cached_property
    def numpy(self) -> np.dtype[Any]:
        """Return the numpy type that holds elements."""
        package, _, name = self.numpy_name.rpartition(".")
        if not package:
            return np.dtype(name)
        import ml_dtypes  # noqa: PLC0415 -- programs of numpy's own dtypes, and bundles of them, do without

        return cast("np.dtype[Any]", np.dtype(getattr(ml_dtypes, name)))

    def __str__(self) -> str:
        return self.core_name

    def __repr__(self) -> str:
        return f"DType.{self.name}"

    @property
    def is_integer(self) -> bool:
        """Return whether this is a signed or unsigned integer (not ``i1``)."""
        return self.kind in (DTypeKind.SIGNED, DTypeKind.UNSIGNED)

    @property
    def is_float(self) -> bool:
        """Return whether this is a real floating-point type."""
        return self.kind is DTypeKind.FLOAT

    @property
    def itemsize(self) -> int:
        """Return the bytes one element takes in a numpy array."""
        return int(self.numpy.itemsize)

    @staticmethod
    def from_name(name: str) -> DType | None:
        """Return the dtype that is spelled ``name`` in the Core text or in PTIR, or None."""
        return _BY_NAME.get(argument_checks.text(name, "name"))

    @staticmethod
    def from_numpy(dtype: np.dtype[Any]) -> DType | None:
        """Return the dtype whose elements numpy stores as ``dtype`` (in native byte order), or None."""
        found = argument_checks.expect(dtype, np.dtype, "dtype", "a numpy.dtype")
        if not found.isnative:
            return None
        return _added()[0].get(found) if found.isbuiltin == _REGISTERED else _BY_NUMPY.get(found)


def dtype_of(value: object) -> DType | None:
    """Return the dtype that Python means by ``value``: a `DType`, its name or its numpy type; else None."""
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        return DType.from_name(value)
    if isinstance(value, type):
        # Nobody has a type of a package that is not loaded.
        return _BY_SCALAR.get(value) or (_added()[1].get(value) if "ml_dtypes" in sys.modules else None)
    return DType.from_numpy(value) if isinstance(value, np.dtype) else None


def _describe(dtype: DType, kind: DTypeKind, bits: int, numpy: str, core_name: str | None = None) -> None:
    dtype.kind, dtype.bits, dtype.numpy_name = kind, bits, numpy
    dtype.core_name = core_name or dtype.value


_describe(DType.I1, DTypeKind.BOOL, 1, "bool")
_describe(DType.SI4, DTypeKind.SIGNED, 4, "ml_dtypes.int4")
_describe(DType.UI4, DTypeKind.UNSIGNED, 4, "ml_dtypes.uint4")
_describe(DType.SI8, DTypeKind.SIGNED, 8, "int8")
_describe(DType.UI8, DTypeKind.UNSIGNED, 8, "uint8")
_describe(DType.SI16, DTypeKind.SIGNED, 16, "int16")
_describe(DType.UI16, DTypeKind.UNSIGNED, 16, "uint16")
_describe(DType.SI32, DTypeKind.SIGNED, 32, "int32", "i32")
_describe(DType.UI32, DTypeKind.UNSIGNED, 32, "uint32")
_describe(DType.SI64, DTypeKind.SIGNED, 64, "int64", "i64")
_describe(DType.UI64, DTypeKind.UNSIGNED, 64, "uint64")
_describe(DType.FP8_E4M3, DTypeKind.FLOAT, 8, "ml_dtypes.float8_e4m3fn")
_describe(DType.FP8_E5M2, DTypeKind.FLOAT, 8, "ml_dtypes.float8_e5m2")
_describe(DType.BF16, DTypeKind.FLOAT, 16, "ml_dtypes.bfloat16")
_describe(DType.F16, DTypeKind.FLOAT, 16, "float16")
_describe(DType.F32, DTypeKind.FLOAT, 32, "float32")
_describe(DType.F64, DTypeKind.FLOAT, 64, "float64")
_describe(DType.CF32, DTypeKind.COMPLEX, 64, "complex64")
_describe(DType.CF64, DTypeKind.COMPLEX, 128, "complex128")

_BY_NAME = {d.value: d for d in DType} | {d.core_name: d for d in DType}
_BY_NUMPY = {d.numpy: d for d in DType if "." not in d.numpy_name}
_BY_SCALAR: dict[type, DType] = {d.type: dtype for d, dtype in _BY_NUMPY.items()}
#: What `np.dtype.isbuiltin` says of types that another package has registered.
_REGISTERED = 2


@functools.cache
def _added() -> tuple[dict[np.dtype[Any], DType], dict[type, DType]]:
    """Return the dtypes by the numpy types that ml_dtypes adds, and by the types of its scalars."""
    found = {d.numpy: d for d in DType if "." in d.numpy_name}
    return found, {d.type: dtype for d, dtype in found.items()}


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
        return tuple(_static(d) for d in self.shape)

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


def _static(extent: Dim) -> int:
    if isinstance(extent, int):
        return extent
    raise ValueError(f"the extent must be known, but {extent} is symbolic")
