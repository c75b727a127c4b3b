"""`mind-mlir doctor`: what it finds where all is well, and where something is wrong."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from cli_harness import invoke, succeed

from mind_mlir import __version__
from mind_mlir.tools.doctor import self_test

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def facts(*args: str, exit_code: int = 0) -> dict[str, dict[str, str]]:
    result = invoke("doctor", "--json", *args)
    assert result.exit_code == exit_code, result.output
    return {each["name"]: each for each in json.loads(result.stdout)}


def test_all_is_well() -> None:
    text = succeed("doctor")
    assert text.endswith("\nOK: nothing is wrong\n")
    for step in self_test.STEPS:
        assert f"  {step}" in text
    found = facts("--no-self-test")
    assert found["mind-mlir"]["value"] == __version__
    assert found["processor"]["value"].startswith("target: ")
    assert not any(each["trouble"] for each in found.values())


def test_what_is_wrong_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MIND_MLIR_NUM_THREAD", "2")
    monkeypatch.setenv("MIND_MLIR_TARGET", "avx3")
    monkeypatch.setenv("MIND_MLIR_CACHE", "on")
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("MIND_MLIR_CACHE_DIR", str(tmp_path / "file" / "cache"))
    found = facts("--no-self-test", exit_code=1)
    assert found["MIND_MLIR_NUM_THREAD"]["trouble"].endswith("did you mean MIND_MLIR_NUM_THREADS?")
    assert "avx3" in found["MIND_MLIR_TARGET"]["trouble"]
    assert found["processor"]["trouble"] == found["MIND_MLIR_TARGET"]["trouble"]


def test_a_step_that_crashes_is_told_from_one_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong() -> str:
        raise KeyError("planted")

    steps = {"aborts": os.abort, "raises": wrong, "works": lambda: ""}
    monkeypatch.setattr(self_test, "STEPS", steps)
    found = facts(exit_code=1)
    assert found["aborts"]["trouble"].startswith("it crashed (SIGABRT)")
    assert found["raises"]["trouble"].startswith("KeyError: 'planted'; please report that")
    assert found["works"]["value"].startswith("OK")
