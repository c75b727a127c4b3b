"""ScatterAdd: the transposed map of Gather (autodiff.md, "Indexing and slicing"; ptir-v0.4.md)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops import stablehlo_indexing as hlo
from mind_mlir.ops.accumulators import computed_dtype
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.bounds import check_numbers, clamped_position, require_allowed, safe_position
from mind_mlir.ops.contract import Contract, Field, FieldKind, cannot_say
from mind_mlir.ops.contract_index_forms import scatter_form
from mind_mlir.ops.opdef import (
    ALL_NUMERIC,
    INTEGERS,
    NO_NUMBERS,
    AttributeDef,
    Domain,
    Example,
    OpDef,
    OperandDef,
    Rounding,
)
from mind_mlir.ops.reassociation import reshape
from mind_mlir.ops.scatter_rows import rounded_once, scatter_rows
from mind_mlir.ops.scatter_vjp import scatter_vjp
from mind_mlir.ops.scatter_windows import Windows, check_windows, row_form

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.attributes import Array, AttributeValue
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext


def _normalize(attributes: Mapping[str, AttributeValue], result: TensorType) -> Mapping[str, AttributeValue]:
    """Let the operand's dimensions count from the front; the inserted ones ascend."""

    def from_front(name: str) -> tuple[int, ...]:
        return tuple(dim % result.rank for dim in cast("tuple[int, ...]", attributes[name]))

    inserted, indexed = "inserted_window_dims", "scatter_dims_to_operand_dims"
    return {**attributes, inserted: tuple(sorted(from_front(inserted))), indexed: from_front(indexed)}


def _dimension_numbers(
    attributes: Mapping[str, AttributeValue], _operands: Sequence[TensorType]
) -> dict[str, Any]:
    if attributes["from_end"]:
        cannot_say("ScatterAdd with from_end=true", "indices of PTIR do not count from the end")
    return {name: value for name, value in attributes.items() if name != "from_end"}


def _scatter_type(context: TypeContext) -> TensorType:
    operand, _, updates = context.operands
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
    check_windows(context)
    return operand


def _evaluate_scatter_add(context: EvalContext) -> Array:
    operand, indices, updates = context.operands
    windows = Windows.of(context.attributes, [array.shape for array in context.operands])
    vectors = indices if windows.vector_dim < indices.ndim else indices[..., np.newaxis]
    vectors = np.moveaxis(vectors, windows.vector_dim, -1)
    for number, check in enumerate(windows.checks(context.opcode, context.label)):
        require_allowed(context, vectors[..., number], check)
    if operand.size == 0:
        return operand.copy()
    # Where each update goes in the flat operand, which is where it begins in each dimension and which
    # element of the window it is.
    flat = np.zeros(updates.shape, np.int64)
    places = np.indices(updates.shape, sparse=True)
    for source, stride in zip(windows.sources, windows.strides, strict=True):
        if source is not None:
            flat += places[source] * stride
    spread = [updates.shape[dim] if dim in windows.scattered else 1 for dim in range(updates.ndim)]
    for number, dim in enumerate(windows.indexed):
        begins = vectors[..., number].astype(np.int64)
        if windows.wraps(dim):
            begins = np.where(begins < 0, begins + operand.shape[dim], begins)
        flat += begins.reshape(spread) * windows.strides[dim]
    # One update after the other, in row-major order.
    dtype = context.result_type.dtype
    total = operand.astype(computed_dtype(dtype).numpy).reshape(-1)
    np.add.at(total, flat.reshape(-1), updates.reshape(-1).astype(total.dtype))
    return rounded_once(total.reshape(operand.shape), dtype)


def _lower_scatter_add(context: LoweringContext) -> Any:
    operand_type, indices_type, updates_type = context.operand_types
    windows = Windows.of(context.attributes, [type_.extents for type_ in context.operand_types])
    numbers = index_numbers(context, windows.vector_dim, len(windows.indexed))
    vector_type = indices_type.with_shape(tuple(updates_type.extents[dim] for dim in windows.scattered))
    for number, check in zip(numbers, windows.checks(context.opcode, context.label), strict=True):
        check_numbers(context, number, vector_type, check)
    if operand_type.element_count == 0 or updates_type.element_count == 0:
        return context.operands[0]
    kept = updates_type.rank - windows.full_rank
    row_shape, width = updates_type.extents[:kept], math.prod(updates_type.extents[kept:])
    rows = _row_numbers(context, windows, numbers, TensorType(DType.SI64, row_shape))
    add = context.arithmetic(computed_dtype(operand_type.dtype)).add

    def row(at: Any) -> Any:
        found = context.mlir.tensor.extract(rows, [at])
        return context.mlir.arith.index_cast(context.mlir.ir.IndexType.get(), found)

    return scatter_rows(context, row, math.prod(row_shape), width, add)


