"""ScatterAdd and ScatterReduce: updates of rows, windows and elements (ptir-v0.4.md, "Indexing ops")."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from mind_mlir.ir.types import DType, TensorType, format_shape
from mind_mlir.ops import gather_scatter as general
from mind_mlir.ops import stablehlo_indexing as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.axes import NEGATIVE_AXIS, counted_from_front, require_axis
from mind_mlir.ops.contract import Contract, Field, FieldKind, cannot_say, same_fields
from mind_mlir.ops.contract_forms import scatter_form
from mind_mlir.ops.dimension_numbers import (
    SCATTER,
    check_scatter_add,
    check_updates_shape,
    dimension_numbers,
    too_large,
)
from mind_mlir.ops.dims_rules import along_axis as along_axis_dims
from mind_mlir.ops.dims_rules import scattering
from mind_mlir.ops.indexing import along_axis, require_along
from mind_mlir.ops.opdef import (
    ALL_NUMERIC,
    EVERY,
    INTEGERS,
    NO_NUMBERS,
    AttributeDef,
    Domain,
    Example,
    OpDef,
    OperandDef,
    Rounding,
)
from mind_mlir.ops.open_indexing import adding_windows
from mind_mlir.ops.scatter_vjp import scatter_vjp
from mind_mlir.ops.windows import Windows, elements, row_form, scatter_add_windows

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array, AttributeValue
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext

_REDUCTIONS = ("Add", "Max", "Min", "Replace")


# Attributes of ScatterAdd


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


# Types


def _scatter_add_type(context: TypeContext) -> TensorType:
    operand = context.operands[0]
    general.check_combination(context)
    scattered = check_scatter_add(context)
    windows = scatter_add_windows(context.attributes, [type_.extents for type_ in context.operands])
    check_updates_shape(context, windows, scattered)
    for dim, size, extent in too_large(windows):
        context.report(
            "E4123",
            f"the window of ScatterAdd has {size} elements on axis {dim}, the tensor {extent}",
            operand=2,
            notes=(f"the window has shape {format_shape(windows.sizes)}",),
            help="a window is nowhere larger than the tensor",
            window=windows.sizes,
            shape=windows.operand,
            axis=dim,
        )
    context.stop_if_reported()
    return operand


def _scatter_reduce_type(context: TypeContext) -> TensorType:
    operand, indices, updates = context.operands
    general.check_combination(context, _REDUCTIONS, "; to count them, cast them to integers")
    axis = require_axis(context, operand.rank)
    require_along(context, axis, 1, "indices")
    if updates.shape != indices.shape:
        context.fail(
            "E3003",
            f"the updates of ScatterReduce have the shape of {updates}, the indices that of {indices}",
            operand=2,
            notes=(f"operand is {operand}",),
            help="there must be one index for each update",
            dimension="updates",
            extents=(updates.shape, indices.shape),
        )
    return operand


def _evaluate_scatter_reduce(context: EvalContext) -> Array:
    operand, indices, updates = context.operands
    elements(context.attributes, [operand.shape, indices.shape]).require(context, indices)
    return general.combined(context, along_axis(indices, context.attributes["axis"]), updates)


# Derivatives


def _read_elements(context: VjpContext, value: Value, _: float) -> Value:
    """Append the elements of ``value`` at the places of the updates of a ScatterReduce."""
    return context.emit("GatherElements", value, context.operands[1], axis=context.attributes["axis"])


def _read_windows(context: VjpContext, value: Value, _: float) -> Value:
    """Append the elements of ``value`` at the places of the updates of a ScatterAdd, as PTIR can say it."""
    operand, indices = context.operands[:2]
    attributes, form = context.attributes, row_form(operand.type.rank, indices.type.rank)
    if all(attributes[name] == given for name, given in form.items() if name != "from_end"):
        return context.emit("Gather" if attributes["from_end"] else "Take", value, indices)
    flat = context.emit("Reshape", value, new_shape=(operand.type.element_count,))
    windows = scatter_add_windows(attributes, [each.type.extents for each in context.operands])
    return context.emit("Take", flat, _places(context, windows, indices))


def _places(context: VjpContext, windows: Windows, indices: Value) -> Value:
    """Append the place in the flat operand that each update is added to, i64 of the updates' shape."""

    def spread(value: Value) -> Value:
        if value.type.extents == windows.shape:
            return value
        return context.emit("BroadcastTo", value, result_shape=windows.shape)

    def full(number: int) -> Value:
        return spread(context.builder.constant(number, DType.SI64))

    def moved(places: Value, steps: Value, dim: int) -> Value:
        stride = math.prod(windows.operand[dim + 1 :])
        return context.emit("Add", places, context.emit("Mul", steps, full(stride)))

    places = full(0)
    for dim, source in enumerate(windows.sources):
        if source is not None:
            counted = context.emit("Iota", shape=windows.shape, dtype=DType.SI64, axis=source)
            places = moved(places, counted, dim)
    for number, dim in enumerate(windows.indexed):
        begins = spread(_numbers(context, windows, indices, number))
        if windows.wraps(dim):
            zero, extent = full(0), full(windows.operand[dim])
            negative = context.emit("Compare", begins, zero, op="Less")
            begins = context.emit("Select", negative, context.emit("Add", begins, extent), begins)
        places = moved(places, begins, dim)
    return places


