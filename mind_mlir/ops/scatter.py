"""ScatterAdd: the transposed map of Gather (autodiff.md, "Indexing and slicing"; ptir-v0.4.md)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import format_shape
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.bounds import check_indices, require_in_bounds, safe_position
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.opdef import INTEGERS, AttributeDef, Domain, Example, OpDef, OperandDef, Rounding
from mind_mlir.ops.reassociation import reshape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext


#: Marks the loop over the rows of updates, whose body ends with the loop over the columns.
SCATTER_ATTRIBUTE = "mind.scatter"


def row_form(operand_rank: int, indices_rank: int) -> dict[str, Any]:
    """Return the attributes with which ScatterAdd adds rows along the first axis, as Gather reads them."""
    return {
        "update_window_dims": tuple(range(indices_rank, indices_rank + operand_rank - 1)),
        "inserted_window_dims": (0,),
        "scatter_dims_to_operand_dims": (0,),
        "index_vector_dim": indices_rank,
    }


def _scatter_type(context: TypeContext) -> TensorType:
    operand, indices, updates = context.operands
    if operand.rank == 0:
        context.fail(
            "E3002",
            "ScatterAdd needs an operand of rank 1 or more, found a scalar",
            operand=0,
            help="ScatterAdd adds to rows along the first dimension of its operand",
            expected="at least 1",
            found=0,
        )
    if updates.dtype is not operand.dtype:
        context.fail(
            "E2004",
            f"Dtype mismatch: ScatterAdd of {updates.dtype.core_name} to {operand.dtype.core_name}",
            operand=2,
            notes=(f"operand is {operand}", f"updates is {updates}"),
            help="give both the same dtype; there is no implicit promotion",
            left=operand.dtype.core_name,
            right=updates.dtype.core_name,
        )
    _require_row_form(context, row_form(operand.rank, indices.rank))
    expected = (*indices.shape, *operand.shape[1:])
    if updates.shape != expected:
        context.fail(
            "E3003",
            f"the updates of ScatterAdd have shape {format_shape(updates.shape)} instead of "
            f"{format_shape(expected)}",
            operand=2,
            notes=(f"operand is {operand}", f"indices is {indices}"),
            help="there must be one row of the operand's shape for each index",
            dimension="updates",
            extents=(updates.shape, expected),
        )
    return operand


def _require_row_form(context: TypeContext, form: dict[str, Any]) -> None:
    for name, wanted in form.items():
        found = context.attributes[name]
        if found == wanted:
            continue
        spelled = ", ".join(
            f"{key}={value if isinstance(value, int) else format_shape(value)}" for key, value in form.items()
        )
        context.fail(
            "E7001",
            f"this form of ScatterAdd is not supported: {name} is "
            f"{found if isinstance(found, int) else format_shape(found)}",
            attribute=name,
            notes=("supported is the addition of whole rows along the first axis, the transpose of Gather",),
            help=f"for these operand types write {spelled}",
        )


def _evaluate_scatter_add(context: EvalContext) -> Array:
    operand, indices, updates = context.operands
    require_in_bounds(context, indices, operand.shape)
    result = operand.copy()
    # One index after the other: with a rank-1 list of rows, numpy's order is that of the list.
    rows = updates.reshape(indices.size, *operand.shape[1:])
    np.add.at(result, indices.reshape(-1), rows)
    return result


def _scatter_vjp(context: VjpContext) -> Sequence[Value | None]:
    _, indices, _ = context.operands
    wants_operand, _, wants_updates = context.needs
    return (
        context.cotangent if wants_operand else None,
        None,
        context.emit("Gather", context.cotangent, indices) if wants_updates else None,
    )


def _lower_scatter_add(context: LoweringContext) -> Any:
    operand, indices, updates = context.operands
    result, indices_type, updates_type = context.operand_types
    check_indices(context, indices, indices_type, result.extents)
    if result.element_count == 0 or updates_type.element_count == 0:
        return operand
    # Flat tensors: a row of any rank is then a contiguous slice, and reshapes are views.
    width = math.prod(result.extents[1:])
    flat_type = result.with_shape((result.element_count,))
    flat_indices = reshape(context, indices, indices_type, (indices_type.element_count,))
    flat_updates = reshape(context, updates, updates_type, (updates_type.element_count,))
    start = _copy(context, operand, result, flat_type)

    def add_row(at: Any, accumulator: Any) -> Any:
        index = context.mlir.tensor.extract(flat_indices, [at])
        position = safe_position(context, index, result.extents[0])
        return _add_row(context, accumulator, position, flat_updates, at, width)

    added = _loop(context, indices_type.element_count, start, add_row)
    added.owner.attributes[SCATTER_ATTRIBUTE] = context.mlir.ir.UnitAttr.get()
    return reshape(context, added, flat_type, result.extents)


def _copy(context: LoweringContext, value: Any, type_: TensorType, target: TensorType) -> Any:
    """Append a copy of ``value`` in the shape of ``target``; a fill is repeated instead of read."""
    source = value.owner
    if getattr(source, "name", "") == "linalg.fill":
        return context.named("fill", [source.operands[0]], context.empty(target), target)
    flat = reshape(context, value, type_, target.extents)
    return context.named("copy", [flat], context.empty(target), target)


def _add_row(context: LoweringContext, target: Any, at: Any, updates: Any, row: Any, width: int) -> Any:
    """Append the addition of row ``row`` of flat ``updates`` to row ``at`` of flat ``target``."""
    arith, tensor = context.mlir.arith, context.mlir.tensor
    stride = arith.constant(context.mlir.ir.IndexType.get(), width)
    first_target, first_update = arith.muli(at, stride), arith.muli(row, stride)
    add = arith.addf if context.result_type.dtype.is_float else arith.addi

    def add_element(column: Any, accumulator: Any) -> Any:
        position = [arith.addi(first_target, column)]
        update = tensor.extract(updates, [arith.addi(first_update, column)])
        return tensor.insert(add(tensor.extract(accumulator, position), update), accumulator, position)

    return _loop(context, width, target, add_element)


def _loop(context: LoweringContext, count: int, init: Any, body: Callable[[Any, Any], Any]) -> Any:
    """Append a loop that carries one tensor: ``body`` maps step, below ``count``, and tensor to the next."""
    index = context.mlir.ir.IndexType.get()
    zero, end, one = (context.mlir.arith.constant(index, n) for n in (0, count, 1))
    loop = context.mlir.scf.ForOp(zero, end, one, [init])
    with context.mlir.ir.InsertionPoint(loop.body):
        context.mlir.scf.YieldOp([body(loop.induction_variable, loop.inner_iter_args[0])])
    return loop.results[0]


OPERATIONS = (
    OpDef(
        opcode="ScatterAdd",
        mnemonic="scatter_add",
        summary="Adds rows to a tensor at given indices.",
        description="The result is `operand` with `updates[i..., d...]` added to `[indices[i...], "
        "d...]`, for every index of `indices`, in row-major order; an index that is given again adds "
        "again. The attributes are XLA's. `operand` must have rank 1 or more (E3002), `indices` dtype "
        "i32 or i64 (E4011), `updates` the dtype of `operand` (E2004) and the shape of `indices` "
        "followed by that of a row (E3003).",
        spec="ptir-v0.4.md, ScatterAdd; autodiff.md, Indexing and slicing",
        operands=(
            OperandDef("operand"),
            OperandDef("indices", INTEGERS, dtype_code="E4011", domain=Domain.INDEX),
            OperandDef("updates"),
        ),
        attributes=(
            AttributeDef(
                "update_window_dims", AttrKind.I64_LIST, "the dimensions of updates that form a row"
            ),
            AttributeDef(
                "inserted_window_dims", AttrKind.I64_LIST, "the operand's dimensions outside of a row"
            ),
            AttributeDef(
                "scatter_dims_to_operand_dims", AttrKind.I64_LIST, "the operand's dimensions that are indexed"
            ),
            AttributeDef(
                "index_vector_dim", AttrKind.I64, "the dimension of indices that holds index vectors"
            ),
        ),
        type_rule=_scatter_type,
        evaluate=_evaluate_scatter_add,
        derivative=_scatter_vjp,
        lower=_lower_scatter_add,
        rounding=Rounding.ACCUMULATING,
        terms=lambda shapes, _: 1 + math.prod(shapes[1]),
        same_dtype=False,
        extension=True,
        choices=(
            "Of XLA's scatter forms the one that transposes Gather is supported: "
            "`inserted_window_dims=[0]`, `scatter_dims_to_operand_dims=[0]`, `index_vector_dim` the rank "
            "of `indices` (each index is a single number) and `update_window_dims` the trailing "
            "dimensions. Another form is E7001.",
            "The additions to one element happen in the row-major order of `indices`, so that the result "
            "is the same bits every time. Integers wrap around on overflow.",
            "An index in `[-extent, -1]` counts from the end; an index outside `[-extent, extent - 1]` "
            "is E6001 when the function runs, and no result is returned.",
        ),
        contract=Contract(
            "ScatterAdd",
            fields=(
                Field("update_window_dims", FieldKind.INTEGERS),
                Field("inserted_window_dims", FieldKind.INTEGERS),
                Field("scatter_dims_to_operand_dims", FieldKind.INTEGERS),
                Field("index_vector_dim", FieldKind.INTEGER),
            ),
        ),
        examples=(
            Example(("T[5, 3]", "i64[4]", "T[4, 3]"), row_form(2, 1)),
            Example(
                ("T[3]", "i32[2, 5]", "T[2, 5]"), row_form(1, 2), "more updates than rows: duplicates add up"
            ),
            Example(("T[4, 2, 3]", "i64[]", "T[2, 3]"), row_form(3, 0), "a single row"),
            Example(("T[1, 17]", "i64[6]", "T[6, 17]"), row_form(2, 1)),
        ),
    ),
)
