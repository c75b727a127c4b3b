"""Windows of a tensor at places known at run time (ptir-v0.4.md, "Dynamic slice/update")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, Shape, TensorType, format_shape
from mind_mlir.ops import stablehlo_indexing as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contract import Contract, Field, FieldKind, refuse
from mind_mlir.ops.dims_rules import windowing
from mind_mlir.ops.opdef import INTEGERS, MOVABLE, Alias, AttributeDef, Example, OpDef, OperandDef
from mind_mlir.ops.open_indexing import slicing_at, updating_at
from mind_mlir.ops.pointwise import zeros_like

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext


def _slice_type(context: TypeContext) -> TensorType:
    operand, start = context.operands
    sizes: tuple[int, ...] = context.attributes["sizes"]
    if len(sizes) != operand.rank:
        context.report(
            "E4007",
            f"DynamicSlice of a tensor of rank {operand.rank} needs {operand.rank} sizes, found {len(sizes)}",
            attribute="sizes",
            notes=(f"the operand has type {operand}",),
            help="give one size for each dimension",
            id=context.value_id,
            rank=operand.rank,
            lengths=(len(sizes),),
        )
    for index, size in enumerate(sizes):
        if size < 0:
            context.report(
                "E3006",
                f"DynamicSlice has size {size} in dimension {index}",
                attribute="sizes",
                help="sizes are extents of the result: 0 or more",
                shape=sizes,
                index=index,
                value_found=size,
            )
    _require_start(context, 1, start, operand.rank)
    context.stop_if_reported()
    _require_window(context, sizes, operand.shape, attribute="sizes")
    return operand.with_shape(sizes)


def _update_type(context: TypeContext) -> TensorType:
    operand, update, start = context.operands
    if update.dtype is not operand.dtype:
        context.fail(
            "E2004",
            f"Dtype mismatch: DynamicUpdateSlice of {operand.dtype.core_name} with {update.dtype.core_name}",
            operand=1,
            notes=(f"operand is {operand}", f"update is {update}"),
            help="give both the same dtype; there is no implicit promotion",
            left=operand.dtype.core_name,
            right=update.dtype.core_name,
        )
    if update.rank != operand.rank:
        context.report(
            "E3002",
            f"the update of DynamicUpdateSlice has rank {update.rank}, its operand rank {operand.rank}",
            operand=1,
            notes=(f"operand is {operand}", f"update is {update}"),
            help="give both the same rank; ExpandDims adds dimensions of extent 1",
            expected=operand.rank,
            found=update.rank,
        )
    _require_start(context, 2, start, operand.rank)
    context.stop_if_reported()
    _require_window(context, update.shape, operand.shape, operand=1)
    return operand


def _require_start(context: TypeContext, index: int, start: TensorType, rank: int) -> None:
    facts: dict[str, Any] = {
        "operand": index,
        "notes": (f"start has type {start}",),
        "help": f"give a vector of one number for each dimension: tensor<{start.dtype.core_name}[{rank}]>",
    }
    if start.rank != 1:
        message = f"the start of {context.opcode} is a vector, found one of rank {start.rank}"
        context.report("E3002", message, expected=1, found=start.rank, **facts)
    elif start.shape[0] != rank:
        message = f"the start of {context.opcode} has {start.shape[0]} numbers for {rank} dimensions"
        context.report("E3003", message, dimension="start", extents=(start.shape[0], rank), **facts)


def _require_window(context: TypeContext, sizes: Shape, shape: Shape, **place: Any) -> None:
    for axis, (size, extent) in enumerate(zip(sizes, shape, strict=True)):
        if isinstance(size, int) and isinstance(extent, int) and size > extent:
            context.report(
                "E4123",
                f"the window of {context.opcode} has {size} elements on axis {axis}, the tensor {extent}",
                notes=(f"the window has shape {format_shape(sizes)}, the tensor {format_shape(shape)}",),
                help="a window is nowhere larger than the tensor",
                window=sizes,
                shape=shape,
                axis=axis,
                **place,
            )
    context.stop_if_reported()


def _window(start: Array, sizes: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    """Return the window of ``sizes`` that begins at ``start``, moved into a tensor of ``shape``."""
    begins = (
        max(0, min(first, extent - size))
        for first, size, extent in zip(start.tolist(), sizes, shape, strict=True)
    )
    return tuple(slice(first, first + size) for first, size in zip(begins, sizes, strict=True))


def _evaluate_slice(context: EvalContext) -> Array:
    operand, start = context.operands
    return np.asarray(operand[_window(start, context.attributes["sizes"], operand.shape)])


def _evaluate_update(context: EvalContext) -> Array:
    operand, update, start = context.operands
    result = operand.copy()
    result[_window(start, update.shape, operand.shape)] = update
    return result


def _slice_vjp(context: VjpContext) -> Sequence[Value | None]:
    operand, start = context.operands
    zeros = zeros_like(context, operand)
    return context.emit("DynamicUpdateSlice", zeros, context.cotangent, start), None


def _update_vjp(context: VjpContext) -> Sequence[Value | None]:
    _, update, start = context.operands
    wants_operand, wants_update, _ = context.needs
    kept = taken = None
    if wants_operand:
        kept = context.emit("DynamicUpdateSlice", context.cotangent, zeros_like(context, update), start)
    if wants_update:
        taken = context.emit("DynamicSlice", context.cotangent, start, sizes=update.shape)
    return kept, taken, None


def _lower_slice(context: LoweringContext) -> Any:
    (operand, start), (type_, _) = context.operands, context.operand_types
    result = context.result_type
    if result.shape == type_.shape:
        return operand
    if result.element_count == 0:
        return context.empty(result)
    known, offsets = _offsets(context, start, result.extents, type_.extents)
    slice_type = context.mlir.ir.RankedTensorType.get(list(result.extents), context.element(result.dtype))
    return context.mlir.tensor.extract_slice(
        slice_type, operand, offsets, [], [], known, result.extents, [1] * result.rank
    )


def _lower_update(context: LoweringContext) -> Any:
    operand, update, start = context.operands
    result, type_, _ = context.operand_types
    if type_.shape == result.shape:
        return update
    if type_.element_count == 0:
        return operand
    known, offsets = _offsets(context, start, type_.extents, result.extents)
    return context.mlir.tensor.insert_slice(
        update, operand, offsets, [], [], known, type_.extents, [1] * result.rank
    )


def _offsets(
    context: LoweringContext, start: Any, sizes: Sequence[int], shape: Sequence[int]
) -> tuple[list[int], list[Any]]:
    """Return where a window, moved into the tensor, begins on each axis.

    Returns:
        A number for each axis, which says of some that they are not known, and `index` values for those.
    """
    arith, index, wide = context.mlir.arith, context.mlir.ir.IndexType.get(), context.element(DType.SI64)
    zero, unknown = context.scalar(0, DType.SI64), context.mlir.ir.ShapedType.get_dynamic_size()
    known = context.known_integers(start)
    if known is not None:
        limits = [extent - size for size, extent in zip(sizes, shape, strict=True)]
        places = known.reshape(-1).tolist() * (len(sizes) if known.size == 1 else 1)
        return [max(0, min(place, limit)) for place, limit in zip(places, limits, strict=True)], []
    offsets = []
    for axis, (size, extent) in enumerate(zip(sizes, shape, strict=True)):
        if size == extent:
            continue
        first = context.number(start, axis)
        first = first if first.type == wide else arith.extsi(wide, first)
        clamped = arith.minsi(arith.maxsi(first, zero), context.scalar(extent - size, DType.SI64))
        offsets.append(arith.index_cast(index, clamped))
    return [0 if size == extent else unknown for size, extent in zip(sizes, shape, strict=True)], offsets


_CLAMPED = (
    "A start counts from the beginning only: a negative one is moved to 0, one too large to where the window "
    "ends with the tensor. So a window is never out of bounds."
)
_EMPTY = "Windows may be empty."


def _without_sizes(fields: Mapping[str, Any], operands: Sequence[TensorType]) -> dict[str, Any]:
    """The sizes say again what shape the update has; see that they do."""
    sizes, update = fields["sizes"], operands[1]
    if sizes != update.shape:
        refuse(
            "E3003",
            f"DynamicUpdateSlice has sizes {format_shape(sizes)}, but an update of shape "
            f"{format_shape(update.shape)}",
            "sizes",
            help_text="the sizes are the shape of the update",
            operation="DynamicUpdateSlice",
            extents=(sizes, update.shape),
        )
    return {}


OPERATIONS = (
    OpDef(
        opcode="DynamicSlice",
        mnemonic="dynamic_slice",
        summary="Takes a window of a tensor, at a place known when the function runs.",
        description="The result has the elements of `input` at `start[d] + i` for `0 <= i < sizes[d]` on "
        "each axis `d`. There must be one size for each dimension (E4007), not negative (E3006) and not "
        "above the extent (E4123); `start` is a vector (E3002) of one number for each dimension (E3003), "
        "i32 or i64.",
        spec="ptir-v0.4.md, Dynamic slice/update (decode-friendly)",
        operands=(OperandDef("input", MOVABLE), OperandDef("start", INTEGERS)),
        attributes=(AttributeDef("sizes", AttrKind.I64_LIST, "the shape of the window"),),
        type_rule=_slice_type,
        evaluate=_evaluate_slice,
        derivative=_slice_vjp,
        dims=windowing,
        open_axes=slicing_at,
        lower=_lower_slice,
        stablehlo=hlo.dynamic_slice,
        same_dtype=False,
        choices=(_CLAMPED, _EMPTY),
        extension=True,
        aliases=(Alias("core-functions", "tensor.dynamic_slice"),),
        contract=Contract(
            "DynamicSlice",
            fields=(Field("sizes", FieldKind.INTEGERS),),
        ),
        examples=(
            Example(("T[7, 5]", "i64[2]"), {"sizes": (2, 3)}),
            Example(("T[7, 5]", "i32[2]"), {"sizes": (1, 5)}, "a row"),
            Example(("T[37]", "i64[1]"), {"sizes": (16,)}),
            Example(("T[4, 3]", "i64[2]"), {"sizes": (4, 3)}, "all of it, wherever it starts"),
            Example(("T[4, 3]", "i64[2]"), {"sizes": (0, 3)}, "empty"),
        ),
    ),
    OpDef(
        opcode="DynamicUpdateSlice",
        mnemonic="dynamic_update_slice",
        summary="Replaces a window of a tensor, at a place known when the function runs.",
        description="The result is `operand` with `update[i...]` at `start[d] + i[d]`. `update` has the "
        "dtype (E2004) and the rank (E3002) of `operand` and is nowhere larger (E4123); `start` is a "
        "vector (E3002) of one number for each dimension (E3003), i32 or i64.",
        spec="ptir-v0.4.md, Dynamic slice/update (decode-friendly)",
        operands=(
            OperandDef("operand", MOVABLE),
            OperandDef("update", MOVABLE),
            OperandDef("start", INTEGERS),
        ),
        type_rule=_update_type,
        evaluate=_evaluate_update,
        derivative=_update_vjp,
        dims=windowing,
        open_axes=updating_at,
        lower=_lower_update,
        stablehlo=hlo.dynamic_update_slice,
        same_dtype=False,
        choices=(
            _CLAMPED,
            _EMPTY,
            "The shape of the window is that of `update`; there is no attribute to say it again.",
        ),
        extension=True,
        aliases=(Alias("core-functions", "tensor.dynamic_update_slice"),),
        contract=Contract(
            "DynamicUpdateSlice",
            fields=(Field("sizes", FieldKind.INTEGERS),),
            read=_without_sizes,
            write=lambda _attributes, operands: {"sizes": operands[1].extents},
        ),
        examples=(
            Example(("T[7, 5]", "T[2, 3]", "i64[2]")),
            Example(("T[7, 5]", "T[1, 5]", "i32[2]"), note="a row"),
            Example(("T[37]", "T[16]", "i64[1]")),
            Example(("T[4, 3]", "T[4, 3]", "i64[2]"), note="all of it, wherever it starts"),
            Example(("T[4, 3]", "T[0, 3]", "i64[2]"), note="nothing"),
        ),
    ),
)
