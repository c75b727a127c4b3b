"""Rules of branches, loops and calls: derivatives, and what they are in MLIR and in StableHLO.

The derivative of `Cond` is a `Cond`: each region computes what its branch did once more, as far as it is
needed, and goes back through it. The derivative of `Call` is a call of a function made for it; `loop_vjp` has
that of `While`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.target.abi import symbol_of

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.emission import EmitContext
    from mind_mlir.mlir.stablehlo_builder import HloValue
    from mind_mlir.mlir.stablehlo_context import StablehloContext
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


def emit_cond(context: EmitContext) -> list[Any]:
    """Return the results of the `scf.if` of a `Cond`."""
    operation = context.create("scf.if", [context.scalar(context.operands[0])])
    for region, target in zip(context.regions, operation.regions, strict=True):
        region.emit_into(target, context.mlir.scf.YieldOp)
    return list(operation.results)


def emit_while(context: EmitContext) -> list[Any]:
    """Return the results of the `scf.while` of a `While`."""
    scf = context.mlir.scf
    operation = context.create("scf.while", context.operands)

    def test(yielded: list[Any]) -> None:
        more, *state = yielded
        scf.ConditionOp(context.scalar(more), state)

    condition, body = context.regions
    condition.emit_into(operation.regions[0], test)
    body.emit_into(operation.regions[1], scf.YieldOp)
    return list(operation.results)


def emit_call(context: EmitContext) -> list[Any]:
    """Return the results of the `func.call` of a `Call`."""
    callee = context.mlir.ir.FlatSymbolRefAttr.get(symbol_of(context.attributes["callee"]))
    return list(context.create("func.call", context.operands, callee=callee).results)


def stablehlo_cond(context: StablehloContext) -> list[HloValue]:
    """Rule of `Cond`."""
    then, other = context.regions
    return context.structured.branch(
        context.operands[0], context.result_types, lambda: then.body([]), lambda: other.body([])
    )


def stablehlo_while(context: StablehloContext) -> list[HloValue]:
    """Rule of `While`, whose condition may compute the values that go on; that of StableHLO may not.

    Where it does, it is computed before the loop and at the end of each turn, and the predicate is carried.
    """
    condition, body = context.regions
    if condition.passes_through[1:] == tuple(range(len(context.operands))):
        return context.structured.loop(
            context.operands,
            lambda *values: condition.body(values)[0],
            lambda *values: body.body(values),
        )
    found = context.structured.loop(
        condition.body(context.operands),
        lambda more, *_: more,
        lambda _, *values: condition.body(body.body(values)),
    )
    return found[1:]
