"""Programs in the form that each stage leaves them in, for people; importing this loads MLIR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.codegen.disassemble import disassemble
from mind_mlir.codegen.machine_code import listed_object
from mind_mlir.languages.core.printer import print_module
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.runtime.compiled_code import evaluation
from mind_mlir.runtime.threads import loop_threads
from mind_mlir.support.interrupts import held
from mind_mlir.support.options import CompileOptions
from mind_mlir.target import named_target

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module


@held()
def stage_text(module: Module, stage: str, options: CompileOptions | None = None) -> str:
    """Return ``module`` in the form that ``stage`` leaves it in (see `Executable.as_text`)."""
    if stage == "core":
        return print_module(module)
    options = options or CompileOptions()
    target = named_target(options.target)
    lowering = Lowering(
        target, threads=loop_threads(options.threads), options=options, evaluate=evaluation(options)
    )
    text = lowering.run(module, until=stage)
    if text is not None:
        return text
    if stage == "asm":
        return disassemble(listed_object(lowering.mlir, opt_level=options.opt_level, target=target))
    return f"{lowering.mlir}"
