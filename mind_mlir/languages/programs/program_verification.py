"""Verification of programs of PTIR and of the surface language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.diagnostics import VerificationError
from mind_mlir.ir.module import MODULE
from mind_mlir.languages.mind.program import SurfaceProgram
from mind_mlir.languages.ptir.program import Program
from mind_mlir.languages.ptir.symbolic import impossible
from mind_mlir.languages.ptir.symbols import bind, checked_bindings, symbols_of
from mind_mlir.languages.ptir.to_module import attempt
from mind_mlir.passes import verify as modules
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.diagnostics import Diagnostic

#: Reported where a dimension is left open, which `verify` takes.
NOT_BOUND = "E4303"


def check_program(program: object, bindings: Mapping[str, int] | None) -> list[Diagnostic]:
    """Return everything there is to say about a program; as `verification.verify`."""
    if isinstance(program, SurfaceProgram):
        found = program.check()
        if found or not program.checked_bindings(bindings):
            return found
        try:
            return modules.check(program.lower(bindings=bindings))
        except VerificationError as error:
            return [each for each in error.diagnostics if each.code != NOT_BOUND]
    if not isinstance(program, Program):
        argument_checks.reject("module", MODULE, program)
    extents = checked_bindings({} if bindings is None else bindings, symbols_of(program))
    bound = bind(program, extents)
    return impossible(bound) if symbols_of(bound) else attempt(bound)[1]
