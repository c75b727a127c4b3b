"""The work of `mind-mlir run`: execute a module, or compare it with the interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.interpreter import interpret
from mind_mlir.tools.cli.forms import native
from mind_mlir.tools.cli.output import write_output

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.tools.cli.stage_log import StageLog


def execute(
    module: Module, arguments: Mapping[str, Array], log: StageLog, options: CompileOptions | None
) -> Sequence[Array]:
    """Return the outputs of ``module``, compiled with ``options`` or, where there are none, interpreted."""
    if options is not None:
        outputs: Sequence[Array] = native(log).execute(module, arguments, log, options)
        return outputs
    with log.timed("interpret"):
        return interpret(module, arguments)


def compare(module: Module, arguments: Mapping[str, Array], log: StageLog, target: str | None) -> bool:
    """Compare every operation with the interpreter, print the outcome, and return whether all is well."""
    difference = native(log).compare(module, arguments, log, target)
    if difference is not None:
        write_output(f"{difference}", None)
        return False
    write_output("OK: every operation agrees with the interpreter", None)
    return True
