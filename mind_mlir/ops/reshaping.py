"""Operations that give the same elements another shape (core-ir.md, "Shape manipulation")."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mind_mlir.ir.types import TensorType, format_shape
from mind_mlir.ops import stablehlo_indexing as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.contract_forms import reshape_form
from mind_mlir.ops.opdef import MOVABLE, AttributeDef, Example, Movement, OpDef, OperandDef
from mind_mlir.ops.reassociation import reshape

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.contexts import TypeContext
    from mind_mlir.ops.vjp import VjpContext


def _known_shape(
    attributes: Mapping[str, AttributeValue], result: TensorType
) -> Mapping[str, AttributeValue]:
    """Give the extent in the place of -1, unless there are no elements: an extent of 0 cannot be given."""
    return attributes if 0 in result.extents else {**attributes, "new_shape": result.extents}


def _ascending(attributes: Mapping[str, AttributeValue], _result: TensorType) -> Mapping[str, AttributeValue]:
    """Let axes ascend, in which order they are inserted or removed anyway."""
    axes = cast("tuple[int, ...]", attributes["axes"])
    return {**attributes, "axes": tuple(sorted(axes))}


def _reshape_type(context: TypeContext) -> TensorType:
    (operand,) = context.operands
    new_shape: tuple[int, ...] = context.attributes["new_shape"]
    inferred = new_shape.index(-1) if -1 in new_shape else None
    for index, extent in enumerate(new_shape):
        if extent > 0 or index == inferred or (extent == 0 and context.profile.empty_shapes):
            continue
        context.report(
            "E3006",
            f"Reshape has extent {extent} in dimension {index} of its new shape {format_shape(new_shape)}",
            attribute="new_shape",
            help="extents must be positive; one of them may be -1, which stands for what is left",
            shape=new_shape,
            index=index,
            value=extent,
        )
    context.stop_if_reported()
    count = operand.element_count
    known = math.prod(extent for extent in new_shape if extent != -1)
    if (count != known) if inferred is None else (known == 0 or count % known):
        wanted = f"{known}" if inferred is None else f"a multiple of {known}"
        context.fail(
            "E3007",
            f"Element count mismatch: {format_shape(operand.shape)} has {count} elements, "
            f"{format_shape(new_shape)} needs {wanted}",
            attribute="new_shape",
            help="Reshape keeps every element; use Slice to drop elements or BroadcastTo to repeat them",
            shapes=(operand.shape, new_shape),
            counts=(count, known),
        )
    return operand.with_shape(tuple(count // known if extent == -1 else extent for extent in new_shape))


def _reshape_vjp(context: VjpContext) -> Sequence[Value | None]:
    (operand,) = context.operands
    if 0 in operand.shape:  # no list of positive extents spells this shape, and there is nothing to carry
        return (context.emit("BroadcastTo", context.scalar(0.0), result_shape=operand.shape),)
    return (context.emit("Reshape", context.cotangent, new_shape=operand.shape),)


def inserted_axes(axes: Sequence[int]) -> tuple[int, ...]:
    """Return the positions, ascending, that the dimensions inserted by ExpandDims have in its result.

    core-ir.md inserts in ascending order of the axes; an axis that is given again pushes the dimension it
    inserted before to the right.
    """
    positions: list[int] = []
    for axis in sorted(axes):
        positions = [*(p + 1 if p >= axis else p for p in positions), axis]
    return tuple(sorted(positions))


def _expand_dims_type(context: TypeContext) -> TensorType:
    (operand,) = context.operands
    axes: tuple[int, ...] = context.attributes["axes"]
    shape = list(operand.shape)
    for axis in sorted(axes):
        if 0 <= axis <= len(shape):
            shape.insert(axis, 1)
            continue
        context.report(
            "E3004",
            f"ExpandDims axis {axis} is outside [0, {len(shape)}], the range at its insertion",
            attribute="axes",
            notes=(f"the operand has type {operand}", "axes are inserted one by one, in ascending order"),
            help="an axis is the position of the new dimension in the result, counted from 0",
            axis=axis,
            rank=len(shape),
        )
    return operand.with_shape(tuple(shape))


def _expand_dims_vjp(context: VjpContext) -> Sequence[Value | None]:
    axes = inserted_axes(context.attributes["axes"])
    return (context.emit("Squeeze", context.cotangent, axes=axes),)


def _squeeze_type(context: TypeContext) -> TensorType:
    (operand,) = context.operands
    axes: tuple[int, ...] = context.attributes["axes"]
    for position, axis in enumerate(axes):
        if not 0 <= axis < operand.rank:
            context.report(
                "E3004",
                f"Squeeze axis {axis} is outside the rank {operand.rank} of its operand",
                attribute="axes",
                notes=(f"the operand has type {operand}",),
                help=f"axes must lie in [0, {operand.rank - 1}]" if operand.rank else "a scalar has no axes",
                axis=axis,
                rank=operand.rank,
            )
        elif axis in axes[:position]:
            context.report(
                "E3005",
                f"Squeeze axis {axis} is given twice",
                attribute="axes",
                help="name each axis once",
                axes=axes,
                axis=axis,
            )
        elif operand.shape[axis] != 1:
            context.report(
                "E3009",
                f"Squeeze cannot remove axis {axis}, whose extent is {operand.shape[axis]}",
                attribute="axes",
                notes=(f"the operand has type {operand}",),
                help="only dimensions of extent 1 can be squeezed; use Index, Slice or Sum to reduce others",
                axis=axis,
                extent=operand.shape[axis],
                shape=operand.shape,
            )
    return operand.with_shape(tuple(d for axis, d in enumerate(operand.shape) if axis not in axes))


def _squeeze_vjp(context: VjpContext) -> Sequence[Value | None]:
    axes = tuple(sorted(context.attributes["axes"]))
    return (context.emit("ExpandDims", context.cotangent, axes=axes),)


def _with_inferred(fields: Mapping[str, Any], _operands: Sequence[TensorType]) -> dict[str, AttributeValue]:
    """Write -1 for the extent to infer; the contract has no other negative ones."""
    return {"new_shape": tuple(-1 if extent is None else extent for extent in fields["new_shape"])}


def _explicit(attributes: Mapping[str, AttributeValue], _operands: Sequence[TensorType]) -> dict[str, Any]:
    new_shape = cast("tuple[int, ...]", attributes["new_shape"])
    return {"new_shape": tuple(None if extent == -1 else extent for extent in new_shape)}


_INPUT = (OperandDef("input", MOVABLE),)

#: What the records have alike.
_reshape = partial(
    OpDef,
    spec="core-ir.md, Shape manipulation",
    operands=_INPUT,
    evaluate=lambda context: np.reshape(context.operands[0], context.result_type.extents),
    movement=Movement.RESHAPE,
    lower=lambda context: reshape(
        context, context.operands[0], context.operand_types[0], context.result_type.extents
    ),
    stablehlo=hlo.reshape,
)

OPERATIONS = (
    _reshape(
        opcode="Reshape",
        summary="Gives a tensor another shape with the same elements in the same order.",
        description="The result has shape `new_shape` and the elements of `input` in row-major order. "
        "One extent of `new_shape` may be -1: it is the element count divided by the product of the "
        "others. Another extent that is not positive is E3006, a different element count E3007.",
        attributes=(
            AttributeDef("new_shape", AttrKind.I64_LIST, "extents of the result, at most one of them -1"),
        ),
        type_rule=_reshape_type,
        derivative=_reshape_vjp,
        normalize=_known_shape,
        choices=(
            "A second -1 is rejected as an extent that is not positive (E3006).",
            "In profile ptir-v0.4 extents may be 0, and none is inferred beside one (E3007).",
            "An input without elements (an empty Slice) can only be reshaped with a -1, which then "
            "becomes 0.",
        ),
        contract=Contract(
            "Reshape", fields=(Field("new_shape", FieldKind.NEW_SHAPE),), read=_with_inferred, write=_explicit
        ),
        examples=(
            Example(("T[4, 6]",), {"new_shape": (2, 2, 6)}),
            Example(("T[2, 3, 4]",), {"new_shape": (6, -1)}, "the last extent is inferred"),
            Example(("T[6, 4]",), {"new_shape": (3, 8)}, "axes that share no boundary"),
            Example(("T[1, 1]",), {"new_shape": ()}, "one element becomes a scalar"),
            Example(("T[]",), {"new_shape": (1, 1, 1)}),
            Example(("T[5]",), {"new_shape": (-1,)}),
        ),
    ),
    _reshape(
        opcode="ExpandDims",
        summary="Inserts dimensions of extent 1.",
        description="The axes are inserted one by one, in ascending order: each is a position in the "
        "shape as it is then, in `[0, rank]` (E3004 otherwise). For different axes these are the "
        "positions of the new dimensions in the result.",
        attributes=(AttributeDef("axes", AttrKind.I64_LIST, "where to insert, counted from 0"),),
        type_rule=_expand_dims_type,
        derivative=_expand_dims_vjp,
        in_contract=reshape_form,
        normalize=_ascending,
        choices=(
            "The order in which the axes are listed does not matter.",
            "Duplicate axes are allowed: the second insertion at a position pushes the first to the "
            "right, so `axes=[0, 0]` puts two dimensions in front.",
            "Negative axes are out of range (E3004): core-ir.md asks for `[0, current_rank]`.",
        ),
        examples=(
            Example(("T[3, 4]",), {"axes": (0, 2)}),
            Example(("T[3, 4]",), {"axes": (3, 0)}, "listed in any order"),
            Example(("T[3]",), {"axes": (0, 0)}, "two dimensions in front"),
            Example(("T[]",), {"axes": (0, 1)}),
            Example(("T[3]",), {"axes": ()}, "the identity"),
        ),
    ),
    _reshape(
        opcode="Squeeze",
        summary="Removes dimensions of extent 1.",
        description="The result has the shape of `input` without the listed axes. Each axis must be in "
        "`[0, rank)` (E3004), be given once (E3005) and have extent 1 (E3009).",
        attributes=(AttributeDef("axes", AttrKind.I64_LIST, "the axes to remove"),),
        type_rule=_squeeze_type,
        derivative=_squeeze_vjp,
        in_contract=reshape_form,
        normalize=_ascending,
        choices=(
            "An empty list of axes removes nothing.",
            "Negative axes are out of range (E3004): core-ir.md asks for `[0, rank)`.",
        ),
        examples=(
            Example(("T[1, 3, 1, 4]",), {"axes": (0, 2)}),
            Example(("T[1, 3, 1]",), {"axes": (2, 0)}, "listed in any order"),
            Example(("T[1, 1]",), {"axes": (0, 1)}, "down to a scalar"),
            Example(("T[2, 1]",), {"axes": ()}, "the identity"),
        ),
    ),
)
