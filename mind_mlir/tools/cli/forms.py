"""A module in the form that a stage leaves it in."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.languages.core.printer import print_module
from mind_mlir.passes.forms import STEPS
from mind_mlir.passes.optimize import optimize
from mind_mlir.passes.verify import verify
from mind_mlir.support.interrupts import held
from mind_mlir.support.stages import CORE_FORMS
from mind_mlir.target import named_target
from mind_mlir.tools.cli.options import check_variables

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from mind_mlir.ir.module import Module
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.tools.cli.stage_log import StageLog


def print_form(
    module: Module, form: str, log: StageLog, options: CompileOptions, *, debug_info: bool = False
) -> str:
    """Return ``module`` in ``form``, one of `mind_mlir.support.stages.FORMS`, and finish the log.

    Args:
        module: What to print.
        form: The form to print it in.
        log: Sees the stages on the way.
        options: How forms of MLIR and assembly are made.
        debug_info: Whether forms of MLIR are printed with their locations.

    Raises:
        VerificationError: The module breaks a rule of its profile.
        InternalError: A stage failed on a verified module.
        click.UsageError: A variable of the environment is wrong.
    """
    # What is made of constants is evaluated by compiled code.
    if form in CORE_FORMS and not (form == "optimized" and options.prepares):
        text = _core_form(module, form, log, options)
    else:
        text = native(log).print_form(module, form, log, options, debug_info=debug_info)
    log.finish()
    return text


def native(log: StageLog) -> ModuleType:
    """Return `mind_mlir.tools.cli.native`, which loads MLIR the first time.

    Raises:
        click.UsageError: A variable of the environment is wrong.
    """
    check_variables()
    with log.timed("import of MLIR"), held():
        from mind_mlir.tools.cli import native as loaded  # noqa: PLC0415 -- what needs no MLIR shall not wait for it
    return loaded


def _core_form(module: Module, form: str, log: StageLog, options: CompileOptions) -> str:
    if form == "optimized":
        check_variables()
    log("core", lambda: print_module(module))
    with log.timed("verify"):
        verify(module)
    steps: dict[str, Callable[[Module], Module]] = {**STEPS, "optimized": partial(_optimized, log, options)}
    for stage in CORE_FORMS[1 : CORE_FORMS.index(form) + 1]:
        with log.timed(stage):
            module = steps[stage](module)
        log(stage, partial(print_module, module))
    return print_module(module)


def _optimized(log: StageLog, options: CompileOptions, module: Module) -> Module:
    target = named_target(options.target)
    return optimize(module, options.disabled_passes, observer=log.see_pass, target=target)
