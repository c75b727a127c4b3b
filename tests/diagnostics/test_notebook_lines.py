"""What IPython shows of an error that nothing catches: the lines that led to it, and the diagnostics."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

import mind_mlir
from mind_mlir.diagnostics.tracebacks import VARIABLE

WRONG = '%0 = Input {name="x"} : tensor<f32[2]>\n%1 = Ad (%0, %0) : tensor<f32[2]>\noutputs: %1\n'


def read() -> None:
    mind_mlir.verify(mind_mlir.parse(WRONG, "wrong.ir"))


def lines(monkeypatch: pytest.MonkeyPatch, colors: str) -> list[str]:
    named = SimpleNamespace(format_code_name=lambda name: ("Cell", "In[1]") if name == __file__ else None)
    shell = SimpleNamespace(colors=colors, compile=named)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    with pytest.raises(mind_mlir.VerificationError) as caught:
        read()
    return caught.value._render_traceback_()


def test_the_diagnostic_stands_in_place_of_a_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    found = lines(monkeypatch, "nocolor")
    assert found[0] == "VerificationError"
    assert found[1].startswith("  Cell In[1], line ")
    assert found[2].endswith(': mind_mlir.verify(mind_mlir.parse(WRONG, "wrong.ir"))')
    assert found[3:8] == [
        "error[E1102]: unknown operation 'Ad'",
        " --> wrong.ir:2:6",
        "  |",
        "2 | %1 = Ad (%0, %0) : tensor<f32[2]>",
        "  |      ^^",
    ]
    assert not any("\x1b" in line for line in found)


def test_carets_have_colours_where_the_shell_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert any("\x1b[1;31m^^" in line for line in lines(monkeypatch, "neutral"))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not any("\x1b" in line for line in lines(monkeypatch, "neutral"))


def test_all_frames_are_there_where_they_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "full")
    assert lines(monkeypatch, "nocolor")[0] == "Traceback (most recent call last):"
