"""What is printed for people who have the wheel alone."""

from __future__ import annotations

import inspect
import re
from typing import Any

from cli_harness import succeed

import mind_mlir
from mind_mlir.diagnostics.codes import CATALOGUE
from mind_mlir.ops import registry
from mind_mlir.tools.cli.main import COMMANDS

FILES = re.compile(r"\b(?:docs|examples|dialect|benchmarks)/[\w.-]+")


def test_texts_for_users_name_no_files_of_a_checkout() -> None:
    public: list[Any] = [getattr(mind_mlir, name) for name in mind_mlir.__all__]
    parts = [each for thing in public if isinstance(thing, type) for each in vars(thing).values()]
    texts = [inspect.getdoc(each) or "" for each in (*public, *parts)]
    texts += [succeed(command, "--help") for command in COMMANDS] + [succeed("--help")]
    texts += [succeed("ops", opcode) for opcode in registry.by_opcode()]
    texts += [f"{entry.explanation}{entry.title}" for entry in CATALOGUE.values()]
    assert [found[0] for text in texts for found in FILES.finditer(text)] == []
