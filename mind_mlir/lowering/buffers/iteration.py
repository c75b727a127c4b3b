"""Iterations of parallel loops: their number, and the number of the one that is running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import arith, ir

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Operation, Value

_DYNAMIC = -(2**63)


def trip_count(loop: Operation) -> int:
    """Return the number of iterations of an `scf.parallel`, `scf.forall` or `scf.for` with constant bounds.

    Raises:
        ValueError: A bound is not a constant.
    """
    count = 1
    for lower, upper, step in _ranges(loop):
        count *= max(0, -(-(upper - lower) // step))
    return count


def iteration_number(loop: Operation) -> Value:
    """Emit the row-major number of the running iteration of ``loop``, from zero, at the insertion point."""
    index = ir.IndexType.get()
    number = arith.ConstantOp(index, 0).result
    for variable, (lower, upper, step) in zip(
        loop.regions[0].blocks[0].arguments, _ranges(loop), strict=False
    ):
        position = arith.SubIOp(variable, arith.ConstantOp(index, lower).result).result
        position = arith.DivUIOp(position, arith.ConstantOp(index, step).result).result
        extent = arith.ConstantOp(index, max(0, -(-(upper - lower) // step))).result
        number = arith.AddIOp(arith.MulIOp(number, extent).result, position).result
    return number


def _ranges(loop: Operation) -> list[tuple[int, int, int]]:
    """Return (lower bound, upper bound, step) of each dimension of ``loop``."""
    if loop.name == "scf.forall":
        bounds = [
            list(ir.DenseI64ArrayAttr(loop.attributes[name]))
            for name in ("staticLowerBound", "staticUpperBound", "staticStep")
        ]
        if any(_DYNAMIC in values for values in bounds):
            raise ValueError("a parallel loop with temporary buffers needs constant bounds")
        return list(zip(*bounds, strict=True))
    rank = len(loop.regions[0].blocks[0].arguments)
    values = [_constant(operand) for operand in list(loop.operands)[: 3 * rank]]
    return list(zip(values[:rank], values[rank : 2 * rank], values[2 * rank :], strict=True))


def _constant(value: Value) -> int:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp):
        return int(ir.IntegerAttr(owner.attributes["value"]).value)
    raise ValueError("a parallel loop with temporary buffers needs constant bounds")
