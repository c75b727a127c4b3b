"""Derivatives of branches and calls, and where the values of control flow come from.

The derivative of `Cond` is a `Cond`: each region computes what its branch did once more, as far as it is
needed, and goes back through it. The derivative of `Call` is a call of a function made for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mind_mlir.ir.module import ValueId
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import Fills, FlowContext, VjpContext


def cond_flow(context: FlowContext) -> Iterator[tuple[ValueId, ValueId]]:
    """Yield that what either region yields flows into the results."""
    for region in context.regions:
        yield from zip(region.yields, context.results, strict=True)


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


def while_flow(context: FlowContext) -> Iterator[tuple[ValueId, ValueId]]:
    """Yield how values flow round the loop."""
    condition, body = context.regions
    yield from zip(context.operands, condition.parameters, strict=True)
    yield from zip(condition.yields[1:], context.results, strict=True)
    yield from zip(condition.yields[1:], body.parameters, strict=True)
    yield from zip(body.yields, condition.parameters, strict=True)


def call_flow(context: FlowContext) -> Iterator[tuple[ValueId, ValueId]]:
    """Yield which operands flow into which results through the function."""
    for parameter, result in context.through(context.attributes["callee"]):
        yield context.operands[parameter], context.results[result]


def call_vjp(context: VjpContext) -> Sequence[Value | None]:
    """Return the cotangents of the arguments."""
    assert context.call is not None, "the driver differentiates functions"
    return context.call(context.attributes["callee"], context.operands, context.cotangents, context.needs)
