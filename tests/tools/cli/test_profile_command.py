"""`mind-mlir profile`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from cli_harness import findings, succeed

if TYPE_CHECKING:
    from pathlib import Path

ROWS = """
%x = Input {name="x"} : tensor<f32[48, 48]>
%a = MatMul (%x, %x) : tensor<f32[48, 48]>
%b = Exp (%a) : tensor<f32[48, 48]>
outputs: %b
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure for a moment."""
    monkeypatch.setattr("mind_mlir.profiling.measured.SECONDS", 0.01)


def test_a_table_of_random_inputs() -> None:
    text = succeed("profile", "-", "--threads=1", stdin=ROWS)
    assert "%a MatMul" in text
    assert "this machine with 1 thread: " in text


def test_json_and_a_timeline(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    found = json.loads(succeed("profile", "-", "--json", "--input=x=ones", "--trace", str(path), stdin=ROWS))
    assert found["rows"][0]["operations"][0] == "%a MatMul"
    assert json.loads(path.read_text(encoding="utf-8"))["traceEvents"]


def test_mistakes() -> None:
    (found,) = findings("profile", "-", stdin=ROWS.replace("(%a)", "(%c)"))
    assert found["code"] == "E4001"
    (found,) = findings("profile", "-", "--input=y=ones", stdin=ROWS)
    assert found["code"] == "E6102"
