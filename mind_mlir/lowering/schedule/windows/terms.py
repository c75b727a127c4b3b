"""The terms that windows add up, on vectors: factors as accumulators have them, and multiply-adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.linalg_view.values import cast
from mind_mlir.mlir.bindings import Value, arith, ir, vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.mlir.bindings import Operation


def read_factor(
    e: Emitter,
    source: Value,
    casts: Sequence[Operation],
    lanes: int,
    place: Sequence[Index],
    mask: Value | None = None,
) -> Value:
    """Emit the vector of a factor from ``place`` on, converted by ``casts`` as accumulators have it."""
    element = ir.RankedTensorType(source.type).element_type
    value = e.read(e.vector_type(lanes, element), source, place, e.number(element, 0), mask)
    return cast(casts, value, [lanes])


def multiply_add(left: Value, right: Value, total: Value, *, fma: bool) -> Value:
    """Emit ``total + left * right`` on vectors, rounded once where the target fuses."""
    if fma:
        return vector.FMAOp(left, right, total).result
    return arith.AddFOp(total, arith.MulFOp(left, right).result).result
