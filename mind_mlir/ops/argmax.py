"""ArgMax: where the greatest element of an axis lies (ptir-v0.4.md, "Reductions and argmax")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mind_mlir.ir.types import DType, TensorType, format_shape
from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_reductions as hlo
from mind_mlir.ops.accumulators import identity_number
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.axes import NEGATIVE_AXIS, require_axis
from mind_mlir.ops.contract import same_fields
from mind_mlir.ops.opdef import (
    INTEGERS,
    NO_ORDER,
    ORDERED,
    AttributeDef,
    Example,
    NotDifferentiable,
    OpDef,
    OperandDef,
)
from mind_mlir.ops.open_sums import finding
from mind_mlir.ops.reassociation import reshape
from mind_mlir.ops.reductions import reduced_shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.attributes import Array, AttributeValue
    from mind_mlir.ir.types import Dim
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext


def _normalize(attributes: Mapping[str, AttributeValue], result: TensorType) -> Mapping[str, AttributeValue]:
    rank = result.rank + (0 if attributes["keepdims"] else 1)
    return {**attributes, "axis": cast("int", attributes["axis"]) % rank}


def _type(context: TypeContext) -> TensorType:
    (operand,), attributes = context.operands, context.attributes
    axis = require_axis(context, operand.rank)
    check_index_dtype(context, "output_dtype", operand.shape[axis])
    if operand.shape[axis] == 0:
        context.fail(
            "E3006",
            f"ArgMax along axis {axis}, whose extent is 0: there is no greatest element",
            attribute="axis",
            notes=(f"the operand has shape {format_shape(operand.shape)}",),
            help="choose an axis with elements",
            dimension=axis,
            extent=0,
        )
    return TensorType(
        attributes["output_dtype"], reduced_shape(operand.shape, (axis,), attributes["keepdims"])
    )


def check_index_dtype(context: TypeContext, attribute: str, extent: Dim) -> None:
    """Report E2005 unless ``attribute`` names a dtype of indices that has those of an axis of ``extent``."""
    usable = INTEGERS if _fits(extent) else (DType.SI64,)
    lack = f"along an axis of {extent} elements does not give indices of"
    if not context.allows_dtype(attribute, usable, lack):
        context.stop_if_reported()


def _fits(extent: Dim) -> bool:
    """Return whether i32 has all indices of an axis of ``extent``, and that itself."""
    return not isinstance(extent, int) or extent < 2**31


def _evaluate(context: EvalContext) -> Array:
    (operand,), result = context.operands, context.result_type
    axis = context.attributes["axis"]
    if 0 in result.shape:
        return np.zeros(result.extents, result.dtype.numpy)
    found = np.argmax(numbers.widened(operand), axis=axis, keepdims=context.attributes["keepdims"])
    return np.asarray(found, result.dtype.numpy)


def _lower(context: LoweringContext) -> Any:
    (operand,), (source,), result = context.operands, context.operand_types, context.result_type
    if result.element_count == 0:
        return context.empty(result)
    axis = context.attributes["axis"] % source.rank
    values = source.with_shape(reduced_shape(source.shape, (axis,), keepdims=False))
    arithmetic = context.arithmetic(source.dtype)
    lowest = context.filled(values, identity_number("Max", source.dtype))
    greatest = context.reduce(operand, lowest, [axis], lambda x, so_far: arithmetic.maximum(so_far, x))
    found = _first(context, greatest, axis, values)
    positions = values.with_dtype(result.dtype)
    if result.dtype is DType.SI32 or not _fits(source.extents[axis]):
        return reshape(context, found, positions, result.extents)
    arith, wide = context.mlir.arith, context.element(result.dtype)
    found = context.elementwise(lambda index: arith.extsi(wide, index), [found], positions)
    return reshape(context, found, positions, result.extents)


def _first(context: LoweringContext, greatest: Any, axis: int, values: TensorType) -> Any:
    """Append the least index along ``axis`` whose element is ``greatest``, or NaN: only then that is NaN.

    Two passes, the greatest number and then its first place, run in vectors where one of pairs would not.
    """
    mlir, source = context.mlir, context.operand_types[0]
    arith, affine = mlir.arith, mlir.ir.AffineMap
    dtype = DType.SI32 if _fits(source.extents[axis]) else DType.SI64
    arithmetic = context.arithmetic(source.dtype)
    kept = [mlir.ir.AffineDimExpr.get(dim) for dim in range(source.rank) if dim != axis]
    reduced = affine.get(source.rank, 0, kept)

    def body(x: Any, most: Any, least: Any) -> Any:
        hit = arithmetic.compare("Equal", x, most)
        if source.dtype.is_float:
            hit = arith.ori(hit, arithmetic.compare("NotEqual", x, x))
        index = arith.index_cast(context.element(dtype), mlir.linalg.IndexOp(axis).result)
        nowhere = context.scalar(source.extents[axis], dtype)
        return arith.minsi(least, arith.select(hit, index, nowhere))

    (found,) = context.generic(
        [context.operands[0], greatest],
        [affine.get_identity(source.rank), reduced, reduced],
        [context.filled(values.with_dtype(dtype), source.extents[axis])],
        ["reduction" if dim == axis else "parallel" for dim in range(source.rank)],
        body,
    )
    return found


def _form(axis: int, dtype: DType, keepdims: bool = False) -> dict[str, Any]:
    return {"axis": axis, "keepdims": keepdims, "output_dtype": dtype}


_ATTRIBUTES = (
    AttributeDef("axis", AttrKind.I64, "the axis to search"),
    AttributeDef("keepdims", AttrKind.BOOL, "whether the axis stays with extent 1", default=False),
    AttributeDef("output_dtype", AttrKind.DTYPE, "the dtype of the indices, i32 or i64"),
)

OPERATIONS = (
    OpDef(
        opcode="ArgMax",
        mnemonic="argmax",
        summary="Computes the index of the greatest element along an axis.",
        description="`result[...]` is the least index along `axis` at which the greatest element lies. The "
        "axis is removed from the shape, or becomes 1 with `keepdims=true`. The result is of `output_dtype`, "
        "i32 or i64 (E2005). An axis outside the rank is E3004, one of extent 0 is E3006.",
        spec="ptir-v0.4.md, Reductions and argmax",
        operands=(OperandDef("input", ORDERED),),
        attributes=_ATTRIBUTES,
        type_rule=_type,
        evaluate=_evaluate,
        derivative=NotDifferentiable("indices are piecewise constant", constant=True),
        open_axes=finding,
        lower=_lower,
        stablehlo=hlo.arg_max,
        normalize=_normalize,
        choices=(
            NEGATIVE_AXIS,
            "NaN counts as greater than all numbers, as numpy has it: the result is then the index of the "
            "first NaN. -0.0 equals 0.0.",
            "Along an axis of 2^31 elements or more, `output_dtype` has to be i64 (E2005).",
        ),
        extension=True,
        never=(NO_ORDER,),
        contract=same_fields("ArgMax", _ATTRIBUTES),
        examples=(
            Example(("T[5, 37]",), _form(1, DType.SI32)),
            Example(("T[5, 37]",), _form(-1, DType.SI64, keepdims=True)),
            Example(("T[37, 5]",), _form(0, DType.SI64)),
            Example(("T[2, 3, 4]",), _form(1, DType.SI32)),
            Example(("T[131]",), _form(0, DType.SI32), "to a scalar"),
            Example(("T[3, 1]",), _form(1, DType.SI64), "one element each"),
            Example(("T[0, 3]",), _form(1, DType.SI64), "no rows"),
        ),
    ),
)
