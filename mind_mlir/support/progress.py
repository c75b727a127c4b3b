"""Says how far a compilation is that takes longer than a second: in a line of a terminal, or in a notebook.

A thread looks at the clock; the compilation itself only notes which stage it has come to. Where standard
error is no terminal, and there is no notebook either, there is no thread, and nothing is written.
"""

from __future__ import annotations

import contextvars
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol

#: ``off`` has nothing shown.
VARIABLE = "MIND_MLIR_PROGRESS"
_OFF = "off"
#: Seconds before anything is shown, and between two looks.
_AFTER, _EVERY = 1.0, 0.25
#: What each step takes of a compilation, in the order of the steps: means over the 43 programs of
#: `benchmarks.unseen`, in their small sizes, that take longer than 0.15 s.
_SHARES: Mapping[str, float] = {
    "verify": 0.01,
    "canonical": 0.01,
    "structured": 0.01,
    "partitioned": 0.0,
    "optimized": 0.04,
    "mind": 0.01,
    "linalg": 0.07,
    "scheduled": 0.26,
    "tiled": 0.06,
    "bufferized": 0.03,
    "llvm": 0.12,
    "codegen": 0.38,
}
#: Below this part of the whole, nobody can tell how long the rest takes.
_UNKNOWN = 0.05
#: What a step is taken to have done at most, as long as it goes on.
_NEVER_WHOLE = 0.95


class Screen(Protocol):
    """Where progress is shown."""

    def show(self, text: str, part: float) -> None:
        """Show a line, in place of the one before, and how much is done."""

    def clear(self) -> None:
        """Take away what is shown."""


class Estimate:
    """How far a compilation is.

    Attributes:
        step: The step that it has come to; empty before the first.
    """

    def __init__(self, now: float) -> None:
        self.step = ""
        self._start = self._since = now
        self._before = 0.0

    def begin(self, step: str, now: float) -> None:
        """Note that a step begins."""
        names = list(_SHARES)
        if step in _SHARES:
            self._before = max(self._before, sum(_SHARES[each] for each in names[: names.index(step)]))
        self.step, self._since = step, now

    def part(self, now: float) -> float:
        """Return how much of the whole is done, about."""
        share = _SHARES.get(self.step, 0.0)
        earlier = self._since - self._start
        expected = share * earlier / self._before if self._before else 0.0
        within = (now - self._since) / expected if expected else 0.0
        return self._before + share * min(within, _NEVER_WHOLE)

    def text(self, what: str, now: float) -> str:
        """Return it as a line for people, who are told what is compiled."""
        seconds, part = now - self._start, self.part(now)
        parts = [f"compiling {what}: {self.step or 'reading'}", f"{seconds:.0f} s"]
        if part >= _UNKNOWN:
            rest = math.ceil(seconds * (1 - part) / part)
            parts.append(f"{part:.0%}, about {rest} s left")
        return ", ".join(parts)


class _Watch:
    """A compilation that is looked at: by a thread, until it ends."""

    def __init__(self, what: Callable[[], str], screen: Screen) -> None:
        self.owner = threading.get_ident()
        self.estimate = Estimate(time.monotonic())
        self._what, self._screen = what, screen
        self._ended = threading.Event()
        look = contextvars.copy_context().run  # by which a notebook knows which cell this is for
        self._thread = threading.Thread(target=look, args=(self._look,), name="progress", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Stop showing anything; a thread that is held up by the screen is left behind."""
        self._ended.set()
        self._thread.join(_EVERY)

    def _look(self) -> None:
        if hasattr(signal, "pthread_sigmask"):  # the main thread is to be woken by signals
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        if self._ended.wait(_AFTER):
            return
        try:
            what = self._what()
            while True:
                now = time.monotonic()
                self._screen.show(self.estimate.text(what, now), self.estimate.part(now))
                if self._ended.wait(_EVERY):
                    break
            self._screen.clear()
        except Exception:  # noqa: S110 -- a screen that fails is no reason to fail a compilation
            pass


class _Terminal:
    """A line of a terminal, to which nothing else is written meanwhile."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def show(self, text: str, part: float) -> None:
        self._stream.write(f"\r{text[: self._columns() - 1]}\x1b[K")
        self._stream.flush()

    def clear(self) -> None:
        self._stream.write("\r\x1b[K")
        self._stream.flush()

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except OSError:
            return 80


class _Notebook:
    """An output of the cell that runs."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def show(self, text: str, part: float) -> None:
        import html  # noqa: PLC0415 -- only notebooks need it

        bar = f'<progress value="{part:.3f}" max="1"></progress> {html.escape(text)}'
        self._publish({"text/plain": text, "text/html": f"<div>{bar}</div>"})

    def clear(self) -> None:
        self._publish({"text/plain": "", "text/html": ""})

    def _publish(self, data: dict[str, str]) -> None:
        if self._handle is None:
            self._handle = self._display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)


_watched: _Watch | None = None
_watching = threading.Lock()


@contextmanager
def shown(what: Callable[[], str]) -> Iterator[None]:
    """Show how far the compilation in the block is, if it takes long and somebody can see it.

    One is shown at a time: others in the block, or in other threads, are not.

    Args:
        what: Says what is compiled, once it takes long.
    """
    global _watched  # noqa: PLW0603 -- there is one screen
    screen = _screen() if _watched is None else None
    if screen is None or not _watching.acquire(blocking=False):
        yield
        return
    try:
        watch = _Watch(what, screen)
        try:
            watch.begin()
        except RuntimeError:  # the process may have no more threads
            yield
            return
        _watched = watch
        try:
            yield
        finally:
            _watched = None
            watch.end()
    finally:
        _watching.release()


def step(name: str) -> None:
    """Note that a step of a compilation begins."""
    watch = _watched
    if watch is not None and watch.owner == threading.get_ident():
        watch.estimate.begin(name, time.monotonic())


def _screen() -> Screen | None:
    """Return where progress is shown; None where nobody could see it."""
    if os.environ.get(VARIABLE) == _OFF:
        return None
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is not None:
        return _Notebook(import_module("IPython.display").display)
    stream = sys.stderr
    try:
        seen = stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    except (OSError, ValueError):  # it is closed
        return None
    return _Terminal(stream) if seen else None
