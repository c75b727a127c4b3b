"""Every code that a program can cause, in its place; and many mistakes in one program, all of them seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from marks import differences, marked
from spans import PROGRAMS

from mind_mlir.diagnostics import SourceText
from mind_mlir.diagnostics.codes import CATALOGUE
from mind_mlir.surface.elaboration import check

MISTAKES = sorted(Path(__file__).parent.glob("mistakes/*.mind"))


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_mistake_is_reported_where_it_is(what: str) -> None:
    text, marks = marked(PROGRAMS[what])
    assert marks
    findings = check(SourceText("program.mind", text))
    assert differences(findings, marks) == []
    for finding in findings:
        assert set(CATALOGUE[finding.code].context) <= set(finding.context), finding


@pytest.mark.parametrize("path", MISTAKES, ids=lambda path: path.stem)
def test_twenty_mistakes_are_twenty_findings(path: Path) -> None:
    text, marks = marked(path.read_text(encoding="utf-8"), keep=True)
    assert len(marks) >= 20
    assert differences(check(SourceText(path.name, text)), marks) == []
