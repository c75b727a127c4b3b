"""SegmentReduce: rows that share a number, reduced to one (ptir-v0.4.md, extensions)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops import stablehlo_indexing as hlo
from mind_mlir.ops.accumulators import (
    ACCUMULATOR,
    NARROW,
    POLICY,
    Accumulation,
    check_reduction,
    combination,
    extreme_vjp,
    holds,
    identity,
    identity_number,
)
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.complex_parts import by_parts
from mind_mlir.ops.contract import same_fields
from mind_mlir.ops.conversion import cast_array
from mind_mlir.ops.gather_scatter import ADDITIONS, scatter_rows
from mind_mlir.ops.opdef import (
    COMPLEX,
    INTEGERS,
    ORDERED,
    AttributeDef,
    Domain,
    Example,
    OpDef,
    OperandDef,
    Rounding,
)
from mind_mlir.ops.reduce import reduce_rows
from mind_mlir.ops.windows import clamped_position, rows

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext

_KINDS = ("Sum", "Max")


def _type(context: TypeContext) -> TensorType:
    values, ids = context.operands
    if values.rank == 0 or ids.rank != 1:
        wrong = 0 if values.rank == 0 else 1
        context.fail(
            "E3002",
            f"SegmentReduce needs {('values of rank 1 or more', 'segment ids of rank 1')[wrong]}, found rank "
            f"{context.operands[wrong].rank}",
            operand=wrong,
            help="there is one segment id for each row of the values",
            expected=("at least 1", 1)[wrong],
            found=context.operands[wrong].rank,
        )
    if values.shape[0] != ids.shape[0]:
        context.report(
            "E3003",
            f"SegmentReduce of {values.shape[0]} rows with {ids.shape[0]} segment ids",
            operand=1,
            notes=(f"the values have type {values}", f"the segment ids have type {ids}"),
            help="there must be one segment id for each row of the values",
            dimension=0,
            extents=(values.shape[0], ids.shape[0]),
        )
    count = context.attributes["num_segments"]
    if count < 0:
        context.report(
            "E3006",
            f"SegmentReduce into {count} segments",
            attribute="num_segments",
            help="give a number of segments from 0 on",
            dimension=0,
            extent=count,
        )
    check_reduction(context, context.attributes["kind"], ORDERED)
    return values.with_shape((count, *values.shape[1:]))


def _evaluate(context: EvalContext) -> Array:
    (values, ids), attributes, result = context.operands, context.attributes, context.result_type
    rows({}, [result.extents, ids.shape]).require(context, ids)
    accumulator, kind = attributes["accum_dtype"], attributes["kind"]
    terms = cast_array(values, accumulator)
    total = np.full(result.extents, identity(kind, accumulator), accumulator.numpy)
    for segment in np.unique(ids):
        # Row after row of the segment, for each element.
        chosen = terms[ids == segment]
        columns = chosen.reshape(chosen.shape[0], -1).T
        total[segment] = reduce_rows(columns, kind, accumulator).reshape(total.shape[1:])
    return cast_array(total, result.dtype)


def _vjp(context: VjpContext) -> Sequence[Value | None]:
    values, ids = context.operands
    if not context.attributes["accum_dtype"].is_float or not context.needs[0]:
        return None, None
    if 0 in context.result.shape or 0 in values.shape:
        return context.zeros(values.type), None
    if context.attributes["kind"] == "Sum":
        return context.emit("Take", context.cotangent, ids), None
    return _extreme_vjp(context, values, ids), None


def _extreme_vjp(context: VjpContext, values: Value, ids: Value) -> Value:
    attributes, dtype = context.attributes, values.type.dtype
    greatest = context.result
    if not holds(attributes["accum_dtype"], dtype):
        greatest = context.emit("SegmentReduce", values, ids, **{**attributes, "accum_dtype": dtype})

    def total(ones: Value) -> Value:
        form = {**attributes, "kind": "Sum", "accum_dtype": ones.type.dtype}
        return context.emit("SegmentReduce", ones, ids, **form)

    return extreme_vjp(context, values, greatest, lambda x: context.emit("Take", x, ids), total)


def _lower(context: LoweringContext) -> Any:
    result = context.result_type
    rows({}, [result.extents, context.operand_types[1].extents]).numbers(context)
    return by_parts(context, _reduced) if result.dtype in COMPLEX else _reduced(context)


def _reduced(context: LoweringContext) -> Any:
    values, ids = context.operands
    values_type, ids_type = context.operand_types
    result, attributes = context.result_type, context.attributes
    kind = attributes["kind"]
    dtypes = Accumulation(context, values_type.dtype, attributes["accum_dtype"], result.dtype)
    if kind == "Sum":  # the greatest of no rows is one of the accumulator
        dtypes = dtypes.of_some(kind, values_type.extents[0])
    if result.element_count == 0:
        return context.empty(result)
    if values_type.element_count == 0:
        return dtypes.nothing(kind, result)
    total_type = result.with_dtype(dtypes.computed)

    def row(at: Any) -> Any:
        return clamped_position(context, context.mlir.tensor.extract(ids, [at]), result.extents[0] - 1)

    terms = dtypes.terms(values, values_type)
    start = context.filled(total_type, identity_number(kind, dtypes.accumulator))
    inner = replace(
        context,
        operands=(start, ids, terms),
        operand_types=(total_type, ids_type, values_type.with_dtype(dtypes.computed)),
        result_type=total_type,
    )
    width = values_type.element_count // values_type.extents[0]
    combine = combination(context, kind, dtypes.computed)
    return dtypes.result(scatter_rows(inner, row, values_type.extents[0], width, combine), result)


def _form(kind: str, count: int, dtype: DType) -> dict[str, Any]:
    flags = {"indices_are_sorted": False, "unique": False}
    return {"kind": kind, "num_segments": count, "accum_dtype": dtype, **flags}


_ATTRIBUTES = (
    AttributeDef("kind", AttrKind.ENUM, "what is computed", choices=_KINDS),
    AttributeDef("num_segments", AttrKind.I64, "how many segments there are"),
    ACCUMULATOR,
    AttributeDef("indices_are_sorted", AttrKind.BOOL, "whether the ids are said to ascend", default=False),
    AttributeDef("unique", AttrKind.BOOL, "whether the ids are said to differ", default=False),
)

OPERATIONS = (
    OpDef(
        opcode="SegmentReduce",
        mnemonic="segment_reduce",
        summary="Computes sums or the greatest elements of rows by segment.",
        description="`result[s]` is the sum, or elementwise the greatest, of the rows `values[i]` whose "
        "`segment_ids[i]` is `s`. Elements are cast to `accum_dtype`, reduced there, and the result is cast "
        "back to the dtype of the values. A segment without rows is 0, or for Max -Inf, or the least number "
        "of an integer dtype. The ids have rank 1 (E3002), one for each row (E3003), dtype i32 or i64 "
        "(E4011) and numbers in `[0, num_segments)` (E6001).",
        spec="ptir-v0.4.md, Randomness, top-k, segments, quantization",
        operands=(
            OperandDef("values", ORDERED + COMPLEX),
            OperandDef("segment_ids", INTEGERS, dtype_code="E4011", domain=Domain.POSITION),
        ),
        attributes=_ATTRIBUTES,
        type_rule=_type,
        evaluate=_evaluate,
        derivative=_vjp,
        lower=_lower,
        stablehlo=hlo.segment_reduce,
        same_dtype=False,
        rounding=Rounding.ACCUMULATING,
        terms=lambda shapes, attributes: max(shapes[0][0], 1) if attributes["kind"] == "Sum" else 1,
        choices=(
            POLICY,
            NARROW,
            ADDITIONS.replace("`updates`", "`values`"),
            "Nothing relies on `indices_are_sorted` and `unique`: where what they say is not so, the result "
            "is the same as without them.",
            "If an element is NaN, so is the greatest one; -0.0 is less than +0.0. Integers wrap around.",
            "Of truth values Max says whether any is true. Sum accumulates in numbers (E2005 in i1), and is "
            "true where that is not 0.",
            "Complex numbers have sums only (E2005), which accumulate in complex numbers.",
            "The gradient of Max is shared equally among the elements of a segment that equal the result; "
            "where that is NaN, among those that are.",
        ),
        extension=True,
        contract=same_fields("SegmentReduce", _ATTRIBUTES),
        examples=(
            Example(("T[7, 3]", "i64[7]"), _form("Sum", 7, DType.F64)),
            Example(("T[13]", "i32[13]"), _form("Sum", 20, DType.F64), "rows of one element"),
            Example(("T[1, 37]", "i32[1]"), _form("Max", 1, DType.F64), "one segment"),
            Example(("f32[5, 2, 9]", "i32[5]"), _form("Sum", 5, DType.F32)),
            *(Example(("i32[5, 4]", "i64[5]"), _form(kind, 6, DType.SI32)) for kind in _KINDS),
            Example(("i64[5]", "i64[5]"), _form("Max", 5, DType.SI64)),
            Example(("i1[5, 3]", "i32[5]"), _form("Max", 6, DType.I1), "whether any is true"),
            Example(("cf32[7, 3]", "i64[7]"), _form("Sum", 8, DType.CF32)),
            Example(("cf64[7]", "i32[7]"), _form("Sum", 7, DType.CF64)),
            Example(("f64[0, 3]", "i64[0]"), _form("Sum", 2, DType.F64), "no rows"),
        ),
    ),
)
