"""Loops that carry values: `scf.for`, and how those are marked that threads may share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mind_mlir.mlir.context import LoweringContext

#: On an `scf.for` each of whose iterations writes elements of the tensors that it carries which no other one
#: reads or writes: how many nanoseconds all of them take, about.
ROWS_ATTRIBUTE = "mind.rows"
#: On an `scf.for` whose one result are integers from 0 on: what all of them are below.
BELOW_ATTRIBUTE = "mind.below"


def counted_loop(
    context: LoweringContext,
    start: Any,
    end: Any,
    carried: Sequence[Any],
    body: Callable[[Any, Sequence[Any]], Sequence[Any]],
) -> list[Any]:
    """Append a loop, and return what it carries in the end.

    Args:
        context: The operation being lowered.
        start: The first step: a number, or a value of type `index`.
        end: The step before which it ends, likewise.
        carried: What it carries into the first step.
        body: From the step and what is carried to what is carried on.
    """
    mlir = context.mlir
    index = mlir.ir.IndexType.get()
    first, last, one = (
        mlir.arith.constant(index, bound) if isinstance(bound, int) else bound for bound in (start, end, 1)
    )
    loop = mlir.scf.ForOp(first, last, one, list(carried))
    with mlir.ir.InsertionPoint(loop.body):
        mlir.scf.YieldOp(list(body(loop.induction_variable, list(loop.inner_iter_args))))
    return list(loop.results)
