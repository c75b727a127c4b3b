"""docs/api.md says what the docstrings say, of every public name."""

from __future__ import annotations

import ast
from pathlib import Path

from api_reference import page

import mind_mlir

ROOT = Path(__file__).resolve().parents[1]


def test_the_page_is_what_the_docstrings_say() -> None:
    """`make docs` writes it anew."""
    assert (ROOT / "docs" / "api.md").read_text(encoding="utf-8") == page()


def test_every_public_name_is_on_the_page() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert [name for name in mind_mlir.__all__ if f"\n### `{name}`\n" not in text] == []


def test_type_checkers_see_every_public_name() -> None:
    """What is loaded on first use is imported for types, from where it is loaded."""
    tree = ast.parse((ROOT / "mind_mlir" / "__init__.py").read_text(encoding="utf-8"))
    imported = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {name: imported.get(name) for name in mind_mlir.__all__} == {
        name: mind_mlir._HOMES[name] for name in mind_mlir.__all__
    }
