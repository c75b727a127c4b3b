"""Slice: every step-th element of a range on each axis (core-ir.md, "Indexing and slicing")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.attributes import Array, TensorLiteral
from mind_mlir.ir.types import TensorType, format_shape
from mind_mlir.ops import stablehlo_indexing as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.axes import sliced_positions
from mind_mlir.ops.contract import Contract, Field, FieldKind, cannot_say, refuse
from mind_mlir.ops.contract_forms import slice_form
from mind_mlir.ops.opdef import MOVABLE, AttributeDef, Example, Movement, OpDef, OperandDef

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext


def _slice_type(context: TypeContext) -> TensorType:
    (operand,) = context.operands
    starts, ends, steps = (context.attributes[name] for name in ("starts", "ends", "steps"))
    lengths = (len(starts), len(ends), len(steps))
    if lengths != (operand.rank,) * 3:
        wrong = next(
            name for name in ("starts", "ends", "steps") if len(context.attributes[name]) != operand.rank
        )
        context.fail(
            "E4007",
            f"Slice of a tensor of rank {operand.rank} has {lengths[0]} starts, {lengths[1]} ends and "
            f"{lengths[2]} steps",
            attribute=wrong,
            notes=(f"the operand has type {operand}",),
            help="give one start, end and step for each dimension; 0, the extent and 1 take all of it",
            id=context.value_id,
            rank=operand.rank,
            lengths=lengths,
        )
    for dimension, step in enumerate(steps):
        if step == 0:
            context.report(
                "E4008",
                f"Slice has step 0 in dimension {dimension}",
                attribute="steps",
                notes=(f"the steps are {format_shape(steps)}",),
                help="a step of 1 takes every element, -1 takes them in reverse order",
                id=context.value_id,
                dimension=dimension,
            )
    context.stop_if_reported()
    return operand.with_shape(tuple(map(len, sliced_positions(context.attributes, operand.extents))))


def _evaluate_slice(context: EvalContext) -> Array:
    bounds = zip(*(context.attributes[name] for name in ("starts", "ends", "steps")), strict=True)
    return np.asarray(context.operands[0][tuple(slice(*bound) for bound in bounds)])


def _slice_vjp(context: VjpContext) -> Sequence[Value | None]:
    shape = context.operands[0].shape
    positions = sliced_positions(context.attributes, shape)
    # Pad keeps the order of the elements, so axes that were taken backwards are turned round first.
    cotangent = _reverse(context, [r.step < 0 for r in positions])
    taken = [r if r.step > 0 else r[::-1] for r in positions]
    low = tuple(r.start if r else 0 for r in taken)
    used = [r[-1] + 1 if r else 0 for r in taken]
    gradient = context.emit(
        "Pad",
        cotangent,
        low=low,
        high=tuple(extent - end for extent, end in zip(shape, used, strict=True)),
        interior=tuple(r.step - 1 for r in taken),
        pad_value=TensorLiteral.of(0, cotangent.type.dtype),
    )
    return (gradient,)


def _reverse(context: VjpContext, axes: Sequence[bool]) -> Value:
    """Return the cotangent with the order of elements reversed on the axes that say True."""
    if not any(axes):
        return context.cotangent
    extents = context.cotangent.shape
    pairs = list(zip(axes, extents, strict=True))
    return context.emit(
        "Slice",
        context.cotangent,
        starts=tuple(extent - 1 if reverse else 0 for reverse, extent in pairs),
        ends=tuple(-extent - 1 if reverse else extent for reverse, extent in pairs),
        steps=tuple(-1 if reverse else 1 for reverse, _ in pairs),
    )


def _lower_slice(context: LoweringContext) -> Any:
    (operand,), (type_,) = context.operands, context.operand_types
    result = context.result_type
    if result.element_count == 0:
        return context.empty(result)
    positions = sliced_positions(context.attributes, type_.extents)
    if positions == [range(extent) for extent in type_.extents]:
        return operand
    if any(r.step < 0 for r in positions):
        return _read_positions(context, positions)
    offsets, sizes, strides = zip(*((r.start, len(r), r.step) for r in positions), strict=True)
    slice_type = context.mlir.ir.RankedTensorType.get(list(sizes), context.element(type_.dtype))
    return context.mlir.tensor.extract_slice(slice_type, operand, [], [], [], offsets, sizes, strides)


def _read_positions(context: LoweringContext, positions: Sequence[range]) -> Any:
    # `tensor.extract_slice` has no negative strides: it takes what lies in order, and the rest is read by its
    # position. Rows that lie in order are then read in vectors.
    arith, result = context.mlir.arith, context.result_type
    (operand,), (type_,) = context.operands, context.operand_types
    taken = [r if r.step > 0 else range(extent) for r, extent in zip(positions, type_.extents, strict=True)]
    if taken != [range(extent) for extent in type_.extents]:
        offsets, sizes, strides = zip(*((r.start, len(r), r.step) for r in taken), strict=True)
        slice_type = context.mlir.ir.RankedTensorType.get(list(sizes), context.element(type_.dtype))
        operand = context.mlir.tensor.extract_slice(slice_type, operand, [], [], [], offsets, sizes, strides)

    def position(axis: int, r: range) -> Any:
        place = context.iteration(axis)
        if r.step > 0:
            return place
        start, step = (arith.constant(context.mlir.ir.IndexType.get(), n) for n in (r.start, r.step))
        return arith.addi(start, arith.muli(place, step))

    def body(_: Any) -> Any:
        return context.mlir.tensor.extract(operand, [position(axis, r) for axis, r in enumerate(positions)])

    identity = context.mlir.ir.AffineMap.get_identity(result.rank)
    (read,) = context.generic([], [identity], [context.empty(result)], ["parallel"] * result.rank, body)
    return read


def _of_window(fields: Mapping[str, Any], operands: Sequence[TensorType]) -> dict[str, Any]:
    """Turn sizes into ends, and see that the window lies within the operand: the contract clamps nothing."""
    starts, sizes = fields["starts"], fields["sizes"]
    if len(starts) != len(sizes):
        refuse(
            "E4007",
            f"Slice has {len(starts)} starts, but {len(sizes)} sizes",
            "sizes",
            rank=operands[0].rank,
            lengths=(len(starts), len(sizes)),
        )
    windows = list(zip(starts, sizes, strict=True))
    for axis, ((start, size), extent) in enumerate(zip(windows, operands[0].extents, strict=False)):
        if start < 0 or size < 0 or start + size > extent:
            refuse(
                "E4123",
                f"Slice takes {size} elements from {start} on in dimension {axis}, which has {extent}",
                "starts" if start < 0 else "sizes",
                help_text="starts and sizes are not negative, and their sum is at most the extent",
                operation="Slice",
                window=sizes,
                shape=operands[0].shape,
                axis=axis,
            )
    return {
        "starts": starts,
        "ends": tuple(start + size for start, size in windows),
        "steps": (1,) * len(starts),
    }


def _to_window(attributes: Mapping[str, Any], operands: Sequence[TensorType]) -> dict[str, Any]:
    positions = sliced_positions(attributes, operands[0].extents)
    if any(r.step != 1 for r in positions):
        cannot_say("Slice with steps other than 1", "PTIR's Slice takes neighbouring elements, in order")
    return {"starts": tuple(r.start for r in positions), "sizes": tuple(map(len, positions))}


def _example(starts: tuple[int, ...], ends: tuple[int, ...], steps: tuple[int, ...]) -> dict[str, Any]:
    return {"starts": starts, "ends": ends, "steps": steps}


OPERATIONS = (
    OpDef(
        opcode="Slice",
        mnemonic="slice",
        summary="Takes every step-th element of a range on each axis.",
        description="On dimension `i` the result has the elements at `starts[i]`, `starts[i] + "
        "steps[i]`, ... up to, and without, `ends[i]`: `ceil((end - start) / step)` elements, none when "
        "`end` does not lie beyond `start` in the direction of the step. There must be one start, end "
        "and step for each dimension (E4007); no step may be 0 (E4008).",
        spec="core-ir.md, Indexing and slicing; shapes.md, Index, slice, and gather",
        operands=(OperandDef("input", MOVABLE),),
        attributes=(
            AttributeDef("starts", AttrKind.I64_LIST, "the first position on each axis"),
            AttributeDef("ends", AttrKind.I64_LIST, "where to stop on each axis, exclusive"),
            AttributeDef("steps", AttrKind.I64_LIST, "the distance of positions on each axis, not 0"),
        ),
        type_rule=_slice_type,
        evaluate=_evaluate_slice,
        derivative=_slice_vjp,
        movement=Movement.SELECTION,
        lower=_lower_slice,
        stablehlo=hlo.slice_,
        choices=(
            "The result is what numpy gives for `input[start:end:step, ...]`.",
            "A negative start or end counts from the end of the axis.",
            "Bounds that are still outside of the axis are moved to its nearest end; a slice is never "
            "out of bounds. The extent is computed from the bounds after that.",
            "A negative step goes backwards. As an end of -1 is the last element, 'down to the first "
            "element' is spelled with an end of `-(extent + 1)` or less: `starts=[3], ends=[-5], "
            "steps=[-1]` reverses 4 elements.",
            "Empty slices are allowed and have extent 0.",
        ),
        contract=Contract(
            "Slice",
            fields=(Field("starts", FieldKind.INTEGERS), Field("sizes", FieldKind.INTEGERS)),
            read=_of_window,
            write=_to_window,
        ),
        in_contract=slice_form,
        examples=(
            Example(("T[4, 6]",), _example((1, 0), (3, 6), (1, 2))),
            Example(("T[4, 6]",), _example((0, 0), (4, 6), (1, 1)), "the identity"),
            Example(("T[4, 6]",), _example((-3, -2), (-1, 100), (1, 1)), "bounds from the end, and clamped"),
            Example(("T[5]",), _example((4,), (-6,), (-1,)), "reverses"),
            Example(("T[7, 5]",), _example((6, 1), (0, 4), (-3, 2)), "backwards on one axis"),
            Example(("T[4, 6]",), _example((2, 0), (2, 6), (1, 1)), "empty"),
            Example(("T[]",), _example((), (), ())),
        ),
    ),
)
