"""Where arrays that all ranks have become parts, and the other way round: the border of `shard_map`.

Outside, all ranks compute the same, each for itself, and gradients are those of one rank's result. Inside,
each has its part, and gradients are those of the sum over ranks (`mind_mlir.ops.collectives`). The
derivatives here go from one to the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.collectives.sharded_array import JOIN
from mind_mlir.collectives.team import meet, part
from mind_mlir.ir.mesh import Mesh, MeshError, mesh_of
from mind_mlir.ir.sharding import Sharding, sharding_of
from mind_mlir.ops import stablehlo_collectives as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.collectives import HALVES, SPEC, WHOLE, call_of, call_text, place_of
from mind_mlir.ops.foreign_calls import call_foreign
from mind_mlir.ops.opdef import AttributeDef, Example, OpDef, OperandDef
from mind_mlir.target.abi import COLLECTIVE_TARGET

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array, AttributeValue
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext

ATTRIBUTES = (
    AttributeDef("mesh", AttrKind.STRING, "the axes of the mesh and their sizes, as in `data=2,model=4`"),
    AttributeDef(
        "sharding", AttrKind.STRING, "the axes that divide each dimension, as in `data,*`", default=""
    ),
)
_FIELDS = "`mesh` and `sharding` go together (E4312)"


def _facts(attributes: Any) -> tuple[Mesh, Sharding]:
    return mesh_of(attributes["mesh"]), sharding_of(attributes["sharding"])


def checked_sharding(context: TypeContext) -> tuple[Mesh, tuple[int, ...]]:
    """Return the mesh, and how many parts each dimension of the operand has; E4312 and the end without."""
    attribute = "mesh"
    try:
        mesh = mesh_of(context.attributes["mesh"])
        attribute = "sharding"
        counts = sharding_of(context.attributes["sharding"]).counts(mesh, context.operands[0].rank)
    except MeshError as error:
        context.fail(
            "E4312",
            f"attribute '{attribute}' of {context.opcode}: {error}",
            attribute=attribute,
            help="write the mesh as in data=2,model=4, and the axes of each dimension as in data,*",
        )
    return mesh, counts


def checked_parts(context: TypeContext) -> TensorType:
    """Return the type of each part of the operand; E4312 or E3003 and the end where it has none."""
    (operand,) = context.operands
    mesh, _ = checked_sharding(context)
    try:
        return operand.with_shape(sharding_of(context.attributes["sharding"]).local(mesh, operand.extents))
    except MeshError as error:
        context.fail(
            "E3003",
            f"{context.opcode}: {error}",
            attribute="sharding",
            notes=(f"the operand has type {operand}",),
            help="pad the dimension to a multiple of the number of parts, or divide another one",
        )


def _whole_type(context: TypeContext) -> TensorType:
    (operand,) = context.operands
    _, counts = checked_sharding(context)
    return operand.with_shape(
        tuple([extent * count for extent, count in zip(operand.extents, counts, strict=True)])
    )


def _part_of(context: EvalContext) -> Array:
    mesh, sharding = _facts(context.attributes)
    (operand,) = context.operands
    where = part(str(mesh), sharding, operand.shape)
    return np.array(operand[where], order="C")


def _whole_of(context: EvalContext) -> Array:
    _, sharding = _facts(context.attributes)
    (operand,) = context.operands
    if not sharding.names:
        return operand
    out = np.empty(context.result_type.extents, operand.dtype)
    meet(call_of(context, {**context.attributes, "axes": ",".join(sharding.names)}), operand, out)
    return out


def _lower(context: LoweringContext) -> Any:
    _, sharding = _facts(context.attributes)
    if not sharding.names:
        return context.operands[0]
    attributes = {**context.attributes, "axes": ",".join(sharding.names)}
    text = call_text(
        context.opcode, attributes, context.operand_types[0], context.result_type, place_of(context)
    )
    return call_foreign(context, COLLECTIVE_TARGET, text)


def _part_vjp(context: VjpContext) -> Sequence[Value]:
    mesh, sharding = _facts(context.attributes)
    back, missing = context.cotangent, ",".join(sharding.missing(mesh))
    if missing:
        back = context.emit("AllReduce", back, mesh=str(mesh), axes=missing, kind="sum")
    return [context.emit(JOIN, back, **context.attributes)]


def _whole_vjp(context: VjpContext) -> Sequence[Value]:
    mesh, sharding = _facts(context.attributes)
    back = context.emit("TakePart", context.cotangent, **context.attributes)
    count = math.prod(mesh.axes[name] for name in sharding.missing(mesh))
    if count == 1:
        return [back]
    scalar = context.scalar(1 / count)
    if back.shape:
        scalar = context.emit("BroadcastTo", scalar, result_shape=back.shape)
    return [context.emit("Mul", back, scalar)]


_EXAMPLE: dict[str, AttributeValue] = {"mesh": "data=2,model=2", "sharding": "data"}
_NONE: dict[str, AttributeValue] = {"mesh": "data=2,model=2", "sharding": ""}
_GRID: dict[str, AttributeValue] = {"mesh": "data=2,model=2", "sharding": "model,data"}

OPERATIONS = tuple(
    OpDef(
        opcode=opcode,
        summary=summary,
        description=f"{description}; {_FIELDS}.",
        spec=SPEC,
        operands=(OperandDef("input", WHOLE),),
        attributes=ATTRIBUTES,
        type_rule=type_rule,
        evaluate=evaluate,
        derivative=derivative,
        lower=_lower,
        stablehlo=stablehlo,
        runs_others=True,
        collective=True,
        in_numpy="mind_mlir.shard_map",
        extension=True,
        refused=HALVES,
        examples=examples,
    )
    for opcode, summary, description, type_rule, evaluate, derivative, stablehlo, examples in (
        (
            "TakePart",
            "Gives each rank its part of an array that all have.",
            "Each dimension is divided evenly among the ranks along its axes (E3003)",
            checked_parts,
            _part_of,
            _part_vjp,
            hlo.take_part,
            (
                Example(("T[4, 3]",), _EXAMPLE),
                Example(("f32[4, 6]",), _GRID),
                Example(("f64[]",), _NONE),
            ),
        ),
        (
            JOIN,
            "Puts the parts of an array together; all ranks have the whole.",
            "Each dimension has the parts of the ranks along its axes, one behind another. Ranks that differ "
            "in other axes alone must have equal parts",
            _whole_type,
            _whole_of,
            _whole_vjp,
            hlo.join_parts,
            (
                Example(("T[2, 3]",), _EXAMPLE),
                Example(("f32[1, 2]",), _GRID),
                Example(("f64[]",), _NONE),
            ),
        ),
    )
)
