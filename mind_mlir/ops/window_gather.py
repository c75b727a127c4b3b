"""GatherWindows: XLA's gather, whose windows are moved until they fit (StableHLO specification, "gather")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import TensorType, format_shape
from mind_mlir.ops import stablehlo_indexing as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.bounds import clamped_position
from mind_mlir.ops.opdef import INTEGERS, MOVABLE, AttributeDef, Example, OpDef, OperandDef, Program
from mind_mlir.ops.scatter import index_numbers
from mind_mlir.ops.window_numbers import (
    CHECKED,
    CHECKED_CHOICE,
    GATHER,
    SCATTER,
    WindowNumbers,
    check_dimension_numbers,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext


def _type(context: TypeContext) -> TensorType:
    operand, attributes = context.operands[0], context.attributes
    sizes: tuple[int, ...] = attributes["slice_sizes"]
    windows: tuple[int, ...] = attributes["offset_dims"]
    scattered = check_dimension_numbers(context, GATHER)
    if len(sizes) != operand.rank:
        context.fail(
            "E3002",
            f"GatherWindows has {len(sizes)} slice_sizes, its operand rank {operand.rank}",
            attribute="slice_sizes",
            help="give the extent of a window in each dimension of the operand",
            expected=operand.rank,
            found=len(sizes),
        )
    thin = {*attributes["collapsed_slice_dims"], *attributes["operand_batching_dims"]}
    for dim, (size, extent) in enumerate(zip(sizes, operand.extents, strict=True)):
        if not 0 <= size <= extent or (dim in thin and size != 1):
            context.fail(
                "E4123",
                f"the windows of GatherWindows have {size} elements on axis {dim}, the operand {extent}",
                attribute="slice_sizes",
                notes=(f"slice_sizes is {format_shape(sizes)}",),
                help="a window lies within the operand, and has one element in a dimension that it lacks",
                window=sizes,
                shape=operand.extents,
                axis=dim,
            )
    kept = iter(size for dim, size in enumerate(sizes) if dim not in thin)
    others = iter(scattered)
    rank = len(scattered) + len(windows)
    return operand.with_shape(tuple(next(kept if dim in windows else others) for dim in range(rank)))


def _evaluate(context: EvalContext) -> Array:
    operand, indices = context.operands
    windows = WindowNumbers.of(GATHER, context.attributes, operand.shape, context.result_type.extents)
    checked: bool = context.attributes["checked"]
    if checked:
        windows.require(context, indices)
    if context.result_type.element_count == 0:
        return np.empty(windows.shape, operand.dtype)
    places = windows.places(indices, clamped=not checked, checked=checked)
    return np.asarray(operand[tuple(places)]).reshape(windows.shape)


def clamped(
    emit: Any, builder: Any, indices: Value, least: Sequence[int], most: Sequence[int], vector_dim: int
) -> Value:
    """Append index vectors each number of which is moved into its range."""
    shape = [1] * indices.type.rank
    if vector_dim < indices.type.rank:
        shape[vector_dim] = len(most)
    for opcode, ends in (("Maximum", least), ("Minimum", most)):
        end = builder.constant(np.array(ends).reshape(shape), indices.type.dtype)
        indices = emit(opcode, *stretched(emit, indices, end))
    return indices


def stretched(emit: Any, indices: Value, numbers: Value) -> tuple[Value, Value]:
    """Append ``numbers`` in the shape of ``indices``, for profiles that do not broadcast; return both."""
    if numbers.shape != indices.shape:
        numbers = emit("BroadcastTo", numbers, result_shape=indices.shape)
    return indices, numbers


def scatter_form(attributes: Mapping[str, Any], reduce: str) -> dict[str, Any]:
    """Return the attributes of the ScatterWindows whose windows are those of a GatherWindows."""
    names = ("windows", "thin", "batched", "indices_batched", "indexed")
    form = {getattr(SCATTER, name): attributes[getattr(GATHER, name)] for name in names}
    same = {name: attributes[name] for name in ("index_vector_dim", "checked")}
    return {**form, **same, "reduce": reduce}


def _vjp(context: VjpContext) -> Sequence[Value | None]:
    operand, indices = context.operands
    attributes = context.attributes
    zeros = context.zeros(operand.type)
    if 0 in context.cotangent.shape:
        return zeros, None
    indexed, sizes = attributes["start_index_map"], attributes["slice_sizes"]
    if indexed and not attributes["checked"]:
        most = [operand.type.extents[dim] - sizes[dim] for dim in indexed]
        vector_dim = attributes["index_vector_dim"]
        indices = clamped(context.emit, context.builder, indices, [0] * len(most), most, vector_dim)
    form = scatter_form(attributes, "Add")
    return context.emit("ScatterWindows", zeros, indices, context.cotangent, **form), None


def _lower(context: LoweringContext) -> Any:
    operand, result, mlir = context.operands[0], context.result_type, context.mlir
    windows = WindowNumbers.of(GATHER, context.attributes, context.operand_types[0].extents, result.extents)
    numbers = index_numbers(context, windows.vector_dim, len(windows.indexed))
    checked: bool = context.attributes["checked"]
    if checked:
        windows.check(context, numbers)
    if result.element_count == 0:
        return context.empty(result)

    def body(*elements: Any) -> Any:
        begins = dict(zip(windows.indexed, elements, strict=False))
        place = []
        for dim, extent in enumerate(windows.operand):
            terms = [
                mlir.linalg.IndexOp(source).result
                for source in (windows.sources[dim], windows.batched[dim])
                if source is not None and windows.shape[source] > 1
            ]
            if dim in begins and checked:
                terms.append(windows.begin(context, begins[dim], dim))
            elif dim in begins and extent > windows.sizes[dim]:
                terms.append(clamped_position(context, begins[dim], extent - windows.sizes[dim]))
            place.append(_sum(context, terms))
        return mlir.tensor.extract(operand, place)

    dims = [mlir.ir.AffineDimExpr.get(dim) for dim in windows.scattered]
    maps = [mlir.ir.AffineMap.get(result.rank, 0, dims) for _ in numbers]
    maps.append(mlir.ir.AffineMap.get_identity(result.rank))
    (gathered,) = context.generic(numbers, maps, [context.empty(result)], ["parallel"] * result.rank, body)
    return gathered


def _sum(context: LoweringContext, terms: Sequence[Any]) -> Any:
    if not terms:
        return context.mlir.arith.constant(context.mlir.ir.IndexType.get(), 0)
    total, *others = terms
    for each in others:
        total = context.mlir.arith.addi(total, each)
    return total


def _form(
    offset_dims: tuple[int, ...],
    collapsed: tuple[int, ...],
    indexed: tuple[int, ...],
    vector_dim: int,
    sizes: tuple[int, ...],
    batching: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
) -> dict[str, Any]:
    return {
        "offset_dims": offset_dims,
        "collapsed_slice_dims": collapsed,
        "operand_batching_dims": batching[0],
        "start_indices_batching_dims": batching[1],
        "start_index_map": indexed,
        "index_vector_dim": vector_dim,
        "slice_sizes": sizes,
        "checked": False,
    }


_CHECKED = (
    "func @main(%x: tensor<f32[3, 4]>) -> (tensor<f32[3]>, tensor<f32[2, 3]>) {\n"
    "^entry:\n"
    "  %i = ConstTensor {value=[[0, -1, 2], [-4, 3, 0]], dtype=i64, shape=[2, 3]} : "
    "tensor<i64[2, 3]>\n"
    "  %a = GatherWindows (%x, %i) {offset_dims=[], collapsed_slice_dims=[0, 1], "
    "start_index_map=[0, 1], index_vector_dim=0, slice_sizes=[1, 1], checked=true} : "
    "tensor<f32[3]>\n"
    "  %j = ConstTensor {value=[-3, 1], dtype=i64, shape=[2]} : tensor<i64[2]>\n"
    "  %b = GatherWindows (%x, %j) {offset_dims=[1], collapsed_slice_dims=[0], "
    "start_index_map=[0], index_vector_dim=1, slice_sizes=[1, 3], checked=true} : tensor<f32[2, "
    "3]>\n"
    "  return %a, %b\n"
    "}\n"
)

OPERATIONS = (
    OpDef(
        opcode="GatherWindows",
        mnemonic="gather_windows",
        summary="Reads windows of a tensor at given positions.",
        description="XLA's gather. The dimensions `offset_dims` of the result run over a window, which has "
        "the operand's dimensions but for `collapsed_slice_dims` and `operand_batching_dims`, where it is "
        "one element thick; the others run over `indices` but for `index_vector_dim`. Along that lie "
        "vectors, one number for each dimension of `start_index_map`: where the window begins there. Along a "
        "batching dimension it begins where the index lies in that of `start_indices_batching_dims`, else at "
        "0; an `index_vector_dim` of the rank of `indices` means vectors of one number. The ranks must fit "
        "(E3002), dimensions be in range (E3004), be named once (E3005) and ascend (E1103), but in "
        "`start_index_map` and `start_indices_batching_dims`; extents must be equal (E3003) and "
        "`slice_sizes` within the operand (E4123). `indices` have dtype i32 or i64 (E4011).",
        spec="StableHLO specification, gather",
        operands=(OperandDef("operand", MOVABLE), OperandDef("indices", INTEGERS, dtype_code="E4011")),
        attributes=(
            AttributeDef("offset_dims", AttrKind.I64_LIST, "the result's dimensions that run over a window"),
            AttributeDef(
                "collapsed_slice_dims", AttrKind.I64_LIST, "the operand's dimensions that windows lack"
            ),
            AttributeDef(
                "operand_batching_dims",
                AttrKind.I64_LIST,
                "the operand's dimensions that an index's place gives",
                default=(),
            ),
            AttributeDef(
                "start_indices_batching_dims",
                AttrKind.I64_LIST,
                "the dimensions of indices that give it, likewise",
                default=(),
            ),
            AttributeDef("start_index_map", AttrKind.I64_LIST, "the operand's dimensions that are indexed"),
            AttributeDef(
                "index_vector_dim", AttrKind.I64, "the dimension of indices that holds index vectors"
            ),
            AttributeDef("slice_sizes", AttrKind.I64_LIST, "the extents of a window"),
            CHECKED,
        ),
        type_rule=_type,
        evaluate=_evaluate,
        derivative=_vjp,
        lower=_lower,
        stablehlo=hlo.gather_windows,
        same_dtype=False,
        choices=(
            "PTIR has no such operation; this is StableHLO's.",
            "A window that would not lie within the operand is moved until it does: no index is out of "
            "bounds, unlike those of Gather, Take and DynamicSlice.",
            CHECKED_CHOICE,
            "Dimensions do not count from the end.",
        ),
        extension=True,
        examples=(
            Example(("T[5, 3]", "i32[4, 1]"), _form((1,), (0,), (0,), 1, (1, 3)), "rows, as Take reads them"),
            Example(("T[5, 37]", "i64[2, 2]"), _form((0,), (1,), (1,), 2, (5, 1)), "columns"),
            Example(("T[7, 6, 5]", "i32[2, 3]"), _form((1, 2, 3), (), (1, 0), 0, (3, 4, 2)), "windows"),
            Example(("T[5, 4]", "i64[7, 2]"), _form((), (0, 1), (0, 1), 1, (1, 1)), "single elements"),
            Example(
                ("T[3, 5, 2]", "i32[4, 3, 1]"),
                _form((2,), (1,), (1,), 2, (1, 1, 2), ((0,), (1,))),
                "a batch: each index reads from its own part of the operand",
            ),
            Example(("T[6, 5]", "i32[1]"), _form((0, 1), (), (0,), 0, (2, 5)), "a slice that moves"),
            Example(("T[3]", "i32[2, 0]"), _form((1,), (), (), 1, (3,)), "vectors of no numbers"),
            Example(("T[1]", "i64[]"), _form((), (0,), (0,), 0, (1,)), "a single element"),
            Example(("T[5, 3]", "i32[0, 1]"), _form((1,), (0,), (0,), 1, (1, 3)), "no windows"),
        ),
        programs=(Program(_CHECKED, "numbers that are checked, and count from the end"),),
    ),
)