def index_numbers(context: LoweringContext, vector_dim: int, count: int) -> list[Any]:
    """Return the ``count`` numbers of the index vectors of the second operand, a tensor for each."""
    indices, type_ = context.operands[1], context.operand_types[1]
    if vector_dim == type_.rank:
        return [indices]
    tensor, extents = context.mlir.tensor, list(type_.extents)
    left = extents[:vector_dim] + extents[vector_dim + 1 :]
    taken = context.mlir.ir.RankedTensorType.get(left, context.element(type_.dtype))
    sizes = [1 if dim == vector_dim else extent for dim, extent in enumerate(extents)]
    numbers = []
    for number in range(count):
        offsets = [number if dim == vector_dim else 0 for dim in range(type_.rank)]
        static: tuple[Any, ...] = ([], [], [], offsets, sizes, [1] * type_.rank)
        numbers.append(tensor.extract_slice(taken, indices, *static))
    return numbers


def _row_numbers(
    context: LoweringContext, windows: Windows, numbers: Sequence[Any], type_: TensorType
) -> Any:
    """Append a flat tensor of i64: for each row of the updates, that of the operand it is added to."""
    mlir, rank = context.mlir, len(windows.operand) - windows.full_rank
    strides = [math.prod(windows.operand[dim + 1 : rank]) for dim in range(rank)]
    arith, i64 = mlir.arith, context.element(DType.SI64)

    def scaled(position: Any, dim: int) -> Any:
        stride = context.scalar(strides[dim], DType.SI64)
        return arith.muli(arith.index_cast(i64, position), stride)

    def body(*elements: Any) -> Any:
        row = context.scalar(0, DType.SI64)
        for element, dim in zip(elements[:-1], windows.indexed, strict=True):
            if dim >= rank:
                continue  # a window that is all there is begins at 0
            extent = windows.operand[dim]
            begin = (
                safe_position(context, element, extent)
                if windows.wraps(dim)
                else clamped_position(context, element, extent - windows.sizes[dim])
            )
            row = arith.addi(row, scaled(begin, dim))
        for dim, source in enumerate(windows.sources[:rank]):
            if source is not None:
                row = arith.addi(row, scaled(mlir.linalg.IndexOp(source).result, dim))
        return row

    dims = [mlir.ir.AffineDimExpr.get(dim) for dim in windows.scattered]
    maps = [mlir.ir.AffineMap.get(type_.rank, 0, dims) for _ in numbers]
    (rows,) = context.generic(
        numbers,
        [*maps, mlir.ir.AffineMap.get_identity(type_.rank)],
        [context.empty(type_)],
        ["parallel"] * type_.rank,
        body,
    )
    return reshape(context, rows, type_, (type_.element_count,))


