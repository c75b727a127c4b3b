"""ArgSort: where the elements of an axis lie in order, by one key or several (StableHLO's sort)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, TensorType, format_shape
from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_reductions as hlo
from mind_mlir.ops.argmax import check_index_dtype
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.axes import NEGATIVE_AXIS, counted_from_front, require_axis
from mind_mlir.ops.dims_rules import along_axis
from mind_mlir.ops.opdef import (
    NO_ORDER,
    ORDERED,
    AttributeDef,
    Example,
    NotDifferentiable,
    OpDef,
    OperandDef,
)
from mind_mlir.ops.open_rules import sorting
from mind_mlir.ops.reassociation import reshape, transposed
from mind_mlir.ops.sort_keys import SortKey
from mind_mlir.ops.sort_rows import LONGEST, SortRows

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext


def _type(context: TypeContext) -> TensorType:
    first, *others = context.operands
    axis = require_axis(context, first.rank)
    check_index_dtype(context, "indices_dtype", first.shape[axis])
    if first.extents[axis] > LONGEST:
        context.fail(
            "E3006",
            f"ArgSort along axis {axis}, whose extent is {first.extents[axis]}, beyond {LONGEST}",
            attribute="axis",
            help="sort shorter rows",
            dimension=axis,
            extent=first.extents[axis],
        )
    for place, other in enumerate(others, start=1):
        if other.shape != first.shape:
            context.fail(
                "E3003",
                f"the keys of ArgSort have shapes {format_shape(first.shape)} and "
                f"{format_shape(other.shape)}",
                operand=place,
                help="give all keys one shape",
                dimension=place,
                extents=(first.shape, other.shape),
            )
    return TensorType(context.attributes["indices_dtype"], first.shape)


def _evaluate(context: EvalContext) -> Array:
    attributes = context.attributes
    axis = attributes["axis"] % context.operands[0].ndim
    keys = [_ranks(key, total=attributes["total_order"]) for key in context.operands]
    if attributes["descending"]:
        keys = [-key for key in keys]
    order = np.lexsort(keys[::-1], axis=axis)
    return np.asarray(order, context.result_type.dtype.numpy)


def _ranks(key: Array, *, total: bool) -> Array:
    """Return how many different elements are less than each one."""
    values = numbers.widened(key)
    if total and numbers.dtype_of(key).is_float:
        bits = key.view(f"i{key.itemsize}").astype(np.int64)
        values = np.where(bits < 0, -(bits & (2 ** (8 * key.itemsize - 1) - 1)) - 1, bits)
    # All NaNs are equal, and greater than all numbers; -0.0 equals 0.0.
    return np.asarray(np.unique(values, return_inverse=True)[1], np.int64).reshape(key.shape)


def _lower(context: LoweringContext) -> Any:
    result = context.result_type
    if result.element_count == 0:
        return context.empty(result)
    axis = context.attributes["axis"] % result.rank
    keys = [SortKey(context, number, axis) for number in range(len(context.operands))]
    last = (*(place for place in range(result.rank) if place != axis), axis)
    moved = result.with_shape(tuple(result.extents[place] for place in last))
    rows = math.prod(moved.extents[:-1]), moved.extents[-1]
    order = SortRows(context, keys, rows).emit()
    order = reshape(context, order, result.with_shape(rows), moved.extents)
    return transposed(context, order, moved, tuple(last.index(place) for place in range(result.rank)))


def _form(axis: int, dtype: DType, *, descending: bool = False, total: bool = False) -> dict[str, Any]:
    return {"axis": axis, "descending": descending, "total_order": total, "indices_dtype": dtype}


OPERATIONS = (
    OpDef(
        opcode="ArgSort",
        summary="Computes where the elements of an axis lie in order: the first one, the second, and so on.",
        description="The result has the shape of the first key. Along `axis` it holds the indices of the "
        "elements in ascending order, or with `descending` from the greatest one down; where elements of the "
        "first key are equal, the next one decides, and where all are, the smaller index comes first. So "
        "GatherElements of any tensor of that shape with the result sorts it together with the keys, and has "
        "the gradient that sorting has. All keys have one shape (E3003) with the axis (E3004); there is at "
        "least one (E2007). Rows have less than 2^31 elements (E3006). `indices_dtype` is i32 or i64 "
        "(E2005).",
        spec="StableHLO specification, sort",
        operands=(OperandDef("key", ORDERED), OperandDef("keys", ORDERED, variadic=True)),
        attributes=(
            AttributeDef("axis", AttrKind.I64, "the axis to sort along"),
            AttributeDef("descending", AttrKind.BOOL, "whether the greatest come first", default=False),
            AttributeDef("total_order", AttrKind.BOOL, "whether floats of all bits differ", default=False),
            AttributeDef("indices_dtype", AttrKind.DTYPE, "the dtype of the indices, i32 or i64"),
        ),
        type_rule=_type,
        evaluate=_evaluate,
        derivative=NotDifferentiable("indices carry no gradient", constant=True),
        dims=along_axis,
        open_axes=sorting,
        lower=_lower,
        stablehlo=hlo.arg_sort,
        normalize=counted_from_front,
        same_dtype=False,
        choices=(
            NEGATIVE_AXIS,
            "PTIR has no such operation; StableHLO's sort with the usual comparators is this and "
            "GatherElements.",
            "Without `total_order`, -0.0 equals 0.0, and NaNs equal one another and are greater than all "
            "numbers. With it -NaN < -Inf < ... < -0.0 < 0.0 < ... < Inf < NaN, and NaNs are in the order of "
            "their bits.",
        ),
        extension=True,
        never=(NO_ORDER,),
        examples=(
            Example(("T[11]", "T[11]"), _form(0, DType.SI32), "the second key decides"),
            Example(("T[5, 37]",), _form(1, DType.SI32)),
            Example(("T[37, 5]",), _form(0, DType.SI64, descending=True), "another axis, the greatest first"),
            Example(("T[131]",), _form(0, DType.SI32, total=True)),
            Example(("T[2, 67]",), _form(-1, DType.SI64)),
            Example(("T[3, 71]", "f32[3, 71]"), _form(1, DType.SI32, descending=True), "keys of two dtypes"),
            Example(("T[3, 1]",), _form(1, DType.SI32), "one element each"),
            Example(("T[0, 3]",), _form(1, DType.SI64), "no rows"),
            Example(("T[3, 0]",), _form(1, DType.SI64), "rows of no elements"),
        ),
    ),
)
