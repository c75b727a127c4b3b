"""Options that several subcommands share, and the variables of the environment in their place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import click

from mind_mlir.cache.directory import store_for
from mind_mlir.diagnostics.render import FORMATS
from mind_mlir.runtime.options import OPTIONS, Option, environment_interprets, interprets
from mind_mlir.runtime.threads import get_num_threads
from mind_mlir.support.options import CompileOptions
from mind_mlir.support.stages import FORMS
from mind_mlir.support.suggestions import did_you_mean
from mind_mlir.target import ARTEFACT_TARGETS, environment_target, rates_are_measured, runnable_target
from mind_mlir.target import VARIABLE as TARGET_VARIABLE
from mind_mlir.tools.cli.completion import (
    complete_artefact_target,
    complete_conversion_target,
    complete_cpu,
    complete_directory,
    complete_file,
    complete_function,
    complete_pass,
)
from mind_mlir.tools.cli.optimizer_names import OPTIMIZER_PASSES
from mind_mlir.tools.cli.session import DEFAULT_ERROR_LIMIT, Session

Command = TypeVar("Command", bound="Callable[..., Any]")


def _set_format(context: click.Context, _: click.Parameter, value: Any) -> None:
    context.ensure_object(Session).format = value


def _set_error_limit(context: click.Context, _: click.Parameter, value: Any) -> None:
    context.ensure_object(Session).error_limit = value


def _all_of(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return what adds several options, which ``--help`` lists in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


file_argument = click.argument("file", metavar="FILE", shell_complete=complete_file)
#: The choices go to the session.
diagnostic_format = _all_of(
    click.option(
        "--diagnostic-format",
        type=click.Choice(FORMATS),
        default="human",
        expose_value=False,
        callback=_set_format,
        help="How findings are printed on standard error: with the source, one a line, or as JSON lines.",
    ),
    click.option(
        "--error-limit",
        metavar="N",
        type=click.IntRange(0),
        default=DEFAULT_ERROR_LIMIT,
        show_default=True,
        expose_value=False,
        callback=_set_error_limit,
        help="How many findings are printed; 0 prints all that are kept, the first 1000 of a check.",
    ),
)
output_option = click.option(
    "-o",
    "--output",
    metavar="PATH",
    shell_complete=complete_file,
    help="Write to PATH instead of standard output; the file appears whole or not at all.",
)
extensions_option = click.option(
    "--extensions", is_flag=True, help="Allow derivative rules outside Core v1 (Conv2d)."
)


def function_option(
    verb: str, default: str = "'main', or the only exported one, unless given", *, several: bool = False
) -> Callable[[Command], Command]:
    """Add ``--func``, of which the command is given a name, or a tuple of names."""
    return click.option(
        "--func",
        metavar="NAME",
        multiple=several,
        shell_complete=complete_function,
        help=f"The function to {verb}; {default}.",
    )


def emit_option(default: str, choices: Sequence[str] = FORMS) -> Callable[[Command], Command]:
    """Add ``--emit``."""
    return click.option(
        "--emit",
        type=click.Choice(choices),
        default=None,
        help=f"What to print or write; '{default}' unless given.",
    )


def _extents(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for value in values:
        name, _equals, extent = value.removeprefix("?").partition("=")
        if not name or not extent.isdecimal() or name in found:
            raise click.UsageError(f"--bind {value}: write NAME=EXTENT, as in B=4, once for each name")
        found[name] = int(extent)
    return found


#: The command is given a mapping called ``extents``.
bind_option = click.option(
    "--bind",
    "extents",
    metavar="NAME=EXTENT",
    multiple=True,
    callback=_extents,
    help="What a named dimension of a program or ONNX model is (?NAME in PTIR); may be given several times.",
)


def _prefixes(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return what is said for which beginnings of paths."""
    found = []
    for value in values:
        old, equals, new = value.partition("=")
        if not old or not equals:
            raise click.BadParameter(f"{value!r} is not of the form OLD=NEW.")
        found.append((old, new))
    return tuple(found)


#: What the command line says of an option that `Option` does not, for one command or for all.
_SPECIAL: dict[tuple[str, str], dict[str, Any]] = {
    ("compile", "target"): {
        "type": None,
        "metavar": "NAME",
        "shell_complete": complete_artefact_target,
        "help": f"The processor to compile for, one of {', '.join(ARTEFACT_TARGETS)}, the last two for "
        f"artefacts only; {TARGET_VARIABLE} unless given, or this machine's.",
    },
    ("", "disabled_passes"): {"shell_complete": complete_pass},
}


def compile_options(command: str, *names: str) -> Callable[[Command], Command]:
    """Add the options of compilation that a command has, or those of some names; it is given ``options``.

    Used several times, each adds some.
    """
    chosen = [each for each in OPTIONS if (each.name in names if names else command in each.commands)]

    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def folded(*args: Any, **kwargs: Any) -> Any:
            given = {each.name: kwargs.pop(each.name) for each in chosen}
            options = replace(kwargs.pop("options", None) or CompileOptions(), **given)
            return function(*args, options=options, **kwargs)

        return cast("Command", _all_of(*[_click_option(command, each) for each in chosen])(folded))

    return decorate


