"""Rules for open axes of what sums or compares: padding gets the number that changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ops.accumulators import identity
from mind_mlir.ops.open_axes import Axis, OpenContext, OpenValue, Rows, is_open
from mind_mlir.ops.open_rules import joint_axes

if TYPE_CHECKING:
    from mind_mlir.ir.types import DType
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.rules import OpenRule


def _reduced_axes(context: OpenContext, *, all_of_none: bool) -> tuple[tuple[int, ...], tuple[Axis, ...]]:
    """Return the axes that are reduced, and those of the result."""
    (operand,) = context.operands
    context.expect_same()
    rank, given = len(operand.axes), context.attributes["axes"]
    reduced = tuple(axis % rank for axis in given) if given or not all_of_none else tuple(range(rank))
    left = [() if axis in reduced else each for axis, each in enumerate(operand.axes)]
    if not context.attributes["keepdims"] or (all_of_none and not given):
        left = [each for axis, each in enumerate(left) if axis not in reduced]
    return reduced, tuple(left)


def reducing(number: Callable[[Mapping[str, Any], DType], Any], *, all_of_none: bool = False) -> OpenRule:
    """Return the rule of a reduction over axes, which the number that ``number`` returns does not change.

    Args:
        number: From the attributes, and the dtype of the operand.
        all_of_none: Whether no axes are all of them.
    """

    def rule(context: OpenContext) -> list[OpenValue]:
        reduced, axes = _reduced_axes(context, all_of_none=all_of_none)
        (operand,) = context.operands
        neutral = number(context.attributes, operand.value.type.dtype)
        found = [OpenValue(each, axes) for each in context.repeat(context.filled(operand, neutral, reduced))]
        if len(axes) == len(operand.axes):
            kind = str(context.attributes.get("kind", context.record.opcode))
            found[0].rows = Rows(operand.value, kind, frozenset(reduced))
        return found

    return rule


def cumulating(number: Callable[[Mapping[str, Any], DType], Any]) -> OpenRule:
    """Return the rule of what combines elements up to each one; that of ``number`` changes nothing."""

    def rule(context: OpenContext) -> list[OpenValue]:
        (operand,) = context.operands
        context.expect_same()
        along = context.attributes["axis"] % len(operand.axes)
        neutral = number(context.attributes, operand.value.type.dtype)
        value = context.filled(operand, neutral, (along,))
        return [OpenValue(each, operand.axes) for each in context.repeat(value)]

    return rule


def averaging(context: OpenContext) -> list[OpenValue]:
    """Divide a sum by the number of elements that there are."""
    reduced, axes = _reduced_axes(context, all_of_none=True)
    (operand,) = context.operands
    along = [operand.axes[axis] for axis in reduced]
    if not any(map(is_open, along)):
        return [OpenValue(each, axes) for each in context.repeat()]
    if not operand.value.type.dtype.is_float:
        context.refuse("it is a mean of integers along an open dimension")
    total = context.emit("Sum", context.filled(operand, 0, reduced), **context.attributes)
    number = context.emit("Cast", context.number_of(along), dtype=total.type.dtype)
    return [OpenValue(context.emit("Div", total, number), axes)]


def finding(context: OpenContext) -> list[OpenValue]:
    """Find the place of the greatest element of each row."""
    (operand,) = context.operands
    context.expect_same()
    along = context.attributes["axis"] % len(operand.axes)
    if is_open(operand.axes[along]) and any(factor.symbol is not None for factor in operand.axes[along][1:]):
        context.refuse("it counts along an open dimension that has been reshaped")
    dtype = operand.value.type.dtype
    value = context.filled(operand, identity("Max", dtype), (along,))
    left = [() if axis == along else each for axis, each in enumerate(operand.axes)]
    if not context.attributes["keepdims"]:
        del left[along]
    return [OpenValue(each, tuple(left)) for each in context.repeat(value)]


# Products


def product(context: OpenContext) -> list[OpenValue]:
    """Multiply and sum, as Dot and MatMul do."""
    lhs, rhs = context.operands
    inner = max(len(rhs.axes) - 2, 0)
    values = _factors(context, (len(lhs.axes) - 1,), (inner,))
    batch = joint_axes(
        context,
        [OpenValue(lhs.value, lhs.axes[:-2]), OpenValue(rhs.value, rhs.axes[:-2])],
        max(len(lhs.axes), len(rhs.axes), 2) - 2,
    )
    axes = (*batch, *lhs.axes[-2:-1], *(rhs.axes[-1:] if len(rhs.axes) > 1 else ()))
    return [OpenValue(each, axes) for each in context.repeat(*values)]


def general_product(context: OpenContext) -> list[OpenValue]:
    """Multiply and sum, as DotGeneral does."""
    lhs, rhs = context.operands
    batch, batch_rhs, contract, contract_rhs = (
        context.attributes[name] for name in ("batch_lhs", "batch_rhs", "contract_lhs", "contract_rhs")
    )
    values = _factors(context, contract, contract_rhs)
    if any(lhs.axes[one] != rhs.axes[other] for one, other in zip(batch, batch_rhs, strict=True)):
        context.refuse("its operands have dimensions that are the same for some extents alone")
    free = [axis for place, axis in enumerate(lhs.axes) if place not in (*batch, *contract)]
    free += [axis for place, axis in enumerate(rhs.axes) if place not in (*batch_rhs, *contract_rhs)]
    axes = (*(lhs.axes[place] for place in batch), *free)
    return [OpenValue(each, axes) for each in context.repeat(*values)]


def _factors(context: OpenContext, left: Sequence[int], right: Sequence[int]) -> tuple[Value, Value]:
    """Append the factors of a product with zeros in the padding that is summed over.

    Both get them: what is no number stays so times zero.
    """
    context.expect_same()
    lhs, rhs = context.operands
    if [lhs.axes[axis] for axis in left] != [rhs.axes[axis] for axis in right]:
        context.refuse("it sums over dimensions that are the same for some extents alone")
    return context.filled(lhs, 0, left), context.filled(rhs, 0, right)
