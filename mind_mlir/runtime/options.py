"""The options of `compile`, `jit`, `package` and the command line: one record each.

A record says all that a caller meets of an option. The keywords of the public functions and the options of
the command line are made of the records; `Options` is what type checkers see of them. What an option becomes
on its way down the stages is a field of `CompileOptions`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple, TypedDict, TypeVar

from mind_mlir.cache.directory import SWITCH, checked_choice
from mind_mlir.passes.pass_names import checked_names
from mind_mlir.runtime.threads import MOST_THREADS, VARIABLE, check_threads
from mind_mlir.support import argument_checks
from mind_mlir.support.options import CompileOptions
from mind_mlir.target import TARGETS
from mind_mlir.target import VARIABLE as TARGET_VARIABLE

F = TypeVar("F", bound="Callable[..., Any]")

OPT_LEVELS = range(4)
#: The variable of the environment that says whether operations run one by one.
INTERPRET = "MIND_MLIR_INTERPRET"
_THREAD_COUNTS = range(1, MOST_THREADS + 1)


class CodeOptions(TypedDict, total=False):
    """The keywords of what makes machine code, whoever keeps it."""

    opt_level: int
    threads: int | None
    target: str | None
    winograd: bool
    bf16x6: bool
    disabled_passes: Collection[str]
    debug: bool


class Options(CodeOptions, total=False):
    """The keywords of what makes machine code for this process."""

    cache: bool | str | os.PathLike[str] | None
    check_nan: bool
    interpret: bool | None


class Option(NamedTuple):
    """An option of a compilation.

    Attributes:
        name: The keyword, and the field of `CompileOptions`.
        text: What the documentation of `compile` says of it.
        check: Returns what a caller gives, by the name of the option, as plain data, or raises a TypeError or
            ValueError; None for what is checked where it is used.
        word: What it is written as on the command line.
        help: What ``--help`` says.
        commands: The commands that have it among their options of compilation.
        kind: The numbers or words that may follow the word; nothing follows for bool.
        metavar: What ``--help`` calls that.
    """

    name: str
    text: str
    check: Callable[[Any, str], Any] | None
    word: str
    help: str
    commands: tuple[str, ...] = ()
    kind: range | tuple[str, ...] | type = bool
    metavar: str | None = None

    @property
    def default(self) -> Any:
        """Return what holds unless a caller says otherwise."""
        found = _DEFAULTS[self.name]
        return tuple(found) if isinstance(found, frozenset) else found


def _level(value: object, name: str) -> int:
    level = argument_checks.integer(value, name)
    if level not in OPT_LEVELS:
        raise ValueError(f"{name} must be one of {', '.join(map(str, OPT_LEVELS))}, not {level}")
    return level


def _thread_count(value: object, name: str) -> int | None:
    return None if value is None else check_threads(value, name)


_DEFAULTS = {each.name: each.default for each in fields(CompileOptions)}

#: All options that callers give, in the order in which they are shown.
OPTIONS = (
    Option(
        "opt_level",
        "How far LLVM optimises what gains by it, 0 to 3; results are the same at each.",
        _level,
        "-O",
        "The most that LLVM optimises; results are the same at each level.",
        ("compile", "explore", "grad", "profile", "reduce", "run"),
        OPT_LEVELS,
    ),
    Option(
        "threads",
        "How many threads share a loop at most, 1 to 1024; `get_num_threads` says how many do where\n"
        "that is less, or nothing is given. Results are the same with any number.",
        _thread_count,
        "--threads",
        f"How many threads share a loop at most; {VARIABLE} unless given, or one a core. Results are "
        "the same with any number.",
        ("compile", "explore", "profile", "reduce", "run"),
        _THREAD_COUNTS,
        "N",
    ),
    Option(
        "target",
        "The processor, ``native``, ``sse``, ``avx2``, ``avx512`` or ``amx``; by default what the variable\n"
        "``MIND_MLIR_TARGET`` says, or else ``native``, this machine with all that it has.",
        None,  # what each caller can be asked for differs
        "--target",
        f"The processor to compile for; {TARGET_VARIABLE} unless given, or this machine's.",
        ("buffers", "compile", "profile", "reduce", "run"),
        TARGETS,
    ),
    Option(
        "winograd",
        "Whether convolutions of floats with filters of 3 x 3 and stride 1 take Winograd's form where\n"
        "it is faster. It has a bound of its own, which the page on schedules says.",
        argument_checks.flag,
        "--winograd",
        "Compute 3x3 convolutions in Winograd's form where that is faster, within a bound of its own.",
        ("buffers", "compile", "explore", "profile", "reduce", "run"),
    ),
    Option(
        "bf16x6",
        "Whether products of f32 are six products of bf16 where the processor multiplies tiles of these\n"
        "(AMX) and gains by it, and products of f16 four. They are as accurate as other sums of f32.",
        argument_checks.flag,
        "--bf16x6/--no-bf16x6",
        "Compute products of f32 as six products of bf16 where the processor has tiles for these (AMX) and "
        "gains by it; yes unless given.",
        ("buffers", "compile", "explore", "profile", "reduce", "run"),
    ),
    Option(
        "disabled_passes",
        "Passes of the optimiser that are switched off; ``mind-mlir compile -h`` names them;\n"
        '``["all"]`` for every one.',
        checked_names,
        "--disable-pass",
        "Leave out a pass of the optimiser: {passes}; or all. Repeatable.",
        ("compile", "explore", "profile", "reduce", "run"),
        frozenset,
        "NAME",
    ),
    Option(
        "debug",
        "Whether machine code says which line of the program it comes from, for debuggers and profilers:\n"
        "the page on debugging says how. Results are the same.",
        argument_checks.flag,
        "--debug",
        "Let debuggers and profilers show the lines of the program.",
    ),
    Option(
        "cache",
        "Whether machine code is kept on disk and found again there, or in which directory: True, False\n"
        "or a path. Unless given, the variables ``MIND_MLIR_CACHE`` and ``MIND_MLIR_CACHE_DIR`` say it, or\n"
        "else it is, in the user's directory of caches. Where an observer looks, it is not.",
        lambda value, _: checked_choice(value),
        "--cache/--no-cache",
        f"Keep machine code on disk, and find it again there; {SWITCH} unless given, or yes.",
    ),
    Option(
        "check_nan",
        "Whether calls check that their results are finite: where they are not, the operation that made\n"
        "the NaN or infinity is a `NotFiniteError` (E6006). Code is the same.",
        argument_checks.flag,
        "--trap-nan",
        "Check that results are finite; where they are not, say which operation made the NaN or infinity. "
        "With --interpret, whatever any operation makes is checked.",
        ("run",),
    ),
    Option(
        "interpret",
        "Whether operations run one by one, with numpy, rather than compiled; functions of Python then run\n"
        "as they are written, on arrays that hold their numbers. Unless given, the variable\n"
        f"``{INTERPRET}`` says it, or else they do not.",
        lambda value, name: None if value is None else argument_checks.flag(value, name),
        "--interpret",
        f"Run operations one by one, with numpy, instead of compiling; {INTERPRET} unless given.",
        ("run",),
    ),
)
#: What stands for the options in the documentation of a function; who reads the source reads this.
DESCRIBED = "options: Those of `mind_mlir.runtime.options`."
_CHECKS = {each.name: each.check for each in OPTIONS if each.check is not None}


def takes(keywords: type) -> Callable[[F], F]:
    """Return what makes a function with ``**options: Unpack[keywords]`` show them, as if it listed each.

    They stand in its signature and, where the documentation has `DESCRIBED`, in that.
    """
    types = {name: getattr(each, "__forward_arg__", each) for name, each in keywords.__annotations__.items()}
    taken = [each for each in OPTIONS if each.name in types]

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        parameters = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        parameters += [
            inspect.Parameter(
                each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=types[each.name]
            )
            for each in taken
        ]
        shown: Any = function
        shown.__signature__ = signature.replace(parameters=parameters)
        if function.__doc__ is not None:  # there is none with -OO
            texts = [f"{each.name}: {each.text}".replace("\n", "\n            ") for each in taken]
            function.__doc__ = function.__doc__.replace(DESCRIBED, "\n        ".join(texts))
        return function

    return decorate


def options_of(given: Mapping[str, Any], function: str, keywords: type, **others: Any) -> CompileOptions:
    """Return the options that a caller of ``function`` gives as keywords, checked; with others of ours."""
    argument_checks.keywords(given, keywords.__annotations__, function)
    return CompileOptions(**{name: _checked(name, value) for name, value in given.items()}, **others)


def checked_options(options: CompileOptions | None) -> CompileOptions:
    """Return options as plain data, where a caller's are what they should be; the defaults for None."""
    options = CompileOptions() if options is None else options
    argument_checks.expect(options, CompileOptions, "options", "CompileOptions")
    return replace(options, **{name: _checked(name, getattr(options, name)) for name in _CHECKS})


def interprets(options: CompileOptions) -> bool:
    """Return whether operations run one by one, as a caller or the environment says; see below."""
    return environment_interprets() if options.interpret is None else options.interpret


def environment_interprets() -> bool:
    """Return whether the environment says that operations run one by one.

    Raises:
        ValueError: The variable is neither 0 nor 1.
    """
    said = os.environ.get(INTERPRET, "")
    if said not in ("", "0", "1"):
        raise ValueError(f"{INTERPRET} must be 0 or 1, not {said!r}")
    return said == "1"


def _checked(name: str, value: object) -> Any:
    check = _CHECKS.get(name)
    return value if check is None else check(value, name)
