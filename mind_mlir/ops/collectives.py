"""Collectives: what the ranks of a mesh do together.

A program with collectives runs once for each rank of its mesh, and each of these operations takes all ranks
of a group: those that differ in some axes of the mesh alone. Derivatives are those of the operation as a
function of all ranks' operands to all ranks' results, where what is differentiated is the sum over ranks: so
each rank's gradient is that of the sum with respect to its own operand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.collectives.call import CollectiveCall, written
from mind_mlir.collectives.team import meet, position
from mind_mlir.ir.mesh import Mesh, MeshError, mesh_of
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops import stablehlo_collectives as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.axes import NEGATIVE_AXIS, require_axis
from mind_mlir.ops.foreign_calls import call_foreign
from mind_mlir.ops.opdef import (
    ALL_FLOATS,
    ALL_NUMERIC,
    ALL_REAL,
    EVERY,
    AttributeDef,
    DTypeSet,
    Example,
    NotDifferentiable,
    OpDef,
    OperandDef,
    mnemonic_of,
)
from mind_mlir.target.abi import COLLECTIVE_TARGET

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array, AttributeValue
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext

SPEC = "distributed.md, Collectives"
WHOLE = tuple(dtype for dtype in EVERY if dtype.bits != 4)
HALVES = (
    (
        tuple(dtype for dtype in EVERY if dtype.bits == 4),
        "two of its elements share a byte, and messages are bytes: cast to 8 bits first",
    ),
)
_MESH = (
    AttributeDef("mesh", AttrKind.STRING, "the axes of the mesh and their sizes, as in `data=2,model=4`"),
    AttributeDef("axes", AttrKind.STRING, "the axes along which the ranks of a group differ, as in `data`"),
)
_KINDS = ("sum", "mean", "max", "min")
_KIND = AttributeDef("kind", AttrKind.ENUM, "how elements are joined", default="sum", choices=_KINDS)
_ORDER = (
    "Sums are made in a binary tree over the ranks of a group, whose form depends on their number alone: the "
    "result is the same bits with any number of processes. Floats are rounded at each of its nodes, to the "
    "dtype of the operand."
)


# Type rules


def _mesh(context: TypeContext) -> Mesh:
    """Return the mesh; E4312 and the end where there is none, or it has not these axes."""
    attribute = "mesh"
    try:
        mesh = mesh_of(context.attributes["mesh"])
        attribute = "axes"
        mesh.names(context.attributes["axes"])
    except MeshError as error:
        context.fail(
            "E4312",
            f"attribute '{attribute}' of {context.opcode}: {error}",
            attribute=attribute,
            help="write the mesh as in data=2,model=4, and axes of it as in data, or data,model",
        )
    return mesh


def _count(context: TypeContext) -> int:
    return _mesh(context).extent(context.attributes["axes"])


def _same_type(context: TypeContext) -> TensorType:
    _mesh(context)
    (operand,) = context.operands
    if context.attributes.get("kind") == "mean" and operand.dtype not in ALL_FLOATS:
        context.fail(
            "E2005",
            f"{context.opcode} gives no mean of {operand.dtype.core_name}",
            attribute="kind",
            help="divide the sum by the number of ranks"
            if operand.dtype not in ALL_REAL
            else "cast to a float first",
        )
    if context.attributes.get("kind") in ("max", "min") and operand.dtype not in ALL_REAL:
        context.fail("E2005", "complex numbers have no order", attribute="kind", help="reduce their parts")
    return operand


def _divided(context: TypeContext, operand: TensorType, axis: int, count: int, attribute: str) -> int:
    """Return a part of the extent of an axis; E3003 where it cannot be divided evenly."""
    extent = operand.extents[axis]
    if extent % count:
        context.fail(
            "E3003",
            f"{context.opcode} cannot divide axis {axis}, of extent {extent}, among {count} ranks",
            attribute=attribute,
            notes=(f"the operand has type {operand}",),
            help="pad the axis to a multiple of the number of ranks, or use another one",
        )
    return extent // count


def _with_extent(type_: TensorType, axis: int, extent: int) -> TensorType:
    return type_.with_shape((*type_.shape[:axis], extent, *type_.shape[axis + 1 :]))


def _gathered_type(context: TypeContext) -> TensorType:
    count, operand = _count(context), context.operands[0]
    axis = require_axis(context, operand.rank)
    return _with_extent(operand, axis, operand.extents[axis] * count)


def _scattered_type(context: TypeContext) -> TensorType:
    operand = _same_type(context)
    axis = require_axis(context, operand.rank)
    return _with_extent(operand, axis, _divided(context, operand, axis, _count(context), "axis"))


def _exchanged_type(context: TypeContext) -> TensorType:
    count, operand = _count(context), context.operands[0]
    split = require_axis(context, operand.rank, "split_axis")
    concat = require_axis(context, operand.rank, "concat_axis")
    smaller = _with_extent(operand, split, _divided(context, operand, split, count, "split_axis"))
    return _with_extent(smaller, concat, smaller.extents[concat] * count)


def _sent_type(context: TypeContext) -> TensorType:
    count, root = _count(context), context.attributes["root"]
    if not 0 <= root < count:
        context.fail(
            "E1103",
            f"attribute 'root' of {context.opcode} is {root}; there are {count} ranks",
            attribute="root",
            help=f"name one of 0 to {count - 1}",
        )
    return context.operands[0]


# What it computes


def _normal(attributes: Mapping[str, AttributeValue], result: TensorType) -> Mapping[str, AttributeValue]:
    axes = {"axis", "split_axis", "concat_axis"} & set(attributes)
    return {**attributes, **{name: attributes[name] % result.rank for name in axes}}  # type: ignore[operator]  # axes are integers


def call_text(
    opcode: str, attributes: Mapping[str, Any], operand: TensorType, result: TensorType, place: str
) -> str:
    """Return what compiled code tells the runtime."""
    return written(opcode, _normal(attributes, result), operand.dtype, operand.extents, result.extents, place)


def call_of(context: EvalContext, attributes: Mapping[str, Any]) -> CollectiveCall:
    """Return what a numpy rule has the ranks do together."""
    (operand,), result = context.operands, context.result_type
    source = None if context.source is None else context.source.statement
    place = f"at {source}" if source is not None else f"which defines {context.label}"
    type_ = TensorType(result.dtype, operand.shape)
    return CollectiveCall(call_text(context.opcode, attributes, type_, result, place))


def _evaluate(context: EvalContext) -> Array:
    out = np.empty(context.result_type.extents, context.result_type.dtype.numpy)
    meet(call_of(context, context.attributes), np.ascontiguousarray(context.operands[0]), out)
    return out


def place_of(context: LoweringContext) -> str:
    """Return where the program has an operation, as messages say it."""
    place = context.place()
    return f"which defines {context.label}" if place is None else "at {}:{}:{}".format(*place)


def _lower(context: LoweringContext) -> Any:
    """Append a call of the runtime, which does it with the other ranks."""
    operand = context.operand_types[0] if context.operand_types else context.result_type
    where = place_of(context)
    text = call_text(context.opcode, context.attributes, operand, context.result_type, where)
    return call_foreign(context, COLLECTIVE_TARGET, text)


# Derivatives


def _together(context: VjpContext, opcode: str, value: Value, **attributes: Any) -> Value:
    mesh = {name: context.attributes[name] for name in ("mesh", "axes")}
    return context.emit(opcode, value, **mesh, **attributes)


def _ranks(context: VjpContext) -> int:
    return mesh_of(context.attributes["mesh"]).extent(context.attributes["axes"])


def _is_best(context: VjpContext, found: Value) -> Value:
    """Append the part of what flows back to each element: those as large as the result share it."""
    (x,), dtype = context.operands, context.result.type.dtype
    equal = context.emit("Compare", x, found, op="Equal")
    best = context.cast(context.emit("Or", equal, context.emit("Compare", x, x, op="NotEqual")), dtype)
    count = _together(context, "AllReduce", best, kind="sum")
    return context.emit("Mul", best, context.emit("Reciprocal", count))


def _reduced_vjp(context: VjpContext) -> Sequence[Value]:
    kind = context.attributes["kind"]
    if kind in ("sum", "mean"):
        return [_together(context, "AllReduce", context.cotangent, kind=kind)]
    back = _together(context, "AllReduce", context.cotangent, kind="sum")
    return [context.emit("Mul", back, _is_best(context, context.result))]


def _scattered_vjp(context: VjpContext) -> Sequence[Value]:
    kind, axis = context.attributes["kind"], context.attributes["axis"]
    back = _together(context, "AllGather", context.cotangent, axis=axis)
    if kind == "mean":
        return [context.emit("Mul", back, _full(context, 1 / _ranks(context), back))]
    if kind != "sum":
        whole = _together(context, "AllGather", context.result, axis=axis)
        back = context.emit("Mul", back, _is_best(context, whole))
    return [back]


def _full(context: VjpContext, number: float, like: Value) -> Value:
    scalar = context.scalar(number)
    return context.emit("BroadcastTo", scalar, result_shape=like.shape) if like.shape else scalar


def _gathered_vjp(context: VjpContext) -> Sequence[Value]:
    axis = context.attributes["axis"]
    return [_together(context, "ReduceScatter", context.cotangent, axis=axis, kind="sum")]


def _exchanged_vjp(context: VjpContext) -> Sequence[Value]:
    split, concat = context.attributes["split_axis"], context.attributes["concat_axis"]
    return [_together(context, "AllToAll", context.cotangent, split_axis=concat, concat_axis=split)]


def _sent_vjp(context: VjpContext) -> Sequence[Value]:
    mesh = {name: context.attributes[name] for name in ("mesh", "axes")}
    total = _together(context, "AllReduce", context.cotangent, kind="sum")
    here = context.emit("AxisIndex", **mesh)
    root = context.builder.constant(context.attributes["root"], DType.SI64)
    is_root = context.emit("Compare", here, root, op="Equal")
    zero = context.zeros(total.type)
    if total.shape:
        is_root = context.emit("BroadcastTo", is_root, result_shape=total.shape)
    return [context.emit("Select", is_root, total, zero)]


def _shifted_vjp(context: VjpContext) -> Sequence[Value]:
    return [_together(context, "Shift", context.cotangent, offset=-context.attributes["offset"])]


_GRID = "data=2,model=2"
_EVEN: dict[str, AttributeValue] = {"mesh": _GRID, "axes": "data"}
_INNER: dict[str, AttributeValue] = {"mesh": _GRID, "axes": "model"}
_BOTH: dict[str, AttributeValue] = {"mesh": _GRID, "axes": "data,model"}
_SWAPPED: dict[str, AttributeValue] = {"mesh": _GRID, "axes": "model,data"}


def _collective(
    opcode: str,
    summary: str,
    description: str,
    *,
    type_rule: Callable[[TypeContext], TensorType],
    derivative: Callable[[VjpContext], Sequence[Value]],
    attributes: tuple[AttributeDef, ...] = (),
    dtypes: DTypeSet = WHOLE,
    stablehlo: Callable[[Any], Any],
    choices: tuple[str, ...] = (),
    examples: tuple[Example, ...],
) -> OpDef:
    defaults = {each.name: each.default for each in attributes if each.default is not None}
    return OpDef(
        opcode=opcode,
        summary=summary,
        description=f"{description} `mesh` has axes with sizes, and `axes` names some of them (E4312).",
        spec=SPEC,
        operands=(OperandDef("input", dtypes),),
        attributes=(*_MESH, *attributes),
        type_rule=type_rule,
        evaluate=_evaluate,
        derivative=derivative,
        lower=_lower,
        stablehlo=stablehlo,
        choices=choices,
        normalize=_normal,
        runs_others=True,
        collective=True,
        in_numpy=f"mind_mlir.{mnemonic_of(opcode)}",
        extension=True,
        refused=HALVES,
        examples=tuple(Example(each.operands, defaults | each.attributes, each.note) for each in examples),
    )


NUMBERS = tuple(dtype for dtype in ALL_NUMERIC if dtype.bits != 4)

OPERATIONS = (
    _collective(
        "AllReduce",
        "Joins the operands of all ranks of a group, element by element; all have the result.",
        "`kind` is `sum`, `mean` (of floats), `max` or `min` (of what has an order; E2005).",
        type_rule=_same_type,
        derivative=_reduced_vjp,
        attributes=(_KIND,),
        dtypes=NUMBERS,
        stablehlo=hlo.all_reduce,
        choices=(_ORDER,),
        examples=(
            Example(("T[3, 37]",), {**_EVEN, "kind": "sum"}),
            Example(("f32[5]",), {**_BOTH, "kind": "mean"}),
            Example(("f64[4]",), {**_SWAPPED, "kind": "max"}),
            Example(("i32[]",), {**_INNER, "kind": "min"}),
            Example(("f32[0, 3]",), _EVEN, "empty"),
        ),
    ),
    _collective(
        "ReduceScatter",
        "Joins the operands of all ranks of a group; each rank has its part of the result.",
        "`kind` is as of `AllReduce`. The result is divided along `axis`, which lies in the rank (E3004) and "
        "is a multiple of the number of ranks (E3003).",
        type_rule=_scattered_type,
        derivative=_scattered_vjp,
        attributes=(AttributeDef("axis", AttrKind.I64, "the axis that is divided"), _KIND),
        dtypes=NUMBERS,
        stablehlo=hlo.reduce_scatter,
        choices=(_ORDER, NEGATIVE_AXIS),
        examples=(
            Example(("T[4, 3]",), {**_EVEN, "axis": 0}),
            Example(("f32[3, 8]",), {**_SWAPPED, "axis": -1, "kind": "mean"}),
            Example(("f64[8]",), {**_BOTH, "axis": 0, "kind": "max"}),
        ),
    ),
    _collective(
        "AllGather",
        "Puts the operands of all ranks of a group next to one another; all have the result.",
        "They lie along `axis`, which lies in the rank (E3004), in the order of the ranks.",
        type_rule=_gathered_type,
        derivative=_gathered_vjp,
        attributes=(AttributeDef("axis", AttrKind.I64, "the axis along which they lie"),),
        stablehlo=hlo.all_gather,
        choices=(NEGATIVE_AXIS,),
        examples=(
            Example(("T[2, 3]",), {**_EVEN, "axis": 0}),
            Example(("f32[2, 5]",), {**_SWAPPED, "axis": -1}),
            Example(("i64[0, 2]",), {**_EVEN, "axis": 1}, "empty"),
        ),
    ),
    _collective(
        "AllToAll",
        "Gives each rank of a group a part of each operand, next to one another.",
        "Each operand is divided along `split_axis`, whose extent is a multiple of the number of ranks "
        "(E3003); rank `i` gets part `i` of each, along `concat_axis`, in the order of the ranks. Both axes "
        "lie in the rank (E3004).",
        type_rule=_exchanged_type,
        derivative=_exchanged_vjp,
        attributes=(
            AttributeDef("split_axis", AttrKind.I64, "the axis that is divided"),
            AttributeDef("concat_axis", AttrKind.I64, "the axis along which the parts lie"),
        ),
        stablehlo=hlo.all_to_all,
        choices=(NEGATIVE_AXIS,),
        examples=(
            Example(("T[4, 3]",), {**_EVEN, "split_axis": 0, "concat_axis": 1}),
            Example(("f32[4, 2]",), {**_SWAPPED, "split_axis": 0, "concat_axis": 0}),
        ),
    ),
    _collective(
        "BroadcastFrom",
        "Gives all ranks of a group the operand of one of them.",
        "`root` is the place of that rank in the group (E1103).",
        type_rule=_sent_type,
        derivative=_sent_vjp,
        attributes=(AttributeDef("root", AttrKind.I64, "the place of the rank in the group", default=0),),
        stablehlo=hlo.broadcast_from,
        examples=(
            Example(("T[2, 3]",), {**_EVEN, "root": 1}),
            Example(("f32[]",), _INNER),
        ),
    ),
    _collective(
        "Shift",
        "Gives each rank of a group the operand of the one so many places before it.",
        "`offset` counts places; the ranks are a ring, and it may be negative.",
        type_rule=lambda context: (_mesh(context), context.operands[0])[1],
        derivative=_shifted_vjp,
        attributes=(AttributeDef("offset", AttrKind.I64, "how far operands go", default=1),),
        stablehlo=hlo.shift,
        examples=(
            Example(("T[2, 3]",), _EVEN),
            Example(("f32[7]",), {**_BOTH, "offset": -1}),
        ),
    ),
    OpDef(
        opcode="AxisIndex",
        summary="Gives the place of the rank in its group.",
        description="It counts from 0. `mesh` has axes with sizes, and `axes` names some of them (E4312), "
        "the outermost first.",
        spec=SPEC,
        operands=(),
        attributes=_MESH,
        type_rule=lambda context: (_mesh(context), TensorType(DType.SI64))[1],
        evaluate=lambda context: np.asarray(position(context.attributes["mesh"], context.attributes["axes"])),
        derivative=NotDifferentiable("it is an integer", constant=True),
        lower=_lower,
        stablehlo=hlo.axis_index,
        runs_others=True,
        collective=True,
        in_numpy="mind_mlir.axis_index",
        extension=True,
        examples=(Example((), _EVEN), Example((), _SWAPPED)),
    ),
)
