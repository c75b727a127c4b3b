"""Checks of texts, in the process beside the server: what is wrong, and the types of expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.diagnostics import MindError, SourceText
from mind_mlir.languages.programs.kinds import language_of
from mind_mlir.languages.programs.sources import read_any
from mind_mlir.languages.programs.verification import check as check_program
from mind_mlir.tools.lsp.findings import TextFinding, findings_of

if TYPE_CHECKING:
    from mind_mlir.languages.mind.elaboration.seen import Memory
    from mind_mlir.languages.text.report import Span

#: Texts of which is remembered what was right in them.
_REMEMBERED = 32

_memories: dict[str, Memory] = {}


class Checked(NamedTuple):
    """What a check has found: what is wrong, and the types of expressions."""

    findings: list[TextFinding]
    types: Mapping[Span, str]


def check(uri: str, name: str, text: str) -> Checked:
    """Return what is wrong with a text."""
    source = SourceText(name, text)
    if "mind" in language_of(source, tools=True).formats:
        return _check_surface(uri, source)
    try:
        found = check_program(read_any(source))
    except MindError as error:
        found = list(error.diagnostics)
    return Checked(findings_of(source, found), {})


def _check_surface(uri: str, source: SourceText) -> Checked:
    from mind_mlir.languages.mind.elaboration.seen import seen  # noqa: PLC0415 -- texts of other languages do without
    from mind_mlir.languages.mind.program import SurfaceProgram  # noqa: PLC0415 -- as above

    memory = _memories.pop(uri, {})
    found = seen(SurfaceProgram(source), memory)
    _memories[uri] = memory
    while len(_memories) > _REMEMBERED:
        _memories.pop(next(iter(_memories)))
    return Checked(findings_of(source, found.findings), found.types)
