"""Of very many findings, the first are printed and the others counted."""

from __future__ import annotations

from cli_harness import findings, invoke

from mind_mlir.diagnostics.findings import MAX_FINDINGS
from mind_mlir.tools.cli.session import DEFAULT_ERROR_LIMIT

TEXT = "a\n" * 5_000


def test_the_first_findings_are_printed() -> None:
    shown = findings("check", "-", stdin=TEXT)
    assert len(shown) == DEFAULT_ERROR_LIMIT + 1
    assert shown[-1]["context"] == {"omitted": 5_000 - DEFAULT_ERROR_LIMIT}


def test_the_limit_can_be_set() -> None:
    assert len(findings("check", "--error-limit=0", "-", stdin=TEXT)) == MAX_FINDINGS + 1
    assert len(findings("compile", "--error-limit=3", "-", stdin=TEXT)) == 4
    assert invoke("check", "--error-limit=2", "-", stdin=TEXT).stderr.endswith("\n5,000 errors\n")


def test_few_findings_are_all_printed() -> None:
    assert len(findings("check", "-", stdin="a\n" * DEFAULT_ERROR_LIMIT)) == DEFAULT_ERROR_LIMIT
