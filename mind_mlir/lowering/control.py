"""Branches, loops and calls in linalg form: the same operations, on signless tensors and scalars.

Tensors of rank 0 that they carry are scalars. Run-time checks in a region leave it as further results, two
numbers each, which minimum and maximum merge; a loop stops when one has failed, since what is computed after
that may never end it.

A function that others call takes and returns tensors of rank 0 as scalars; if it has a loop, in itself or in
what it calls, it takes one argument more, whether all is well so far, for else its loops are not to start. It
returns the outcome of its run-time checks after its results.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from mind_mlir.lowering.loops import DEEP, as_counted, as_function, without_invariants
from mind_mlir.lowering.run_time_checks import (
    both,
    conjunction,
    is_passed,
    merged,
    nothing_seen,
    outcomes,
    pair_type,
    with_outcomes,
)
from mind_mlir.mlir.bindings import arith, func, ir, scf
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.scalars import element_of
from mind_mlir.mlir.values import callee_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from mind_mlir.lowering.to_linalg import FunctionLowering
    from mind_mlir.mlir.bindings import Block, Module, Operation, Type, Value
    from mind_mlir.mlir.context import Outcome


def _lower_extract(lowering: FunctionLowering, op: Operation) -> list[Value]:
    """A predicate: the element of a tensor of rank 0."""
    return [element_of(lowering.value(op.operands[0]))]


def _lower_call(lowering: FunctionLowering, op: Operation) -> list[Value]:
    callee = lowering.callees[callee_of(op)]
    operands = [lowering.value(operand) for operand in op.operands]
    if callee.has_loops:
        well = lowering.region.is_well()
        operands.append(_true() if well is None else well)
    types = [lowering.carried_type(result) for result in op.results]
    ends = [pair_type()] * (2 * len(callee.checks))
    call = func.CallOp([*types, *ends], ir.FlatSymbolRefAttr.get(callee.symbol), operands)
    results = list(call.results)
    lowering.region.checks += with_outcomes(callee.checks, results[len(types) :])
    return results[: len(types)]


def _true() -> Value:
    return arith.ConstantOp(ir.IntegerType.get_signless(1), ir.BoolAttr.get(True)).result


def _lower_if(lowering: FunctionLowering, op: Operation) -> list[Value]:
    types = [lowering.carried_type(result) for result in op.results]
    (predicate,) = op.operands
    branching = ir.Operation.create("scf.if", types, [lowering.value(predicate)], regions=2)
    yields: list[list[Value]] = []
    found: list[dict[Hashable, Outcome]] = []
    for source, target in zip(op.regions, branching.regions, strict=True):
        block = target.blocks.append()
        with lowering.inside(branching) as region, ir.InsertionPoint(block):
            yields.append(lowering.operations(source.blocks[0], []) if len(source.blocks) else [])
            found.append(merged(region.checks))
    checks = found[0] | found[1]
    if checks:
        branching = _remade(branching, [*types, *_ends(checks)], list(branching.operands))
    for target, values, own in zip(branching.regions, yields, found, strict=True):
        with ir.InsertionPoint(target.blocks[0]):
            scf.YieldOp([*values, *outcomes(checks, own)])
    results = list(branching.results)
    lowering.region.checks += with_outcomes(checks.values(), results[len(types) :])
    return results[: len(types)]


def _ends(checks: Mapping[Hashable, Outcome]) -> list[Type]:
    return [pair_type()] * (2 * len(checks))


def _remade(operation: Operation, types: Sequence[Type], operands: Sequence[Value]) -> Operation:
    """Return ``operation`` with other results and operands, and the blocks of its regions."""
    with ir.InsertionPoint(operation):
        new = ir.Operation.create(operation.name, list(types), list(operands), regions=len(operation.regions))
    for old, region in zip(operation.regions, new.regions, strict=True):
        old.blocks[0].append_to(region)
    operation.erase()
    return new


def _lower_while(lowering: FunctionLowering, op: Operation) -> list[Value]:
    well = lowering.region.is_well()
    types = [lowering.carried_type(result) for result in op.results]
    operands = [lowering.value(operand) for operand in op.operands]
    loop = ir.Operation.create("scf.while", types, operands, regions=2)
    yields, found = [], []
    for number, (source, target) in enumerate(zip(op.regions, loop.regions, strict=True)):
        arguments = source.blocks[0].arguments
        carried = [lowering.carried_type(argument) for argument in arguments]
        block = ir.Block.create_at_start(target, carried, [argument.location for argument in arguments])
        if number == 0:
            with ir.InsertionPoint(block):
                start = _true()  # stands for what is known when the loop is complete
        with lowering.inside(loop, is_loop=True) as region, ir.InsertionPoint(block):
            region.starts_well = number == 1  # else the condition had not let it run
            region.start = start if number == 0 else None
            yields.append(lowering.operations(source.blocks[0], list(block.arguments)))
            found.append(merged(region.checks))
    checks = found[0] | found[1]
    if checks:
        with ir.InsertionPoint(loop):
            first = nothing_seen(len(checks))
        loop = _remade(loop, [*types, *_ends(checks)], [*operands, *first])
    blocks = [region.blocks[0] for region in loop.regions]  # of the new loop, in whose life they are
    loop_ends = [_add_ends(block, checks) for block in blocks]
    with ir.InsertionPoint(start.owner):
        well = conjunction([well, *_tests(checks, loop_ends[0])])
    if well is not None:
        start.replace_all_uses_with(well)
    if not any(True for _ in start.uses):
        start.owner.erase()
    with ir.InsertionPoint(blocks[0]):
        more, *state = yields[0]
        ends = _merge_ends(checks, found[0], loop_ends[0])
        passed = well if not found[0] else conjunction([well, *_tests(checks, ends)])
        scf.ConditionOp(conjunction([more, passed]), [*state, *ends])
    with ir.InsertionPoint(blocks[1]):
        scf.YieldOp([*yields[1], *_merge_ends(checks, found[1], loop_ends[1])])
    loop, same = without_invariants(loop)
    if lowering.loops and lowering.loops % DEEP == 0:
        changing = as_function(loop, lowering.fresh_name("loop"), lowering.function)
    else:
        changing = as_counted(loop) if well is None and not checks else list(loop.results)
    others = iter(changing)
    results = [same[each] if each in same else next(others) for each in range(len(same) + len(changing))]
    lowering.region.checks += with_outcomes(checks.values(), results[len(types) :])
    return results[: len(types)]


def _add_ends(block: Block, checks: Mapping[Hashable, Outcome]) -> list[Value]:
    return [block.add_argument(type_, ir.Location.unknown()) for type_ in _ends(checks)]


def _tests(checks: Mapping[Hashable, Outcome], ends: Sequence[Value]) -> list[Value]:
    given = with_outcomes(checks.values(), ends)
    return [is_passed(check.smallest, check.largest, check) for check in given]


def _merge_ends(
    checks: Mapping[Hashable, Outcome], own: Mapping[Hashable, Outcome], carried: Sequence[Value]
) -> list[Value]:
    """Return the outcomes of ``checks`` that a loop carries, merged with those of a region's ``own``."""
    ends: list[Value] = []
    for source, check in zip(checks, with_outcomes(checks.values(), carried), strict=True):
        seen = own.get(source)
        total = check if seen is None else both(check, seen.smallest, seen.largest)
        ends += [total.smallest, total.largest]
    return ends


