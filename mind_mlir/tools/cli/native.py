"""Print, execute and compare modules with MLIR; importing this module loads the bindings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mind_mlir.codegen.disassemble import disassemble
from mind_mlir.codegen.machine_code import listed_object
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.runtime.compiled_code import evaluation
from mind_mlir.runtime.executable import Executable
from mind_mlir.runtime.gradient_check import GradientCheck, check_gradients
from mind_mlir.runtime.threads import loop_threads
from mind_mlir.target import named_target
from mind_mlir.tools.comparison import Difference, first_difference
from mind_mlir.tools.interruption import interruptible

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.tools.cli.stage_log import StageLog


def print_form(module: Module, form: str, log: StageLog, options: CompileOptions, *, debug_info: bool) -> str:
    """Return ``module`` in a form of MLIR, with its locations on request, or as assembly."""
    lowering = Lowering(
        named_target(options.target),
        threads=loop_threads(options.threads),
        options=options,
        observer=log,
        pass_observer=log.see_pass,
        evaluate=evaluation(options),
        debug_info=debug_info,
    )
    try:
        text = lowering.run(module, until=form)
    finally:
        log.add(lowering.timings)
    if form != "asm":
        return lowering.text() if text is None else text
    with log.timed("codegen"):
        target = named_target(options.target)
        text = disassemble(listed_object(lowering.mlir, opt_level=options.opt_level, target=target))
    log("asm", lambda: text)
    return text


def execute(
    module: Module, arguments: Mapping[str, Array], log: StageLog, options: CompileOptions
) -> Sequence[Array]:
    """Compile ``module`` and run it."""
    executable = Executable(module, options, observer=log if log.looks else None)
    log.add(executable.timings)
    with log.timed("run"):
        return interruptible(lambda: executable(**arguments))


def compare_gradients(
    module: Module, arguments: Mapping[str, Array], log: StageLog, options: CompileOptions, seed: int
) -> GradientCheck:
    """Compare the gradients of ``module`` with differences."""
    with log.timed("check"):
        return interruptible(lambda: check_gradients(module, arguments, seed=seed, options=options))


def compare(
    module: Module, arguments: Mapping[str, Array], log: StageLog, target: str | None
) -> Difference | None:
    """Compare every operation of ``module`` with its numpy rule."""
    with log.timed("check"):
        return first_difference(
            module,
            arguments,
            target=target,
            run=lambda function, given: interruptible(lambda: function(**given)),
        )
