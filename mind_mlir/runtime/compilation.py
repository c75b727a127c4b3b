"""`compile`: modules and programs to executables."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from mind_mlir.cache.directory import checked_choice
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.analysis.restriction import restricted as restricted_module
from mind_mlir.ir.module import Module
from mind_mlir.passes.pass_names import checked_names
from mind_mlir.passes.verify import verify
from mind_mlir.runtime.executable import Executable
from mind_mlir.support import argument_checks
from mind_mlir.support.options import DEFAULT_MAX_BINDINGS, DEFAULT_OPT_LEVEL, CompileOptions

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Mapping

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
    opt_level: int = DEFAULT_OPT_LEVEL,
    threads: int | None = None,
    target: str | None = None,
    winograd: bool = False,
    disabled_passes: Collection[str] = (),
    debug: bool = False,
    cache: bool | str | os.PathLike[str] | None = None,
    constants: Mapping[str, object] | None = None,
    observer: Observer | None = None,
) -> Executable: ...
@overload
def compile(
    module: Program,
    *,
    function: str | None = None,
    opt_level: int = DEFAULT_OPT_LEVEL,
    threads: int | None = None,
    target: str | None = None,
    winograd: bool = False,
    disabled_passes: Collection[str] = (),
    debug: bool = False,
    cache: bool | str | os.PathLike[str] | None = None,
    constants: Mapping[str, object] | None = None,
    observer: Observer | None = None,
    bindings: Mapping[str, int] | None = None,
    max_bindings: int = DEFAULT_MAX_BINDINGS,
    seed: int | None = None,
) -> Executable | ProgramExecutable: ...
@overload
def compile(
    module: SurfaceProgram,
    *,
    function: str | None = None,
    opt_level: int = DEFAULT_OPT_LEVEL,
    threads: int | None = None,
    target: str | None = None,
    winograd: bool = False,
    disabled_passes: Collection[str] = (),
    debug: bool = False,
    cache: bool | str | os.PathLike[str] | None = None,
    bindings: Mapping[str, int] | None = None,
    max_bindings: int = DEFAULT_MAX_BINDINGS,
) -> SurfaceFunction: ...
@public
def compile(
    module: AnyProgram,
    *,
    function: str | None = None,
    opt_level: int = DEFAULT_OPT_LEVEL,
    threads: int | None = None,
    target: str | None = None,
    winograd: bool = False,
    disabled_passes: Collection[str] = (),
    debug: bool = False,
    cache: bool | str | os.PathLike[str] | None = None,
    constants: Mapping[str, object] | None = None,
    observer: Observer | None = None,
    bindings: Mapping[str, int] | None = None,
    max_bindings: int = DEFAULT_MAX_BINDINGS,
    seed: int | None = None,
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
        opt_level: How far LLVM optimises what gains by it, 0 to 3; results are the same at each.
        threads: How many threads share a loop at most, 1 to 1024; `get_num_threads` says how many do where
            that is less, or nothing is given. Results are the same with any number.
        target: The processor, ``native``, ``sse``, ``avx2`` or ``avx512``; by default what the variable
            ``MIND_MLIR_TARGET`` says, or else ``native``, this machine with all that it has.
        winograd: Whether convolutions of floats with filters of 3 x 3 and stride 1 take Winograd's form where
            it is faster. It has a bound of its own, which the page on schedules says.
        disabled_passes: Passes of the optimiser that are switched off; ``mind-mlir compile -h`` names them;
            ``["all"]`` for every one.
        debug: Whether machine code says which line of the program it comes from, for debuggers and profilers:
            the page on debugging says how. Results are the same.
        cache: Whether machine code is kept on disk and found again there, or in which directory: True, False
            or a path. Unless given, the variables ``MIND_MLIR_CACHE`` and ``MIND_MLIR_CACHE_DIR`` say it, or
            else it is, in the user's directory of caches. Where an observer looks, it is
            not.
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
    disabled = checked_names(disabled_passes, "disabled_passes")
    if constants is not None:
        argument_checks.mapping(constants, "constants", "a mapping from names of parameters to arrays")
    options = CompileOptions(
        *(opt_level, threads, target, winograd, disabled, bool(constants), debug),
        cache=checked_choice(cache),
    )
    most = argument_checks.integer(max_bindings, "max_bindings")
    if most < 1:
        raise ValueError(f"max_bindings must be 1 or more, not {most}")
    if isinstance(module, Module):
        argument_checks.refuse_bindings(bindings)
        if seed is not None:
            raise ValueError("seed must be left out for a module: its functions take seeds as arguments")
        constant = _with_constants(module, constants, function)
        return Executable(constant, options, function=function, observer=observer)
    from mind_mlir.runtime import program_compilation  # noqa: PLC0415 -- modules need none of the other languages

    return program_compilation.compile_program(
        module,
        function,
        options,
        constants=constants,
        observer=observer,
        bindings=bindings,
        max_bindings=most,
        seed=seed,
    )


def _with_constants(module: Module, constants: Mapping[str, object] | None, function: str | None) -> Module:
    """Return ``module``, or what ``function`` needs of it, with constants in the place of parameters."""
    if constants is None:
        return module
    from mind_mlir.runtime.declared_constants import with_constants  # noqa: PLC0415 -- few calls have any

    return with_constants(restricted_module(verify(module), function), constants)
