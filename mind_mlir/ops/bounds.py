"""Run-time indices: how out-of-range ones are found, and how all are made safe to use.

An index of Core counts from the end when it is negative: on an axis of extent D those in [-D, D) are valid. A
position counts from the beginning only, as PTIR's indices do: those in [0, D) are valid. Compiled code finds
the least and the greatest index of a tensor first and reports them; the reads and writes then use positions
clamped into the axis, so that nothing outside a buffer is touched even when the check fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics.checks import NOTHING_SEEN, IndexCheck, PositionCheck
from mind_mlir.ir.types import DType, TensorType

if TYPE_CHECKING:
    from mind_mlir.diagnostics.checks import Check
    from mind_mlir.ir.attributes import Array
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext


def require_in_bounds(context: EvalContext, indices: Array, shape: tuple[int, ...]) -> None:
    """Raise E6001 unless all ``indices`` are valid on axis 0 of an operand of ``shape``."""
    require_allowed(context, indices, IndexCheck(context.opcode, context.label, 0, shape))


def require_positions(context: EvalContext, positions: Array, shape: tuple[int, ...], axis: int) -> None:
    """Raise E6001 unless all ``positions`` are valid on ``axis`` of an operand of ``shape``."""
    require_allowed(context, positions, PositionCheck(context.opcode, context.label, axis, shape))


def require_allowed(context: EvalContext, numbers: Array, check: Check) -> None:
    """Raise what ``check`` says of the least of ``numbers``, or else the greatest, that it does not allow."""
    if numbers.size == 0:
        return
    low, high = check.allowed
    smallest, largest = int(numbers.min()), int(numbers.max())
    if smallest < low:
        context.fail(check, smallest)
    if largest > high:
        context.fail(check, largest)


def check_indices(context: LoweringContext, indices: Any, type_: TensorType, shape: tuple[int, ...]) -> None:
    """Append the check of all ``indices`` against axis 0 of an operand of ``shape``.

    Args:
        context: The operation being lowered.
        indices: A tensor of i32 or i64.
        type_: Its type, in our terms.
        shape: The shape of the indexed operand.
    """
    check_numbers(context, indices, type_, IndexCheck(context.opcode, context.label, 0, shape))


def check_positions(
    context: LoweringContext, positions: Any, type_: TensorType, shape: tuple[int, ...], axis: int
) -> None:
    """Append the check of all ``positions`` against ``axis`` of an operand of ``shape``; likewise."""
    check_numbers(context, positions, type_, PositionCheck(context.opcode, context.label, axis, shape))


def check_numbers(context: LoweringContext, numbers: Any, type_: TensorType, check: Check) -> None:
    """Append ``check`` of all elements of ``numbers``, a tensor of i32 or i64 of ``type_``."""
    if type_.element_count == 0:
        return
    arith, affine_map = context.mlir.arith, context.mlir.ir.AffineMap
    scalar = TensorType(DType.SI64)

    def body(index: Any, smallest: Any, largest: Any) -> list[Any]:
        wide = _widen(context, index)
        return [arith.minsi(smallest, wide), arith.maxsi(largest, wide)]

    nothing = affine_map.get(type_.rank, 0, [])
    least, greatest = NOTHING_SEEN
    ends = context.generic(
        [numbers],
        [affine_map.get_identity(type_.rank), nothing, nothing],
        [context.filled(scalar, least), context.filled(scalar, greatest)],
        ["reduction"] * type_.rank,
        body,
    )
    smallest, largest = map(context.single, ends)
    context.check(check, smallest, largest)


def safe_position(context: LoweringContext, index: Any, extent: int) -> Any:
    """Return the position, of type `index`, that ``index`` stands for, clamped into ``[0, extent)``.

    Args:
        context: The operation being lowered.
        index: A scalar of i32 or i64.
        extent: How many elements the axis has; at least 1.
    """
    arith = context.mlir.arith
    wide = _widen(context, index)
    zero, count, last = (context.scalar(value, DType.SI64) for value in (0, extent, extent - 1))
    negative = arith.cmpi(arith.CmpIPredicate.slt, wide, zero)
    position = arith.select(negative, arith.addi(wide, count), wide)
    clamped = arith.minsi(arith.maxsi(position, zero), last)
    return arith.index_cast(context.mlir.ir.IndexType.get(), clamped)


def clamped_position(context: LoweringContext, index: Any, last: int) -> Any:
    """Return ``index``, a scalar of i32 or i64, clamped into ``[0, last]``, of type `index`."""
    arith = context.mlir.arith
    zero, greatest = (context.scalar(value, DType.SI64) for value in (0, last))
    clamped = arith.minsi(arith.maxsi(_widen(context, index), zero), greatest)
    return arith.index_cast(context.mlir.ir.IndexType.get(), clamped)


def _widen(context: LoweringContext, index: Any) -> Any:
    wide = context.element(DType.SI64)
    return index if index.type == wide else context.mlir.arith.extsi(wide, index)
