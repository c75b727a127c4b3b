"""Rules for open axes of branches and loops: values go round with the axes that they begin with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.ops.open_axes import Axis, OpenContext, OpenValue, is_open

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import Fills


def branching(context: OpenContext) -> list[OpenValue]:
    """Run one of two regions, which yield values of the same axes."""
    (predicate,) = context.operands
    filled: list[Fills] = []
    axes: list[list[tuple[Axis, ...]]] = []
    for run in context.regions:
        with context.builder.region() as region:
            found = run([])
            region.yield_([each.value for each in found])
        filled.append(region)
        axes.append([each.axes for each in found])
    if axes[0] != axes[1]:
        context.refuse("its regions yield values of different open dimensions")
    values = context.builder.emit_all("Cond", predicate.value, regions=filled)
    return [OpenValue(value, each) for value, each in zip(values, axes[0], strict=True)]


def looping(context: OpenContext) -> list[OpenValue]:
    """Repeat a region while another one says so."""
    test, step = context.regions
    with context.builder.region([each.value.type for each in context.operands]) as condition:
        predicate, *kept = test(_with_axes(condition.parameters, context.operands))
        condition.yield_([predicate.value, *(each.value for each in kept)])
    with context.builder.region([each.value.type for each in kept]) as body:
        again = step(_with_axes(body.parameters, kept))
        body.yield_([each.value for each in again])
    if [each.axes for each in again] != [each.axes for each in context.operands]:
        context.refuse("what goes round has other open dimensions after a step")
    first = [each.value for each in context.operands]
    values = context.builder.emit_all("While", *first, regions=(condition, body))
    return _with_axes(values, kept)


def scanning(context: OpenContext) -> list[OpenValue]:
    """Run a region for each slice; slices that are padding leave what is carried as it is."""
    context.expect_same()
    carried = context.operands[: context.attributes["carry_count"]]
    scanned = context.operands[len(carried) :]
    length = scanned[0].axes[0]
    if any(each.axes[0] != length for each in scanned):
        context.refuse("its inputs have lengths that are the same for some extents alone")
    # A region may use a slice as an index.
    given = [each.value for each in carried] + [context.filled(each, 0, (0,)) for each in scanned]
    more = [context.mask(length)] if is_open(length) else []
    types = [each.type for each in given[: len(carried)]]
    types += [each.type.with_shape(each.shape[1:]) for each in (*given[len(carried) :], *more)]
    with context.builder.region(types) as body:
        inside = _with_axes(body.parameters[: len(carried)], carried)
        slices = body.parameters[len(carried) : len(given)]
        inside += [OpenValue(value, each.axes[1:]) for value, each in zip(slices, scanned, strict=True)]
        (run,) = context.regions
        found = run(inside)
        values = [each.value for each in found]
        for place, old in enumerate(body.parameters[: len(carried)] if more else ()):
            keep = context.spread(body.parameters[-1], old.shape)
            values[place] = context.emit("Select", keep, values[place], old)
        body.yield_(values)
    if [each.axes for each in found[: len(carried)]] != [each.axes for each in carried]:
        context.refuse("what is carried has other open dimensions after a step")
    results = context.builder.emit_all("Scan", *given, *more, regions=(body,), **context.attributes)
    axes = [each.axes for each in carried] + [(length, *each.axes) for each in found[len(carried) :]]
    return [OpenValue(value, each) for value, each in zip(results, axes, strict=True)]


def _with_axes(values: Sequence[Value], like: Sequence[OpenValue]) -> list[OpenValue]:
    return [OpenValue(value, each.axes) for value, each in zip(values, like, strict=True)]
