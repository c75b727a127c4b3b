"""The calling convention among the functions of a module once they are lowered.

A function that others call takes and returns tensors of rank 0 as scalars; if it has a loop, in itself or in
what it calls, it takes one argument more, whether all is well so far, for else its loops are not to start. It
returns the outcome of its run-time checks after its results.
"""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import func, scf
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.values import callee_of

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Module, Operation
    from mind_mlir.mlir.context import Outcome


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
class Functions:
    """The functions of a module, callees first, and those that are called, by name."""

    order: tuple[Operation, ...]
    callees: dict[str, Callee]
    has_control_flow: bool


def functions_of(module: Module) -> Functions | None:
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
    return Functions(tuple(functions[name] for name in order), callees, control_flow)


def is_private(function: Operation) -> bool:
    """Return whether only functions of the module can call ``function``."""
    attributes = function.operation.attributes
    return "sym_visibility" in attributes and attributes["sym_visibility"].value == "private"
