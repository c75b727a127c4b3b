"""Rules of branches, loops and calls, and of calls of what the program does not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mind_mlir.mlir.stablehlo_builder import HloValue
    from mind_mlir.mlir.stablehlo_context import StablehloContext


def cond(context: StablehloContext) -> list[HloValue]:
    """Rule of `Cond`."""
    then, other = context.regions
    return context.structured.branch(
        context.operands[0], context.result_types, lambda: then.body([]), lambda: other.body([])
    )


def while_(context: StablehloContext) -> list[HloValue]:
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


def call(context: StablehloContext) -> list[HloValue]:
    """Rule of `Call`."""
    return context.call(context.attributes["callee"])


def custom_call(context: StablehloContext) -> list[HloValue]:
    """Rule of `CustomCall`, of what has no expansion: whoever runs the program knows the name."""
    return context.foreign_call(context.attributes["target"], context.attributes["attrs"])
