"""The page of patterns is the one that their records make."""

from __future__ import annotations

from pathlib import Path

from mind_mlir.passes.simplify.reference import page


def test_the_page_is_made_of_the_records() -> None:
    """`make docs` writes it."""
    assert (Path(__file__).parents[3] / "docs" / "identities.md").read_text(encoding="utf-8") == page()
