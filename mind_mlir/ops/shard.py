"""Shard: says how an array of a whole program is to be divided among the ranks of a mesh."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ops.dims import elementwise
from mind_mlir.ops.opdef import EVERY, Example, OpDef, OperandDef
from mind_mlir.ops.parts import ATTRIBUTES, checked_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.contexts import TypeContext
    from mind_mlir.ops.vjp import VjpContext


def _type(context: TypeContext) -> TensorType:
    checked_parts(context)
    return context.operands[0]


def _vjp(context: VjpContext) -> Sequence[Value]:
    return [context.emit("Shard", context.cotangent, **context.attributes)]


_MESH: dict[str, AttributeValue] = {"mesh": "data=2,model=2"}

OPERATIONS = (
    OpDef(
        opcode="Shard",
        summary="Returns its operand, which the ranks of a mesh have in parts.",
        description="`result = input`, bit for bit. In a program with such operations each rank computes a "
        "part of everything: which one follows from them (the stage `partitioned`). `mesh` and `sharding` go "
        "together (E4312); each dimension is divided evenly among the ranks along its axes (E3003). The "
        "cotangent is divided as the result is.",
        spec="partitioning.md, How it is chosen",
        operands=(OperandDef("input", EVERY),),
        attributes=ATTRIBUTES,
        type_rule=_type,
        evaluate=lambda context: context.operands[0].copy(),
        derivative=_vjp,
        lower=lambda context: context.operands[0],
        stablehlo=lambda context: context.operands[0],
        dims=elementwise,
        in_numpy="mind_mlir.with_sharding",
        extension=True,
        choices=(
            "Annotations say where data is, never what is computed: without the stage `partitioned`, they "
            "are nothing. What is not annotated is divided as what it is computed with or from.",
        ),
        examples=(
            Example(("T[4, 3]",), {**_MESH, "sharding": "data"}),
            Example(("f32[6, 4]",), {**_MESH, "sharding": "model,data"}),
            Example(("f64[]",), {**_MESH, "sharding": ""}, "all ranks have all of it"),
        ),
    ),
)