OPERATIONS = (
    OpDef(
        opcode="ScatterAdd",
        mnemonic="scatter_add",
        summary="Adds windows to a tensor at given indices.",
        description="The result is `operand` with each window of `updates` added where its index says; "
        "windows may overlap, and an index that is given again adds again. The attributes are XLA's "
        "dimension numbers: the dimensions `update_window_dims` of `updates` run over a window, the others "
        "over the indices. A window has the operand's dimensions but for `inserted_window_dims`, in which it "
        "is one element thick. Along `index_vector_dim` of `indices` lie vectors, one number for each "
        "dimension of `scatter_dims_to_operand_dims`: where the window begins there, and 0 elsewhere; an "
        "`index_vector_dim` of the rank of `indices` means vectors of one number. The ranks must fit "
        "(E3002), dimensions be in range (E3004), be named once (E3005) and in `update_window_dims` ascend "
        "(E1103); the extents must be those of the indices (E3003) and windows no larger than the operand "
        "(E4123). `indices` have dtype i32 or i64 (E4011), `updates` that of `operand` (E2004).",
        spec="ptir-v0.4.md, ScatterAdd; autodiff.md, Indexing and slicing",
        operands=(
            OperandDef("operand", ALL_NUMERIC),
            OperandDef("indices", INTEGERS, dtype_code="E4011", domain=Domain.WINDOW),
            OperandDef("updates", ALL_NUMERIC),
        ),
        attributes=(
            AttributeDef(
                "update_window_dims", AttrKind.I64_LIST, "the dimensions of updates that form a window"
            ),
            AttributeDef(
                "inserted_window_dims", AttrKind.I64_LIST, "the operand's dimensions that windows lack"
            ),
            AttributeDef(
                "scatter_dims_to_operand_dims", AttrKind.I64_LIST, "the operand's dimensions that are indexed"
            ),
            AttributeDef(
                "index_vector_dim", AttrKind.I64, "the dimension of indices that holds index vectors"
            ),
            AttributeDef(
                "from_end", AttrKind.BOOL, "whether negative indices count from the end", default=True
            ),
        ),
        type_rule=_scatter_type,
        evaluate=_evaluate_scatter_add,
        derivative=scatter_vjp,
        lower=_lower_scatter_add,
        in_contract=scatter_form,
        stablehlo=hlo.scatter_add,
        normalize=_normalize,
        rounding=Rounding.ACCUMULATING,
        terms=lambda shapes, _: 1 + math.prod(shapes[2]),
        same_dtype=False,
        extension=True,
        never=(NO_NUMBERS,),
        contract=Contract(
            "ScatterAdd",
            fields=(
                Field("update_window_dims", FieldKind.INTEGERS),
                Field("inserted_window_dims", FieldKind.INTEGERS),
                Field("scatter_dims_to_operand_dims", FieldKind.INTEGERS),
                Field("index_vector_dim", FieldKind.INTEGER),
            ),
            read=lambda fields, _: {**fields, "from_end": False},
            write=_dimension_numbers,
        ),
        choices=(
            "A window that does not lie within the operand is E6001 when the function runs, and no result is "
            "returned; XLA leaves it out. Indices of a dimension lie in `[0, extent - window]`. With "
            "`from_end`, which PTIR programs do not have, an index in `[-extent, -1]` counts from the end, "
            "as Gather's, where the window is one element thick.",
            "The additions to one element happen in the row-major order of `updates`, so that the result "
            "is the same bits every time. Integers wrap around on overflow; floats narrower than f32 are "
            "added in f32 and rounded once.",
            "Negative dimensions count from the end, of `index_vector_dim` as of an axis of `indices`.",
        ),
        examples=(
            Example(("T[5, 3]", "i64[4]", "T[4, 3]"), row_form(2, 1)),
            Example(
                ("T[3]", "i32[2, 5]", "T[2, 5]"), row_form(1, 2), "more updates than rows: duplicates add up"
            ),
            Example(("T[4, 2, 3]", "i64[]", "T[2, 3]"), row_form(3, 0), "a single row"),
            Example(("T[1, 17]", "i64[6]", "T[6, 17]"), row_form(2, 1, from_end=False)),
            Example(
                ("T[5, 4, 3]", "i64[7, 2]", "T[7, 3]"),
                {
                    "update_window_dims": (1,),
                    "inserted_window_dims": (0, 1),
                    "scatter_dims_to_operand_dims": (1, 0),
                    "index_vector_dim": 1,
                    "from_end": False,
                },
                "each index names a row by two numbers",
            ),
            Example(
                ("T[6, 5]", "i32[2, 3]", "T[2, 4, 3]"),
                {
                    "update_window_dims": (0, 1),
                    "inserted_window_dims": (),
                    "scatter_dims_to_operand_dims": (0, 1),
                    "index_vector_dim": 0,
                    "from_end": False,
                },
                "windows in two dimensions, which overlap",
            ),
            Example(
                ("T[3, 7]", "i64[5, 1, 2]", "T[3, 5, 2]"),
                {
                    "update_window_dims": (0,),
                    "inserted_window_dims": (-1,),
                    "scatter_dims_to_operand_dims": (-1,),
                    "index_vector_dim": 1,
                    "from_end": False,
                },
                "columns; dimensions that count from the end",
            ),
            Example(
                ("T[]", "i64[4, 0]", "T[4]"),
                {
                    "update_window_dims": (),
                    "inserted_window_dims": (),
                    "scatter_dims_to_operand_dims": (),
                    "index_vector_dim": 1,
                    "from_end": False,
                },
                "a scalar has no dimension to index",
            ),
        ),
    ),
)
