"""ScatterWindows: XLA's scatter, which leaves out what does not fit (StableHLO specification, "scatter")."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, DTypeKind, TensorType, format_shape
from mind_mlir.ops import stablehlo_indexing as hlo
from mind_mlir.ops.accumulators import computed_dtype
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.opdef import EVERY, INTEGERS, AttributeDef, Example, OpDef, OperandDef, Program, Rounding
from mind_mlir.ops.reassociation import reshape
from mind_mlir.ops.scatter import index_numbers
from mind_mlir.ops.scatter_reduce import extreme_at
from mind_mlir.ops.scatter_rows import rounded_once, scatter_rows
from mind_mlir.ops.window_numbers import (
    CHECKED,
    CHECKED_CHOICE,
    SCATTER,
    WindowNumbers,
    check_dimension_numbers,
)
from mind_mlir.ops.window_scatter_vjp import scatter_windows_vjp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext

KINDS = ("Add", "Mul", "Max", "Min", "Replace")


def _type(context: TypeContext) -> TensorType:
    operand, _, updates = context.operands
    _check_dtypes(context)
    scattered = check_dimension_numbers(context, SCATTER)
    windows: tuple[int, ...] = context.attributes["update_window_dims"]
    rank = len(scattered) + len(windows)
    if updates.rank != rank:
        context.fail(
            "E3002",
            f"the updates of ScatterWindows have rank {updates.rank} instead of {rank}",
            operand=2,
            notes=(f"operand is {operand}", f"updates is {updates}"),
            help="they have the dimensions of the window and those of the indices without index_vector_dim",
            expected=rank,
            found=updates.rank,
        )
    others = iter(scattered)
    expected = tuple(extent if dim in windows else next(others) for dim, extent in enumerate(updates.extents))
    if updates.extents != expected:
        context.fail(
            "E3003",
            f"the updates of ScatterWindows have shape {format_shape(updates.extents)} instead of "
            f"{format_shape(expected)}",
            operand=2,
            notes=(f"operand is {operand}", f"indices is {context.operands[1]}"),
            help="there must be one window for each index",
            dimension="updates",
            extents=(updates.extents, expected),
        )
    numbers = WindowNumbers.of(SCATTER, context.attributes, operand.extents, updates.extents)
    for dim, (size, extent) in enumerate(zip(numbers.sizes, operand.extents, strict=True)):
        if size > extent and numbers.sources[dim] is not None:
            context.fail(
                "E4123",
                f"the windows of ScatterWindows have {size} elements on axis {dim}, the operand {extent}",
                operand=2,
                notes=(f"the windows have shape {format_shape(numbers.sizes)}",),
                help="a window is nowhere larger than the operand",
                window=numbers.sizes,
                shape=operand.extents,
                axis=dim,
            )
    return operand


def _check_dtypes(context: TypeContext) -> None:
    operand, _, updates = context.operands
    reduce: str = context.attributes["reduce"]
    if updates.dtype is not operand.dtype:
        context.fail(
            "E2004",
            f"Dtype mismatch: ScatterWindows of {updates.dtype.core_name} to {operand.dtype.core_name}",
            operand=2,
            notes=(f"operand is {operand}", f"updates is {updates}"),
            help="give both the same dtype; there is no implicit promotion",
            left=operand.dtype.core_name,
            right=updates.dtype.core_name,
        )
    unordered = reduce in ("Max", "Min") and operand.dtype.kind is DTypeKind.COMPLEX
    if unordered or (reduce in ("Add", "Mul") and operand.dtype is DType.I1):
        context.fail(
            "E2005",
            f"ScatterWindows with reduce={reduce} does not take {operand.dtype.core_name}",
            operand=0,
            help="complex numbers have no order: use Add, Mul or Replace"
            if unordered
            else "truth values are no numbers: Max says whether any is true, Min whether all are",
            found=operand.dtype.core_name,
            allowed="real dtypes" if unordered else "numbers",
            dtype=operand.dtype.core_name,
        )


def _evaluate(context: EvalContext) -> Array:
    operand, indices, updates = context.operands
    reduce, dtype = context.attributes["reduce"], context.result_type.dtype
    windows = WindowNumbers.of(SCATTER, context.attributes, operand.shape, updates.shape)
    checked: bool = context.attributes["checked"]
    if checked:
        windows.require(context, indices)
    places = windows.places(indices, clamped=False, checked=checked)
    inside = np.ones(updates.shape, np.bool_)
    for place, extent in zip(places, operand.shape, strict=True):
        inside &= (place >= 0) & (place < extent)
    found, added = tuple(place[inside] for place in places), updates[inside]
    if reduce == "Replace":
        result = operand.copy()
        for number in range(added.size):  # the last one stays
            result[tuple(place[number] for place in found)] = added[number]
        return result
    wide = computed_dtype(dtype).numpy
    result, added = operand.astype(wide), added.astype(wide)
    if reduce in ("Max", "Min"):
        extreme_at(result, found, added, reduce)
    else:
        (np.add if reduce == "Add" else np.multiply).at(result, found, added)
    return rounded_once(result, dtype)


def _lower(context: LoweringContext) -> Any:
    operand, _, updates = context.operand_types
    windows = WindowNumbers.of(SCATTER, context.attributes, operand.extents, updates.extents)
    numbers = index_numbers(context, windows.vector_dim, len(windows.indexed))
    checked: bool = context.attributes["checked"]
    if checked:
        windows.check(context, numbers)
    if operand.element_count == 0 or updates.element_count == 0:
        return context.operands[0]
    kept = updates.rank - windows.full_rank
    row_shape, width = updates.extents[:kept], math.prod(updates.extents[kept:])
    rows = _row_numbers(context, windows, numbers, TensorType(DType.SI64, row_shape))

    def row(at: Any) -> Any:
        found = context.mlir.tensor.extract(rows, [at])
        return context.mlir.arith.index_cast(context.mlir.ir.IndexType.get(), found)

    number = context.arithmetic(computed_dtype(operand.dtype))
    combine = {
        "Add": number.add,
        "Mul": number.multiply,
        "Max": number.maximum,
        "Min": number.minimum,
        "Replace": None,
    }
    kind = combine[context.attributes["reduce"]]
    return scatter_rows(context, row, math.prod(row_shape), width, kind, skips=not checked)


def _row_numbers(
    context: LoweringContext, windows: WindowNumbers, numbers: Sequence[Any], type_: TensorType
) -> Any:
    """Append a flat tensor of i64: where each row of the updates goes; the count of rows for nowhere.

    Sums of positions may wrap around, which takes them outside as well.
    """
    mlir, arith = context.mlir, context.mlir.arith
    rank = len(windows.operand) - windows.full_rank
    checked: bool = context.attributes["checked"]
    i64 = context.element(DType.SI64)
    below = arith.CmpIPredicate.ult

    def body(*elements: Any) -> Any:
        begins = dict(zip(windows.indexed, elements, strict=False))
        row, inside = context.scalar(0, DType.SI64), context.scalar(1, DType.I1)
        for dim, extent in enumerate(windows.operand[:rank]):
            place = context.scalar(0, DType.SI64)
            if dim in begins and checked:
                place = arith.index_cast(i64, windows.begin(context, begins[dim], dim))
            elif dim in begins:
                begin = begins[dim]
                place = begin if begin.type == i64 else arith.extsi(i64, begin)
            for source in (windows.sources[dim], windows.batched[dim]):
                if source is not None:
                    counted = arith.index_cast(i64, mlir.linalg.IndexOp(source).result)
                    place = arith.addi(place, counted)
            end = context.scalar(extent, DType.SI64)
            if dim in begins and not checked:
                inside = arith.andi(inside, arith.cmpi(below, place, end))
            row = arith.addi(arith.muli(row, end), place)
        count = context.scalar(math.prod(windows.operand[:rank]), DType.SI64)
        return arith.select(inside, row, count)

    dims = [mlir.ir.AffineDimExpr.get(dim) for dim in windows.scattered]
    maps = [mlir.ir.AffineMap.get(type_.rank, 0, dims) for _ in numbers]
    maps.append(mlir.ir.AffineMap.get_identity(type_.rank))
    (rows,) = context.generic(numbers, maps, [context.empty(type_)], ["parallel"] * type_.rank, body)
    return reshape(context, rows, type_, (type_.element_count,))


def _form(
    windows: tuple[int, ...],
    inserted: tuple[int, ...],
    indexed: tuple[int, ...],
    vector_dim: int,
    reduce: str,
    batching: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
) -> dict[str, Any]:
    return {
        "update_window_dims": windows,
        "inserted_window_dims": inserted,
        "input_batching_dims": batching[0],
        "scatter_indices_batching_dims": batching[1],
        "scatter_dims_to_operand_dims": indexed,
        "index_vector_dim": vector_dim,
        "reduce": reduce,
        "checked": False,
    }


_CHECKED = (
    "func @main(%x: tensor<f32[3, 4]>, %y: tensor<f32[3]>, %z: tensor<f32[2, 2]>) -> "
    "(tensor<f32[3, 4]>) {\n"
    "^entry:\n"
    "  %i = ConstTensor {value=[[0, -1, 2], [-4, 3, -1]], dtype=i64, shape=[2, 3]} : "
    "tensor<i64[2, 3]>\n"
    "  %a = ScatterWindows (%x, %i, %y) {update_window_dims=[], inserted_window_dims=[0, 1], "
    "scatter_dims_to_operand_dims=[0, 1], index_vector_dim=0, reduce=Add, checked=true} : "
    "tensor<f32[3, 4]>\n"
    "  %j = ConstTensor {value=[[-3, 1], [1, 2]], dtype=i64, shape=[2, 2]} : tensor<i64[2, 2]>\n"
    "  %b = ScatterWindows (%a, %j, %z) {update_window_dims=[1], inserted_window_dims=[0], "
    "scatter_dims_to_operand_dims=[0, 1], index_vector_dim=0, reduce=Max, checked=true} : "
    "tensor<f32[3, 4]>\n"
    "  return %b\n"
    "}\n"
)

OPERATIONS = (
    OpDef(
        opcode="ScatterWindows",
        mnemonic="scatter_windows",
        summary="Combines windows with those of a tensor at given positions, as far as these exist.",
        description="XLA's scatter. The result is `operand`, in which each element of `updates` is added to "
        "the element at its place (`Add`), multiplied by it (`Mul`), is compared with it and the greater "
        "(`Max`) or lesser (`Min`) stays, or takes its place (`Replace`). The attributes are XLA's dimension "
        "numbers, as GatherWindows has them: `update_window_dims` of `updates` run over a window, "
        "`inserted_window_dims` and `input_batching_dims` of `operand` are those that it lacks, "
        "`scatter_dims_to_operand_dims` those that the numbers of an index vector are positions in. The "
        "ranks must fit (E3002), dimensions be in range (E3004), be named once (E3005) and ascend (E1103), "
        "but in `scatter_dims_to_operand_dims` and `scatter_indices_batching_dims`; extents must be those of "
        "the indices (E3003) and windows no larger than the operand (E4123). `indices` have dtype i32 or i64 "
        "(E4011), `updates` that of `operand` (E2004). Complex numbers have no `Max` and `Min`, truth values "
        "no `Add` and `Mul` (E2005).",
        spec="StableHLO specification, scatter",
        operands=(
            OperandDef("operand", EVERY),
            OperandDef("indices", INTEGERS, dtype_code="E4011"),
            OperandDef("updates", EVERY),
        ),
        attributes=(
            AttributeDef(
                "update_window_dims", AttrKind.I64_LIST, "the dimensions of updates that form a window"
            ),
            AttributeDef(
                "inserted_window_dims", AttrKind.I64_LIST, "the operand's dimensions that windows lack"
            ),
            AttributeDef(
                "input_batching_dims",
                AttrKind.I64_LIST,
                "the operand's dimensions that an index's place gives",
                default=(),
            ),
            AttributeDef(
                "scatter_indices_batching_dims",
                AttrKind.I64_LIST,
                "the dimensions of indices that give it, likewise",
                default=(),
            ),
            AttributeDef(
                "scatter_dims_to_operand_dims", AttrKind.I64_LIST, "the operand's dimensions that are indexed"
            ),
            AttributeDef(
                "index_vector_dim", AttrKind.I64, "the dimension of indices that holds index vectors"
            ),
            AttributeDef("reduce", AttrKind.ENUM, "how elements are combined", choices=KINDS),
            CHECKED,
        ),
        type_rule=_type,
        evaluate=_evaluate,
        derivative=scatter_windows_vjp,
        lower=_lower,
        stablehlo=hlo.scatter_windows,
        rounding=Rounding.ACCUMULATING,
        terms=lambda shapes, _: 1 + math.prod(shapes[2]),
        same_dtype=False,
        choices=(
            "PTIR has no such operation; this is StableHLO's.",
            "An element of `updates` whose place is outside the operand is left out, the others of its "
            "window are not: no index is out of bounds, unlike those of ScatterAdd and ScatterReduce.",
            "Updates are combined in row-major order: of several for one element, `Replace` takes the last, "
            "and results are the same bits every time. Integers wrap around on overflow; floats narrower "
            "than f32 are combined in f32 and rounded once.",
            "Max and Min give NaN where any of the numbers is, and -0.0 is less than +0.0.",
            "Gradients are those of ScatterReduce; that of Mul is the product of the other factors of an "
            "element, right where some are zero.",
            CHECKED_CHOICE,
            "Dimensions do not count from the end.",
        ),
        extension=True,
        examples=(
            Example(("T[5, 3]", "i32[4, 1]", "T[4, 3]"), _form((1,), (0,), (0,), 1, "Add"), "rows"),
            Example(("T[5, 7]", "i64[2]", "T[5, 2]"), _form((0,), (1,), (1,), 1, "Mul"), "columns"),
            Example(
                ("T[7, 6, 5]", "i32[2, 3]", "T[3, 3, 4, 2]"),
                _form((1, 2, 3), (), (1, 0), 0, "Max"),
                "windows that overlap",
            ),
            Example(("T[5, 4]", "i64[7, 2]", "T[7]"), _form((), (0, 1), (0, 1), 1, "Min"), "single elements"),
            Example(
                ("T[3, 5, 2]", "i32[4, 3, 1]", "T[4, 3, 2]"),
                _form((2,), (1,), (1,), 2, "Replace", ((0,), (1,))),
                "a batch: each index writes to its own part of the operand",
            ),
            Example(("T[6, 5]", "i32[1]", "T[2, 5]"), _form((0, 1), (), (0,), 0, "Replace"), "one window"),
            Example(
                ("T[37]", "i64[131]", "T[131]"), _form((), (0,), (0,), 1, "Add"), "many for each element"
            ),
            Example(("T[3]", "i32[2, 0]", "T[2, 3]"), _form((1,), (), (), 1, "Mul"), "no numbers"),
            Example(("T[5, 3]", "i32[0, 1]", "T[0, 3]"), _form((1,), (0,), (0,), 1, "Max"), "nothing"),
        ),
        programs=(Program(_CHECKED, "numbers that are checked, and count from the end"),),
    ),
)
