"""GatherWindows and ScatterWindows: XLA's gather and scatter (StableHLO specification)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import TensorType, format_shape
from mind_mlir.ops import gather_scatter as general
from mind_mlir.ops import stablehlo_indexing as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.dimension_numbers import (
    GATHER,
    SCATTER,
    check_dimension_numbers,
    check_updates_rank,
    check_updates_shape,
    dimension_numbers,
    too_large,
)
from mind_mlir.ops.opdef import (
    EVERY,
    INTEGERS,
    MOVABLE,
    AttributeDef,
    Example,
    ExampleModule,
    OpDef,
    OperandDef,
    Rounding,
)
from mind_mlir.ops.open_indexing import taking_windows
from mind_mlir.ops.scatter_vjp import scatter_vjp
from mind_mlir.ops.windows import Bounds, Shape, Windows

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.contexts import TypeContext
    from mind_mlir.ops.vjp import VjpContext


def _gathered(attributes: Mapping[str, Any], shapes: Sequence[Shape]) -> Windows:
    bounds = Bounds.FROM_END if attributes["checked"] else Bounds.CLAMPED
    return Windows.of(GATHER, attributes, shapes, bounds)


def _scattered(attributes: Mapping[str, Any], shapes: Sequence[Shape]) -> Windows:
    bounds = Bounds.FROM_END if attributes["checked"] else Bounds.SKIPPED
    return Windows.of(SCATTER, attributes, shapes, bounds)


# Types


def _gather_type(context: TypeContext) -> TensorType:
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


def _scatter_type(context: TypeContext) -> TensorType:
    operand, _, updates = context.operands
    general.check_combination(context)
    scattered = check_dimension_numbers(context, SCATTER)
    rank = len(scattered) + len(context.attributes["update_window_dims"])
    check_updates_rank(context, rank, (f"operand is {operand}", f"updates is {updates}"))
    windows = _scattered(context.attributes, [type_.extents for type_ in context.operands])
    check_updates_shape(context, windows, scattered)
    for dim, size, extent in too_large(windows)[:1]:
        context.fail(
            "E4123",
            f"the windows of ScatterWindows have {size} elements on axis {dim}, the operand {extent}",
            operand=2,
            notes=(f"the windows have shape {format_shape(windows.sizes)}",),
            help="a window is nowhere larger than the operand",
            window=windows.sizes,
            shape=operand.extents,
            axis=dim,
        )
    return operand


# Derivatives


def clamped(
    emit: Any, builder: Any, indices: Value, least: Sequence[int], most: Sequence[int], vector_dim: int
) -> Value:
    """Append index vectors each number of which is moved into its range."""
    for opcode, ends in (("Maximum", least), ("Minimum", most)):
        indices = emit(opcode, *_along(emit, builder, indices, ends, vector_dim))
    return indices


def _along(
    emit: Any, builder: Any, indices: Value, numbers: Sequence[int], vector_dim: int
) -> tuple[Value, Value]:
    """Append a constant with a number for each of an index vector, in the shape of ``indices``; return both.

    There are profiles that do not broadcast.
    """
    shape = [1] * indices.type.rank
    if vector_dim < indices.type.rank:
        shape[vector_dim] = len(numbers)
    constant = builder.constant(np.array(numbers).reshape(shape), indices.type.dtype)
    if constant.shape != indices.shape:
        constant = emit("BroadcastTo", constant, result_shape=indices.shape)
    return indices, constant


def _gather_vjp(context: VjpContext) -> Sequence[Value | None]:
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
    form = GATHER.renamed(attributes, SCATTER, reduce="Add", checked=attributes["checked"])
    return context.emit("ScatterWindows", zeros, indices, context.cotangent, **form), None


def _read(context: VjpContext, value: Value, outside: float) -> Value:
    """Append what lies at the places of the updates of a ScatterWindows; ``outside`` where there is none.

    It is read from a tensor that has a margin all around, as wide as a window.
    """
    attributes, indices, emit = context.attributes, context.operands[1], context.emit
    windows = _scattered(attributes, [operand.type.extents for operand in context.operands])
    if windows.indexed and not attributes["checked"]:
        margin = tuple(size if dim in windows.indexed else 0 for dim, size in enumerate(windows.sizes))
        fill = TensorLiteral.of(outside, value.type.dtype)
        between = (0,) * len(margin)
        value = emit("Pad", value, low=margin, high=margin, interior=between, pad_value=fill)
        sizes = [windows.sizes[dim] for dim in windows.indexed]
        least, most = [-size for size in sizes], [windows.operand[dim] for dim in windows.indexed]
        indices = clamped(emit, context.builder, indices, least, most, windows.vector_dim)
        indices = emit("Add", *_along(emit, context.builder, indices, sizes, windows.vector_dim))
    form = SCATTER.renamed(attributes, GATHER, slice_sizes=windows.sizes, checked=attributes["checked"])
    return emit("GatherWindows", value, indices, **form)


# Records


#: Whether windows are looked for only where they are, as Gather reads and ScatterAdd adds.
_CHECKED = AttributeDef(
    "checked",
    AttrKind.BOOL,
    "whether a window that does not lie within the operand is an error, and negative numbers count from the "
    "end where windows are one element thick",
    default=False,
)
#: What that is in words.
_CHECKED_CHOICE = (
    "With `checked`, as numpy has it and XLA not, a window that does not lie within the operand is E6001 "
    "when the function runs, and no result is returned; a number in `[-extent, -1]` counts from the end "
    "where a window is one element thick."
)
_GATHER_CHECKED = (
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
_SCATTER_CHECKED = (
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


_gather = partial(GATHER.form, checked=False)
_scatter = partial(SCATTER.form, checked=False)

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
            *dimension_numbers(GATHER, "the result's dimensions that run over a window"),
            AttributeDef("slice_sizes", AttrKind.I64_LIST, "the extents of a window"),
            _CHECKED,
        ),
        type_rule=_gather_type,
        evaluate=general.evaluate_gather(_gathered),
        derivative=_gather_vjp,
        open_axes=taking_windows,
        lower=general.lower_gather(_gathered),
        stablehlo=hlo.gather(_gathered),
        same_dtype=False,
        choices=(
            "PTIR has no such operation; this is StableHLO's.",
            "A window that would not lie within the operand is moved until it does: no index is out of "
            "bounds, unlike those of Gather, Take and DynamicSlice.",
            _CHECKED_CHOICE,
            "Dimensions do not count from the end.",
        ),
        extension=True,
        examples=(
            Example(
                ("T[5, 3]", "i32[4, 1]"),
                _gather((1,), (0,), (0,), 1, slice_sizes=(1, 3)),
                "rows, as Take reads them",
            ),
            Example(("T[5, 37]", "i64[2, 2]"), _gather((0,), (1,), (1,), 2, slice_sizes=(5, 1)), "columns"),
            Example(
                ("T[7, 6, 5]", "i32[2, 3]"),
                _gather((1, 2, 3), (), (1, 0), 0, slice_sizes=(3, 4, 2)),
                "windows",
            ),
            Example(
                ("T[5, 4]", "i64[7, 2]"),
                _gather((), (0, 1), (0, 1), 1, slice_sizes=(1, 1)),
                "single elements",
            ),
            Example(
                ("T[3, 5, 2]", "i32[4, 3, 1]"),
                _gather((2,), (1,), (1,), 2, slice_sizes=(1, 1, 2), batching=((0,), (1,))),
                "a batch: each index reads from its own part of the operand",
            ),
            Example(
                ("T[6, 5]", "i32[1]"), _gather((0, 1), (), (0,), 0, slice_sizes=(2, 5)), "a slice that moves"
            ),
            Example(
                ("T[3]", "i32[2, 0]"), _gather((1,), (), (), 1, slice_sizes=(3,)), "vectors of no numbers"
            ),
            Example(("T[1]", "i64[]"), _gather((), (0,), (0,), 0, slice_sizes=(1,)), "a single element"),
            Example(("T[5, 3]", "i32[0, 1]"), _gather((1,), (0,), (0,), 1, slice_sizes=(1, 3)), "no windows"),
        ),
        programs=(ExampleModule(_GATHER_CHECKED, "numbers that are checked, and count from the end"),),
    ),
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
            *dimension_numbers(SCATTER, "the dimensions of updates that form a window"),
            AttributeDef("reduce", AttrKind.ENUM, "how elements are combined", choices=general.KINDS),
            _CHECKED,
        ),
        type_rule=_scatter_type,
        evaluate=general.evaluate_scatter(_scattered),
        derivative=scatter_vjp("ScatterWindows", _read),
        lower=general.lower_scatter(_scattered),
        stablehlo=hlo.scatter(_scattered),
        rounding=Rounding.ACCUMULATING,
        terms=lambda shapes, _: 1 + math.prod(shapes[2]),
        same_dtype=False,
        choices=(
            "PTIR has no such operation; this is StableHLO's.",
            "An element of `updates` whose place is outside the operand is left out, the others of its "
            "window are not: no index is out of bounds, unlike those of ScatterAdd and ScatterReduce.",
            "Of several updates of one element, `Replace` takes the last in row-major order.",
            general.ADDITIONS,
            "Integers wrap around; floats narrower than f32 are combined in f32 and rounded once.",
            "Max and Min give NaN where any of the numbers is, and -0.0 is less than +0.0.",
            "Gradients are those of ScatterReduce; that of Mul is the product of the other factors of an "
            "element, right where some are zero.",
            _CHECKED_CHOICE,
            "Dimensions do not count from the end.",
        ),
        extension=True,
        examples=(
            Example(("T[5, 3]", "i32[4, 1]", "T[4, 3]"), _scatter((1,), (0,), (0,), 1, reduce="Add"), "rows"),
            Example(("T[5, 7]", "i64[2]", "T[5, 2]"), _scatter((0,), (1,), (1,), 1, reduce="Mul"), "columns"),
            Example(
                ("T[7, 6, 5]", "i32[2, 3]", "T[3, 3, 4, 2]"),
                _scatter((1, 2, 3), (), (1, 0), 0, reduce="Max"),
                "windows that overlap",
            ),
            Example(
                ("T[5, 4]", "i64[7, 2]", "T[7]"),
                _scatter((), (0, 1), (0, 1), 1, reduce="Min"),
                "single elements",
            ),
            Example(
                ("T[3, 5, 2]", "i32[4, 3, 1]", "T[4, 3, 2]"),
                _scatter((2,), (1,), (1,), 2, reduce="Replace", batching=((0,), (1,))),
                "a batch: each index writes to its own part of the operand",
            ),
            Example(
                ("T[6, 5]", "i32[1]", "T[2, 5]"),
                _scatter((0, 1), (), (0,), 0, reduce="Replace"),
                "one window",
            ),
            Example(
                ("T[37]", "i64[131]", "T[131]"),
                _scatter((), (0,), (0,), 1, reduce="Add"),
                "many for each element",
            ),
            Example(("T[3]", "i32[2, 0]", "T[2, 3]"), _scatter((1,), (), (), 1, reduce="Mul"), "no numbers"),
            Example(
                ("T[5, 3]", "i32[0, 1]", "T[0, 3]"), _scatter((1,), (0,), (0,), 1, reduce="Max"), "nothing"
            ),
        ),
        programs=(ExampleModule(_SCATTER_CHECKED, "numbers that are checked, and count from the end"),),
    ),
)
