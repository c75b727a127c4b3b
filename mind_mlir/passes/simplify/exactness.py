"""Exact casts between dtypes: whether one has all numbers of another."""

from __future__ import annotations

from functools import cache

from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.ops.complex_numbers import PARTS

#: Of each float dtype, the bits of its significand, the one that is not stored included.
_SIGNIFICAND = {
    DType.FP8_E4M3: 4,
    DType.FP8_E5M2: 3,
    DType.BF16: 8,
    DType.F16: 11,
    DType.F32: 24,
    DType.F64: 53,
}
#: Of each float dtype, the others that have all of its numbers, subnormals and infinities included.
_WIDER_FLOATS = {
    DType.FP8_E4M3: (DType.BF16, DType.F16, DType.F32, DType.F64),
    DType.FP8_E5M2: (DType.BF16, DType.F16, DType.F32, DType.F64),
    DType.BF16: (DType.F32, DType.F64),
    DType.F16: (DType.F32, DType.F64),
    DType.F32: (DType.F64,),
    DType.F64: (),
}


@cache
def holds_all(wide: DType, narrow: DType) -> bool:
    """Return whether ``wide`` has all numbers of ``narrow``, so that a cast there and back changes nothing.

    Truth values are 0 and 1, of which a cast back makes them again.
    """
    if wide is narrow or narrow is DType.I1:
        return True
    if wide.kind is DTypeKind.COMPLEX:
        part = PARTS[narrow] if narrow.kind is DTypeKind.COMPLEX else narrow
        return holds_all(PARTS[wide], part)
    if narrow.kind is DTypeKind.COMPLEX or wide is DType.I1:
        return False
    if narrow.is_float:
        return wide in _WIDER_FLOATS[narrow]
    least, greatest = limits(narrow)
    if wide.is_float:
        # The least signed number is a power of two; no float dtype but fp8 and f16 ends below 2^32.
        return greatest < 1 << _SIGNIFICAND[wide]
    lowest, highest = limits(wide)
    return lowest <= least and greatest <= highest
