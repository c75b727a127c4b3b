"""Proves a module of functions well-formed, or says everything that is wrong with it (core-ir-page.md).

Beyond what each operation obeys (see `mind_mlir.passes.verify`):

1. functions have names of their own (E4107), one of them at least is exported (E4119), and none calls itself,
   be it through others (E4118);
2. a function has blocks and a signature (E4124) of static tensors (E4126); the arguments of an exported one
   have names of their own (E4004);
3. blocks have labels of their own (E4109) and end in return, br or cond_br, regions in yield (E4111);
   branches go to blocks of their function (E4110), but not to its entry (E4108), reach each (E4117), and lead
   to a return from each (E4127);
4. a branch passes what the parameters of its target declare (E4113) and depends on a scalar of i1 (E4114);
   what is returned has the declared types (E4115);
5. values are defined once in their function (E4002), used after their definition (E4001), and visible there:
   their definition dominates, or stands around the region (E4116). Regions nest 64 deep at most (E4125).

The time is linear in the size of the module, but for a logarithm of the number of blocks. A function without
results breaks no rule of the documents: it gives a warning (E4101).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.builders import flow_rules, type_rules
from mind_mlir.builders.type_rules import finding, usable
from mind_mlir.diagnostics import Diagnostic
from mind_mlir.ir.analysis.call_graph import CallGraph
from mind_mlir.ops.contexts import Signature
from mind_mlir.passes.operation_check import OperationCheck
from mind_mlir.passes.scopes import FunctionScopes
from mind_mlir.passes.verify_blocks import BlocksVerifier, known, take
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.diagnostics.findings import Findings
    from mind_mlir.ir.module import Function, Module, Parameter
    from mind_mlir.ir.profiles import Profile

#: Functions of a cycle of calls that a message names.
_NAMED = 8


def check_functions(module: Module, profile: Profile) -> list[Diagnostic]:
    """Return everything there is to say about a module of ``profile``, which has functions."""
    checker = OperationCheck(profile, functions=_signatures(module))
    _check_module(module, checker.findings)
    for function in module.functions:
        deliver()
        if _check_signature(function, checker):
            BlocksVerifier(function, checker, FunctionScopes.of(function)).run()
    return checker.findings.in_source_order()


def _signatures(module: Module) -> dict[str, Signature | None]:
    """Return what each function takes and returns; None where a type of it is none that rules work with."""
    signatures: dict[str, Signature | None] = {}
    for function in module.functions:
        if function.name in signatures:
            continue
        entry = function.blocks[0].parameters if function.blocks else ()
        parameters = [usable(parameter.type) for parameter in entry]
        results = [usable(type_) for type_ in function.result_types or ()]
        taken, given = known(parameters), known(results)
        is_known = taken is not None and given is not None and function.result_types is not None
        signatures[function.name] = Signature(taken or (), given or ()) if is_known else None
    return signatures


def _check_module(module: Module, findings: Findings) -> None:
    functions = module.functions
    if not any(function.public for function in functions):
        message = "no function of the module is exported, so nobody can call one"
        where = functions[0].location if functions else None
        hint = "write func @main(...) for a function that is called from outside; internal func is for others"
        findings.add(finding("E4119", message, where, (), hint, functions=len(functions)))
    first: dict[str, Function] = {}
    for function in functions:
        if function.name not in first:
            first[function.name] = function
        else:
            other = first[function.name]
            place = f"at {other.location}" if other.location else "the one before"
            findings.add(flow_rules.function_name_taken(function.name, function.location, place))
    graph = CallGraph.of(functions)
    for cycle in graph.cycles():
        findings.add(_recursion(graph, cycle))


def _recursion(graph: CallGraph, cycle: Sequence[str]) -> Diagnostic:
    start = cycle[0]
    call = graph.calls[start][cycle[1 % len(cycle)]]
    named = [f"@{name}" for name in (*cycle[1:_NAMED], start)]
    if len(cycle) > _NAMED:
        named.insert(-1, f"... {len(cycle) - _NAMED:,} more ...")
    way = ", which calls ".join(named)
    return finding(
        "E4118",
        f"recursion: @{start} calls {'itself' if len(cycle) == 1 else way}",
        call.opcode_location,
        (),
        "write a loop instead: a block may branch back to one before it",
        cycle=tuple(cycle),
    )


def _check_signature(function: Function, checker: OperationCheck) -> bool:
    """Report what is wrong with the head of a function; return whether its blocks can be looked at."""
    findings, profile, where = checker.findings, checker.profile, function.location
    name = function.name
    if not function.blocks or function.result_types is None:
        lack = "blocks" if not function.blocks else "declared result types"
        message, hint = f"@{name} has no {lack}", "a function has a signature and at least one block"
        findings.add(finding("E4124", message, where, (), hint, function=name))
        return False
    code = "E4004" if function.public else "E4126"
    for parameter in function.parameters:
        what = f"parameter {parameter.label} of @{name}"
        take(findings, type_rules.declared_type(what, parameter.type, profile, parameter.location, code))
    if function.public:
        _check_argument_names(function, findings)
    for index, type_ in enumerate(function.result_types):
        what, places = f"result {index} of @{name}", function.result_locations
        place = places[index] if index < len(places) else where
        take(findings, type_rules.declared_type(what, type_, profile, place))
    if function.public and not function.result_types:
        message = f"@{name} has no results, so it computes nothing"
        hint = "declare results, and return values: -> (tensor<f32[]>)"
        context = MappingProxyType({"function": name})
        findings.add(Diagnostic("E4101", message, where, (), hint, severity="warning", context=context))
    return True


def _check_argument_names(function: Function, findings: Findings) -> None:
    first: dict[str, Parameter] = {}
    for parameter in function.parameters:
        what = f"parameter {parameter.label} of @{function.name}"
        wrong = type_rules.argument_name(what, parameter.name, parameter.location)
        if wrong is not None:
            findings.add(wrong)
        elif parameter.name not in first:
            first[parameter.name or ""] = parameter
        else:
            other = first[parameter.name]
            place = f"at {other.location}" if other.location else other.label
            taken = type_rules.argument_name_taken(function.name, other.name or "", parameter.location, place)
            findings.add(taken)