def _numbers(context: VjpContext, windows: Windows, indices: Value, number: int) -> Value:
    """Append number ``number`` of all index vectors, in a shape that broadcasts to the updates'."""
    shape, rank, dim = indices.type.extents, indices.type.rank, windows.vector_dim
    if dim < rank:
        starts = tuple(number if axis == dim else 0 for axis in range(rank))
        ends = tuple(number + 1 if axis == dim else extent for axis, extent in enumerate(shape))
        indices = context.emit("Slice", indices, starts=starts, ends=ends, steps=(1,) * rank)
    indices = context.cast(indices, DType.SI64)
    extents = tuple(n if axis in windows.scattered else 1 for axis, n in enumerate(windows.shape))
    return context.emit("Reshape", indices, new_shape=extents)


def _form(
    windows: tuple[int, ...], inserted: tuple[int, ...], indexed: tuple[int, ...], vector_dim: int
) -> dict[str, Any]:
    names = (SCATTER.windows, SCATTER.thin, SCATTER.indexed, "index_vector_dim", "from_end")
    return dict(zip(names, (windows, inserted, indexed, vector_dim, False), strict=True))


_REDUCE_ATTRIBUTES = (
    AttributeDef("axis", AttrKind.I64, "the axis that the indices are positions on"),
    AttributeDef("reduce", AttrKind.ENUM, "how elements are combined", choices=_REDUCTIONS),
)

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
            *dimension_numbers(SCATTER, "the dimensions of updates that form a window", batching=False),
            AttributeDef(
                "from_end", AttrKind.BOOL, "whether negative indices count from the end", default=True
            ),
        ),
        type_rule=_scatter_add_type,
        evaluate=general.evaluate_scatter(scatter_add_windows),
        derivative=scatter_vjp("ScatterAdd", _read_windows),
        dims=scattering,
        open_axes=adding_windows,
        lower=general.lower_scatter(scatter_add_windows),
        in_contract=scatter_form,
        stablehlo=hlo.scatter(scatter_add_windows),
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
            spec="ScatterSpec",
            read=lambda fields, _: {**fields, "from_end": False},
            write=_dimension_numbers,
        ),
        choices=(
            "A window that does not lie within the operand is E6001 when the function runs, and no result is "
            "returned; XLA leaves it out. Indices of a dimension lie in `[0, extent - window]`. With "
            "`from_end`, which PTIR programs do not have, an index in `[-extent, -1]` counts from the end, "
            "as Gather's, where the window is one element thick.",
            general.ADDITIONS,
            "Integers wrap around on overflow; floats narrower than f32 are added in f32 and rounded once.",
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
                _form((1,), (0, 1), (1, 0), 1),
                "each index names a row by two numbers",
            ),
            Example(
                ("T[6, 5]", "i32[2, 3]", "T[2, 4, 3]"),
                _form((0, 1), (), (0, 1), 0),
                "windows in two dimensions, which overlap",
            ),
            Example(
                ("T[3, 7]", "i64[5, 1, 2]", "T[3, 5, 2]"),
                _form((0,), (-1,), (-1,), 1),
                "columns; dimensions that count from the end",
            ),
            Example(("T[]", "i64[4, 0]", "T[4]"), _form((), (), (), 1), "a scalar has no dimension to index"),
        ),
    ),
    OpDef(
        opcode="ScatterReduce",
        mnemonic="scatter_reduce",
        summary="Combines elements with those of a tensor at given positions along an axis.",
        description="The result is `operand`, in which each element of `updates` is added to the element at "
        "the same index with `indices[index]` on `axis`, or is compared with it and the greater (`Max`) or "
        "lesser (`Min`) stays, or takes its place (`Replace`). `indices` and `updates` have one shape "
        "(E3003), the rank of `operand` (E3002), which `axis` lies in (E3004), and its extents but along "
        "`axis` (E3003). `indices` have dtype i32 or i64 (E4011) and numbers in `[0, operand.shape[axis])` "
        "(E6001), `updates` the dtype of `operand` (E2004). Complex numbers have no `Max` and `Min`, truth "
        "values no `Add` (E2005).",
        spec="ptir-v0.4.md, ScatterReduce",
        operands=(
            OperandDef("operand", EVERY),
            OperandDef("indices", INTEGERS, dtype_code="E4011", domain=Domain.POSITION),
            OperandDef("updates", EVERY),
        ),
        attributes=_REDUCE_ATTRIBUTES,
        type_rule=_scatter_reduce_type,
        evaluate=_evaluate_scatter_reduce,
        derivative=scatter_vjp("ScatterReduce", _read_elements),
        dims=along_axis_dims,
        lower=general.lower_scatter(elements),
        stablehlo=hlo.scatter_reduce,
        normalize=counted_from_front,
        rounding=Rounding.ACCUMULATING,
        terms=lambda shapes, _: 1 + math.prod(shapes[1]),
        same_dtype=False,
        extension=True,
        contract=same_fields("ScatterReduce", _REDUCE_ATTRIBUTES),
        choices=(
            NEGATIVE_AXIS,
            "Indices count from 0: a negative one, like one beyond the end, is E6001 when the function runs, "
            "and no result is returned.",
            "Of several updates of one element, `Replace` takes the last in row-major order.",
            general.ADDITIONS,
            "Integers wrap around on overflow; floats narrower than f32 are added in f32 and rounded once.",
            "Max and Min give NaN where any of the numbers is, and -0.0 is less than +0.0.",
            "The gradient of Max and Min is shared evenly by the element of `operand` and the updates that "
            "equal the result; none flows where that is NaN. The gradient of Replace goes to the update that "
            "took the place, and to the elements that none did.",
        ),
        examples=(
            Example(("T[5, 3]", "i64[7, 3]", "T[7, 3]"), {"axis": 0, "reduce": "Add"}),
            Example(("T[3, 5]", "i32[3, 9]", "T[3, 9]"), {"axis": -1, "reduce": "Max"}, "duplicates"),
            Example(("T[2, 4, 3]", "i64[2, 5, 3]", "T[2, 5, 3]"), {"axis": 1, "reduce": "Min"}),
            Example(("T[5, 2]", "i64[11, 2]", "T[11, 2]"), {"axis": 0, "reduce": "Replace"}),
            Example(("T[37]", "i64[5]", "T[5]"), {"axis": 0, "reduce": "Add"}),
            Example(("T[1, 1]", "i32[1, 4]", "T[1, 4]"), {"axis": 1, "reduce": "Replace"}),
            Example(("T[2, 5]", "i64[2, 0]", "T[2, 0]"), {"axis": 1, "reduce": "Max"}, "nothing"),
        ),
    ),
)
