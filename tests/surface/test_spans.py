"""Every code that a program can cause, in its place; and many mistakes in one program, all of them seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from spans import PROGRAMS
from surface_marks import differences, findings_of, marked

from mind_mlir.diagnostics.codes import CATALOGUE

#: Facts that only a program of Core IR has: the numbers of its values.
OF_THE_IR = {"id", "value"}
MISTAKES = sorted(Path(__file__).parent.glob("mistakes/*.mind"))


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_mistake_is_reported_where_it_is(what: str) -> None:
    text, marks = marked(PROGRAMS[what])
    assert marks
    findings = findings_of(text)
    assert differences(findings, marks) == []
    for finding in findings:
        facts = set(CATALOGUE[finding.code].context) - OF_THE_IR
        assert facts <= set(finding.context), finding


@pytest.mark.parametrize("path", MISTAKES, ids=lambda path: path.stem)
def test_twenty_mistakes_are_twenty_findings(path: Path) -> None:
    text, marks = marked(path.read_text(encoding="utf-8"), keep=True)
    assert len(marks) >= 20
    assert differences(findings_of(text, path.name), marks) == []
