"""`mind-mlir compile`: print a program in the form that any stage leaves it in, or write its machine code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from mind_mlir.support.artefact_kinds import ARTEFACTS
from mind_mlir.support.stages import FORMS, MLIR_FORMS, STAGES
from mind_mlir.target import TARGETS, X86_64, processors_of
from mind_mlir.tools.cli.options import (
    artefact_options,
    bind_option,
    compile_options,
    constant_option,
    diagnostic_format,
    emit_option,
    extensions_option,
    file_argument,
    function_option,
    output_option,
    stage_options,
    weights_option,
)
from mind_mlir.tools.cli.output import write_output

if TYPE_CHECKING:
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.tools.cli.session import Session

DEFAULT_FORM = "llvm"
#: Options of artefacts alone, and those that look at forms on the way.
_OF_ARTEFACTS = ("name", "target_cpu", "features", "header", "depfile")
_OF_FORMS = (
    *("verify_only", "mlir_print_debuginfo", "print_passes"),
    *("print_ir_after_all", "dump_stages", "timing"),
)


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return a line a row, each of whose cells stands two blanks right of the widest before it."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _help() -> str:
    stages = [(stage.name, stage.summary) for stage in STAGES]
    half = (len(stages) + 1) // 2
    pairs = zip_longest(stages[:half], stages[half:], fillvalue=("", ""))
    rows = _columns([(*left, *right) for left, right in pairs])
    artefacts = _columns(list(ARTEFACTS.items()))
    return "\n".join(
        [
            "Print a program in the form that any stage leaves it in, or write its machine code.",
            *("", "Forms, of which --emit names one:", "", "\b", *rows),
            *("", "Files for programs that have neither Python nor MLIR, written with -o PATH:", "", "\b"),
            *artefacts,
        ]
    )


@click.command(name="compile", help=_help())
@file_argument
@bind_option
@emit_option(DEFAULT_FORM, (*FORMS, *ARTEFACTS))
@click.option("--emit-ir", is_flag=True, help="Same as --emit=core.")
@click.option("--emit-grad-ir", is_flag=True, help="Print the gradient module's Core IR; needs --autodiff.")
@click.option("--emit-mlir", is_flag=True, help="Same as --emit=mind.")
@click.option("--autodiff", is_flag=True, help="Differentiate with respect to every float input first.")
@extensions_option
@function_option(
    "compile, with what it calls", "all exported ones unless given. Artefacts take several", several=True
)
@click.option("--verify-only", is_flag=True, help="Only report what is wrong; print nothing.")
@click.option("--mlir-print-debuginfo", is_flag=True, help="Print the locations in forms of MLIR.")
@click.option(
    "--print-passes",
    is_flag=True,
    help="Print what each pass of the optimiser changes, before and after, to standard error.",
)
@compile_options("compile")
@constant_option
@weights_option(
    "Make inputs part of the code, as --constant does: all that FILE has weights of their names for."
)
@output_option
@artefact_options
@diagnostic_format
@stage_options
@click.pass_obj
def command(
    session: Session,
    file: str,
    extents: Mapping[str, int],
    emit: str | None,
    emit_ir: bool,
    emit_grad_ir: bool,
    emit_mlir: bool,
    autodiff: bool,
    extensions: bool,
    func: tuple[str, ...],
    verify_only: bool,
    mlir_print_debuginfo: bool,
    print_passes: bool,
    options: CompileOptions,
    constants: Mapping[str, str],
    weights: str | None,
    output: str | None,
    name: str | None,
    target_cpu: str | None,
    features: str | None,
    debug_prefixes: tuple[tuple[str, str], ...],
    header: str | None,
    depfile: str | None,
    stages: Mapping[str, Any],
) -> None:
    """Print a program in the form that any stage leaves it in, or write its machine code."""
    if emit_grad_ir and not autodiff:
        raise click.UsageError("--emit-grad-ir needs --autodiff")
    if extensions and not autodiff:
        raise click.UsageError("--extensions is about derivatives; it needs --autodiff")
    form = _form(emit, core=emit_ir or emit_grad_ir, mind=emit_mlir)
    options = replace(options, prepares=bool(constants) or weights is not None, debug_prefixes=debug_prefixes)
    if debug_prefixes and not options.debug:
        raise click.UsageError("--debug-prefix-map is about debug information; it needs --debug")
    _check_options(form)
    if form in ARTEFACTS:
        from mind_mlir.tools.cli.artefacts import Request, write  # noqa: PLC0415 -- loads numpy, which --help and completion do without

        request = Request(
            *(
                file,
                form,
                output,
                name,
                func,
                extents,
                constants,
                weights,
                autodiff,
                extensions,
                header,
                depfile,
            )
        )
        write(session, request, options, cpu=target_cpu, features=features)
        return
    if options.target not in (None, *TARGETS, *processors_of(X86_64)):
        names = ", ".join(map(repr, (*TARGETS, *processors_of(X86_64))))
        raise click.BadParameter(f"{options.target!r} is not one of {names}.", param_hint="'--target'")
    if len(func) > 1:
        raise click.UsageError(f"--emit={form} prints one function or all: give --func once, or not at all")
    if mlir_print_debuginfo and form not in MLIR_FORMS:
        raise click.UsageError(
            f"--mlir-print-debuginfo needs a form of MLIR ({', '.join(MLIR_FORMS)}), not '{form}'"
        )

    from mind_mlir.ir.analysis.restriction import restricted  # noqa: PLC0415 -- as above
    from mind_mlir.passes.verify import verify  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.forms import print_form  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.programs import declared, gradient_module  # noqa: PLC0415 -- loads numpy, which --help and completion do without
    from mind_mlir.tools.cli.stage_log import StageLog  # noqa: PLC0415 -- as above

    log = StageLog.of(session, **stages)
    log.print_passes = print_passes
    function = next(iter(func), None)
    module = restricted(log.read(file, function, extents), function)
    if verify_only:
        with log.timed("verify"):
            verify(module)
        log.finish()
        return
    # --emit-ir shows the program itself, as the language's own driver does, whatever else was asked for.
    if autodiff and not emit_ir:
        module = gradient_module(module, log, extensions=extensions)
    module = declared(module, constants, weights)
    text = print_form(module, form, log, options, debug_info=mlir_print_debuginfo)
    write_output(text, output)


def _form(emit: str | None, *, core: bool, mind: bool) -> str:
    asked = [name for name, given in ((emit, emit), ("core", core), ("mind", mind)) if given and name]
    if len(asked) > 1:
        raise click.UsageError("give one of --emit, --emit-ir, --emit-grad-ir and --emit-mlir")
    return asked[0] if asked else DEFAULT_FORM


def _check_options(form: str) -> None:
    """Make sure that what is asked for takes the options that are given."""
    context = click.get_current_context()
    refused = _OF_FORMS if form in ARTEFACTS else _OF_ARTEFACTS
    for parameter in context.command.params:
        if (
            parameter.name in refused
            and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
        ):
            option = max(parameter.opts, key=len)
            if form in ARTEFACTS:
                raise click.UsageError(
                    f"{option} is about forms of programs: leave it out with --emit={form}"
                )
            raise click.UsageError(f"{option} needs one of --emit={', '.join(ARTEFACTS)}")
