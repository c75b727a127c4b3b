"""The programs that nobody tuned for: what they compute, and the page; nothing here judges a time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from benchmarks.unseen import __main__ as command
from benchmarks.unseen.fields import PROGRAMS
from benchmarks.unseen.page import page, ratio_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_what_numpy_does(name: str) -> None:
    program = PROGRAMS[name]
    arguments = program.arguments(program.small)
    assert program.judged(mind_mlir.jit(program.ours())(*arguments), arguments) <= 1


@pytest.mark.parametrize("name", [name for name, each in PROGRAMS.items() if each.loops])
def test_loops_by_hand_compute_the_same(name: str) -> None:
    program = PROGRAMS[name]
    arguments = program.arguments(program.small)
    assert program.loops is not None
    assert program.judged(program.loops(*arguments), arguments) <= 1


def test_wrong_results_are_noticed() -> None:
    program = PROGRAMS["gray_scott"]
    arguments = program.arguments(program.small)
    u, v = mind_mlir.jit(program.ours())(*arguments)
    assert program.judged((u, v), arguments) <= 1
    assert program.judged((u, v + 0.01), arguments) > 1
    assert program.judged((u, v[1:]), arguments) == np.inf
    assert program.judged((u, np.full_like(v, np.nan)), arguments) == np.inf
    assert program.judged((u, v.astype(np.int32)), arguments) == np.inf


def test_the_page_says_what_was_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls = {"ours": 0.002, "jax": 0.004, "numba": 0.003}
    right = {"compile": {"ours": 0.1, "jax": 0.25}, "calls": calls, "difference": 0.02, "error": ""}
    right["start"] = {"ours": 0.3, "jax": 0.45}
    failed = {"error": "TypeError: no"}
    assert ratio_of(right) == 1.5
    assert ratio_of({"calls": {"ours": 1.0}}) is None
    found: dict[str, dict[str, Any]] = {"nbody": {"1": right}, "heat_2d": {"1": failed}}
    text = page(found, ["a machine"])
    assert "| nbody | 1 | 2e-02 | 2.000 |  | 4.000 | 3.000 | 1.50 | 0.10 / 0.25 | 0.30 / 0.45 |" in text
    assert "| heat_2d | 1 | TypeError: no |" in text
    assert "with --threads 1: 1.50, of 1 programs; 0 of them are below 0.8." in text
    (tmp_path / "unseen.json").write_text(json.dumps({"machine": ["a machine"], "found": found}))
    assert command.main(["--render", "--output", str(tmp_path)]) == 1
    assert (tmp_path / "unseen.md").read_text() == text
    assert capsys.readouterr().out == text + "\n"
