"""Derivatives of branches and calls.

The derivative of `Cond` is a `Cond`: each region computes what its branch did once more, as far as it is
needed, and goes back through it. The derivative of `Call` is a call of a function made for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import Fills, VjpContext


def cond_vjp(context: VjpContext) -> Sequence[Value | None]:
    """Return the cotangents of the predicate, which has none, and of the captured values."""
    branches: list[tuple[Fills, list[Value | None]]] = []
    for region in context.regions:
        with context.builder.region() as branch:
            region.run(())
            _, captured = region.pull(context.cotangents)
        branches.append((branch, captured))
    places = range(len(context.captured))
    reached = [i for i in places if any(captured[i] is not None for _, captured in branches)]
    if not reached:
        return [None] * (1 + len(places))
    for branch, captured in branches:
        with branch:
            branch.yield_([captured[i] or context.zeros(context.captured[i].type) for i in reached])
        branch.prune()
    regions = [branch for branch, _ in branches]
    found = context.builder.emit_all("Cond", context.operands[0], regions=regions)
    by_place = dict(zip(reached, found, strict=True))
    return [None, *(by_place.get(i) for i in places)]


def call_vjp(context: VjpContext) -> Sequence[Value | None]:
    """Return the cotangents of the arguments."""
    assert context.call is not None, "the driver differentiates functions"
    return context.call(context.attributes["callee"], context.operands, context.cotangents, context.needs)
