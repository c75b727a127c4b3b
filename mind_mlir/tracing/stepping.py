"""Branches and loops of functions that run operation by operation: Python's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mind_mlir.support.pytrees import flatten
from mind_mlir.tracing import loops
from mind_mlir.tracing.conversion import as_value, common_node, node_of

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.tracing.array import TracedArray
    from mind_mlir.tracing.eager import EagerTrace

T = TypeVar("T")


def cond(
    trace: EagerTrace,
    predicate: Value,
    true_fn: Callable[..., T],
    false_fn: Callable[..., T],
    operands: Sequence[Any],
) -> T:
    """Return what the function that is chosen does; the other one does not run."""
    chosen, what = (true_fn, "true_fn") if trace.numbers[predicate.id] else (false_fn, "false_fn")
    leaves, form = flatten(chosen(*operands), f"the result of {what}")
    found: T = form.unflatten([_array(trace, leaf) for leaf in leaves])
    return found


def while_of(
    trace: EagerTrace,
    carried: list[loops.Carried],
    goes_on: Callable[[list[TracedArray]], Value],
    step: Callable[[list[TracedArray]], list[Any]],
    what: str,
) -> list[TracedArray]:
    """Run a loop, and return what is carried last (see `loops.while_of`)."""
    if not carried:
        loops.refuse_nothing("while_loop carries")
    state = _first(trace, carried)
    while trace.numbers[goes_on(state).id]:
        state = _next(trace, carried, step(state), what)
    return state


def scan(
    trace: EagerTrace,
    carried: list[loops.Carried],
    scanned: Sequence[TracedArray],
    step: Callable[[list[TracedArray]], list[Any]],
) -> tuple[list[TracedArray], list[TracedArray]]:
    """Run a loop over slices, one at least; return what is carried last, and the outputs, stacked."""
    state = _first(trace, carried)
    rows: list[list[TracedArray]] = []
    for number in range(len(scanned[0])):
        leaves = step([*state, *(each[number] for each in scanned)])
        state = _next(trace, carried, leaves[: len(carried)], "f")
        rows.append([_array(trace, leaf) for leaf in leaves[len(carried) :]])
    return state, [_stacked(trace, column) for column in zip(*rows, strict=True)]


def _first(trace: EagerTrace, carried: Sequence[loops.Carried]) -> list[TracedArray]:
    return [trace.wrap(each.value(trace), weak=each.weak) for each in carried]


def _next(
    trace: EagerTrace, carried: Sequence[loops.Carried], leaves: Sequence[Any], what: str
) -> list[TracedArray]:
    """Return what a step carries on; a number takes the dtype of what is in its place from then on."""
    for each, leaf in zip(carried, leaves, strict=True):
        each.takes(leaf)
    loops.check_carried(carried, leaves, what)
    values = loops.conformed(trace, carried, leaves)
    return [trace.wrap(value, weak=each.weak) for value, each in zip(values, carried, strict=True)]


def _array(trace: EagerTrace, leaf: Any) -> TracedArray:
    return trace.wrap(as_value(trace, leaf), weak=node_of(leaf).weak)


def _stacked(trace: EagerTrace, rows: Sequence[TracedArray]) -> TracedArray:
    """Return arrays along a new leading axis; numbers among them take the dtype of the others."""
    node = common_node(trace, rows)
    parts = [as_value(trace, row, node.dtype) for row in rows]
    values = [trace.emit("ExpandDims", part, axes=[0]).value for part in parts]
    if len(values) == 1:
        return trace.wrap(values[0], weak=node.weak)
    return trace.emit("Concat", *values, axis=0, weak=node.weak)
