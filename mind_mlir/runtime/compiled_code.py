"""The code of a module: kept from before, or compiled now."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.cores import usable_cores
from mind_mlir.runtime.threads import get_num_threads
from mind_mlir.target import named_target, runs_here

if TYPE_CHECKING:
    from mind_mlir.codegen.compiling import Compilation
    from mind_mlir.ir.module import Module
    from mind_mlir.options import CompileOptions
    from mind_mlir.passes.record import Evaluate
    from mind_mlir.pipeline import Observer
    from mind_mlir.target import Target


def code_of(
    module: Module,
    options: CompileOptions,
    *,
    target: Target,
    threads: int | None,
    observer: Observer | None = None,
) -> Compilation:
    """Return the code of a module for this process (see `codegen.compiling.compile_module`)."""
    from mind_mlir.codegen.compiling import compile_module  # noqa: PLC0415 -- loads MLIR, which kept code does without

    return compile_module(
        module,
        options,
        target=target,
        threads=threads,
        most=min(get_num_threads(), usable_cores()),
        observer=observer,
        evaluate=evaluation(options),
    )


def evaluation(options: CompileOptions) -> Evaluate | None:
    """Return what runs code while a module is compiled with ``options``, where these ask for it.

    The code is for the processor that the module is for; where this machine is another one, nothing is run.
    """
    if not options.prepares or not runs_here(named_target(options.target)):
        return None
    from mind_mlir.runtime.executable import Executable  # noqa: PLC0415 -- which reads this module

    alone = replace(options, prepares=False)
    return lambda module: Executable(module, alone)()
