"""Differentiates a function in structured form.

Before: a module in structured form, of which one function is chosen. After: a module that exports this
function alone, with parameters ``cotangent_<index>`` added and the gradients after its results; what it calls
is internal, and so are the derivatives of that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import AutodiffError
from mind_mlir.ir.analysis.call_graph import callee_of, operations_of
from mind_mlir.ir.analysis.effects import effects_in
from mind_mlir.ir.module import Functions
from mind_mlir.ir.regions import live_operations
from mind_mlir.ir.types import TensorType
from mind_mlir.ops.contexts import Signature
from mind_mlir.passes.activity import summarise
from mind_mlir.passes.backward import full
from mind_mlir.passes.function_derivatives import FunctionDerivatives
from mind_mlir.passes.gradient_choice import chosen_names, declare_cotangents
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.module import Function, Module, Parameter


def chosen_parameters(function: Function, wrt: Sequence[str] | None) -> list[int]:
    """Return the places of the parameters to differentiate with respect to.

    Raises:
        AutodiffError: E5005 and E5101, as for `mind_mlir.passes.autodiff.differentiate`.
    """
    places = {_name(parameter, place): place for place, parameter in enumerate(function.parameters)}
    inputs = {name: function.parameters[place] for name, place in places.items()}
    return [places[name] for name in chosen_names(inputs, wrt)]


def gradient_functions(
    module: Module, name: str, chosen: Sequence[int], modes: Sequence[str], *, extensions: bool
) -> Module:
    """Return the gradient module, not canonical yet, of function ``name`` of a module in structured form.

    Args:
        module: A verified module in structured form.
        name: The function.
        chosen: Places of the parameters to differentiate with respect to.
        modes: Where the cotangent of each result comes from: ``unit`` or ``given``.
        extensions: Whether rules outside Core v1 may be used.

    Raises:
        AutodiffError: E5001 to E5004; all findings are in it.
    """
    functions = _called_first(module, name)
    flows, summaries = summarise(functions)
    derivatives = FunctionDerivatives(
        {function.name: function for function in functions},
        flows,
        summaries,
        {function.name: _signature(function) for function in functions},
        extensions,
        module.profile,
    )
    function = functions[-1]
    builder = derivatives.new_builder()
    for parameter in function.parameters:
        builder.parameter(parameter.tensor_type, parameter.name)
    seeds = declare_cotangents(
        zip(_signature(function).results, modes, strict=True),
        (parameter.name for parameter in function.parameters),
        lambda name, type_: builder.parameter(type_, name),
    )
    results = function.entry.terminator.operands
    backward = derivatives.backward(builder, name, chosen, range(len(results)))
    for result, seed in zip(results, seeds, strict=True):
        if result in backward.varying:
            backward.accumulate(result, seed or full(builder, backward.primal[result].type, 1))
    backward.visit(function.entry.operations)
    derivatives.finish()
    findings = backward.problems() + derivatives.findings
    if findings:
        raise AutodiffError(findings)
    outputs = [backward.primal[result] for result in results]
    for place in chosen:  # what no output depends on has the gradient zero; it is never dropped
        parameter = function.parameters[place]
        found = backward.gradients.get(parameter.value_id)
        outputs.append(found or full(builder, parameter.tensor_type, 0))
    needed = [*(value.id for value in outputs), *effects_in(builder.operations)]
    builder.operations = live_operations(builder.operations, needed)
    gradient = replace(builder.function(name, outputs), location=function.location)
    internal = [replace(other, public=False) for other in functions[:-1]]
    return replace(module, functions=Functions((gradient, *internal, *derivatives.made)))


def _name(parameter: Parameter, place: int) -> str:
    return str(place) if parameter.name is None else parameter.name


def _signature(function: Function) -> Signature:
    types = tuple(parameter.tensor_type for parameter in function.parameters)
    assert function.result_types is not None, "functions have declared results"
    results = (
        argument_checks.expect(t, TensorType, "a result type", "a TensorType") for t in function.result_types
    )
    return Signature(types, tuple(results))


def _called_first(module: Module, name: str) -> list[Function]:
    """Return function ``name`` and all that it calls, each after what it calls itself."""
    by_name = {function.name: function for function in module.functions}
    order: dict[str, None] = {}
    pending = [(name, False)]
    while pending:
        current, done = pending.pop()
        if current in order:
            continue
        if done:
            order[current] = None
            continue
        pending.append((current, True))
        callees = map(callee_of, operations_of(by_name[current].blocks))
        pending += [(callee, False) for callee in dict.fromkeys(callees) if callee and callee not in order]
    return [by_name[called] for called in order]
