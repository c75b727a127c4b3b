"""What the regions of reductions, sorts and scatters do: one operation that is known, or whatever it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.bindings import ir
from mind_mlir.stablehlo.rules.types import keyword_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.bindings import Block
    from mind_mlir.ir.value import Value
    from mind_mlir.stablehlo.rules.use import Use


def kind_of(block: Block) -> str | None:
    """Return the operation that a region of two scalars is: ``add``, ``maximum`` and so on; else None."""
    operations = list(block.operations)
    if len(operations) != 2 or len(block.arguments) != 2:
        return None
    only, end = operations
    read = list(only.operation.operands)
    if list(end.operation.operands) != list(only.operation.results) or len(read) != 2:
        return None
    arguments = list(block.arguments)
    if read not in (arguments, arguments[::-1]):
        return None
    return str(only.operation.name).removeprefix("stablehlo.")


def compared(block: Block) -> tuple[str, str] | None:
    """Return how a region compares its first two scalars, its only result; None where it does more than that.

    Returns:
        The direction, ``LT`` or the like, and ``plain``; or ``equal`` where it takes all zeros for one and
        all NaNs for one, as jax does.
    """
    operations = list(block.operations)
    end = operations[-1].operation
    if len(end.operands) != 1:
        return None
    last = end.operands[0].owner
    if isinstance(last, ir.Block) or last.operation.name != "stablehlo.compare":
        return None
    first, second = block.arguments[0], block.arguments[1]
    operands = list(last.operation.operands)
    direction = keyword_of(last.operation, "comparison_direction")
    if operands == [first, second]:
        return direction, "plain"
    sources = [_argument(each) for each in operands]
    return (direction, "equal") if sources == [first, second] else None


def _argument(value: Any) -> object:
    """Return the argument that ``value`` is, but for its zeros and NaNs; None where there is no such."""
    for _ in range(4):
        owner = value.owner
        if isinstance(owner, ir.Block):
            return value
        if owner.operation.name != "stablehlo.select":
            return None
        condition = owner.operation.operands[0].owner
        value = owner.operation.operands[2]
        if isinstance(condition, ir.Block) or condition.operation.name != "stablehlo.compare":
            return None
    return None


def combined(use: Use, block: Block, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
    """Append what a region of scalars gives for each pair of elements of ``left`` and ``right``."""
    shape = left[0].type.extents
    return list(use.imports.block(block, [*left, *right], lift=shape))
