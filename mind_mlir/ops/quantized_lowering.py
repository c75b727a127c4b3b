"""QuantizedDot in linalg: one operation that the scheduling stage recognises by its mark.

It reads weights as they lie. Its body only says what it reads: remainders, which nothing simplifies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.conversion import converted
from mind_mlir.ops.reassociation import reshape

if TYPE_CHECKING:
    from mind_mlir.mlir.context import LoweringContext

#: Marks a quantised product, and names the format of its weights.
FORMAT_ATTRIBUTE = "mind.quantized"
#: Says what activations become: ``float`` or ``int8``.
ACTIVATIONS_ATTRIBUTE = "mind.activations"


def lower(context: LoweringContext) -> Any:
    """Append the product, of f32, and its rounding."""
    ir, attributes = context.mlir.ir, context.attributes
    result, (x, weights) = context.result_type, context.operand_types[:2]
    if result.element_count == 0:
        return context.empty(result)
    rows, columns = math.prod(x.extents[:-1]), weights.extents[0]
    flat = reshape(context, context.operands[0], x, (rows, x.extents[-1]))
    operands = [flat, *context.operands[1:]]
    wide = TensorType(DType.F32, (rows, columns))
    maps, loops = _maps(context, [len(each.type.shape) for each in operands])
    (found,) = context.generic(
        operands,
        maps,
        [context.empty(wide)],
        ["parallel", "parallel", *["reduction"] * (loops - 2)],
        lambda *elements: _body(context, elements),
    )
    mark = found.owner.attributes
    mark[FORMAT_ATTRIBUTE] = ir.StringAttr.get(attributes["format"])
    mark[ACTIVATIONS_ATTRIBUTE] = ir.StringAttr.get(attributes["activations"])
    if result.dtype is not DType.F32:
        found = context.elementwise(
            lambda element: converted(context, element, DType.F32, result.dtype),
            [found],
            wide.with_dtype(result.dtype),
        )
    return reshape(context, found, wide.with_dtype(result.dtype), result.extents)


def _maps(context: LoweringContext, ranks: Sequence[int]) -> tuple[list[Any], int]:
    """Return how operands and the result are indexed, by loops of their own within a row; and all loops."""
    ir = context.mlir.ir
    accesses, loops = [], 2
    for place, rank in enumerate(ranks):
        accesses.append([min(place, 1), *range(loops, loops + rank - 1)])
        loops += rank - 1
    accesses.append([0, 1])
    maps = [ir.AffineMap.get(loops, 0, [ir.AffineDimExpr.get(dim) for dim in each]) for each in accesses]
    return maps, loops


def _body(context: LoweringContext, elements: Sequence[Any]) -> Any:
    """Append what uses each element and the result's."""
    arith, f32 = context.mlir.arith, context.element(DType.F32)
    *read, found = elements
    for element in read:
        if isinstance(element.type, context.mlir.ir.IntegerType):
            wide = arith.uitofp(f32, element)
        else:
            wide = element if element.type == f32 else arith.extf(f32, element)
        found = arith.remf(found, wide)
    return found
