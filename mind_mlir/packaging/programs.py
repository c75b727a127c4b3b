"""Programs of every kind as the modules that artefacts are made of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.restriction import restricted as restricted_module
from mind_mlir.ir.module import MODULE, Functions, Module
from mind_mlir.languages.mind.program import SurfaceProgram
from mind_mlir.languages.ptir.program import Program
from mind_mlir.languages.ptir.regions import restricted
from mind_mlir.languages.ptir.seeding import seeded
from mind_mlir.languages.ptir.symbols import bind, checked_bindings, symbols_of
from mind_mlir.languages.ptir.to_module import to_module
from mind_mlir.passes.verify import verify
from mind_mlir.runtime.declared_constants import with_constants
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.languages.programs.kinds import AnyProgram


def artefact_module(
    program: AnyProgram,
    *,
    function: str | Sequence[str] | None = None,
    bindings: Mapping[str, int] | None = None,
    seed: int | None = None,
) -> Module:
    """Return a program as a module whose exported functions become those of an artefact.

    Functions keep their names, and tuples are taken apart: each of their tensors is an input or output.

    Args:
        program: A module, a PTIR program, or one of the surface language.
        function: The function that is wanted, or several, with what they call; all that are exported unless
            given.
        bindings: Extents of symbolic dimensions.
        seed: The seed of the random operations of a PTIR program; a last parameter unless given.

    Raises:
        ParseError: The text of a program is not well-formed.
        VerificationError: It breaks a rule; E2002, E2101: there is no such function, or it is not exported;
            E4303, a symbolic dimension is not bound.
        TypeError: An argument is not of the type above.
        ValueError: ``bindings`` names what is no dimension, or ``seed`` is given for a program that is not
            PTIR's or does not fit in 64 bits.
    """
    names = None if function is None else argument_checks.names(function, "function")
    if names == ():
        raise ValueError("function must name one function or several")
    if isinstance(program, Program):
        chosen = program if names is None else restricted(program, *names)
        given = checked_bindings({} if bindings is None else bindings, symbols_of(chosen))
        return to_module(bind(seeded(chosen, seed), given))
    if seed is not None:
        raise ValueError("seed is for PTIR programs: functions of others take seeds as arguments")
    if isinstance(program, SurfaceProgram):
        module = program.lower(names, bindings)
        if not module.is_flat:
            return module
        # A program of one function may have become a module without names of functions.
        (name,) = dict.fromkeys(program.entries if names is None else names)
        return replace(module, functions=Functions((replace(module.functions[0], name=name),)))
    argument_checks.refuse_bindings(bindings)
    module = verify(argument_checks.expect(program, Module, "program", f"{MODULE}, or a program"))
    return module if names is None else restricted_module(module, *names)


def with_arrays(module: Module, constants: Mapping[str, object] | None) -> Module:
    """Return ``module`` with ``constants`` in the place of parameters (see `with_constants`)."""
    return module if constants is None else with_constants(verify(module), constants)
