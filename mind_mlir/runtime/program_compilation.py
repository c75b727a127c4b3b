"""Programs of PTIR and of the surface language to what is called: `compile` of all but modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.module import MODULE
from mind_mlir.languages.mind.program import SurfaceProgram
from mind_mlir.languages.ptir.program import Program
from mind_mlir.languages.ptir.regions import restricted
from mind_mlir.languages.ptir.seeding import seeded
from mind_mlir.languages.ptir.symbols import bind, checked_bindings, symbols_of
from mind_mlir.languages.ptir.to_module import convert
from mind_mlir.passes.verify import verify
from mind_mlir.runtime.declared_constants import with_constants
from mind_mlir.runtime.executable import Executable
from mind_mlir.runtime.program_executable import ProgramExecutable, needs_program
from mind_mlir.runtime.surface_function import SurfaceFunction, entry_of
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.support.options import CompileOptions
    from mind_mlir.support.stages import Observer


def compile_program(
    program: object,
    function: str | None,
    options: CompileOptions,
    *,
    constants: Mapping[str, object] | None,
    observer: Observer | None,
    bindings: Mapping[str, int] | None,
    max_bindings: int,
    seed: int | None,
) -> Executable | ProgramExecutable | SurfaceFunction:
    """Compile a program of PTIR or of the surface language, as `mind_mlir.compile` says."""
    if isinstance(program, SurfaceProgram):
        if constants or seed is not None or observer is not None:
            raise ValueError(
                "constants, seed and observer must be left out for a program of the surface language"
            )
        extents = program.checked_bindings(bindings)
        return _surface_function(program, function, options, extents, max_bindings)
    if not isinstance(program, Program):
        argument_checks.reject("module", MODULE, program)
    chosen = program if function is None else restricted(program, function)
    extents = checked_bindings({} if bindings is None else bindings, symbols_of(chosen))
    chosen = seeded(bind(chosen, extents), seed)
    if needs_program(chosen):
        if constants:
            raise ValueError(
                "constants must be left out for a program whose functions have tuples or open dimensions"
            )
        return ProgramExecutable(chosen, options, observer=observer, max_bindings=max_bindings)
    converted = convert(chosen)
    module = converted.module if constants is None else with_constants(verify(converted.module), constants)
    return Executable(module, options, observer=observer, entry=converted.entry)


def _surface_function(
    program: SurfaceProgram,
    function: str | None,
    options: CompileOptions,
    bindings: Mapping[str, int],
    most: int,
) -> SurfaceFunction:
    name = entry_of(program, None if function is None else argument_checks.text(function, "function"))
    found = SurfaceFunction(program, name, options, bindings=bindings, max_signatures=most)
    found.prepare()
    return found
