"""A module in the form that a stage leaves it in."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from mind_mlir.passes.forms import FrontHalf, text_of
from mind_mlir.support.interrupts import held
from mind_mlir.support.stages import CORE_FORMS, stages_after
from mind_mlir.target import named_target
from mind_mlir.tools.cli.options import check_variables

if TYPE_CHECKING:
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
    is_optimized = any(stage.name == "optimized" for stage in stages_after("core", form))
    # What is made of constants is evaluated by compiled code.
    if form in CORE_FORMS and not (is_optimized and options.prepares):
        front = FrontHalf(options, observer=log, pass_observer=log.see_pass, timer=log.timed)
        if is_optimized:
            check_variables()
            front.target = named_target(options.target)
        text = text_of(front.run(module, form))
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
