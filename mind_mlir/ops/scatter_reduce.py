"""ScatterReduce: single elements combined with those of a tensor (ptir-v0.4.md, "Indexing ops")."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, DTypeKind, TensorType
from mind_mlir.ops import stablehlo_indexing as hlo
from mind_mlir.ops.accumulators import computed_dtype
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.axes import NEGATIVE_AXIS, counted_from_front, require_axis
from mind_mlir.ops.bounds import check_positions, clamped_position, require_positions
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.opdef import (
    EVERY,
    INTEGERS,
    AttributeDef,
    Domain,
    Example,
    OpDef,
    OperandDef,
    Rounding,
)
from mind_mlir.ops.positions import along_axis, require_along
from mind_mlir.ops.reassociation import reshape
from mind_mlir.ops.scatter_rows import rounded_once, scatter_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext


def _scatter_reduce_type(context: TypeContext) -> TensorType:
    operand, indices, updates = context.operands
    if updates.dtype is not operand.dtype:
        context.fail(
            "E2004",
            f"Dtype mismatch: ScatterReduce of {updates.dtype.core_name} to {operand.dtype.core_name}",
            operand=2,
            notes=(f"operand is {operand}", f"updates is {updates}"),
            help="give both the same dtype; there is no implicit promotion",
            left=operand.dtype.core_name,
            right=updates.dtype.core_name,
        )
    reduce: str = context.attributes["reduce"]
    if reduce in ("Max", "Min") and operand.dtype.kind is DTypeKind.COMPLEX:
        context.fail(
            "E2005",
            f"ScatterReduce with reduce={reduce} does not take {operand.dtype.core_name}",
            operand=0,
            help="complex numbers have no order: use Add or Replace",
            found=operand.dtype.core_name,
            allowed="real dtypes",
            dtype=operand.dtype.core_name,
        )
    if reduce == "Add" and operand.dtype is DType.I1:
        context.fail(
            "E2005",
            "ScatterReduce with reduce=Add does not take i1",
            operand=0,
            help="truth values are no numbers: Max says whether any is true, Min whether all are; to count "
            "them, cast them to integers",
            found=operand.dtype.core_name,
            allowed="numbers",
            dtype=operand.dtype.core_name,
        )
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
    axis: int = context.attributes["axis"] % operand.ndim
    require_positions(context, indices, operand.shape, axis)
    dtype, places = context.result_type.dtype, along_axis(indices, axis)
    reduce: str = context.attributes["reduce"]
    if reduce == "Replace":
        result = operand.copy()
        for position in np.ndindex(*indices.shape):  # the last one stays
            where = list(position)
            where[axis] = indices[position]
            result[tuple(where)] = updates[position]
        return result
    wide = computed_dtype(dtype).numpy
    result, added = operand.astype(wide), updates.astype(wide)
    if reduce == "Add":
        np.add.at(result, places, added)  # one after the other, in row-major order
    else:
        extreme_at(result, places, added, reduce)
    return rounded_once(result, dtype)


def extreme_at(result: Array, places: tuple[Array, ...], updates: Array, reduce: str) -> None:
    """Let each element of ``result`` be the extreme of it and its updates; -0.0 is less than +0.0."""
    kept = np.maximum if reduce == "Max" else np.minimum
    if result.dtype.kind != "f":
        kept.at(result, places, updates)
        return
    # Of two zeros, numpy gives either: a zero has the sign of Max's, or Min's, if any of them has it.
    wanted = reduce == "Min"
    zero = (result == 0) & (np.signbit(result) == wanted)
    np.logical_or.at(zero, places, (updates == 0) & (np.signbit(updates) == wanted))
    kept.at(result, places, updates)
    result[(result == 0) & zero] = -0.0 if wanted else 0.0
    result[(result == 0) & ~zero] = 0.0 if wanted else -0.0


def _scatter_reduce_vjp(context: VjpContext) -> Sequence[Value | None]:
    rules: dict[str, Callable[[VjpContext], tuple[Value | None, Value | None]]] = {
        "Add": _add_vjp,
        "Replace": _replace_vjp,
        "Max": _extreme_vjp,
        "Min": _extreme_vjp,
    }
    operand, updates = rules[context.attributes["reduce"]](context)
    return operand, None, updates


def _gathered(context: VjpContext, value: Value) -> Value:
    """Append the elements of ``value``, of the operand's shape, at the places of the updates."""
    return context.emit("GatherElements", value, context.operands[1], axis=context.attributes["axis"])


def _scattered(context: VjpContext, reduce: str, operand: Value, updates: Value) -> Value:
    axis = context.attributes["axis"]
    return context.emit("ScatterReduce", operand, context.operands[1], updates, axis=axis, reduce=reduce)


def _add_vjp(context: VjpContext) -> tuple[Value | None, Value | None]:
    return context.cotangent, _gathered(context, context.cotangent) if context.needs[2] else None