#: How operations of control flow are lowered, by name.
CONTROL: dict[str, Callable[[Any, Any], list[Any]]] = {
    "func.call": _lower_call,
    "scf.if": _lower_if,
    "scf.while": _lower_while,
    "tensor.extract": _lower_extract,
}


@dataclass(slots=True)
class Callee:
    """A function that others call.

    Attributes:
        symbol: The function that calls are to name.
        has_loops: Whether there is a loop in it, or in what it calls.
        checks: The run-time checks whose outcome it returns, known when it has been lowered.
    """

    symbol: str
    has_loops: bool
    checks: tuple[Outcome, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionOrder:
    """The functions of a module, callees first, and those that are called, by name."""

    order: tuple[Operation, ...]
    callees: dict[str, Callee]
    has_control_flow: bool


def functions_of(module: Module) -> FunctionOrder | None:
    """Return the functions of ``module``; None where they call themselves, or what is not there."""
    functions = {op.name.value: op for op in module.body.operations}
    calls = {name: [callee_of(call) for call in find_all(op, func.CallOp)] for name, op in functions.items()}
    try:
        order = [name for name in TopologicalSorter(calls).static_order() if name in functions]
    except CycleError:
        return None
    called = {callee for callees in calls.values() for callee in callees}
    if not called <= functions.keys():
        return None
    if not called:
        order = list(functions)
    callees: dict[str, Callee] = {}
    control_flow = bool(called)
    loops: dict[str, bool] = {}
    for name in order:
        own = bool(find_all(functions[name], scf.WhileOp))
        control_flow = control_flow or own or bool(find_all(functions[name], scf.IfOp))
        loops[name] = own or any(loops[callee] for callee in calls[name])
        if name in called:
            symbol = name if is_private(functions[name]) else f"{name}.body"
            callees[name] = Callee(symbol, loops[name])
    return FunctionOrder(tuple(functions[name] for name in order), callees, control_flow)


def is_private(function: Operation) -> bool:
    """Return whether only functions of the module can call ``function``."""
    attributes = function.operation.attributes
    return "sym_visibility" in attributes and attributes["sym_visibility"].value == "private"
