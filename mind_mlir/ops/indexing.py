"""Reading rows and elements by index (core-ir.md, "Indexing and slicing"; ptir-v0.4.md, "Indexing ops")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.diagnostics.checks import IndexCheck
from mind_mlir.ir.attributes import Array, TensorLiteral
from mind_mlir.ir.types import DType, TensorType, format_shape
from mind_mlir.ops import stablehlo_indexing as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.axes import NEGATIVE_AXIS, counted_from_front, require_axis
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.contract_forms import gather_form, index_form
from mind_mlir.ops.dims_rules import (
    picking as picking_dims,
)
from mind_mlir.ops.dims_rules import (
    taking as taking_dims,
)
from mind_mlir.ops.dims_rules import (
    taking_elements as taking_elements_dims,
)
from mind_mlir.ops.gather_scatter import lower_gather
from mind_mlir.ops.opdef import (
    INTEGERS,
    MOVABLE,
    AttributeDef,
    Domain,
    Example,
    ExampleModule,
    OpDef,
    OperandDef,
)
from mind_mlir.ops.open_indexing import picking, taking, taking_elements
from mind_mlir.ops.windows import WindowsRule, elements, row_form, rows, rows_from_end

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.rules import DerivativeRule, EvalRule
    from mind_mlir.ops.vjp import VjpContext


# There may be fewer indices than extents.


def _is_in_bounds(indices: Sequence[int], extents: Sequence[int]) -> bool:
    return all(-extent <= index < extent for index, extent in zip(indices, extents, strict=False))


def _from_start(indices: Sequence[int], extents: Sequence[int]) -> list[int]:
    return [index + extent if index < 0 else index for index, extent in zip(indices, extents, strict=False)]


def _index_type(context: TypeContext) -> TensorType:
    (operand,) = context.operands
    indices: tuple[int, ...] = context.attributes["indices"]
    if len(indices) > operand.rank or (len(indices) < operand.rank and not context.profile.partial_index):
        needs = f"takes at most {operand.rank}" if context.profile.partial_index else f"needs {operand.rank}"
        context.fail(
            "E4006",
            f"Index of a tensor of rank {operand.rank} {needs} indices, found {len(indices)}",
            attribute="indices",
            notes=(f"the operand has type {operand}",),
            help="leave out what is too much"
            if context.profile.partial_index
            else "give one index for each dimension; use Slice or Gather to read more than one element",
            id=context.value_id,
            rank=operand.rank,
            length=len(indices),
        )
    return operand.with_shape(operand.shape[len(indices) :])


def _evaluate_index(context: EvalContext) -> Array:
    (operand,) = context.operands
    indices: tuple[int, ...] = context.attributes["indices"]
    for axis, (index, extent) in enumerate(zip(indices, operand.shape, strict=False)):
        if not -extent <= index < extent:
            context.out_of_bounds(index, operand.shape, axis)
    return np.asarray(operand[indices])


def _index_vjp(context: VjpContext) -> Sequence[Value | None]:
    shape = context.operands[0].shape
    indices: tuple[int, ...] = context.attributes["indices"]
    if not _is_in_bounds(indices, shape):
        # The primal fails when it runs. Its result stands for the gradient, so that the gradient fails alike.
        return (context.emit("BroadcastTo", context.result, result_shape=shape),)
    if not indices:
        return (context.cotangent,)
    if 0 in context.result.shape:
        return (context.emit("BroadcastTo", context.cotangent, result_shape=shape),)
    starts, rest = _from_start(indices, shape), shape[len(indices) :]
    low = (*starts, *(0 for _ in rest))
    high = (*(extent - 1 - start for start, extent in zip(starts, shape, strict=False)), *(0 for _ in rest))
    one = context.emit("Reshape", context.cotangent, new_shape=(*(1 for _ in starts), *rest))
    zero = TensorLiteral.of(0, context.result.type.dtype)
    return (context.emit("Pad", one, low=low, high=high, interior=(0,) * len(shape), pad_value=zero),)


def _lower_index(context: LoweringContext) -> Any:
    (operand,), (type_,) = context.operands, context.operand_types
    indices: tuple[int, ...] = context.attributes["indices"]
    if _is_in_bounds(indices, type_.extents):
        result = context.result_type
        if not indices or result.element_count == 0:
            return context.empty(result) if indices else operand
        ones = [1] * type_.rank
        offsets = [*_from_start(indices, type_.extents), *(0 for _ in result.extents)]
        sizes = [*(1 for _ in indices), *result.extents]
        taken = context.mlir.ir.RankedTensorType.get(list(result.extents), context.element(type_.dtype))
        return context.mlir.tensor.extract_slice(taken, operand, [], [], [], offsets, sizes, ones)
    for axis, index in enumerate(indices):
        if not -type_.extents[axis] <= index < type_.extents[axis]:
            bad = context.scalar(index, DType.SI64)
            context.check(IndexCheck(context.opcode, context.label, axis, type_.extents), bad, bad)
    return context.filled(context.result_type, 0)


def _rows_type(context: TypeContext) -> TensorType:
    operand, indices = context.operands
    if operand.rank == 0:
        context.fail(
            "E3002",
            f"{context.opcode} needs an input of rank 1 or more, found a scalar",
            operand=0,
            help=f"{context.opcode} reads along the first dimension of its input",
            expected="at least 1",
            found=0,
        )
    return operand.with_shape((*indices.shape, *operand.shape[1:]))


def _evaluate_rows(windows_of: WindowsRule) -> EvalRule:
    def rule(context: EvalContext) -> Array:
        operand, indices = context.operands
        windows_of({}, [operand.shape, indices.shape]).require(context, indices)
        return np.asarray(operand[indices])

    return rule


def _rows_vjp(*, from_end: bool) -> DerivativeRule:
    def rule(context: VjpContext) -> Sequence[Value | None]:
        operand, indices = context.operands
        form = row_form(operand.type.rank, indices.type.rank, from_end=from_end)
        return context.emit(
            "ScatterAdd", context.zeros(operand.type), indices, context.cotangent, **form
        ), None

    return rule


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
    elements(context.attributes, [operand.shape, indices.shape]).require(context, indices)
    return np.asarray(operand[along_axis(indices, context.attributes["axis"])])


def _gather_elements_vjp(context: VjpContext) -> Sequence[Value | None]:
    operand, indices = context.operands
    form = {"axis": context.attributes["axis"], "reduce": "Add"}
    return context.emit(
        "ScatterReduce", context.zeros(operand.type), indices, context.cotangent, **form
    ), None


_BOUNDS = (
    "An index in `[-extent, -1]` counts from the end; an index outside `[-extent, extent - 1]` is E6001 "
    "when the function runs, and no result is returned."
)
_POSITIONS = (
    "Indices count from 0: a negative one, like one beyond the end, is E6001 when the function runs, and no "
    "result is returned. The diagnostic names the least index when that is out of bounds, else the greatest."
)
_INDICES = OperandDef("indices", INTEGERS, dtype_code="E4011", domain=Domain.POSITION)

_ROWS = """\
func @main(%x: tensor<f32[3, 4, 2]>) -> (tensor<f32[4, 2]>, tensor<f32[2]>) {
^entry:
  %a = Index (%x) {indices=[-1]} : tensor<f32[4, 2]>
  %b = Index (%x) {indices=[0, 3]} : tensor<f32[2]>
  return %a, %b
}
"""

OPERATIONS = (
    OpDef(
        opcode="Index",
        mnemonic="index",
        summary="Reads a single element, or where the profile allows it a row.",
        description="The result is `input[indices[0], indices[1], ...]`. There must be one index for each "
        "dimension (E4006), and the result is a scalar. In profile core-functions there may be fewer: "
        "then the result has the shape that is left of the input's.",
        spec="core-ir.md, Indexing and slicing; shapes.md, Index, slice, and gather",
        operands=(OperandDef("input", MOVABLE),),
        attributes=(AttributeDef("indices", AttrKind.I64_LIST, "one index for each dimension"),),
        type_rule=_index_type,
        evaluate=_evaluate_index,
        derivative=_index_vjp,
        dims=picking_dims,
        open_axes=picking,
        lower=_lower_index,
        stablehlo=hlo.index,
        in_contract=index_form,
        choices=(
            _BOUNDS,
            "That an index is out of bounds is found when the function runs, although it is known "
            "before: core-ir.md makes it a run-time matter.",
        ),
        examples=(
            Example(("T[3, 4]",), {"indices": (2, 1)}),
            Example(("T[3, 4]",), {"indices": (-1, -4)}, "negative indices count from the end"),
            Example(("T[1]",), {"indices": (0,)}),
            Example(("T[]",), {"indices": ()}, "a scalar has no dimension to index"),
        ),
        programs=(ExampleModule(_ROWS, "fewer indices than there are dimensions"),),
    ),
    OpDef(
        opcode="Gather",
        mnemonic="gather",
        summary="Reads rows of a tensor at given indices.",
        description="For `input` of shape `[D0, D1, ...]` and `indices` of shape `[I0, I1, ...]`, the "
        "result has shape `[I0, I1, ..., D1, ...]` and `result[i..., d...] = input[indices[i...], d...]`. "
        "`input` must have rank 1 or more (E3002), `indices` dtype i32 or i64 (E4011).",
        spec="core-ir.md, Indexing and slicing; shapes.md, Index, slice, and gather",
        operands=(
            OperandDef("input", MOVABLE),
            OperandDef("indices", INTEGERS, dtype_code="E4011", domain=Domain.INDEX),
        ),
        type_rule=_rows_type,
        evaluate=_evaluate_rows(rows_from_end),
        derivative=_rows_vjp(from_end=True),
        dims=taking_dims,
        open_axes=taking,
        lower=lower_gather(rows_from_end),
        copies=True,
        in_contract=gather_form,
        stablehlo=hlo.gather(rows_from_end),
        same_dtype=False,
        choices=(
            _BOUNDS,
            "The diagnostic names the least index when that is out of bounds, else the greatest.",
            "Gathering is along the first dimension only.",
        ),
        examples=(
            Example(("T[5, 3]", "i64[4]")),
            Example(("T[5, 3]", "i32[2, 2]"), note="the shape of the indices comes first"),
            Example(("T[5]", "i64[7]"), note="rows of rank 0"),
            Example(("T[5, 2, 3]", "i32[]"), note="a single row"),
            Example(("T[1, 17]", "i64[3]")),
        ),
    ),
    OpDef(
        opcode="Take",
        mnemonic="take",
        summary="Reads rows of a tensor at given positions.",
        description="For `input` of shape `[N, ...]` the result has the shape of `indices` followed by that "
        "of a row, and `result[i..., d...] = input[indices[i...], d...]`. `input` has rank 1 or more "
        "(E3002), `indices` dtype i32 or i64 (E4011) and numbers in `[0, N)` (E6001).",
        spec="ptir-v0.4.md, Take",
        operands=(OperandDef("input", MOVABLE), _INDICES),
        type_rule=_rows_type,
        evaluate=_evaluate_rows(rows),
        derivative=_rows_vjp(from_end=False),
        dims=taking_dims,
        open_axes=taking,
        lower=lower_gather(rows),
        copies=True,
        stablehlo=hlo.gather(rows),
        same_dtype=False,
        choices=(_POSITIONS,),
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
        dims=taking_elements_dims,
        open_axes=taking_elements,
        lower=lower_gather(elements),
        copies=True,
        stablehlo=hlo.gather(elements),
        normalize=counted_from_front,
        same_dtype=False,
        choices=(NEGATIVE_AXIS, _POSITIONS),
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
