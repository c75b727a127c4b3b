"""The part of a program that some of its functions need: these, and the regions that they run."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.languages.ptir.regions import regions_named
from mind_mlir.support import argument_checks
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from mind_mlir.languages.ptir.program import Function, Program


def chosen_function(program: Program, name: str | None = None) -> Function:
    """Return the function called ``name``, by default the program's entry.

    Raises:
        VerificationError: E2002, there is none.
        TypeError: ``name`` is neither a string nor None.
    """
    wanted = program.entry if name is None else argument_checks.text(name, "function")
    for function in program.functions:
        if function.name == wanted:
            return function
    names = [function.name for function in program.functions]
    raise VerificationError(
        Diagnostic(
            "E2002",
            f"there is no function '{wanted}'{did_you_mean(wanted, names)}",
            help=f"the functions are: {', '.join(names[:10]) or 'none'}",
            context=MappingProxyType({"name": wanted}),
        )
    )


def restricted(program: Program, *names: str | None) -> Program:
    """Return what functions need of ``program``, by default its entry; the first of them is the entry then.

    Raises:
        VerificationError: As `chosen_function`.
        TypeError: As `chosen_function`.
    """
    functions = [chosen_function(program, name) for name in dict.fromkeys(names or (None,))]
    by_id = {region.id: region for region in reversed(program.regions)}
    pending = [region for function in functions for region in regions_named(function.body)]
    needed: set[int] = set()
    while pending:
        number = pending.pop()
        if number not in needed and number in by_id:
            needed.add(number)
            pending += regions_named(by_id[number].body)
    regions = tuple(region for region in program.regions if region.id in needed)
    return replace(program, functions=tuple(functions), regions=regions, entry=functions[0].name)
