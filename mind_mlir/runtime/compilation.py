"""`compile`: modules and programs to executables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack, overload

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.module import Module
from mind_mlir.runtime.executable import Executable
from mind_mlir.runtime.options import Options, options_of, takes
from mind_mlir.support import argument_checks
from mind_mlir.support.options import DEFAULT_MAX_BINDINGS

if TYPE_CHECKING:
    from mind_mlir.languages.mind.program import SurfaceProgram
    from mind_mlir.languages.programs.kinds import AnyProgram
    from mind_mlir.languages.ptir.program import Program
    from mind_mlir.runtime.program_executable import ProgramExecutable
    from mind_mlir.runtime.surface_function import SurfaceFunction
    from mind_mlir.support.stages import Observer


@overload
def compile(
    module: Module,
    *,
    function: str | None = None,
    constants: Mapping[str, object] | None = None,
    observer: Observer | None = None,
    **options: Unpack[Options],
) -> Executable: ...
@overload
def compile(
    module: Program,
    *,
    function: str | None = None,
    constants: Mapping[str, object] | None = None,
    observer: Observer | None = None,
    bindings: Mapping[str, int] | None = None,
    max_bindings: int = DEFAULT_MAX_BINDINGS,
    seed: int | None = None,
    **options: Unpack[Options],
) -> Executable | ProgramExecutable: ...
@overload
def compile(
    module: SurfaceProgram,
    *,
    function: str | None = None,
    bindings: Mapping[str, int] | None = None,
    max_bindings: int = DEFAULT_MAX_BINDINGS,
    **options: Unpack[Options],
) -> SurfaceFunction: ...
@public
@takes(Options)
def compile(
    module: AnyProgram,
    *,
    function: str | None = None,
    constants: Mapping[str, object] | None = None,
    observer: Observer | None = None,
    bindings: Mapping[str, int] | None = None,
    max_bindings: int = DEFAULT_MAX_BINDINGS,
    seed: int | None = None,
    **options: Unpack[Options],
) -> Executable | ProgramExecutable | SurfaceFunction:
    """Compile a module or a program for this machine.

    A program of the surface language becomes a `SurfaceFunction`, which takes containers of arrays for
    structs and is compiled for the shapes that it is called with: at once where these are known. A PTIR
    program whose functions have no tuples, and no symbolic dimensions that are left open, becomes an
    `Executable` like any module; others a `ProgramExecutable`, which is called in the same way.

    Args:
        module: A module of any profile, or a program; it is verified first.
        function: The exported function to compile, with what it calls; all of them unless given. Of the
            surface language it is one function, any of them: by default the only entry.
        constants: Arrays for parameters that are the same in all calls, by name: they become part of the
            code, which no longer takes them. What is made of them alone is computed once, now, and factors of
            products are laid out as these read them. With several functions, they are parameters of all that
            have one of that name.
        observer: Sees every stage's form as it appears.
        bindings: Extents for symbolic dimensions of a program, by name without the ``?``; where that binds
            all of a function, it is compiled at once, else for each binding when it is called so first.
        max_bindings: For how many bindings code is kept, 1 or more; that used least recently goes first.
        seed: The seed of the random operations of a program, 0 to 2^64 - 1. Without it, functions that draw
            random numbers have a last parameter ``seed``, for which calls give one.
        options: Those of `mind_mlir.runtime.options`.

    Raises:
        VerificationError: The module breaks a rule; the exception holds all findings. E2002, E2101: there
            is no such function, or it is not exported.
        ExecutionError: E6004, intermediate values need more scratch memory than any address space has.
        UnsupportedError: E7104, a policy of the system lets no memory become code, which LLVM needs; what is
            in the cache is loaded there.
        ArgumentError: E6102, ``constants`` names no parameter, or one of a function that others call; E6103,
            E6104, E6105, an array does not fit its parameter.
        TypeError: An argument is not of the type above.
        ValueError: ``opt_level`` is none of 0 to 3, ``threads`` is out of range, ``target`` is none of
            those, or not this machine's, ``disabled_passes`` names none of the optimiser's, one of the
            variables ``MIND_MLIR_*`` is wrong, ``bindings`` names a symbol
            that the program does not have or an extent below 0, ``max_bindings`` is below 1, ``seed`` does
            not fit in 64 bits, or there are ``constants`` for a program with tuples or open dimensions.
        MemoryError: There is no memory for what is made.
        InternalError: A stage failed on a verified module: a bug of the compiler.
    """
    if constants is not None:
        argument_checks.mapping(constants, "constants", "a mapping from names of parameters to arrays")
    chosen = options_of(options, "compile", Options, prepares=bool(constants))
    most = argument_checks.integer(max_bindings, "max_bindings")
    if most < 1:
        raise ValueError(f"max_bindings must be 1 or more, not {most}")
    if isinstance(module, Module):
        argument_checks.refuse_bindings(bindings)
        if seed is not None:
            raise ValueError("seed must be left out for a module: its functions take seeds as arguments")
        if constants is not None:
            from mind_mlir.runtime.declared_constants import with_constants  # noqa: PLC0415 -- few calls have any

            module = with_constants(module, constants, function)
        return Executable(module, chosen, function=function, observer=observer)
    from mind_mlir.runtime import program_compilation  # noqa: PLC0415 -- modules need none of the other languages

    return program_compilation.compile_program(
        module,
        function,
        chosen,
        constants=constants,
        observer=observer,
        bindings=bindings,
        max_bindings=most,
        seed=seed,
    )
