"""Interrupts itself at an exact moment, or waits to be interrupted; run as a process of its own.

    interrupt_child.py first MOMENT            the first compilation and run of this process, and another one
    interrupt_child.py later MOMENT ...        later ones, one after the other
    interrupt_child.py count                   how many moments there are, by package, and the result
    interrupt_child.py count mind-mlir|mind-opt ARGUMENT ...      how many there are, on standard error
    interrupt_child.py mind-mlir|mind-opt MOMENT ARGUMENT ...     a tool
    interrupt_child.py await first|later       says `ready`, and is to be interrupted by somebody else, while
                                               another thread computes

A moment is PACKAGE:N, the N-th line that is run of one of the `PACKAGES`, or MODULE.FUNCTION, the first line
of a function. Whatever is interrupted answers with a JSON line, but for the tools.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mind_mlir
from mind_mlir.tools import start

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

#: Each with what the names of its files have in them.
PACKAGES = {
    "ours": f"{Path(mind_mlir.__file__).parent}{os.sep}",
    "bindings": f"{os.sep}torch_mlir{os.sep}",
    "numpy": f"{os.sep}numpy{os.sep}",
    "click": f"{os.sep}click{os.sep}",
}

TOOLS = {"mind-mlir": start.mind_mlir, "mind-opt": start.mind_opt}

#: Every kind of nest and of check; `x.T` is both copied and read through, so that buffers are coalesced.
PROGRAM = """\
%0 = Input {name="x"} : tensor<f32[8, 16]>
%1 = Input {name="w"} : tensor<f32[16, 4]>
%2 = Input {name="i"} : tensor<i64[3]>
%3 = MatMul (%0, %1) : tensor<f32[8, 4]>
%4 = Relu (%3) : tensor<f32[8, 4]>
%5 = Exp (%4) : tensor<f32[8, 4]>
%6 = Sum (%5) {axes=[1], keepdims=false} : tensor<f32[8]>
%7 = Gather (%5, %2) : tensor<f32[3, 4]>
%8 = Transpose (%0) {permutation=[1, 0]} : tensor<f32[16, 8]>
outputs: %6, %7, %8
"""


class Interrupter:
    """Sends SIGINT to this process at a moment, and counts the moments until then."""

    def __init__(self, moment: str) -> None:
        package, _, number = moment.partition(":")
        self._function = "" if number else package
        self._package, self._number = package, int(number or 0)
        self.counts = dict.fromkeys(PACKAGES, 0)
        self.place = ""

    def run(self, body: Callable[[], object]) -> None:
        """Call ``body`` and interrupt it."""
        sys.settrace(self._enter)
        try:
            body()
        finally:
            sys.settrace(None)

    def _enter(self, frame: FrameType, _event: str, _argument: object) -> Any:
        code = frame.f_code
        if code.co_filename == start.__file__ and code.co_name in ("mind_mlir", "leave_on_interrupt"):
            return None  # before there is anybody to be interrupted
        for package, part in PACKAGES.items():
            if part in code.co_filename:
                return partial(self._line, package)
        return None

    def _line(self, package: str, frame: FrameType, event: str, _argument: object) -> None:
        if event != "line" or self.place:
            return
        self.counts[package] += 1
        name = frame.f_code.co_name
        here = package == self._package and self.counts[package] == self._number
        if here or f"{Path(frame.f_code.co_filename).stem}.{name}" == self._function:
            self.place = f"{frame.f_code.co_filename}:{frame.f_lineno} in {name}"
            sys.settrace(None)
            signal.raise_signal(signal.SIGINT)


def work() -> object:
    """Read, compile and run the program."""
    executable = mind_mlir.compile(mind_mlir.parse(PROGRAM))

    import numpy as np  # noqa: PLC0415 -- so that it is ours to load it

    x = np.arange(128, dtype=np.float32).reshape(8, 16) / 128
    outputs = executable(x=x, w=x.reshape(16, 8)[:, :4], i=np.array([2, 0, -1]))
    return [output.tolist() for output in outputs]


def outcome(body: Callable[[], object]) -> str:
    """Return what became of ``body``, which is given the time to be interrupted."""
    try:
        body()
    except BaseException as error:
        return f"{type(error).__name__} {error}".rstrip()
    return "no interrupt"


def interrupt(moment: str) -> None:
    """Interrupt `work`, do it again, and answer what became of both."""
    interrupter = Interrupter(moment)
    ending = outcome(lambda: interrupter.run(work))
    answer(moment, ending, interrupter.place)


def be_interrupted(kind: str) -> None:
    """Wait for an interrupt from outside during `work`, do it again, and answer what became of both."""

    def wait() -> None:
        print("ready", flush=True)
        work()
        time.sleep(60)

    if kind == "later":
        work()
    threading.Thread(target=spin, daemon=True).start()
    answer(kind, outcome(wait), "")


def spin() -> None:
    """Compete for the interpreter, and for the signals that the system gives to any thread."""
    while True:
        sum(range(1000))


def answer(moment: str, ending: str, place: str) -> None:
    """Do `work` undisturbed, and print what became of it and of the interrupted one."""
    handler = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    again: object
    try:
        again = work()
    except BaseException as error:
        again = f"{type(error).__name__} {error}"
    print(json.dumps([moment, place, {"outcome": ending, "handler": handler, "again": again}]), flush=True)


def count(*arguments: str) -> None:
    """Count the moments."""
    if arguments:
        interrupter = Interrupter("ours:0")
        with contextlib.suppress(SystemExit):
            interrupter.run(tool(*arguments))
        print(json.dumps(interrupter.counts), file=sys.stderr)
        return
    first, later = Interrupter("ours:0"), Interrupter("ours:0")
    first.run(work)
    later.run(work)
    print(json.dumps({"first": first.counts, "later": later.counts, "result": work()}))


def tool(name: str, *arguments: str) -> Callable[[], None]:
    """Return what runs a tool on ``arguments``."""
    sys.argv = [name, *arguments]
    return TOOLS[name]


def main(mode: str, *arguments: str) -> None:
    """Do what the head of this file says."""
    match mode:
        case "count":
            count(*arguments)
        case "await":
            be_interrupted(*arguments)
        case "mind-mlir" | "mind-opt":
            Interrupter(arguments[0]).run(tool(mode, *arguments[1:]))
        case _:
            if mode == "later":
                work()
            for moment in arguments:
                interrupt(moment)


if __name__ == "__main__":
    main(*sys.argv[1:])
