"""The kinds of programs that callers may pass, and the module that a program in `.mind` becomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.ir.module import Module
from mind_mlir.languages.mind.program import SurfaceProgram
from mind_mlir.languages.ptir.program import Program

if TYPE_CHECKING:
    from collections.abc import Mapping

#: A module of Core IR, a PTIR program, or a program of the surface language.
AnyProgram: TypeAlias = Module | Program | SurfaceProgram


def as_module(
    program: AnyProgram, bindings: Mapping[str, int] | None = None, function: str | None = None
) -> tuple[Module | Program, Mapping[str, int] | None, str | None]:
    """Return a program of the surface language as the module that it becomes; others as they are.

    With it come the bindings and the name of the function that are left to be applied.

    Raises:
        ParseError: Its text is not well-formed.
        VerificationError: It breaks a rule; E2002, there is no such function; E4303, a dimension is open.
        TypeError: ``bindings`` is no mapping from names to integers.
        ValueError: ``bindings`` names a dimension that no function has, or an extent below 1.
    """
    if isinstance(program, SurfaceProgram):
        return program.lower(function, bindings), None, None
    return program, bindings, function
