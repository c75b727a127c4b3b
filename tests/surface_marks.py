"""Programs that say in comments what is wrong with them, and where.

        x + y
    //    ^ E3001 Broadcasting failed

stands for: in the line above, at the carets and as long as they, there is E3001, in whose message or help the
words behind it are found. ``//@ 1+4 E1101`` says the same of columns that a comment cannot point at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import SourceText
from mind_mlir.languages.mind.elaboration import check
from mind_mlir.languages.mind.program import SurfaceProgram

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Diagnostic

_CARETS = re.compile(r"\s*//\s*(?P<carets>\^+) (?P<code>E\d{4})(?: (?P<words>.*))?")
_NUMBERS = re.compile(r"\s*//@ (?P<column>\d+)\+(?P<length>\d+) (?P<code>E\d{4})(?: (?P<words>.*))?")


@dataclass(frozen=True, order=True)
class Mark:
    """A finding as a program announces it."""

    line: int
    column: int
    length: int
    code: str
    words: str = ""

    def __str__(self) -> str:
        return f"{self.line}:{self.column}+{self.length} {self.code}"


def marked(text: str, *, keep: bool = False) -> tuple[str, list[Mark]]:
    """Return the program without its marks (or, to ``keep`` its lines, with them), and the marks."""
    lines: list[str] = []
    marks: list[Mark] = []
    above = 0
    for line in text.split("\n"):
        found = _CARETS.fullmatch(line)
        placed = _NUMBERS.fullmatch(line)
        if found:
            start, end = found.span("carets")
            marks.append(Mark(above, start + 1, end - start, found["code"], found["words"] or ""))
        elif placed:
            column, length = int(placed["column"]), int(placed["length"])
            marks.append(Mark(above, column, length, placed["code"], placed["words"] or ""))
        if keep or not (found or placed):
            lines.append(line)
        if not (found or placed):
            above = len(lines)
    return "\n".join(lines), marks


def placed(finding: Diagnostic) -> Mark:
    """Return where a finding is, as a mark without words."""
    location = finding.location
    if location is None:
        return Mark(0, 0, 0, finding.code)
    return Mark(location.line, location.column, location.length, finding.code)


def differences(findings: list[Diagnostic], marks: list[Mark]) -> list[str]:
    """Return what is announced but not found, what is found but not announced, and words that are missing."""
    said = {str(placed(finding)): finding for finding in findings}
    wanted = {str(mark): mark for mark in marks}
    wrong = [f"missing {where} {mark.words}" for where, mark in wanted.items() if where not in said]
    wrong += [
        f"unexpected {where} {finding.message}" for where, finding in said.items() if where not in wanted
    ]
    if len(said) != len(findings):
        wrong.append("a finding is reported twice")
    for where, mark in wanted.items():
        finding = said.get(where)
        text = f"{finding.message}\n{finding.help}\n{finding.notes}" if finding else mark.words
        if mark.words not in text:
            wrong.append(f"{where}: '{mark.words}' is not in: {text}")
    return wrong


def program(text: str, name: str = "program.mind") -> SurfaceProgram:
    """Return the program of a text."""
    return SurfaceProgram(SourceText(name, text))


def findings_of(text: str, name: str = "program.mind") -> list[Diagnostic]:
    """Return all that is wrong with a program."""
    return check(program(text, name))
