"""Compiled code that does not end: Ctrl-C ends the tool that runs it."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from mind_mlir.tools.interruption import interruptible


def test_a_call_that_does_not_return_can_be_interrupted() -> None:
    running, over = threading.Event(), threading.Event()

    def endless() -> None:
        running.set()
        over.wait()

    def interrupt() -> None:
        running.wait()
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            interruptible(endless)
    finally:
        signal.signal(signal.SIGINT, before)
        over.set()


def test_what_a_call_returns_and_raises_comes_through() -> None:
    assert interruptible(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0)
