"""Signals wait while MLIR works, so that Ctrl-C at any moment leaves a process in which the next call works.

Python runs the handlers of signals between any two bytecodes of the main thread, and the handler of Ctrl-C
raises an exception there. The MLIR bindings survive that in few places: an import that is cut short leaves
dialects registered that can never be registered again, and an exception in a function that C++ calls ends the
process or comes back as a failure of MLIR. `held` keeps all handlers that are written in Python waiting;
`deliver` lets those run whose signals came, at a place where the caller can be left. No signal is lost, and
handlers see what they would see otherwise: they may return, raise anything, or install other handlers.

Only the main thread runs handlers. Other threads are waited for when the process ends: Python ends daemon
threads at whatever point they next want its lock, and C++ ends the process where that is one of MLIR's.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    Handler: TypeAlias = Callable[[int, FrameType | None], Any]

_SIGNALS = tuple(sorted(signal.valid_signals()))


class _Local(threading.local):
    """The hold of this thread: never one but in the main thread, and none in a child that a worker forks."""

    hold: _Hold | None = None
    #: Whether this is another thread than the main one, inside of `held`.
    is_apart: bool = False


_local = _Local()


class _Apart:
    """A count of the threads besides the main one inside of `held`, and whether the process will end."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.count = 0
        self.is_ending = False

    def enter(self) -> None:
        """Count this thread in; a `SystemExit` where it is too late for that."""
        with self.changed:
            if self.is_ending:
                raise SystemExit
            self.count += 1
        _local.is_apart = True

    def leave(self) -> None:
        """Count this thread out, unless it has been refused."""
        if not _local.is_apart:
            return
        _local.is_apart = False
        with self.changed:
            self.count -= 1
            self.changed.notify_all()

    def end(self) -> None:
        """Let nobody in, and return when all have left, and what they have begun has been done."""
        with self.changed:
            self.is_ending = True
            while self.count:
                self.changed.wait()
        for wait in at_end:
            wait()


_apart = _Apart()
#: What waits for other work of the process before that ends.
at_end: list[Callable[[], object]] = []


@atexit.register
def _end() -> None:
    _apart.end()


def _forked() -> None:
    """Begin anew in a child, which has but the thread that forked."""
    global _apart  # noqa: PLW0603 -- the lock of the other may be held by a thread that is not there
    _apart = _Apart()
    _apart.count = int(_local.is_apart)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forked)


class _Delivered(BaseException):
    """Carries what a handler raised out of `held`, past everybody who turns exceptions into others."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class _Recorder:
    """The handler of one signal during a hold; to whoever keeps it longer, the handler that it replaced."""

    __slots__ = ("_hold", "handler")

    def __init__(self, hold: _Hold, handler: Handler) -> None:
        self._hold = hold
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if _local.hold is self._hold:
            self._hold.arrived.setdefault(number, frame)
        else:
            self.handler(number, frame)


class _Hold:
    """Replaces the handlers of all signals that have one in Python.

    A handler may raise at any step of `begin` and `end`, unless its signal is being recorded. After that,
    calling `begin` again completes it, and `end` is complete as it is.

    Attributes:
        arrived: The signals that came, in order, each with the place where the first one came.
    """

    def __init__(self) -> None:
        self.arrived: dict[int, FrameType | None] = {}
        self._recorders: dict[int, _Recorder] = {}

    def begin(self) -> None:
        """Start recording."""
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler) and handler is not self._recorders.get(number):
                self._recorders[number] = _Recorder(self, handler)
                signal.signal(number, self._recorders[number])
        _local.hold = self

    def end(self) -> None:
        """Put the handlers back, and run those of the signals that came."""
        _local.hold = None
        try:
            self._restore()
        finally:
            self._restore()  # the others, where a handler that was back already raised
            self._run_arrived()

    def _restore(self) -> None:
        for number, recorder in tuple(self._recorders.items()):
            before = recorder.handler
            if signal.getsignal(number) is recorder:  # else somebody has installed another meanwhile
                signal.signal(number, before)
            del self._recorders[number]

    def _run_arrived(self) -> None:
        if not self.arrived:
            return
        number = next(iter(self.arrived))
        frame = self.arrived.pop(number)
        try:
            handler = signal.getsignal(number)
            if callable(handler):
                handler(number, frame)
            elif handler is signal.SIG_DFL:
                signal.raise_signal(number)
        finally:
            self._run_arrived()


@contextmanager
def held() -> Iterator[None]:
    """Keep the handlers of signals waiting during the block; nested blocks are part of the outermost one.

    Raises:
        BaseException: Whatever a handler raises that ran in `deliver`, or runs at the end of the block.
    """
    if _local.hold is not None or _local.is_apart:
        yield
        return
    if threading.current_thread() is not threading.main_thread():
        _apart.enter()
        try:
            yield
        finally:
            _apart.leave()
        return
    hold = _Hold()
    try:
        hold.begin()
        yield
    except _Delivered as delivered:
        raise delivered.error from delivered.error.__cause__
    finally:
        hold.end()


def deliver() -> None:
    """Run the handlers of the signals that came during `held` until now.

    This is to be called often, wherever exceptions may leave: not from a function that C++ calls. What a
    handler raises leaves the outermost `held` as it is; up to there it is no `Exception`. In another thread
    than the main one, it is where this ends when the process is about to.

    Raises:
        SystemExit: This is another thread than the main one, and the process is about to end.
    """
    hold = _local.hold
    if _local.is_apart and _apart.is_ending:
        raise SystemExit
    if hold is None or not hold.arrived:
        return
    try:
        hold.end()
        hold.begin()
    except BaseException as error:
        hold.begin()
        raise _Delivered(error) from None


@contextmanager
def allowed() -> Iterator[None]:
    """Let handlers run at any moment of the block, which calls code that is not ours, inside of `held`."""
    deliver()
    hold = _local.hold
    if _local.is_apart:
        _apart.leave()
        try:
            yield
        finally:
            _apart.enter()
        return
    if hold is None:
        yield
        return
    try:
        hold.end()
        yield
    finally:
        try:
            hold.begin()
        except BaseException as error:
            hold.begin()
            raise _Delivered(error) from None
