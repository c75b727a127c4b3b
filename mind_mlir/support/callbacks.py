"""What functions of Python raise that compiled code calls: it waits until that has returned.

An exception cannot go through machine code, and ctypes drops it. So `guarded` keeps the first one, and
`calling` raises it once the code is over. Handlers of Ctrl-C are called outside of such functions alone:
there loops of the program find out that they are to end (`mind_mlir.lowering.polling`).
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, FunctionType
from typing import Any, cast


class _Call:
    """A call of compiled code that is running.

    Attributes:
        is_main: Whether it is in the thread that interrupts come to.
        handler: What is called for an interrupt, in place of which this is.
        error: What a function has raised.
        is_interrupted: Whether an interrupt came while a function ran, of which the handler does not know.
    """

    def __init__(self, *, is_main: bool) -> None:
        self.is_main = is_main
        self.handler: Any = signal.getsignal(signal.SIGINT) if is_main else None
        self.error: BaseException | None = None
        self.is_interrupted = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        each = frame
        while each is not None:
            if each.f_code is _GUARD:  # which asks for an interrupt again
                self.is_interrupted |= self.error is None
                return
            each = each.f_back
        if self.error is not None:  # what the code computes from now on means nothing: its loops end
            raise KeyboardInterrupt
        self.is_interrupted = False
        self.handler(number, frame)

    def end(self) -> None:
        """Put the handler back, unless somebody has installed another one."""
        installed: object = signal.getsignal(signal.SIGINT)
        if callable(self.handler) and installed is self:
            signal.signal(signal.SIGINT, self.handler)


class _Local(threading.local):
    call: _Call | None = None


_local = _Local()


class _InterruptAgain:
    """Asks for an interrupt when it goes: after the last step of Python, where the code goes on."""

    __del__ = ctypes.pythonapi.PyErr_SetInterrupt


def guarded(function: Callable[..., None]) -> FunctionType:
    """Return a function that compiled code may call; it does nothing once one has raised."""

    def guard(*args: Any) -> object:
        call = _local.call
        if call is None:
            function(*args)
            return None
        if call.error is None and not call.is_interrupted:
            try:
                function(*args)
            except BaseException as error:  # raised at the end of the call
                call.error = error
        return _InterruptAgain() if call.is_interrupted or (call.error and call.is_main) else None

    return cast("FunctionType", guard)


_GUARD = guarded(print).__code__


@contextmanager
def calling() -> Iterator[None]:
    """Run code in the block that calls functions of Python.

    Raises:
        BaseException: What the first of these raised that did, or what a signal's handler does.
    """
    before, is_main = _local.call, threading.current_thread() is threading.main_thread()
    call = _Call(is_main=is_main)
    try:
        if callable(call.handler):
            signal.signal(signal.SIGINT, call)
        _local.call = call
        yield
    except KeyboardInterrupt:
        if call.error is None:
            raise
    finally:
        _local.call = before
        call.end()
    if call.is_interrupted:
        call(signal.SIGINT, None)
    if call.error is not None:
        raise call.error


def deliver_in_callback() -> None:
    """End a wait within a function that compiled code has called, once there is an interrupt.

    Raises:
        KeyboardInterrupt: There is one; its handler is called when the compiled code is over.
    """
    if _local.call is not None and _local.call.is_interrupted:
        raise KeyboardInterrupt
