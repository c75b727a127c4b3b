"""Signals wait while MLIR works, so that Ctrl-C at any moment leaves a process in which the next call works.

Python runs the handlers of signals between any two bytecodes of the main thread, and the handler of Ctrl-C
raises an exception there. The MLIR bindings survive that in few places: an import that is cut short leaves
dialects registered that can never be registered again, and an exception in a function that C++ calls ends the
process or comes back as a failure of MLIR. `held` keeps all handlers that are written in Python waiting;
`deliver` lets those run whose signals came, at a place where the caller can be left. No signal is lost, and
handlers see what they would see otherwise: they may return, raise anything, or install other handlers.

Only the main thread runs handlers. In other threads nothing here has an effect.
"""

from __future__ import annotations

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


_local = _Local()


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
    if _local.hold is not None or threading.current_thread() is not threading.main_thread():
        yield
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
    handler raises leaves the outermost `held` as it is; up to there it is no `Exception`.
    """
    hold = _local.hold
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
