"""The corpus of models: its tables, what is judged, and the page; no framework is needed, and none is run."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from benchmarks.models import __main__ as command
from benchmarks.models import running
from benchmarks.models.child import Request, Speaker
from benchmarks.models.judging import compared, stage_of
from benchmarks.models.outcome import STAGES, Outcome, Stage
from benchmarks.models.page import page
from benchmarks.models.tables import ENTRIES
from mind_mlir.diagnostics import Diagnostic, InternalError, UnsupportedError, VerificationError

if TYPE_CHECKING:
    from pathlib import Path

RIGHT = Stage("right", 2e-7)


def arrays(*values: float) -> list[Any]:
    return [np.array(values, np.float32)]


def exact(*values: float) -> Any:
    return lambda: [np.array(values)]


def test_the_corpus_is_as_large_as_it_says() -> None:
    torch = [each for each in ENTRIES.values() if each.family != "flax"]
    flax = [each for each in ENTRIES.values() if each.family == "flax"]
    assert len(torch) >= 150
    assert len(flax) >= 40
    assert sum(each.trains for each in ENTRIES.values()) >= 100
    assert 10 <= sum(each.quick for each in ENTRIES.values()) <= 16
    assert list(ENTRIES) == sorted(ENTRIES)


def test_small_differences_are_right_and_large_ones_are_wrong() -> None:
    assert compared(arrays(1.0, 2.0), arrays(1.0, 2.00001), exact(0.0, 0.0)).state == "right"
    wrong = compared(arrays(1.0, 3.0), arrays(1.0, 2.0), exact(1.0, 2.0))
    assert (wrong.state, wrong.difference) == ("wrong", 0.5)
    assert compared(arrays(np.nan, 1.0), arrays(1.0, 1.0), exact(1.0, 1.0)).state == "wrong"
    assert compared(arrays(np.nan, 1.0), arrays(np.nan, 1.0), exact(1.0, 1.0)).state == "right"


def test_what_is_as_near_to_f64_as_the_framework_is_right() -> None:
    found = compared(arrays(1.0, 2.01), arrays(1.0, 1.99), exact(1.0, 2.0))
    assert found.state == "right"
    assert found.reason.startswith("to f64 5.0e-03, the framework's own 5.0e-03")


def test_results_of_another_kind_are_wrong() -> None:
    assert compared([], arrays(1.0), exact(1.0)).reason == "0 results instead of 1"
    found = compared([np.zeros((1, 2), np.float32)], arrays(1.0, 2.0), exact(1.0, 2.0))
    assert found.reason == "float32[1, 2] instead of float32[2]"
    whole, other = [np.array([1, 2])], [np.array([1, 3])]
    assert compared(whole, other, lambda: other).state == "wrong"


def test_what_a_framework_gets_wrong_by_itself_is_not_compared() -> None:
    assert compared(arrays(1.0), arrays(2.0), exact(1.0)).state == "absent"


def test_errors_of_ours_are_refusals_and_others_failures() -> None:
    refusal = UnsupportedError(Diagnostic("E7001", "aten.x is not read"))
    outer = RuntimeError("the backend failed")
    outer.__cause__ = refusal
    assert stage_of(outer) == Stage("refused", code="E7001", reason="aten.x is not read")
    path = ValueError("(/usr/lib/site-packages/timm/layers.py:3) no")
    assert stage_of(path).reason == "ValueError: (timm/layers.py:3) no"
    assert stage_of(ValueError("no\nway")) == Stage("failed", reason="ValueError: no")
    broken = stage_of(InternalError("schedule", "it broke", ""))
    assert broken == Stage("failed", reason="InternalError: internal error in stage 'schedule': it broke")
    assert stage_of(VerificationError(Diagnostic("E2002", "odd"))) == Stage("failed", None, "E2002", "odd")


CALLS = {"1": {"ours": 1.0, "jax": 2.0}, "2": {"ours": 1.0, "onnxruntime": 0.5, "frozen": 0.25}}


def found() -> list[Outcome]:
    return [
        Outcome("bert", "transformers", 1234, {"forward": RIGHT}, {"ours": 1.0, "inductor": 9.0}),
        Outcome("flax_gru", "flax", 12, dict.fromkeys(STAGES, RIGHT), {}, CALLS, {"1": 0.9}),
        Outcome("odd", "timm", 5, {"forward": Stage("refused", code="E7001", reason="a | b\n<c>")}),
    ]


def test_the_page_tells_all() -> None:
    text = page(found(), ["a machine"])
    assert "| bert | 1,234 | 2e-07 |  |  |  |  |  | 1.0 / 9.0 |" in text
    assert "| flax_gru | 12 | 2e-07 | 2e-07 | 2e-07 | 2e-07 | 2.00 | 2.00 |  |" in text
    assert "| odd | 5 | **refused** E7001 |  |  |  |  |  |  |" in text
    assert "- odd, forward: refused (E7001), a / b &lt;c>" in text
    assert "Geometric mean of calls on 2 threads: 2.00, of 1 models; 0 of them are below 0.9." in text
    assert "Seconds of compilation, inductor's over ours: 9.0, of 1 models." in text
    assert "Of 1 models the times on 1 thread are rough" in text
    assert text.index("## flax") < text.index("## timm") < text.index("## transformers")


def test_what_was_found_before_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = iter([[Outcome("bert", "transformers", 1, {"forward": Stage("wrong", 1.0)})], found()[:1]])
    monkeypatch.setattr(command, "outcomes", lambda *_, **__: next(results))
    arguments = ["--update", "--output", str(tmp_path), "--only"]
    assert command.main([*arguments, "bert"]) == 1
    assert "**wrong**" in (tmp_path / "models.md").read_text()
    assert command.main([*arguments, "bert"]) == 0
    written = (tmp_path / "models.md").read_text()
    assert "**wrong**" not in written
    assert command.main(["--render", "--output", str(tmp_path)]) == 0
    assert (tmp_path / "models.md").read_text() == written
    assert len(json.loads((tmp_path / "models.json").read_text())["found"]) == 1


def crashes(_: Request, connection: Any, scratch: str) -> None:
    Speaker(connection)(parameters=3)
    os.kill(os.getpid(), signal.SIGSEGV)


def hangs(_: Request, connection: Any, scratch: str) -> None:
    os.setsid()
    Speaker(connection)(parameters=3, forward=RIGHT)
    time.sleep(600)


def gives_up(_: Request, connection: Any, scratch: str) -> None:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("child", "stages"),
    [
        (crashes, {"forward": Stage("failed", reason="ended by SIGSEGV")}),
        (hangs, {"forward": RIGHT, "gradients": Stage("failed", reason="not done within 5 s")}),
        (gives_up, {"forward": Stage("absent", reason="ended with status 3")}),
    ],
)
def test_a_crash_and_a_hang_are_results(
    child: Any, stages: dict[str, Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "run", child)
    monkeypatch.setattr(
        running, "_LOADED", dict.fromkeys(["torch", "transformers"], ("test_benchmark_models",))
    )
    monkeypatch.setattr(running, "_set_environment", lambda _: None)
    request = Request(ENTRIES["bert"], threads=1, real=False, narrow=False, gradients=True, peers=frozenset())
    told: list[str] = []
    (outcome,) = running.outcomes([request], jobs=1, limit=5, say=told.append)
    assert outcome.stages == stages
    assert told[0].startswith("bert: ")
