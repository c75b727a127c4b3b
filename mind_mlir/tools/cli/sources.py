"""Reads programs for the commands: Core IR, PTIR, the surface language, or StableHLO."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mind_mlir.languages.programs.sources import parse
from mind_mlir.languages.source import read_source

if TYPE_CHECKING:
    from mind_mlir.diagnostics import SourceText
    from mind_mlir.languages.programs.kinds import AnyProgram
    from mind_mlir.tools.cli.session import Session

#: What the names of files end with that hold StableHLO.
_SUFFIXES = (".mlir", ".stablehlo")
#: How a text of MLIR begins, behind comments and aliases of attributes.
_HEAD = re.compile(r"(?:\s++|//[^\n]*+|#[^\n]*+)*+(?:module\b|func\.func\b|\"builtin\.module\")")


def read_program(session: Session, path: str) -> AnyProgram:
    """Return what the file at ``path`` holds; ``-`` is standard input.

    StableHLO is what a name that ends in ``.mlir`` or ``.stablehlo`` says, or else how the text begins;
    `mind_mlir.parse` tells the others apart.

    Raises:
        ParseError: It cannot be read, or is not well-formed.
        UnsupportedError: E7001, StableHLO holds what cannot be read.
    """
    session.source = read_source(path)
    if is_stablehlo(session.source):
        from mind_mlir.languages.stablehlo import from_stablehlo  # noqa: PLC0415 -- loads MLIR, which reading other programs does without

        return from_stablehlo(session.source.text, name=session.source.name)
    found: AnyProgram = parse(session.source)
    return found


def is_stablehlo(source: SourceText) -> bool:
    """Return whether a source is StableHLO: by the end of its name, or else by its text."""
    return source.name.endswith(_SUFFIXES) or _HEAD.match(source.text) is not None
