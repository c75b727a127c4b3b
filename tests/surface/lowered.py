"""Modules of programs of the surface language, for the tests of what they are lowered to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import Diagnostic, SourceText
from mind_mlir.surface import elaboration
from mind_mlir.surface.syntax.reading import read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.module import Module
    from mind_mlir.surface.syntax import nodes


@dataclass(frozen=True)
class Program:
    """A program as its reader gives it."""

    source: SourceText
    tree: nodes.Program
    findings: Sequence[Diagnostic] = ()
    foreign: Mapping[str, Any] = field(default_factory=dict)


def lowered(text: str, function: str | None = None, **bindings: int) -> Module:
    """Return the module of a program, whose text has no mistakes."""
    source = SourceText("test.mind", text)
    reading = read(source)
    assert not reading.findings, [str(finding) for finding in reading.findings]
    return elaboration.lower(Program(source, reading.program), function, bindings)
