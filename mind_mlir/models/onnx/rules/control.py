"""Branches and loops. What is known when a model is traced decides then; the rest is decided when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.diagnostics import TracingError
from mind_mlir.models.needed import Needed
from mind_mlir.models.onnx.graphs.graph import OnnxGraph
from mind_mlir.models.onnx.graphs.refusals import broken, unsupported
from mind_mlir.models.onnx.graphs.use import NodeUse, OnnxRule, Value, traced
from mind_mlir.support import pytrees
from mind_mlir.tracing.control import cond, scan, while_loop
from mind_mlir.tracing.value import TracedValue

#: Loops whose steps are known are written out, up to so many nodes.
_MAX_UNROLLED = 4096
#: And up to so many steps, where another form of the loop can be had.
_MAX_STEPS = 32


def _branch(use: NodeUse) -> tuple[Value, ...]:
    then, otherwise = use.needed("then_branch", OnnxGraph), use.needed("else_branch", OnnxGraph)
    if use.is_known(0):
        chosen = then if use.operands[0].reshape(-1)[:1].all() else otherwise
        return tuple(use.evaluator.graph(chosen, use.scope.within()))

    def of(graph: OnnxGraph) -> Any:
        return lambda: [_arrays(each) for each in use.evaluator.graph(graph, use.scope.within())]

    predicate = use[0].reshape(())
    try:
        return tuple(cond(predicate, of(then), of(otherwise)))
    except TracingError as error:
        if error.code == "E2320":  # they have results of different shapes
            raise Needed(use.sources[0], "which of two branches with different results is taken") from None
        raise


def _arrays(value: Value) -> Value:
    """Return a value whose arrays are all traced, as branches and loops have them."""
    if isinstance(value, list):
        return [_arrays(each) for each in value]
    return traced(value) if isinstance(value, np.ndarray) else value


def _loop(use: NodeUse) -> tuple[Value, ...]:
    body = use.needed("body", OnnxGraph)
    if len(body.inputs) < 2 or len(body.outputs) != len(body.inputs) - 1 + _scanned(use, body):
        broken("its body does not take and return what the loop carries")
    count = None if not use.has(0) else use.operands[0]
    if isinstance(count, np.ndarray):
        steps = int(count.reshape(-1)[0])
        goes_on = use.operands[1] if use.has(1) else np.array(True)
        if isinstance(goes_on, np.ndarray):
            if not goes_on.reshape(-1)[:1].all():
                steps = 0
            found = _written_out(use, body, steps)
            if found is not None:
                return found
    return _while(use, body)


def _scanned(use: NodeUse, body: OnnxGraph) -> int:
    """Return how many arrays a loop stacks, one of each step."""
    return max(len(body.outputs) - 1 - max(len(use.operands) - 2, 0), 0)


def _written_out(use: NodeUse, body: OnnxGraph, steps: int) -> tuple[Value, ...] | None:
    """Return the results of a loop whose steps are all known; None where a step decides whether to go on."""
    if steps > _MAX_STEPS and _is_plain(use, body):
        return _counted(use, body, steps)
    carried = list(use.operands[2:])
    rows: list[list[Value]] = [[] for _ in range(_scanned(use, body))]
    for number in range(max(steps, 0)):
        if number * max(len(body.nodes), 1) > _MAX_UNROLLED:
            unsupported(
                f"a loop of {steps} steps with results of changing shapes is too long to be written out"
            )
        results = _step(use, body, np.array(number, np.int64), np.array(True), carried)
        goes_on = results[0]
        carried = results[1 : 1 + len(carried)]
        for row, each in zip(rows, results[1 + len(carried) :], strict=True):
            row.append(each)
        if not isinstance(goes_on, np.ndarray):
            return None
        if not goes_on.reshape(-1)[:1].all():
            break
    return (*carried, *(_stacked(body, at, row, len(carried)) for at, row in enumerate(rows)))


def _stacked(body: OnnxGraph, at: int, rows: Sequence[Value], carried: int) -> Value:
    if rows and all(isinstance(each, np.ndarray) for each in rows):
        return np.stack(rows)
    if rows:
        return mnp.stack([_arrays(each) for each in rows])
    port = body.outputs[1 + carried + at]
    if port.dtype is None or port.shape is None:
        unsupported("a loop without a step stacks arrays whose shape the model does not say")
    return np.zeros((0, *(extent if isinstance(extent, int) else 0 for extent in port.shape)), port.dtype)


def _step(
    use: NodeUse, body: OnnxGraph, number: Value, goes_on: Value, carried: Sequence[Value]
) -> list[Value]:
    """Evaluate the body of a loop once."""
    scope, sources = use.scope.within(), use.all_sources()
    for port, value in zip(body.inputs, (number, goes_on, *carried), strict=True):
        scope.set(port.name, value, sources)
    return use.evaluator.graph(body, scope)


def _is_plain(use: NodeUse, body: OnnxGraph) -> bool:
    """Return whether a loop carries arrays alone, and its body never ends it."""
    if any(isinstance(each, list) or each is None for each in use.operands[2:]):
        return False
    condition = body.outputs[0].name
    names = {body.inputs[1].name}
    for node in body.nodes:
        is_same = node.operator == ("", "Identity") and node.inputs[0] in names
        is_true = node.operator == ("", "Constant") and bool(np.all(node.attributes.get("value", False)))
        if is_same or is_true:
            names.update(node.outputs)
    return condition in names or bool(np.all(body.initializers.get(condition, False)))


def _counted(use: NodeUse, body: OnnxGraph, steps: int) -> tuple[Value, ...]:
    """Return the results of a loop of many steps that all happen."""
    carried = [_arrays(each) for each in use.operands[2:]]

    def step(values: list[Value], number: Value) -> tuple[list[Value], list[Value]]:
        results = [_arrays(each) for each in _step(use, body, number, np.array(True), values)[1:]]
        return results[: len(carried)], results[len(carried) :]

    last, stacked = scan(step, carried, mnp.arange(steps, dtype="i64"))
    return (*last, *stacked)


def _while(use: NodeUse, body: OnnxGraph) -> tuple[Value, ...]:
    """Return the results of a loop that decides itself when it ends."""
    if _scanned(use, body):
        raise Needed(use.all_sources(), "how many steps of a loop are stacked")
    carried = [_arrays(each) for each in use.operands[2:]]
    if any(not isinstance(each, TracedValue) for each in pytrees.flatten(carried)[0]) or any(
        isinstance(each, list) for each in carried
    ):
        raise Needed(use.all_sources(), "how many steps of a loop change a sequence")
    most = use[0].reshape(()).astype("i64") if use.has(0) else None
    begins = use[1].reshape(()) if use.has(1) else mnp.asarray(np.array(True))

    def goes_on(state: tuple[Value, Value, list[Value]]) -> Value:
        number, going, _ = state
        return going if most is None else going & (number < most)

    def step(state: tuple[Value, Value, list[Value]]) -> tuple[Value, Value, list[Value]]:
        number, going, values = state
        results = [_arrays(each) for each in _step(use, body, number, going, values)]
        return number + 1, results[0].reshape(()), results[1:]

    zero = mnp.asarray(np.array(0, np.int64))
    try:
        _, _, last = while_loop(goes_on, step, (zero, begins, carried))
    except TracingError as error:
        if error.code == "E2321":
            raise Needed(use.all_sources(), "how many steps of a loop change a shape") from None
        raise
    return tuple(last)


def _scan(use: NodeUse) -> tuple[Value, ...]:
    """Return the results of a Scan; before version 9, which carries batches, it is not read."""
    body, count = use.needed("body", OnnxGraph), use.needed("num_scan_inputs", int)
    if use.version < 9:
        return _batched_scan(use, body, count)
    operands = [_arrays(each) for each in use.operands]
    kept = len(operands) - count
    return _scanned_once(use, body, operands[:kept], operands[kept:])


def _scanned_once(
    use: NodeUse, body: OnnxGraph, carried: list[Value], slices: list[Value]
) -> tuple[Value, ...]:
    count = len(slices)
    if not count or len(body.inputs) != len(carried) + count:
        broken(f"its body takes {len(body.inputs)} values, and it is given {len(carried)} and {count}")
    axes = use.attr("scan_input_axes", (0,) * count)
    backwards = use.attr("scan_input_directions", (0,) * count)
    outputs = len(body.outputs) - len(carried)
    out_axes = use.attr("scan_output_axes", (0,) * outputs)
    out_backwards = use.attr("scan_output_directions", (0,) * outputs)
    rows = [mnp.moveaxis(each, axis, 0) for each, axis in zip(slices, axes, strict=True)]
    rows = [mnp.flip(each, 0) if back else each for each, back in zip(rows, backwards, strict=True)]

    def step(values: list[Value], row: list[Value]) -> tuple[list[Value], list[Value]]:
        scope, sources = use.scope.within(), use.all_sources()
        for port, value in zip(body.inputs, (*values, *row), strict=True):
            scope.set(port.name, value, sources)
        results = [_arrays(each) for each in use.evaluator.graph(body, scope)]
        return results[: len(carried)], results[len(carried) :]

    last, stacked = scan(step, carried, rows)
    stacked = [mnp.flip(each, 0) if back else each for each, back in zip(stacked, out_backwards, strict=True)]
    moved = [mnp.moveaxis(each, 0, axis) for each, axis in zip(stacked, out_axes, strict=True)]
    return (*last, *moved)


def _batched_scan(use: NodeUse, body: OnnxGraph, count: int) -> tuple[Value, ...]:
    """Return the results of a Scan of version 8, whose first operand says how long each sequence is."""
    if use.has(0):
        unsupported("a Scan of version 8 with lengths of sequences")
    operands = [_arrays(each) for each in use.operands[1:]]
    kept = len(operands) - count
    found = [
        _scanned_once(
            use, body, [each[at] for each in operands[:kept]], [each[at] for each in operands[kept:]]
        )
        for at in range(operands[0].shape[0])
    ]
    return tuple([mnp.stack(each) for each in zip(*found, strict=True)])


RULES = {
    "If": OnnxRule(_branch),
    "Loop": OnnxRule(_loop),
    "Scan": OnnxRule(_scan),
}
