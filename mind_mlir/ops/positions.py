"""Reading rows and elements at positions known at run time (ptir-v0.4.md, "Indexing ops")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import format_shape
from mind_mlir.ops import stablehlo_indexing as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.axes import NEGATIVE_AXIS, counted_from_front, require_axis
from mind_mlir.ops.bounds import check_positions, clamped_position, require_positions
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.indexing import gather_rows, rows_type
from mind_mlir.ops.opdef import INTEGERS, MOVABLE, AttributeDef, Domain, Example, OpDef, OperandDef
from mind_mlir.ops.scatter_windows import row_form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext


def _evaluate_take(context: EvalContext) -> Array:
    operand, indices = context.operands
    require_positions(context, indices, operand.shape, 0)
    return np.asarray(operand[indices])


def _take_vjp(context: VjpContext) -> Sequence[Value | None]:
    operand, indices = context.operands
    form = row_form(operand.type.rank, indices.type.rank, from_end=False)
    return context.emit("ScatterAdd", context.zeros(operand.type), indices, context.cotangent, **form), None


def _lower_take(context: LoweringContext) -> Any:
    operand_type, indices_type = context.operand_types
    check_positions(context, context.operands[1], indices_type, operand_type.extents, 0)
    return gather_rows(context, lambda index: clamped_position(context, index, operand_type.extents[0] - 1))


def require_along(context: TypeContext, axis: int, index: int, what: str) -> None:
    """Report E3002 or E3003 unless operand ``index`` has the shape of the first one, but along ``axis``."""
    first, found = context.operands[0], context.operands[index]
    notes = (f"operand 0 has type {first}", f"{what} has type {found}")
    if found.rank != first.rank:
        context.fail(
            "E3002",
            f"the {what} of {context.opcode} have rank {found.rank}, its input rank {first.rank}",
            operand=index,
            notes=notes,
            help="give both the same rank; Take reads and ScatterAdd adds to whole rows",
            expected=first.rank,
            found=found.rank,
        )
    for dimension, (left, right) in enumerate(zip(first.shape, found.shape, strict=True)):
        if left != right and dimension != axis:
            context.report(
                "E3003",
                f"the {what} of {context.opcode} have shape {format_shape(found.shape)}, which differs from "
                f"{format_shape(first.shape)} in dimension {dimension}",
                operand=index,
                notes=notes,
                help=f"only axis {axis} may have another extent",
                dimension=dimension,
                extents=(left, right),
            )
    context.stop_if_reported()


def along_axis(indices: Array, axis: int) -> tuple[Array, ...]:
    """Return, as numpy indexes, each position of ``indices`` with its number on ``axis`` taken from there."""
    places: list[Array] = list(np.indices(indices.shape, sparse=True))
    places[axis] = indices
    return tuple(places)


def _gather_elements_type(context: TypeContext) -> TensorType:
    operand, indices = context.operands
    axis = require_axis(context, operand.rank)
    require_along(context, axis, 1, "indices")
    return operand.with_shape(indices.shape)


def _evaluate_gather_elements(context: EvalContext) -> Array:
    operand, indices = context.operands
    axis: int = context.attributes["axis"] % operand.ndim
    require_positions(context, indices, operand.shape, axis)
    return np.asarray(operand[along_axis(indices, axis)])


def _gather_elements_vjp(context: VjpContext) -> Sequence[Value | None]:
    operand, indices = context.operands
    return (
        context.emit(
            "ScatterReduce",
            context.zeros(operand.type),
            indices,
            context.cotangent,
            axis=context.attributes["axis"],
            reduce="Add",
        ),
        None,
    )


def _lower_gather_elements(context: LoweringContext) -> Any:
    operand, indices = context.operands
    operand_type, indices_type = context.operand_types
    axis: int = context.attributes["axis"] % operand_type.rank
    check_positions(context, indices, indices_type, operand_type.extents, axis)
    result = context.result_type
    if operand_type.element_count == 0 or result.element_count == 0:
        return context.filled(result, 0)  # there is nothing to read
    mlir, last = context.mlir, operand_type.extents[axis] - 1

    def body(index: Any, _: Any) -> Any:
        place = [mlir.linalg.IndexOp(dimension).result for dimension in range(result.rank)]
        place[axis] = clamped_position(context, index, last)
        return mlir.tensor.extract(operand, place)

    identity = mlir.ir.AffineMap.get_identity(result.rank)
    kinds = ["parallel"] * result.rank
    (gathered,) = context.generic([indices], [identity] * 2, [context.empty(result)], kinds, body)
    return gathered


_BOUNDS = (
    "Indices count from 0: a negative one, like one beyond the end, is E6001 when the function runs, and no "
    "result is returned. The diagnostic names the least index when that is out of bounds, else the greatest."
)
_INDICES = OperandDef("indices", INTEGERS, dtype_code="E4011", domain=Domain.POSITION)

OPERATIONS = (
    OpDef(
        opcode="Take",
        mnemonic="take",
        summary="Reads rows of a tensor at given positions.",
        description="For `input` of shape `[N, ...]` the result has the shape of `indices` followed by that "
        "of a row, and `result[i..., d...] = input[indices[i...], d...]`. `input` has rank 1 or more "
        "(E3002), `indices` dtype i32 or i64 (E4011) and numbers in `[0, N)` (E6001).",
        spec="ptir-v0.4.md, Take",
        operands=(OperandDef("input", MOVABLE), _INDICES),
        type_rule=rows_type,
        evaluate=_evaluate_take,
        derivative=_take_vjp,
        lower=_lower_take,
        stablehlo=hlo.take,
        same_dtype=False,
        choices=(_BOUNDS,),
        extension=True,
        contract=Contract("Take"),
        examples=(
            Example(("T[5, 3]", "i64[4]")),
            Example(("T[5, 37]", "i32[2, 2]"), note="the shape of the indices comes first"),
            Example(("T[5]", "i64[7]"), note="rows of rank 0"),
            Example(("T[5, 2, 3]", "i32[]"), note="a single row"),
            Example(("T[1, 17]", "i64[3]")),
            Example(("T[5, 3]", "i64[0]"), note="no rows"),
        ),
    ),
    OpDef(
        opcode="GatherElements",
        mnemonic="gather_elements",
        summary="Reads single elements along an axis at given positions.",
        description="The result has the shape of `indices`; its element at an index is that of `input` at "
        "the same index with `indices[index]` on `axis`. `indices` have the rank of `input` (E3002), which "
        "`axis` lies in (E3004), and its extents but along `axis` (E3003), dtype i32 or i64 (E4011) and "
        "numbers in `[0, input.shape[axis])` (E6001). PTIR calls it Gather.",
        spec="ptir-v0.4.md, Gather",
        operands=(OperandDef("input", MOVABLE), _INDICES),
        attributes=(AttributeDef("axis", AttrKind.I64, "the axis that the indices are positions on"),),
        type_rule=_gather_elements_type,
        evaluate=_evaluate_gather_elements,
        derivative=_gather_elements_vjp,
        lower=_lower_gather_elements,
        stablehlo=hlo.gather_elements,
        normalize=counted_from_front,
        same_dtype=False,
        choices=(NEGATIVE_AXIS, _BOUNDS),
        extension=True,
        contract=Contract("Gather", fields=(Field("axis", FieldKind.INTEGER),)),
        examples=(
            Example(("T[5, 3]", "i64[4, 3]"), {"axis": 0}),
            Example(("T[3, 5]", "i32[3, 37]"), {"axis": -1}, "counted from the end"),
            Example(("T[2, 7, 3]", "i64[2, 2, 3]"), {"axis": 1}),
            Example(("T[5]", "i64[7]"), {"axis": 0}),
            Example(("T[1, 1]", "i32[1, 1]"), {"axis": 0}),
            Example(("T[2, 5]", "i64[2, 0]"), {"axis": 1}, "nothing"),
        ),
    ),
)
