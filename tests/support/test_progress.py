"""Progress is shown where somebody can see it, and nowhere else; it ends as the compilation does."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import redirect_stderr

import numpy as np
import pytest

import mind_mlir
from mind_mlir.support import progress
from mind_mlir.support.progress import Estimate
from mind_mlir.support.stages import STAGES


class Terminal(io.StringIO):
    """A terminal that says when it has been written to."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(progress, "_AFTER", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name == "progress"] == []


def test_an_estimate_goes_on_with_the_steps() -> None:
    estimate = Estimate(0.0)
    assert estimate.text("f", 0.5) == "compiling f: reading, 0 s"
    parts = []
    for number, step in enumerate(progress._SHARES):
        estimate.begin(step, float(number + 1))
        parts += [estimate.part(number + 1.0), estimate.part(number + 1.9), estimate.part(1e6)]
    assert parts == sorted(parts)
    assert 0.9 < parts[-1] < 1


def test_an_estimate_says_how_long_the_rest_takes() -> None:
    estimate = Estimate(0.0)
    estimate.begin("codegen", 6.0)
    before = estimate.part(6.0)
    assert estimate.text("f", 6.0).startswith(f"compiling f: codegen, 6 s, {before:.0%}, about ")
    assert estimate.part(8.0) > before


def test_a_terminal_shows_a_line_and_then_none(terminal: Terminal) -> None:
    with redirect_stderr(terminal), progress.shown(lambda: "main (3 operations)"):
        progress.step("codegen")
        assert terminal.written.wait(10)
    assert "compiling main (3 operations): " in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_it_ends_with_what_ends_a_compilation(terminal: Terminal, error: type[BaseException]) -> None:
    @progress.shown(lambda: "main")
    def fail() -> None:
        assert terminal.written.wait(10)
        raise error

    with redirect_stderr(terminal), pytest.raises(error):
        fail()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_one_is_shown_at_a_time(terminal: Terminal) -> None:
    with redirect_stderr(terminal), progress.shown(lambda: "outer"):
        assert terminal.written.wait(10)
        with progress.shown(lambda: "inner"):
            assert threading.active_count() == len(threading.enumerate())
    assert "inner" not in terminal.getvalue()


@pytest.mark.parametrize(("variable", "value"), [(progress.VARIABLE, "off"), ("TERM", "dumb")])
def test_nothing_is_written_where_nobody_wants_it(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with redirect_stderr(terminal), progress.shown(lambda: "main"):
        assert not any(thread.name == "progress" for thread in threading.enumerate())
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_nothing_is_written_to_what_is_no_terminal(terminal: Terminal, stream: io.StringIO | None) -> None:
    with redirect_stderr(stream), progress.shown(lambda: "main"):
        assert not any(thread.name == "progress" for thread in threading.enumerate())
    assert stream is None or stream.getvalue() == ""


def test_a_compilation_says_how_far_it_is(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps that are noted are those that the estimate knows."""
    steps: list[str] = []
    begin = Estimate.begin

    def noted(self: Estimate, step: str, now: float) -> None:
        steps.append(step)
        begin(self, step, now)

    monkeypatch.setattr(Estimate, "begin", noted)
    lowered = mind_mlir.jit(lambda x: x + 1).lower(np.ones(3))
    with redirect_stderr(terminal):
        lowered.compile()
    of_ranks = {stage.step for stage in STAGES if stage.of_ranks}
    assert steps == [step for step in progress._SHARES if step not in of_ranks]


def test_a_short_compilation_writes_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_AFTER", 60.0)
    with redirect_stderr(terminal):
        mind_mlir.jit(lambda x: x + 2).lower(np.ones(3)).compile()
    assert terminal.getvalue() == ""
