"""Programs of other kinds than modules to what is called: what `compile` and `jit` make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mind_mlir.languages.programs.kinds import find_kind, kind_of
from mind_mlir.languages.ptir.program import Program
from mind_mlir.languages.ptir.regions import restricted
from mind_mlir.languages.ptir.seeding import seeded
from mind_mlir.languages.ptir.symbols import bound
from mind_mlir.languages.ptir.to_module import convert
from mind_mlir.runtime.declared_constants import with_constants
from mind_mlir.runtime.executable import Executable
from mind_mlir.runtime.program_executable import ProgramExecutable, needs_program
from mind_mlir.runtime.surface_function import SurfaceFunction, surface_function
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.support.stages import Observer

#: What makes the functions of kinds of programs that become one anew for each call.
_STAGED: dict[str, Callable[..., SurfaceFunction]] = {"mind": surface_function}


def staged_function(
    program: object,
    function: str | None,
    options: CompileOptions,
    max_signatures: int,
    bindings: Mapping[str, int] | None = None,
) -> SurfaceFunction | None:
    """Return a function of a program, or its only entry, as Python calls it; None of what is made only once.

    Raises:
        VerificationError: The program breaks a rule, has no such function (E2002), or several (E2102).
    """
    kind = find_kind(program)
    make = None if kind is None else _STAGED.get(kind.name)
    return None if make is None else make(program, function, options, bindings, max_signatures)


def compile_program(
    program: Any,
    function: str | None,
    options: CompileOptions,
    *,
    constants: Mapping[str, object] | None,
    observer: Observer | None,
    bindings: Mapping[str, int] | None,
    max_bindings: int,
    seed: int | None,
) -> Executable | ProgramExecutable | SurfaceFunction:
    """Compile a program that is no module, as `mind_mlir.compile` says."""
    kind = kind_of(program)
    if kind.name in _STAGED:
        if constants or seed is not None or observer is not None:
            raise ValueError(f"constants, seed and observer must be left out for a program of {kind.title}")
        name = None if function is None else argument_checks.text(function, "function")
        found = staged_function(program, name, options, max_bindings, bindings)
        assert found is not None, "programs of this kind have a maker"
        found.prepare()
        return found
    if not isinstance(program, Program):
        if seed is not None:
            raise ValueError(f"seed must be left out for a program of {kind.title}")
        module = kind.exported(program, None if function is None else (function,), bindings)
        return Executable(with_constants(module, constants), options, observer=observer)
    chosen = program if function is None else restricted(program, function)
    chosen = seeded(bound(chosen, bindings), seed)
    if not needs_program(chosen):
        made = convert(chosen)
        module = with_constants(made.module, constants)
        return Executable(module, options, observer=observer, entry=made.entry)
    if constants:
        raise ValueError(
            "constants must be left out for a program whose functions have tuples or open dimensions"
        )
    return ProgramExecutable(chosen, options, observer=observer, max_bindings=max_bindings)
