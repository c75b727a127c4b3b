"""The dtypes: one row each, which holds every fact about it; what is asked elsewhere is derived from these.

Types of other systems are named by text only, so that a dtype is known without MLIR, and numpy's package
ml_dtypes is loaded for the dtypes that need it alone.
"""

from __future__ import annotations

import functools
import math
import sys
from enum import Enum
from typing import Any, NamedTuple, Self, cast

import numpy as np

from mind_mlir.support import argument_checks


class DTypeKind(Enum):
    """The meaning of the bits of an element."""

    BOOL = "bool"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    COMPLEX = "complex"


class FloatFormat(NamedTuple):
    """The layout of a float: a sign, the exponent and the mantissa, as IEEE 754 orders them.

    Attributes:
        bits: Width of a number.
        mantissa: Width of the stored part of the significand.
        infinite: Whether the greatest exponent is that of infinities and NaN. Else NaN is all ones, and the
            other numbers with that exponent are finite.
    """

    bits: int
    mantissa: int
    infinite: bool = True

    @property
    def exponent(self) -> int:
        """The width of the exponent."""
        return self.bits - 1 - self.mantissa

    @property
    def bias(self) -> int:
        """What is added to exponents in memory."""
        return (1 << (self.exponent - 1)) - 1

    @property
    def precision(self) -> int:
        """The bits of a significand, the one that is not stored included."""
        return self.mantissa + 1

    @property
    def magnitude(self) -> int:
        """The bits of a number without its sign, all set."""
        return (1 << (self.bits - 1)) - 1

    @property
    def limit(self) -> int:
        """The magnitude of what is out of range: infinity, or else NaN."""
        return self.magnitude & -(1 << self.mantissa) if self.infinite else self.magnitude

    @property
    def greatest(self) -> float:
        """The greatest finite number."""
        exponent, mantissa = divmod(self.limit - 1, 1 << self.mantissa)
        return math.ldexp(mantissa + (1 << self.mantissa), exponent - self.bias - self.mantissa)

    @property
    def smallest_normal(self) -> float:
        """The least positive number whose significand begins with a one."""
        return math.ldexp(1.0, 1 - self.bias)

    @property
    def smallest_subnormal(self) -> float:
        """The least positive number."""
        return math.ldexp(1.0, 1 - self.bias - self.mantissa)

    def holds_all(self, other: FloatFormat) -> bool:
        """Return whether each number of ``other`` is one of these, subnormals and infinities included."""
        return (
            self.mantissa >= other.mantissa
            and self.greatest >= other.greatest
            and self.smallest_subnormal <= other.smallest_subnormal
            and self.infinite >= other.infinite
        )


class Row(NamedTuple):
    """The facts about one dtype, each of which is an attribute of the `DType`.

    Attributes:
        name: What PTIR calls it: the `value` of the dtype.
        kind: The meaning of the bits.
        bits: Width of an element. Those of fewer than 8 bits lie in bytes.
        numpy_name: How Python code spells the numpy type.
        core_name: What Core IR text calls it: the `str` of the dtype.
        mlir: How MLIR spells it where integers have their signedness, as in the `mind` dialect.
        c_type: What C holds an element in: for a float that C99 lacks its bits, for complex numbers a part.
        c_note: What a user of C has to know about an element that C has no type of its own for.
        tolerance: Relative error that an operation which does not accumulate may have against numpy, of
            floats. Where f32 is rounded to fewer bits, that is a unit in the last place.
        format: Layout of a float, or of the parts of a complex number.
    """

    name: str
    kind: DTypeKind
    bits: int
    numpy_name: str
    core_name: str
    mlir: str
    c_type: str
    c_note: str = ""
    tolerance: float = 0.0
    format: FloatFormat | None = None


def _integer(sign: str, bits: int, *, core_name: str = "", c_note: str = "") -> Row:
    name, unsigned, stored = f"{sign}i{bits}", "u" if sign == "u" else "", max(bits, 8)
    kind = DTypeKind.UNSIGNED if unsigned else DTypeKind.SIGNED
    numpy_name = f"{'ml_dtypes.' if bits < stored else ''}{unsigned}int{bits}"
    return Row(name, kind, bits, numpy_name, core_name or name, name, f"{unsigned}int{stored}_t", c_note)


def _narrow_float(name: str, layout: FloatFormat, numpy_name: str, mlir: str, c_note: str) -> Row:
    """Return the row of a float that is computed as f32, and rounded."""
    c_type, ulp = f"uint{layout.bits}_t", 2.0**-layout.mantissa
    return Row(name, DTypeKind.FLOAT, layout.bits, numpy_name, name, mlir, c_type, c_note, ulp, layout)


