"""The page of grammar and functions is that of the code; the reader takes what its grammar derives."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from derived_programs import Derivation, grammar

from mind_mlir.diagnostics import SourceText
from mind_mlir.languages.mind.elaboration.reference import GRAMMAR, page
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.reading import read
from mind_mlir.languages.mind.syntax.tokens import KEYWORDS

PAGE = Path(__file__).parents[4] / "docs" / "language-reference.md"


def test_the_reader_takes_what_the_grammar_derives() -> None:
    seen: set[str] = set()
    for seed in range(200):
        words = Derivation(seed).words("program")
        text = " ".join(words)
        findings = read(SourceText("derived.mind", text)).findings
        if findings:
            pytest.fail(f"{findings[0].message}: {text[:1000]}")
        seen.update(words)
    written = set(re.findall(r'"([^"]+)"', GRAMMAR))
    assert written <= seen
    assert {word for word in written if word.isalpha()} - {"Tensor"} == KEYWORDS


def test_operators_bind_as_the_grammar_says() -> None:
    levels = [
        re.findall(r'"([^"]+)"', str(grammar()[name]))
        for name in ("or", "and", "comparison", "sum", "product")
    ]
    for loose, tight in itertools.pairwise(levels):
        for text in (f"a {loose[0]} b {tight[0]} c", f"a {tight[0]} b {loose[0]} c"):
            (let,) = read(SourceText("let.mind", f"let x = {text};")).program.items
            assert isinstance(let, nodes.Let)
            assert isinstance(let.value, nodes.Binary)
            assert let.value.operator == loose[0]


def test_the_page_is_that_of_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()
