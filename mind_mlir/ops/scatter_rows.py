"""The lowering of scatters: one loop over rows of updates, which is scheduled as a whole.

Operand and updates are flat tensors of rows of some width, so that a row of any rank is contiguous. The rows
are combined one after the other: what two updates of one row give does not depend on who combines them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType
from mind_mlir.ops.accumulators import computed_dtype
from mind_mlir.ops.reassociation import reshape
from mind_mlir.ops.row_loops import counted_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.types import TensorType
    from mind_mlir.mlir.context import LoweringContext

#: Marks the loop over the rows of updates, whose body ends with the loop over the columns.
SCATTER_ATTRIBUTE = "mind.scatter"
#: Says how updates of single elements lie, `[outer, along, inner]`: those that differ in the first or in the
#: last of the three go to different elements.
LINES_ATTRIBUTE = "mind.lines"


def rounded_once(total: Array, dtype: DType) -> Array:
    """Return numbers of the accumulator's dtype as those of ``dtype``: rounded, or wrapped around."""
    if dtype.bits != 4:
        return total.astype(dtype.numpy)
    low = np.asarray(total & 15)
    return np.asarray(np.where(low > 7, low - 16, low) if dtype is DType.SI4 else low, dtype.numpy)


def scatter_rows(
    context: LoweringContext,
    row: Callable[[Any], Any],
    count: int,
    width: int,
    combine: Callable[[Any, Any], Any] | None,
    lines: tuple[int, int, int] | None = None,
    *,
    skips: bool = False,
) -> Any:
    """Append the combination of rows of the third operand with those of the first, and return the result.

    Args:
        context: The operation being lowered, of an operand, indices and updates, neither empty.
        row: From the number of a row of updates to that of the operand's row, both of type `index`.
        count: How many rows of updates there are.
        width: The elements of a row.
        combine: From the old element and the update to the new element, of the accumulator's dtype and, but
            for complex numbers, by a single operation; None where the update takes the old element's place.
        lines: Three factors of ``count``, where rows are single elements: updates whose numbers differ in the
            first or the last of these digits go to different elements. None where nothing is known of that.
        skips: Whether a row of updates may have no place: ``row`` gives then how many rows there are.
    """
    result = context.result_type
    dtype = computed_dtype(result.dtype) if combine else result.dtype
    flat = result.with_dtype(dtype).with_shape((result.element_count,))
    start = _copied(context, context.operands[0], context.operand_types[0], flat)
    updates = _flat(context, context.operands[2], context.operand_types[2], dtype)
    arith, tensor, index = context.mlir.arith, context.mlir.tensor, context.mlir.ir.IndexType.get()

    def add_row(at: Any, carried: Sequence[Any]) -> Sequence[Any]:
        to = row(at)
        stride = end = arith.constant(index, width)
        first_target, first_update = arith.muli(to, stride), arith.muli(at, stride)

        def add_element(column: Any, target: Sequence[Any]) -> Sequence[Any]:
            position = [arith.addi(first_target, column)]
            element = tensor.extract(updates, [arith.addi(first_update, column)])
            if combine is not None:
                element = combine(tensor.extract(target[0], position), element)
            return [tensor.insert(element, target[0], position)]

        if skips:
            rows, nothing = (arith.constant(index, n) for n in (result.element_count // width, 0))
            end = arith.select(arith.cmpi(arith.CmpIPredicate.ult, to, rows), stride, nothing)
        return counted_loop(context, 0, end, carried, add_element)

    (scattered,) = counted_loop(context, 0, arith.constant(index, count), [start], add_row)
    # Vectors hold no complex numbers: theirs stays a loop over single ones.
    if dtype not in (DType.CF32, DType.CF64):
        scattered.owner.attributes[SCATTER_ATTRIBUTE] = context.mlir.ir.UnitAttr.get()
        if width == 1:
            attribute = context.mlir.ir.DenseI64ArrayAttr.get(list(lines or (1, count, 1)))
            scattered.owner.attributes[LINES_ATTRIBUTE] = attribute
    shaped = reshape(context, scattered, flat, result.extents)
    if dtype is result.dtype:
        return shaped
    return context.elementwise(context.arithmetic(result.dtype).rounded, [shaped])


def _copied(context: LoweringContext, value: Any, type_: TensorType, flat: TensorType) -> Any:
    """Append a copy of ``value`` of type ``flat``; a fill is repeated instead of read."""
    if context.element(type_.dtype) != context.element(flat.dtype):
        return _flat(context, value, type_, flat.dtype)
    source = value.owner
    if getattr(source, "name", "") == "linalg.fill":
        return context.named("fill", [source.operands[0]], context.empty(flat), flat)
    return context.named("copy", [_flat(context, value, type_, type_.dtype)], context.empty(flat), flat)


def _flat(context: LoweringContext, value: Any, type_: TensorType, dtype: DType) -> Any:
    """Append ``value`` as a flat tensor, of wider numbers where ``dtype`` is another than its own."""
    if context.element(type_.dtype) != context.element(dtype):
        number = context.arithmetic(type_.dtype)
        value = context.elementwise(number.widened, [value], type_.with_dtype(dtype))
    return reshape(context, value, type_.with_dtype(dtype), (type_.element_count,))