def _float(name: str, layout: FloatFormat, numpy_name: str, c_type: str, tolerance: float) -> Row:
    return Row(name, DTypeKind.FLOAT, layout.bits, numpy_name, name, name, c_type, "", tolerance, layout)


def _complex(part: Row, numpy_name: str) -> Row:
    name, c = f"c{part.name}", part.c_type
    c_note = f"two {c}s an element, real and imaginary part, as {c} _Complex has them."
    mlir = f"complex<{part.mlir}>"
    return part._replace(
        name=name,
        kind=DTypeKind.COMPLEX,
        bits=2 * part.bits,
        numpy_name=numpy_name,
        core_name=name,
        mlir=mlir,
        c_note=c_note,
    )


_F32 = _float("f32", FloatFormat(32, 23), "float32", "float", 1e-6)
_F64 = _float("f64", FloatFormat(64, 52), "float64", "double", 1e-12)


class DType(Enum):
    """An element type of any profile: name, width in bits, kind and numpy equivalent.

    `value` is the name PTIR uses; `core_name` the one that the Core IR text uses; `numpy_name` how Python
    code spells the numpy type: ``float32``, ``ml_dtypes.bfloat16``. `Row` has the others of its facts.
    """

    I1 = Row(
        "i1",
        DTypeKind.BOOL,
        1,
        "bool",
        "i1",
        "i1",
        "uint8_t",
        "one byte an element, 0 or 1, and nothing else.",
    )
    SI4 = _integer("s", 4, c_note="one element in each int8_t, -8 to 7, and nothing else.")
    UI4 = _integer("u", 4, c_note="one element in each uint8_t, 0 to 15, and nothing else.")
    SI8 = _integer("s", 8)
    UI8 = _integer("u", 8)
    SI16 = _integer("s", 16)
    UI16 = _integer("u", 16)
    SI32 = _integer("s", 32, core_name="i32")
    UI32 = _integer("u", 32)
    SI64 = _integer("s", 64, core_name="i64")
    UI64 = _integer("u", 64)
    FP8_E4M3 = _narrow_float(
        "fp8_e4m3",
        FloatFormat(8, 3, infinite=False),
        "ml_dtypes.float8_e4m3fn",
        "f8E4M3FN",
        "the bits of an 8-bit float in a uint8_t (OCP E4M3, without infinities).",
    )
    FP8_E5M2 = _narrow_float(
        "fp8_e5m2",
        FloatFormat(8, 2),
        "ml_dtypes.float8_e5m2",
        "f8E5M2",
        "the bits of an 8-bit float in a uint8_t (OCP E5M2).",
    )
    BF16 = _narrow_float(
        "bf16",
        FloatFormat(16, 7),
        "ml_dtypes.bfloat16",
        "bf16",
        "the bits of a bfloat16 in a uint16_t: the upper half of those of a float.",
    )
    F16 = _narrow_float(
        "f16",
        FloatFormat(16, 10),
        "float16",
        "f16",
        "the bits of a 16-bit float of IEEE 754 in a uint16_t, as _Float16 has them.",
    )
    F32 = _F32
    F64 = _F64
    CF32 = _complex(_F32, "complex64")
    CF64 = _complex(_F64, "complex128")

    _value_: str
    kind: DTypeKind
    bits: int
    numpy_name: str
    core_name: str
    mlir: str
    c_type: str
    c_note: str
    tolerance: float
    #: Floats and complex numbers only.
    format: FloatFormat
    #: The dtype of the two parts of a complex number; any other is its own.
    part: DType

    def __new__(cls, name: str, *facts: Any) -> Self:
        """Make the dtype of a row."""
        dtype = object.__new__(cls)
        dtype._value_ = name
        vars(dtype).update(zip(Row._fields[1:], facts, strict=True))
        return dtype

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
    def is_complex(self) -> bool:
        """Return whether an element has two parts."""
        return self.kind is DTypeKind.COMPLEX

    @property
    def is_narrow(self) -> bool:
        """Return whether this is a float that is computed as f32."""
        return self.kind is DTypeKind.FLOAT and self.bits < 32

    @property
    def itemsize(self) -> int:
        """Return the bytes one element takes in a numpy array."""
        return (self.bits + 7) // 8

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


for _dtype in DType:
    _dtype.part = DType[f"F{_dtype.bits // 2}"] if _dtype.is_complex else _dtype

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
