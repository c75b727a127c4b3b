"""Attributes that many operations have: axes (ptir-v0.4.md, "Negative axes"), slices of axes, and dtypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from mind_mlir.ir.types import TensorType, format_shape

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ops.contexts import TypeContext


#: What the records say of it.
NEGATIVE_AXIS = "A negative `axis` counts from the end: `-1` is the last one."


def require_axis(context: TypeContext, rank: int, attribute: str = "axis") -> int:
    """Return the attribute as a number in ``[0, rank)``; E3004 and the end where it is outside."""
    axis: int = context.attributes[attribute]
    if not -rank <= axis < rank:
        context.fail(
            "E3004",
            f"{context.opcode} axis {axis} is outside the rank {rank}",
            attribute=attribute,
            notes=tuple(f"operand {i} has type {type_}" for i, type_ in enumerate(context.operands[:1])),
            help=f"the axis must lie in [{-rank}, {rank - 1}]; a negative one counts from the end"
            if rank
            else "a scalar has no axes; ExpandDims or Reshape adds one",
            axis=axis,
            rank=rank,
        )
    return axis % rank


def check_counts(context: TypeContext, name: str, negative: str, missing: str | None = None) -> None:
    """Report E1103 unless a list has a number for each dimension of the first operand, none of them negative.

    Args:
        context: The operation.
        name: The attribute.
        negative: What to do where a number is negative.
        missing: What helps where there are not as many as there are dimensions.
    """
    operand, counts = context.operands[0], context.attributes[name]
    if len(counts) != operand.rank:
        context.report(
            "E1103",
            f"attribute '{name}' of {context.opcode} needs {operand.rank} numbers, one for each dimension, "
            f"found {len(counts)}",
            attribute=name,
            notes=(f"the operand has type {operand}",),
            help=missing,
        )
    for dimension, count in enumerate(counts):
        if count < 0:
            context.report(
                "E1103",
                f"attribute '{name}' of {context.opcode} is {count} in dimension {dimension}; it must not be "
                "negative",
                attribute=name,
                notes=(f"{name} is {format_shape(counts)}",),
                help=negative,
            )


def counted_from_front(
    attributes: Mapping[str, AttributeValue], result: TensorType
) -> Mapping[str, AttributeValue]:
    """Normalize `axis`, of a result that has the rank of what it counts the axes of."""
    return {**attributes, "axis": cast("int", attributes["axis"]) % result.rank}


def sliced_positions(attributes: Mapping[str, Any], extents: Sequence[int]) -> list[range]:
    """Return, for each axis, the positions that the result takes from the operand, in order.

    As in numpy, a negative start or end counts from the end, and what is still outside of the axis is moved
    to its nearest end. A range of one element has step 1, whatever step was asked for.
    """
    bounds = zip(attributes["starts"], attributes["ends"], attributes["steps"], extents, strict=True)
    ranges = [range(*slice(start, end, step).indices(extent)) for start, end, step, extent in bounds]
    return [r if len(r) > 1 else range(r.start, r.start + len(r)) for r in ranges]
