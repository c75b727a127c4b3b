"""TopK: the greatest or least elements of an axis, in order, and where they lie (ptir-v0.4.md, extensions).

Lowering: one element is found in one pass, as ArgMax finds it, but for the least float, which no NaN is.
For more than few elements the indices of each row are sorted, as ArgSort does it, and so they are in C. For
few, each row goes through a list of the best ones so far (`mind_mlir/ops/best_lists.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_reductions as hlo
from mind_mlir.ops.argmax import check_index_dtype
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.axes import NEGATIVE_AXIS, counted_from_front, require_axis
from mind_mlir.ops.best_elements import best_element
from mind_mlir.ops.best_lists import Lists, compared
from mind_mlir.ops.contract import same_fields
from mind_mlir.ops.dims_rules import along_axis
from mind_mlir.ops.opdef import NO_ORDER, ORDERED, AttributeDef, Example, OpDef, OperandDef
from mind_mlir.ops.open_rules import untouched
from mind_mlir.ops.reassociation import reshape, transposed
from mind_mlir.ops.sort_keys import SortKey
from mind_mlir.ops.sort_rows import LONGEST, SortRows

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext


#: The longest list, which vectors hold: a longer one takes longer than sorting where each element is better
#: than the last.
LONGEST_LIST = 64


def _type(context: TypeContext) -> tuple[TensorType, ...]:
    (operand,), attributes = context.operands, context.attributes
    axis = require_axis(context, operand.rank)
    extent, k = operand.shape[axis], attributes["k"]
    check_index_dtype(context, "indices_dtype", extent)
    if k < 0 or (isinstance(extent, int) and k > extent):
        context.fail(
            "E4123",
            f"TopK takes {k} elements along axis {axis}, which has {extent}",
            attribute="k",
            notes=(f"the operand has type {operand}",),
            help=f"k must lie in [0, {extent}]",
            dimension=axis,
            extents=(k, extent),
        )
    if k > LONGEST_LIST and isinstance(extent, int) and extent > LONGEST:
        context.fail(
            "E3006",
            f"TopK of {k} elements along axis {axis}, whose extent is {extent}, beyond {LONGEST}",
            attribute="axis",
            help=f"take at most {LONGEST_LIST} elements, or of shorter rows",
            dimension=axis,
            extent=extent,
        )
    shape = tuple(k if place == axis else each for place, each in enumerate(operand.shape))
    return operand.with_shape(shape), TensorType(attributes["indices_dtype"], shape)


def _evaluate(context: EvalContext) -> tuple[Array, ...]:
    (operand,), attributes = context.operands, context.attributes
    axis = attributes["axis"] % operand.ndim
    keys = numbers.widened(operand)
    if attributes["largest"]:
        # A stable sort of the reverse, read backwards, has equal elements in order.
        reverse = np.flip(keys, axis)
        order = np.flip(np.argsort(reverse, axis=axis, kind="stable"), axis)
        order = operand.shape[axis] - 1 - order
    else:
        order = np.argsort(keys, axis=axis, kind="stable")
    indices = np.take(order, range(attributes["k"]), axis=axis)
    values = np.take_along_axis(operand, indices, axis=axis)
    return np.asarray(values), np.asarray(indices, context.result_types[1].dtype.numpy)


def _vjp(context: VjpContext) -> Sequence[Value | None]:
    (operand,), cotangent = context.operands, context.cotangents[0]
    if cotangent is None:
        return (None,)
    zeros = context.zeros(operand.type)
    if 0 in cotangent.shape:
        return (zeros,)
    axis = context.attributes["axis"]
    indices = context.results[1]
    return (context.emit("ScatterReduce", zeros, indices, cotangent, axis=axis, reduce="Add"),)


def _lower(context: LoweringContext) -> Any:
    (operand,), (source,), results = context.operands, context.operand_types, context.result_types
    if results[0].element_count == 0:
        return [context.empty(type_) for type_ in results]
    axis, k = context.attributes["axis"] % source.rank, context.attributes["k"]
    if k == 1 and (context.attributes["largest"] or not source.dtype.is_float):
        return best_element(context, axis, least=not context.attributes["largest"])
    last = (*(place for place in range(source.rank) if place != axis), axis)
    moved = source.with_shape(tuple(source.extents[place] for place in last))
    rows = moved.with_shape((math.prod(moved.extents[:-1]), moved.extents[-1]))
    keys = reshape(context, transposed(context, operand, source, last), moved, rows.extents)
    taken = rows.with_shape((rows.extents[0], k))
    stored = last
    if k <= LONGEST_LIST and (context.vectors or rows.extents[1] > LONGEST):
        if axis == 0 and rows.extents[0] > 1:
            stored, taken = tuple(range(source.rank)), rows.with_shape((k, rows.extents[0]))
        values, order = _listed(context, keys, rows, taken, across=stored is not last)
    else:
        order = _sorted(context, axis, (rows.extents[0], rows.extents[1]), k)
        values = _gathered(context, keys, order, taken)
    back = tuple(stored.index(place) for place in range(source.rank))
    found = []
    for value, type_ in zip((values, order), results, strict=True):
        shape = type_.with_shape(tuple(type_.extents[place] for place in stored))
        whole = reshape(context, value, type_.with_shape(taken.extents), shape.extents)
        found.append(transposed(context, whole, shape, back))
    return found


def _listed(
    context: LoweringContext, keys: Any, rows: TensorType, taken: TensorType, *, across: bool
) -> tuple[Any, Any]:
    """Append the first elements of each row, and their indices, as found in lists; or columns of these."""
    numbers, type_ = compared(context, keys, rows)
    values, order = Lists(context, numbers, type_, context.attributes["k"], across=across).emit()
    wide = context.element(context.result_types[1].dtype)
    if order.type.element_type != wide:
        places = taken.with_dtype(context.result_types[1].dtype)
        order = context.elementwise(lambda index: context.mlir.arith.extsi(wide, index), [order], places)
    return values if type_.dtype is rows.dtype else _gathered(context, keys, order, taken, int(across)), order


def _sorted(context: LoweringContext, axis: int, rows: tuple[int, int], k: int) -> Any:
    """Append the indices of the first ``k`` elements of each row, which is sorted as ArgSort does it."""
    indices = context.result_types[1]
    attributes = {"descending": context.attributes["largest"], "total_order": False}
    sort = replace(context, attributes=attributes, result_type=indices)
    order = SortRows(sort, [SortKey(sort, 0, axis)], rows).emit()
    if k == rows[1]:
        return order
    sizes = [rows[0], k]
    taken = context.mlir.ir.RankedTensorType.get(sizes, context.element(indices.dtype))
    return context.mlir.tensor.extract_slice(taken, order, [], [], [], [0, 0], sizes, [1, 1])


def _gathered(context: LoweringContext, keys: Any, order: Any, type_: TensorType, axis: int = 0) -> Any:
    """Append the elements of each row of ``keys`` at the indices that ``order`` has of it, at ``axis``."""
    mlir = context.mlir
    identity = mlir.ir.AffineMap.get_identity(type_.rank)

    def body(index: Any, _: Any) -> Any:
        at = mlir.arith.index_cast(mlir.ir.IndexType.get(), index)
        return mlir.tensor.extract(keys, [context.iteration(axis), at])

    (values,) = context.generic(
        [order], [identity, identity], [context.empty(type_)], ["parallel"] * type_.rank, body
    )
    return values


def _form(k: int, axis: int, dtype: DType, *, largest: bool = True) -> dict[str, Any]:
    return {"k": k, "axis": axis, "largest": largest, "indices_dtype": dtype}


_ATTRIBUTES = (
    AttributeDef("k", AttrKind.I64, "how many elements"),
    AttributeDef("axis", AttrKind.I64, "the axis to search"),
    AttributeDef("largest", AttrKind.BOOL, "whether the greatest or the least elements", default=True),
    AttributeDef("indices_dtype", AttrKind.DTYPE, "the dtype of the indices, i32 or i64"),
)

OPERATIONS = (
    OpDef(
        opcode="TopK",
        summary="Computes the greatest or the least elements along an axis, and where they lie.",
        description="The first result holds the `k` greatest elements along `axis`, the greatest one first, "
        "or without `largest` the `k` least ones, the least one first. The second one, of `indices_dtype`, "
        "which is i32 or i64 (E2005), holds their indices. An axis outside the rank is E3004, a `k` that is "
        "negative or exceeds the axis E4123, one beyond 64 along more than 2147483647 elements E3006. The "
        "gradient of the values goes to the elements they are.",
        spec="ptir-v0.4.md, Randomness, top-k, segments, quantization",
        operands=(OperandDef("input", ORDERED),),
        attributes=_ATTRIBUTES,
        results=("values", "indices"),
        type_rule=_type,
        evaluate=_evaluate,
        derivative=_vjp,
        dims=along_axis,
        open_axes=untouched(lambda context: (context.attributes["axis"],)),
        lower=_lower,
        stablehlo=hlo.top_k,
        normalize=counted_from_front,
        choices=(
            NEGATIVE_AXIS,
            "Elements are in order, and of equal ones that with the smaller index comes first; -0.0 equals "
            "0.0.",
            "NaN counts as greater than all numbers: it comes first among the greatest elements and last "
            "among the least ones.",
            "The values are elements of the input, bit for bit.",
        ),
        extension=True,
        never=(NO_ORDER,),
        contract=same_fields("TopK", _ATTRIBUTES),
        examples=(
            Example(("T[5, 37]",), _form(4, 1, DType.SI32)),
            Example(("T[37, 5]",), _form(7, 0, DType.SI64), "another axis"),
            Example(("T[2, 3, 4]",), _form(2, -2, DType.SI64, largest=False), "the least elements"),
            Example(("T[131]",), _form(131, 0, DType.SI32), "all elements, sorted"),
            Example(("T[3, 1]",), _form(1, 1, DType.SI32), "one element each"),
            Example(("T[3, 4]",), _form(0, 1, DType.SI32), "no elements"),
            Example(("T[0, 3]",), _form(2, 1, DType.SI64), "no rows"),
        ),
    ),
)
