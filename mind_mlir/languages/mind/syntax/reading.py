"""Reads `.mind` programs, reporting everything that is wrong with their text at once (surface.md)."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, SourceText
from mind_mlir.diagnostics.findings import Findings
from mind_mlir.languages.mind.syntax.braces import Trouble, mended
from mind_mlir.languages.mind.syntax.items import ItemReader
from mind_mlir.languages.mind.syntax.lexer import Lexer
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.languages.mind.syntax import nodes
    from mind_mlir.languages.text.cursor import Token


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading a text.

    Attributes:
        program: The syntax tree of all that is well-formed.
        findings: What is not (E1002 to E1006, E1101, E1109, E2202), in source order; of very many the first.
        tokens: The words of the text, comments among them.
    """

    program: nodes.SourceFile
    findings: tuple[Diagnostic, ...]
    tokens: tuple[Token, ...]


def read(source: SourceText) -> Reading:
    """Read a text; whatever it is, this raises nothing, and takes time in proportion to its length."""
    findings = Findings()
    tokens = Lexer(source, findings).tokens
    words = [token for token in tokens if token.kind != "comment"]
    repair = mended(source, words)
    if repair is None or not repair.certain:
        found = Findings(list(findings.kept), findings.total)
        program = ItemReader(source, words, found).program()
        if repair is None or not found.total:
            return Reading(program, tuple(found.in_source_order()), tuple(tokens))
    reader = ItemReader(source, repair.words, findings)
    program = reader.program()
    lacking, abandoned = sorted(reader.cursor.lacking), sorted(reader.cursor.abandoned)
    for trouble in repair.troubles:
        if _within(trouble, abandoned) or (trouble.left_over and _within(trouble, lacking)):
            continue  # where a { is missing, a } is left over
        location = source.locate(trouble.place, trouble.place + 1)
        findings.add(Diagnostic("E1101", trouble.message, location, (), trouble.help))
    return Reading(program, tuple(findings.in_source_order()), tuple(tokens))


def _within(trouble: Trouble, places: list[int]) -> bool:
    """Return whether one of the ``places``, which are sorted, lies in the item of ``trouble``."""
    first = bisect_left(places, trouble.start)
    return first < len(places) and places[first] < trouble.end
