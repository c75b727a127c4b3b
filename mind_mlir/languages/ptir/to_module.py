"""Programs as modules of profile `ptir-v0.4`, which all later stages take (ptir-v0.4.md).

    function            one block, its parameters and results the tensors that the program's are made of
    instruction         one operation; a tuple-typed one has several results
    literal operand     a constant before the operation that reads it
    random operation    one that reads the seed of its function (`mind_mlir.languages.ptir.seeding`)
    region              a block in the operation that runs it, copied where several do
    argument of Cond    read in the regions as it is: ours read what is defined around them

Before: a program without symbolic dimensions (`symbols.bind`). After: a module that says the
same, whose values are numbered in order of definition and called in messages as the program calls them:
``%4``, or ``%4[1]`` for the second element of a tuple. What a program can get wrong and a module cannot say
is reported here; the rest by the verifier. Where an instruction cannot be converted, its value is taken to be
of the declared type, so that one mistake is reported once. Linear in the program with its regions copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mind_mlir.builders.type_rules import finding
from mind_mlir.diagnostics import Diagnostic, Location, VerificationError
from mind_mlir.diagnostics.findings import Findings
from mind_mlir.ir.module import Block, Function, Functions, Module, Return
from mind_mlir.ir.profiles import PTIR
from mind_mlir.languages.ptir.body import BodyConversion
from mind_mlir.languages.ptir.derived import derived_extents
from mind_mlir.languages.ptir.program import Program
from mind_mlir.languages.ptir.regions import PtirRegions
from mind_mlir.languages.ptir.seeding import seeded
from mind_mlir.languages.ptir.symbols import bind, parameter_symbols, symbols_of
from mind_mlir.languages.ptir.values import Numbering, all_leaves, leaf_paths, too_deep
from mind_mlir.passes.verify import check as check_module
from mind_mlir.support import argument_checks
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.interrupts import deliver
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.types import ValueType
    from mind_mlir.languages.ptir.program import Function as ProgramFunction

PROGRAM = "a Program (parse and load read one)"


@dataclass(frozen=True, slots=True)
class ProgramSignature:
    """The parameters and results of a function of a program, as the program declares them.

    Attributes:
        names: What callers name its arguments: as the compact text calls them, else ``arg0``, ``arg1`` ...
        parameters: Their types.
        results: The types of its results.
    """

    names: tuple[str, ...]
    parameters: tuple[ValueType, ...]
    results: tuple[ValueType, ...]


@dataclass(frozen=True, slots=True)
class Converted:
    """A program as a module.

    Attributes:
        module: The module.
        signatures: The functions as the program has them, by name: with its tuples.
        entry: The function that a call means.
    """

    module: Module
    signatures: Mapping[str, ProgramSignature]
    entry: str


def to_module(program: Program) -> Module:
    """Return ``program`` as a verified module.

    Raises:
        VerificationError: It breaks a rule; all findings are in it. E4303: symbolic dimensions are not bound.
        TypeError: ``program`` is no `Program`.
    """
    return convert(program).module


def convert(program: Program) -> Converted:
    """Return ``program`` as a verified module, with what callers of its functions see; as `to_module`."""
    converted, findings = attempt(program)
    errors = [each for each in findings if each.severity == "error"]
    if errors:
        raise VerificationError(errors)
    return converted


def attempt(program: Program) -> tuple[Converted, list[Diagnostic]]:
    """Return the module as far as there is one, and everything there is to say about the program."""
    program = seeded(argument_checks.expect(program, Program, "program", PROGRAM))
    findings = Findings()
    if unbound := symbols_of(program):
        for function in program.functions:
            program = bind(program, derived_extents(function))
        unbound = symbols_of(program)
    if unbound:
        _not_bound(program, unbound, findings)
        return Converted(Module(Functions(), PTIR.name), FrozenDict(), program.entry), findings.kept
    regions = PtirRegions.of(program, findings)
    functions = []
    for function in program.functions:
        deliver()
        functions.append(_function(function, regions, findings))
    _check_entry(program, findings)
    module = Module(Functions(functions), PTIR.name)
    signatures = {each.name: signature_of(each) for each in reversed(program.functions)}
    found = check_module(module)
    if findings.total:
        # An extra parameter stands for each value that could not be had: nothing but findings comes of it.
        findings.extend(found)
        found = findings.in_source_order()
    return Converted(module, FrozenDict(signatures), program.entry), found


def signature_of(function: ProgramFunction) -> ProgramSignature:
    """Return what callers of a function of a program see."""
    return ProgramSignature(argument_names(function), function.parameters, function.results)


def argument_names(function: ProgramFunction) -> tuple[str, ...]:
    """Return what callers name the arguments of ``function``: distinct names, one a parameter."""
    named = zip(function.parameters, function.parameter_ids, strict=False)
    names = [function.names.get(value, f"arg{place}") for place, (_, value) in enumerate(named)]
    if len(set(names)) == len(function.parameters):
        return tuple(names)
    return tuple(f"arg{place}" for place in range(len(function.parameters)))


def _function(function: ProgramFunction, regions: PtirRegions, findings: Findings) -> Function:
    numbering = Numbering()
    where, seed = f"@{function.name}", function.seed
    body = BodyConversion(where, numbering, regions, findings, function.names, seed=seed)
    _check_head(function, findings)
    parameters = zip(argument_names(function), function.parameter_ids, function.parameters, strict=False)
    for name, value, type_ in parameters:
        labels = [f"{name}{path}" for path in leaf_paths(type_)]
        body.parameter(value, type_, labels, function.location)
    operations = body.run(function.body)
    end = Return(body.returned(function), names=body.names, location=function.location)
    return Function(
        function.name,
        (Block(tuple(operations), end, (*body.parameters, *numbering.stand_ins)),),
        result_types=all_leaves(function.results),
        location=function.location,
    )


def _check_head(function: ProgramFunction, findings: Findings) -> None:
    expected, found = len(function.parameters), len(function.parameter_ids)
    if expected != found:
        message = f"@{function.name} has {expected} parameters, but {found} parameter ids"
        facts = {"function": function.name, "expected": expected, "found": found}
        hint = "give one id for each parameter"
        findings.add(finding("E2007", message, function.location, (), hint, **facts))
    for type_ in (*function.parameters, *function.results):
        if too_deep(type_):
            message = f"tuples nest too deep in the signature of @{function.name}"
            hint = "write the tuple with fewer levels"
            findings.add(finding("E4301", message, function.location, (), hint, issue="depth"))


def _check_entry(program: Program, findings: Findings) -> None:
    first: dict[str, ProgramFunction] = {}
    for function in program.functions:
        first.setdefault(function.name, function)
    if program.functions and program.entry not in first:
        listing = ", ".join(f"@{name}" for name in first)
        message = f"the program has no function @{program.entry}, which is to be its entry"
        hint = f"name one that it has: {listing}"
        findings.add(finding("E2002", message, None, (), hint, name=program.entry))


def _not_bound(program: Program, symbols: Sequence[str], findings: Findings) -> None:
    first: dict[str, Location | None] = {}
    for function in program.functions:
        for name in parameter_symbols(function):
            first.setdefault(name, function.location)
    for name in symbols:
        message = f"the symbolic dimension ?{name} is not bound"
        hint = f"say what it is: bindings={{{name!r}: 4}} in Python, --bind {name}=4 on the command line"
        findings.add(finding("E4303", message, first.get(name), (), hint, symbol=name))