def _replace_vjp(context: VjpContext) -> tuple[Value | None, Value | None]:
    operand, _, updates = context.operands
    zeros = context.zeros(updates.type)
    kept = _scattered(context, "Replace", context.cotangent, zeros) if context.needs[0] else None
    if not context.needs[2]:
        return kept, None
    # Which update each place has in the end, by its number along the axis: those of one place differ in it.
    numbers = context.emit(
        "Iota", shape=updates.type.extents, dtype=DType.SI64, axis=context.attributes["axis"]
    )
    winners = _scattered(context, "Replace", context.zeros(operand.type.with_dtype(DType.SI64)), numbers)
    won = context.emit("Compare", _gathered(context, winners), numbers, op="Equal")
    return kept, context.emit("Select", won, _gathered(context, context.cotangent), zeros)


def _extreme_vjp(context: VjpContext) -> tuple[Value | None, Value | None]:
    operand, _, updates = context.operands
    dtype = operand.type.dtype
    is_kept = context.emit("Compare", operand, context.result, op="Equal")
    is_taken = context.emit("Compare", updates, _gathered(context, context.result), op="Equal")
    ones = [context.emit("Cast", each, dtype=dtype) for each in (is_kept, is_taken)]
    share = context.emit(
        "Mul", context.cotangent, context.emit("Reciprocal", _scattered(context, "Add", *ones))
    )
    # Where the result is NaN it equals nothing, and the share of none is no number.
    return (
        context.emit("Select", is_kept, share, context.zeros(operand.type)) if context.needs[0] else None,
        context.emit("Select", is_taken, _gathered(context, share), context.zeros(updates.type))
        if context.needs[2]
        else None,
    )


def _lower_scatter_reduce(context: LoweringContext) -> Any:
    operand_type, indices_type, updates_type = context.operand_types
    axis: int = context.attributes["axis"] % operand_type.rank
    check_positions(context, context.operands[1], indices_type, operand_type.extents, axis)
    if operand_type.element_count == 0 or updates_type.element_count == 0:
        return context.operands[0]
    places = _places(context, axis)

    def place(at: Any) -> Any:
        found = context.mlir.tensor.extract(places, [at])
        return context.mlir.arith.index_cast(context.mlir.ir.IndexType.get(), found)

    number = context.arithmetic(computed_dtype(operand_type.dtype))
    combine = {"Add": number.add, "Max": number.maximum, "Min": number.minimum, "Replace": None}
    kind = combine[context.attributes["reduce"]]
    along = updates_type.extents
    lines = (math.prod(along[:axis]), along[axis], math.prod(along[axis + 1 :]))
    return scatter_rows(context, place, updates_type.element_count, 1, kind, lines)


def _places(context: LoweringContext, axis: int) -> Any:
    """Append a flat tensor of i64: the place in the flat operand that each update goes to."""
    mlir, indices_type = context.mlir, context.operand_types[1]
    extents, i64 = context.operand_types[0].extents, context.element(DType.SI64)
    strides = [math.prod(extents[dim + 1 :]) for dim in range(len(extents))]
    arith = mlir.arith

    def body(index: Any, _: Any) -> Any:
        total = context.scalar(0, DType.SI64)
        for dim, stride in enumerate(strides):
            place = (
                clamped_position(context, index, extents[axis] - 1)
                if dim == axis
                else mlir.linalg.IndexOp(dim).result
            )
            scaled = arith.muli(arith.index_cast(i64, place), context.scalar(stride, DType.SI64))
            total = arith.addi(total, scaled)
        return total

    type_ = indices_type.with_dtype(DType.SI64)
    identity = mlir.ir.AffineMap.get_identity(type_.rank)
    kinds = ["parallel"] * type_.rank
    (places,) = context.generic([context.operands[1]], [identity] * 2, [context.empty(type_)], kinds, body)
    return reshape(context, places, type_, (type_.element_count,))


_KINDS = ("Add", "Max", "Min", "Replace")

OPERATIONS = (
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
        attributes=(
            AttributeDef("axis", AttrKind.I64, "the axis that the indices are positions on"),
            AttributeDef("reduce", AttrKind.ENUM, "how elements are combined", choices=_KINDS),
        ),
        type_rule=_scatter_reduce_type,
        evaluate=_evaluate_scatter_reduce,
        derivative=_scatter_reduce_vjp,
        lower=_lower_scatter_reduce,
        stablehlo=hlo.scatter_reduce,
        normalize=counted_from_front,
        rounding=Rounding.ACCUMULATING,
        terms=lambda shapes, _: 1 + math.prod(shapes[1]),
        same_dtype=False,
        extension=True,
        contract=Contract(
            "ScatterReduce",
            fields=(Field("axis", FieldKind.INTEGER), Field("reduce", FieldKind.WORD, choices=_KINDS)),
        ),
        choices=(
            NEGATIVE_AXIS,
            "Indices count from 0: a negative one, like one beyond the end, is E6001 when the function runs, "
            "and no result is returned.",
            "Updates are combined in row-major order: of several for one element, `Replace` takes the last, "
            "and sums are the same bits every time. Integers wrap around on overflow; floats narrower than "
            "f32 are added in f32 and rounded once.",
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
