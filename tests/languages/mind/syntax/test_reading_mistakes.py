"""Programs with many mistakes: each is reported in its place, and nothing that follows from it."""

from __future__ import annotations

import pytest
from slips import PROGRAMS
from surface_marks import differences, marked

from mind_mlir.diagnostics import SourceText
from mind_mlir.languages.mind.syntax.reading import read


@pytest.mark.parametrize("what", PROGRAMS)
def test_each_mistake_is_one_finding(what: str) -> None:
    text, marks = marked(PROGRAMS[what])
    assert marks
    assert differences(list(read(SourceText("program.mind", text)).findings), marks) == []


@pytest.mark.parametrize("what", PROGRAMS)
def test_what_is_mended_is_read_further(what: str) -> None:
    """Each function behind a mistake is known, so that calls of it are no mistakes."""
    text, _ = marked(PROGRAMS[what])
    reading = read(SourceText("program.mind", text))
    names = {item.name.text for item in reading.program.items if hasattr(item, "name")}
    assert {line[3] for line in text.splitlines() if line.startswith("fn ")} <= names
