"""Every code that is reported has an entry, and every entry's example does what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from surface_marks import findings_of as surface_findings

import mind_mlir
from mind_mlir.diagnostics import Diagnostic, MindError
from mind_mlir.diagnostics.codes import CATALOGUE, explain, lookup, phase_of, samples
from mind_mlir.languages.core import parse
from mind_mlir.passes.verify import check

if TYPE_CHECKING:
    from mind_mlir.diagnostics.catalogue.entry import CatalogueEntry, Sample

PUBLIC = [
    *(f"E100{n}" for n in range(1, 7)),
    *(f"E200{n}" for n in range(1, 8)),
    *(f"E30{n:02}" for n in range(1, 11)),
    *(f"E40{n:02}" for n in range(1, 12)),
    *(f"E500{n}" for n in range(1, 6)),
    *(f"E600{n}" for n in range(1, 9)),
]
RUNNABLE = [(entry, language, sample) for entry in CATALOGUE.values() for language, sample in samples(entry)]
NAMES = [f"{entry.code}-{language}" for entry, language, _ in RUNNABLE]
#: Facts that a program of the surface language has not: numbers of values.
OF_THE_IR = {"id", "value"}


def findings_of(text: str, language: str) -> list[Diagnostic]:
    """Return everything that reading and verifying, or running, ``text`` reports."""
    try:
        if language == "surface":
            return surface_findings(text)
        if language == "core":
            return check(parse(text))
        exec(text, {})  # noqa: S102 -- the examples of our own catalogue
    except MindError as error:
        return list(error.diagnostics)
    return []


@pytest.mark.parametrize("code", PUBLIC)
def test_every_public_code_has_an_entry(code: str) -> None:
    assert CATALOGUE[code].code == code


def test_every_code_in_the_sources_has_an_entry() -> None:
    package = Path(mind_mlir.__file__).parent
    used = {
        code
        for path in sorted(package.rglob("*.py"))
        for code in re.findall(r'"(E[1-9][0-9]{3})"', path.read_text(encoding="utf-8"))
    }
    assert used <= set(CATALOGUE)


@pytest.mark.parametrize(("entry", "language", "sample"), RUNNABLE, ids=NAMES)
def test_bad_example_gives_exactly_its_code(entry: CatalogueEntry, language: str, sample: Sample) -> None:
    (found,) = findings_of(sample.bad, language)
    assert found.code == entry.code
    assert set(entry.context) - (OF_THE_IR if language == "surface" else set()) <= set(found.context)


@pytest.mark.parametrize(("entry", "language", "sample"), RUNNABLE, ids=NAMES)
def test_corrected_example_is_clean(entry: CatalogueEntry, language: str, sample: Sample) -> None:
    del entry
    assert sample.good
    assert findings_of(sample.good, language) == []


@pytest.mark.parametrize("code", [c for c in PUBLIC if c[1] in "34"])
def test_shape_and_verification_codes_have_a_program(code: str) -> None:
    assert CATALOGUE[code].bad


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda entry: entry.code)
def test_entries_are_well_written(entry: CatalogueEntry) -> None:
    assert not entry.title.endswith(".")
    assert entry.explanation.endswith(".")
    assert "  " not in entry.explanation


def test_codes_are_in_order() -> None:
    assert list(CATALOGUE) == sorted(CATALOGUE)


@pytest.mark.parametrize(
    ("code", "phase"),
    [
        ("E1001", "lexical"),
        ("E1101", "parse"),
        ("E2004", "type"),
        ("E3001", "shape"),
        ("E4001", "verification"),
        ("E5001", "autodiff"),
        ("E6001", "runtime"),
        ("E7001", "support"),
    ],
)
def test_phases(code: str, phase: str) -> None:
    assert phase_of(code) == phase


def test_explanation_shows_both_programs() -> None:
    entry = lookup(" e3001 ")
    assert entry is not None
    text = explain(entry)
    assert text.startswith("E3001: shapes do not broadcast  (shape)\n")
    for line in (*entry.bad.splitlines(), *entry.good.splitlines()):
        assert f"    {line}\n" in text
    assert lookup("E9999") is None