def _click_option(command: str, option: Option) -> Callable[[Any], Any]:
    shown: dict[str, Any] = {"help": option.help.replace("{passes}", ", ".join(OPTIMIZER_PASSES))}
    if isinstance(option.kind, range):
        shown |= {"type": click.IntRange(option.kind.start, option.kind.stop - 1)}
    elif isinstance(option.kind, tuple):
        shown |= {"type": click.Choice(option.kind)}
    elif option.kind is frozenset:
        shown |= {"multiple": True, "callback": _pass_names}
    elif "/" in option.word:
        shown |= {"default": option.default}
    else:
        shown |= {"is_flag": True, "default": option.default}
    if option.metavar is not None:
        shown |= {"metavar": option.metavar}
    if isinstance(option.kind, range) and option.default is not None:
        shown |= {"default": option.default, "show_default": True}
    special = {**_SPECIAL.get(("", option.name), {}), **_SPECIAL.get((command, option.name), {})}
    return click.option(option.word, option.name, **{**shown, **special})


def conversion_target_option(verb: str, *, required: bool) -> Callable[[Command], Command]:
    """Add ``--target`` for conversion targets."""
    return click.option(
        "--target",
        metavar="NAME",
        required=required,
        shell_complete=complete_conversion_target,
        help=f"The conversion target {verb}, such as llvm; 'mind-mlir targets' shows all.",
    )


def _constants(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for value in values:
        name, _equals, path = value.partition("=")
        if not name or not path or name in found:
            raise click.UsageError(f"--constant {value}: write NAME=FILE.npy, once for each name")
        found[name] = path
    return found


#: The command is given a mapping called ``constants``, from names to files.
constant_option = click.option(
    "--constant",
    "constants",
    metavar="NAME=FILE.npy",
    multiple=True,
    callback=_constants,
    help="Make an input part of the code, with the array in FILE; what is made of such inputs alone is "
    "computed once. Repeatable.",
)


def weights_option(help_: str) -> Callable[[Command], Command]:
    """Add ``--weights``; the command is given ``weights``, a file or None."""
    return click.option("--weights", metavar="FILE", shell_complete=complete_file, help=help_)


def input_option(help_: str) -> Callable[[Command], Command]:
    """Add ``--input``; the command is given ``inputs``, what the options say, in order."""
    return click.option("--input", "inputs", metavar="SPEC", multiple=True, help=f"{help_} Repeatable.")


#: The seed of what is random.
seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**64 - 1),
    default=0,
    show_default=True,
    help="Seed of random inputs, and of the random operations of a PTIR program.",
)


def _pass_names(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> frozenset[str]:
    for value in values:
        if value not in (*OPTIMIZER_PASSES, "all"):
            hint = (
                did_you_mean(value, OPTIMIZER_PASSES, "'")
                or f"; the passes are {', '.join(OPTIMIZER_PASSES)}"
            )
            raise click.UsageError(f"--disable-pass {value}: no pass of the optimiser is called so{hint}")
    return frozenset(OPTIMIZER_PASSES if "all" in values else values)


#: The options of artefacts alone.
artefact_options = _all_of(
    click.option(
        "--name",
        metavar="LIB",
        help="What C functions of an artefact begin with, as in LIB_FUNC; the stem of PATH unless given.",
    ),
    click.option(
        "--target-cpu",
        metavar="CPU",
        shell_complete=complete_cpu,
        help="The least processor that is to run an artefact, as LLVM calls it.",
    ),
    click.option(
        "--features",
        metavar="+A,-B",
        help="What the processor of an artefact has, or lacks, beyond --target and --target-cpu.",
    ),
    compile_options("compile", "debug"),
    click.option(
        "--debug-prefix-map",
        "debug_prefixes",
        metavar="OLD=NEW",
        multiple=True,
        callback=_prefixes,
        help="Say NEW for OLD where a path in debug information begins with it; may be repeated.",
    ),
    click.option(
        "--header",
        metavar="PATH",
        shell_complete=complete_file,
        help="Write the header of an artefact to PATH, too.",
    ),
    click.option(
        "--depfile",
        metavar="PATH",
        shell_complete=complete_file,
        help="Write a rule of make to PATH, too, that says what the artefact is made of.",
    ),
)


def stage_options(command: Command) -> Command:
    """Add the options that look at the stages; the command is given ``stages``, which `StageLog.of` takes."""

    @functools.wraps(command)
    def folded(*args: Any, **kwargs: Any) -> Any:
        stages = {name: kwargs.pop(name) for name in ("print_ir_after_all", "dump_stages", "timing")}
        return command(*args, stages=stages, **kwargs)

    return cast("Command", _looking(folded))


_looking = _all_of(
    click.option("--print-ir-after-all", is_flag=True, help="Print every stage's form to standard error."),
    click.option(
        "--dump-stages",
        metavar="DIR",
        shell_complete=complete_directory,
        help="Write every stage's form to a numbered file in DIR.",
    ),
    click.option("--timing", is_flag=True, help="Print how long each stage took to standard error."),
)


def check_variables() -> None:
    """Make sure that the variables of the environment say what they may."""
    try:
        get_num_threads()
        environment_target()
        rates_are_measured()
        store_for()
        environment_interprets()
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def is_interpreted(options: CompileOptions) -> bool:
    """Return whether operations run one by one, as an option or the environment says."""
    try:
        return interprets(options)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def check_runnable(target: str | None) -> None:
    """Make sure that this machine runs code for ``target``, or for the environment's where that is None."""
    try:
        runnable_target(target)
    except ValueError as error:
        raise click.UsageError(f"{error}" if target is None else f"--{error}") from None
