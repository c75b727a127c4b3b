"""The dtypes that reductions accumulate in and give (ptir-v0.4.md, "Accumulator/output dtype policy")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contract import Field, FieldKind
from mind_mlir.ops.conversion import converted
from mind_mlir.ops.opdef import COMPLEX, AttributeDef

if TYPE_CHECKING:
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import TypeContext
    from mind_mlir.ops.opdef import DTypeSet

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
    return DType.F32 if dtype.is_narrow else dtype


def computed_dtype(accumulator: DType) -> DType:
    """Return the dtype that compiled code accumulates in, which holds all that ``accumulator`` does."""
    return _COMPUTED.get(accumulator, default_accumulator(accumulator))


def to_accumulator(context: LoweringContext, element: Any, source: DType, accumulator: DType) -> Any:
    """Emit an element of ``source`` as one of ``accumulator``, in the dtype that is computed in."""
    exact = converted(context, element, source, accumulator)
    return converted(context, exact, accumulator, computed_dtype(accumulator))


def from_accumulator(context: LoweringContext, total: Any, accumulator: DType, output: DType) -> Any:
    """Emit what was computed as an element of ``accumulator``, and that as one of ``output``."""
    return converted(context, context.arithmetic(accumulator).rounded(total), accumulator, output)


def holds(wide: DType, narrow: DType) -> bool:
    """Return whether the float ``wide`` has all numbers of the float ``narrow``."""
    return wide is narrow or (wide.is_float and wide.bits >= 32 and wide.bits > narrow.bits)


def check_reduction(context: TypeContext, kind: str, dtypes: DTypeSet) -> None:
    """Report an order that complex numbers lack, and the accumulators that do not go with the input: E2005.

    Args:
        context: An operation that reduces its first operand.
        kind: Sum, Max or Min.
        dtypes: What real numbers and truth values are accumulated in; complex numbers are among themselves.
    """
    found = context.operands[0].dtype
    if found in COMPLEX and kind != "Sum":
        listing = ", ".join(each.core_name for each in dtypes if each in context.profile.dtypes)
        context.fail(
            "E2005",
            f"{context.opcode} has no {kind} of {found.core_name}: complex numbers have no order",
            operand=0,
            help=f"add them (Sum), or reduce one of: {listing}",
            found=found.core_name,
            allowed=listing,
        )
    check_accumulator(context, kind, COMPLEX if found in COMPLEX else dtypes)


def check_accumulator(context: TypeContext, kind: str, dtypes: DTypeSet) -> None:
    """Report the dtypes among ``accum_dtype`` and ``out_dtype`` that ``kind`` does not go with: E2005."""
    if "accum_dtype" in context.attributes:
        adding = [each for each in dtypes if _goes_with(kind, each)]
        context.allows_dtype("accum_dtype", adding, f"does not accumulate a {kind} in")
    if "out_dtype" in context.attributes:
        context.allows_dtype("out_dtype", dtypes)
    context.stop_if_reported()


def _goes_with(kind: str, dtype: DType) -> bool:
    """Return whether numbers of ``dtype`` can be added, or have an order."""
    return dtype.kind is not (DTypeKind.BOOL if kind == "Sum" else DTypeKind.COMPLEX)


def combination(context: LoweringContext, kind: str, dtype: DType) -> Any:
    """Return what combines two scalars of ``dtype``."""
    arithmetic = context.arithmetic(dtype)
    return {"Sum": arithmetic.add, "Max": arithmetic.maximum, "Min": arithmetic.minimum}[kind]
