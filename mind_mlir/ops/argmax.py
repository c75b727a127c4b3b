"""ArgMax: where the greatest element of an axis lies (ptir-v0.4.md, "Reductions and argmax")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mind_mlir.ir.types import Dim, DType, TensorType, format_shape
from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_reductions as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.axes import NEGATIVE_AXIS, require_axis
from mind_mlir.ops.best_elements import fits_i32, place_of_best
from mind_mlir.ops.contract import same_fields
from mind_mlir.ops.dims_rules import along_axis
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
    from mind_mlir.ir.attributes import Array, AttributeValue
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
    usable = INTEGERS if fits_i32(extent) else (DType.SI64,)
    lack = f"along an axis of {extent} elements does not give indices of"
    if not context.allows_dtype(attribute, usable, lack):
        context.stop_if_reported()


def _evaluate(context: EvalContext) -> Array:
    (operand,), result = context.operands, context.result_type
    axis = context.attributes["axis"]
    if 0 in result.shape:
        return np.zeros(result.extents, result.dtype.numpy)
    found = np.argmax(numbers.widened(operand), axis=axis, keepdims=context.attributes["keepdims"])
    return np.asarray(found, result.dtype.numpy)


def _lower(context: LoweringContext) -> Any:
    (source,), result = context.operand_types, context.result_type
    if result.element_count == 0:
        return context.empty(result)
    axis = context.attributes["axis"] % source.rank
    kept = reduced_shape(source.shape, (axis,), keepdims=False)
    place = place_of_best(context, source, axis, result.dtype)
    return reshape(context, place, TensorType(result.dtype, kept), result.extents)


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
        dims=along_axis,
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
