"""Modules of programs of the surface language, for the tests of what they are lowered to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.diagnostics import SourceText
from mind_mlir.languages.mind.program import SurfaceProgram

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module


def lowered(text: str, function: str | None = None, **bindings: int) -> Module:
    """Return the module of a program."""
    return SurfaceProgram(SourceText("test.mind", text)).lower(function, bindings)
