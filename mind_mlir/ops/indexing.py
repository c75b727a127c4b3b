"""Reading single elements and rows by index (core-ir.md, "Indexing and slicing")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.diagnostics.checks import IndexCheck
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType
from mind_mlir.ops import stablehlo_indexing as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.bounds import check_indices, require_in_bounds, safe_position
from mind_mlir.ops.contract_forms import index_form
from mind_mlir.ops.contract_index_forms import gather_form
from mind_mlir.ops.opdef import INTEGERS, MOVABLE, AttributeDef, Domain, Example, OpDef, OperandDef, Program
from mind_mlir.ops.scatter_windows import row_form

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
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


def rows_type(context: TypeContext) -> TensorType:
    """Type rule: a row of the first operand for each index of the second."""
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


def _evaluate_gather(context: EvalContext) -> Array:
    operand, indices = context.operands
    require_in_bounds(context, indices, operand.shape)
    return np.asarray(operand[indices])


def _gather_vjp(context: VjpContext) -> Sequence[Value | None]:
    operand, indices = context.operands
    zeros = context.emit("BroadcastTo", context.scalar(0.0), result_shape=operand.shape)
    form = row_form(operand.type.rank, indices.type.rank, from_end=True)
    gradient = context.emit("ScatterAdd", zeros, indices, context.cotangent, **form)
    return gradient, None


def _lower_gather(context: LoweringContext) -> Any:
    operand_type, indices_type = context.operand_types
    check_indices(context, context.operands[1], indices_type, operand_type.extents)
    return gather_rows(context, lambda index: safe_position(context, index, operand_type.extents[0]))


def gather_rows(context: LoweringContext, position: Callable[[Any], Any]) -> Any:
    """Append the reading of a row for each index; ``position`` emits which, and is within bounds."""
    operand, indices = context.operands
    operand_type, indices_type = context.operand_types
    result = context.result_type
    if operand_type.element_count == 0 or result.element_count == 0:
        return context.filled(result, 0)  # there is nothing to read
    mlir, window = context.mlir, indices_type.rank

    def body(index: Any, _: Any) -> Any:
        return mlir.tensor.extract(
            operand, [position(index), *(mlir.linalg.IndexOp(d).result for d in range(window, result.rank))]
        )

    dims = [mlir.ir.AffineDimExpr.get(axis) for axis in range(window)]
    maps = [mlir.ir.AffineMap.get(result.rank, 0, dims), mlir.ir.AffineMap.get_identity(result.rank)]
    (gathered,) = context.generic([indices], maps, [context.empty(result)], ["parallel"] * result.rank, body)
    return gathered


_BOUNDS = (
    "An index in `[-extent, -1]` counts from the end; an index outside `[-extent, extent - 1]` is E6001 "
    "when the function runs, and no result is returned."
)

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
        programs=(Program(_ROWS, "fewer indices than there are dimensions"),),
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
        type_rule=rows_type,
        evaluate=_evaluate_gather,
        derivative=_gather_vjp,
        lower=_lower_gather,
        in_contract=gather_form,
        stablehlo=hlo.gather,
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
)
