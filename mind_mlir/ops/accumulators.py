"""The dtypes that reductions accumulate in and give (ptir-v0.4.md, "Accumulator/output dtype policy")."""

from __future__ import annotations

from mind_mlir.ir.types import DType
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contract import Field, FieldKind
from mind_mlir.ops.opdef import AttributeDef

#: The attributes of what accumulates, and the fields of the contract that they come from.
ACCUMULATOR = AttributeDef("accum_dtype", AttrKind.DTYPE, "the dtype to accumulate in")
OUTPUT = AttributeDef("out_dtype", AttrKind.DTYPE, "the dtype of the result")
ACCUMULATOR_FIELD = Field("accum_dtype", FieldKind.OPTIONAL_DTYPE)
OUTPUT_FIELD = Field("out_dtype", FieldKind.OPTIONAL_DTYPE)

#: What accumulators are computed in where that is not their own dtype: sums wrap, or are rounded, at the end.
_COMPUTED = {DType.SI4: DType.SI8, DType.UI4: DType.UI8}

POLICY = (
    "Where PTIR leaves `accum_dtype` out, floats narrower than f32 accumulate in f32 and all others in their "
    "own dtype; where it leaves `out_dtype` out, the result has the input's dtype."
)
NARROW = "An accumulator narrower than f32 is one of f32, whose total is rounded to it: once, at the end."


def default_accumulator(dtype: DType) -> DType:
    """Return what elements of ``dtype`` accumulate in where nothing is said.

    Example:
        >>> default_accumulator(DType.BF16), default_accumulator(DType.SI8)
        (DType.F32, DType.SI8)
    """
    return DType.F32 if dtype.is_float and dtype.bits < 32 else dtype


def computed_dtype(accumulator: DType) -> DType:
    """Return the dtype that compiled code accumulates in, which holds all that ``accumulator`` does."""
    return _COMPUTED.get(accumulator, default_accumulator(accumulator))


def holds(wide: DType, narrow: DType) -> bool:
    """Return whether the float ``wide`` has all numbers of the float ``narrow``."""
    return wide is narrow or (wide.is_float and wide.bits >= 32 and wide.bits > narrow.bits)
