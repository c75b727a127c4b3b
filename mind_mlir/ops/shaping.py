"""Operations that reorder or repeat elements (core-ir.md, "Shape manipulation"; ptir-v0.4.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mind_mlir.ir.types import TensorType, format_shape
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.opdef import MOVABLE, AttributeDef, Example, Movement, OpDef, OperandDef
from mind_mlir.ops.reassociation import reshape

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import TypeContext
    from mind_mlir.ops.vjp import VjpContext


def _transpose_type(context: TypeContext) -> TensorType:
    (operand,) = context.operands
    permutation: tuple[int, ...] = context.attributes["permutation"]
    violation = _permutation_violation(permutation, operand.rank)
    if violation is not None:
        context.fail(
            "E3008",
            f"{format_shape(permutation)} is not a permutation of the {operand.rank} axes: {violation}",
            attribute="permutation",
            notes=(f"the operand has type {operand}",),
            help=f"name every axis from 0 to {operand.rank - 1} once" if operand.rank else "write []",
            permutation=permutation,
            rank=operand.rank,
            violation=violation,
        )
    return operand.with_shape(tuple(operand.shape[axis] for axis in permutation))


def _permutation_violation(permutation: tuple[int, ...], rank: int) -> str | None:
    if len(permutation) != rank:
        return f"it has length {len(permutation)}"
    for position, axis in enumerate(permutation):
        if not 0 <= axis < rank:
            return f"axis {axis} is out of range"
        if axis in permutation[:position]:
            return f"axis {axis} is given twice"
    return None


def _transpose_vjp(context: VjpContext) -> Sequence[Value | None]:
    permutation: tuple[int, ...] = context.attributes["permutation"]
    inverse = tuple(permutation.index(axis) for axis in range(len(permutation)))
    return (context.emit("Transpose", context.cotangent, permutation=inverse),)


def _lower_transpose(context: LoweringContext) -> Any:
    (operand,), (type_,) = context.operands, context.operand_types
    permutation: tuple[int, ...] = context.attributes["permutation"]
    moved = [axis for axis in permutation if type_.extents[axis] != 1]
    if moved == sorted(moved) or type_.element_count == 0:  # only extents of 1 change place: nothing moves
        return reshape(context, operand, type_, context.result_type.extents)
    return context.transposed(operand, context.empty(context.result_type), permutation)


def _broadcast_to_type(context: TypeContext) -> TensorType:
    (operand,) = context.operands
    result: tuple[int, ...] = context.attributes["result_shape"]
    for index, extent in enumerate(result):
        if extent < 0:
            context.report(
                "E3006",
                f"BroadcastTo has extent {extent} in dimension {index} of its result shape",
                attribute="result_shape",
                help="extents must not be negative",
                shape=result,
                index=index,
                value=extent,
            )
    context.stop_if_reported()
    missing = len(result) - operand.rank
    if missing < 0:
        _broadcasting_failed(context, 0, "rank", operand.rank, len(result))
    for axis, (found, wanted) in enumerate(zip((1,) * missing + operand.extents, result, strict=True)):
        if found != wanted and found != 1:
            _broadcasting_failed(context, axis, "extent", found, wanted)
    return operand.with_shape(result)


def _broadcasting_failed(
    context: TypeContext, dimension: int, what: str, found: int, wanted: int
) -> NoReturn:
    shape, result = context.operands[0].shape, context.attributes["result_shape"]
    context.fail(
        "E3001",
        f"Broadcasting failed at dimension {dimension}: {what} {found} does not become {wanted}",
        attribute="result_shape",
        notes=(f"the operand has shape {format_shape(shape)}", f"the result shape is {format_shape(result)}"),
        help="aligned from the right, an extent must be 1 or equal to the result's",
        left=shape,
        right=result,
        dimension=dimension,
        extents=(found, wanted),
    )


def _lower_broadcast_to(context: LoweringContext) -> Any:
    (operand,), (type_,) = context.operands, context.operand_types
    if type_.element_count == context.result_type.element_count:  # only extents of 1 are added
        return reshape(context, operand, type_, context.result_type.extents)
    if context.result_type.element_count == 0:
        return context.empty(context.result_type)
    source = operand.owner
    data = source.attributes["value"] if getattr(source, "name", "") == "arith.constant" else None
    # A large literal, whose attribute has no data, is several numbers.
    if isinstance(data, context.mlir.ir.DenseElementsAttr) and data.is_splat:
        element = data.get_splat_value()
        scalar = context.mlir.arith.constant(context.element(type_.dtype), element)
        return context.named("fill", [scalar], context.empty(context.result_type), context.result_type)
    return context.elementwise(lambda element: element)


_INPUT = (OperandDef("input", MOVABLE),)

OPERATIONS = (
    OpDef(
        opcode="Transpose",
        summary="Permutes the dimensions of a tensor.",
        description="`result.shape[i] = input.shape[permutation[i]]`; the element at a result index "
        "comes from the input index that has `index[i]` on axis `permutation[i]`. `permutation` must "
        "name each axis exactly once (E3008).",
        spec="core-ir.md, Shape manipulation",
        operands=_INPUT,
        attributes=(AttributeDef("permutation", AttrKind.I64_LIST, "the input axis of each result axis"),),
        type_rule=_transpose_type,
        evaluate=lambda context: np.transpose(context.operands[0], context.attributes["permutation"]),
        derivative=_transpose_vjp,
        movement=Movement.PERMUTATION,
        lower=_lower_transpose,
        stablehlo=lambda c: c.transpose(c.operands[0], c.attributes["permutation"]),
        choices=("Negative axes are out of range (E3008): core-ir.md asks for `[0, rank)`.",),
        contract=Contract("Transpose", fields=(Field("perm", FieldKind.INTEGERS, attribute="permutation"),)),
        examples=(
            Example(("T[2, 3, 4]",), {"permutation": (2, 0, 1)}),
            Example(("T[17, 33]",), {"permutation": (1, 0)}),
            Example(("T[3, 1, 4]",), {"permutation": (1, 0, 2)}, "moves no element"),
            Example(("T[3, 4]",), {"permutation": (0, 1)}, "the identity"),
            Example(("T[]",), {"permutation": ()}),
        ),
    ),
    OpDef(
        opcode="BroadcastTo",
        summary="Repeats a tensor along dimensions of extent 1 to reach a given shape.",
        description="The shape of `input` is aligned with `result_shape` from the right and padded with "
        "1 in front; each extent must then be 1, which repeats, or that of the result (E3001 otherwise). "
        "Result extents may be 0 but not negative (E3006).",
        spec="ptir-v0.4.md, BroadcastTo; shapes.md, Broadcasting",
        operands=_INPUT,
        attributes=(AttributeDef("result_shape", AttrKind.I64_LIST, "the shape of the result"),),
        type_rule=_broadcast_to_type,
        evaluate=lambda context: np.broadcast_to(context.operands[0], context.attributes["result_shape"]),
        derivative=lambda context: (context.cotangent,),
        movement=Movement.BROADCAST,
        lower=_lower_broadcast_to,
        stablehlo=lambda c: c.broadcast(c.operands[0], c.result_type.extents),
        choices=(
            "`input` never makes the result larger: an extent of 1 in `result_shape` needs a 1 in `input`.",
        ),
        extension=True,
        contract=Contract("BroadcastTo", fields=(Field("result_shape", FieldKind.SHAPE, short="shape"),)),
        examples=(
            Example(("T[3, 1]",), {"result_shape": (2, 3, 5)}),
            Example(("T[]",), {"result_shape": (13,)}, "a scalar fills a tensor"),
            Example(("T[1, 4]",), {"result_shape": (1, 1, 4)}, "repeats nothing"),
            Example(("T[1]",), {"result_shape": (0,)}, "repeats zero times"),
            Example(("T[]",), {"result_shape": ()}),
        ),
    ),
)
