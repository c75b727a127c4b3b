"""Branches, loops, and parts of a program that are graphs of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.models.torch.rules.use import UnreadUse
from mind_mlir.models.torch.rules.values import truth
from mind_mlir.tracing import control
from mind_mlir.tracing.array import TracedArray

if TYPE_CHECKING:
    from mind_mlir.models.torch.graph import FxGraph
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule


def _cond(
    to: OperatorUse, predicate: Any, then: FxGraph, otherwise: FxGraph, operands: Sequence[Any] = ()
) -> list[Any]:
    if not isinstance(predicate, TracedArray):
        return to.shared.run(then if predicate else otherwise, list(operands))
    found: list[Any] = control.cond(
        truth(predicate).reshape(()),
        lambda: to.shared.run(then, list(operands)),
        lambda: to.shared.run(otherwise, list(operands)),
    )
    return found


def _while_loop(
    to: OperatorUse, condition: FxGraph, body: FxGraph, carried: Sequence[Any], others: Sequence[Any] = ()
) -> list[Any]:
    more = list(others)
    found: list[Any] = control.while_loop(
        lambda values: truth(to.shared.run(condition, [*values, *more])[0]).reshape(()),
        lambda values: to.shared.run(body, [*values, *more]),
        list(carried),
    )
    return found


def _scan(
    to: OperatorUse, combine: FxGraph, init: Sequence[Any], xs: Sequence[Any], others: Sequence[Any] = ()
) -> list[Any]:
    count, more = len(init), list(others)

    def step(carried: list[Any], slices: list[Any]) -> tuple[list[Any], list[Any]]:
        found = to.shared.run(combine, [*carried, *slices, *more])
        return found[:count], found[count:]

    last, every = control.scan(step, list(init), list(xs))
    return [*last, *every]


def _with_mode(to: OperatorUse, _enabled: Any, graph: Any, *operands: Any) -> list[Any]:
    if not hasattr(graph, "nodes"):
        raise UnreadUse("its graph is not among its arguments")
    return to.shared.run(graph, list(operands))


def _with_autocast(to: OperatorUse, *args: Any) -> list[Any]:
    place = next(place for place, each in enumerate(args) if hasattr(each, "nodes"))
    return to.shared.run(args[place], list(args[place + 1 :]))


RULES: Mapping[str, Rule] = {
    "higher_order.cond": _cond,
    "higher_order.while_loop": _while_loop,
    "higher_order.scan": _scan,
    "higher_order.invoke_subgraph": lambda to, graph, _name, *operands: to.shared.run(graph, list(operands)),
    "higher_order.wrap_with_set_grad_enabled": _with_mode,
    "higher_order.wrap_with_autocast": _with_autocast,
    "higher_order.wrap": lambda to, graph, *operands: to.shared.run(graph, list(operands)),
}
