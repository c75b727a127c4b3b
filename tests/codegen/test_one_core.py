"""Where there is one core, or no more threads, work is done by those who wait for it: once."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mind_mlir.codegen import ahead
from mind_mlir.codegen.ahead import Ahead

WAITERS = 4

PROGRAM = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import mind_mlir
text = '''%0 = Input {name="a"} : tensor<f32[40, 50]>
%1 = Input {name="b"} : tensor<f32[50, 48]>
%2 = MatMul (%0, %1) : tensor<f32[40, 48]>
outputs: %2
'''
a, b = np.ones((40, 50), np.float32), np.ones((50, 48), np.float32)
def run(_):
    return mind_mlir.compile(mind_mlir.parse(text, format="core"), cache=False)(a, b)[0]
with ThreadPoolExecutor(4) as threads:
    assert all((found == 50).all() for found in threads.map(run, range(8)))
"""


@pytest.mark.parametrize("reason", ["one core", "no thread"])
def test_work_without_a_thread_is_done_once(monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    """Engines take one at a time; another beside it is the end of the process."""
    entered, running, most = threading.Event(), [0, 0], [0]

    def work() -> None:
        running[0] += 1
        running[1] += 1
        most[0] = max(most[0], running[1])
        entered.set()
        threading.Event().wait(0.05)  # so that others who may come do
        running[1] -= 1

    def fail(*arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(ahead, "usable_cores", lambda: 1 if reason == "one core" else 2)
        patch.setattr(ahead, "start_new_thread", fail)
        with ahead.making:
            waiting = Ahead(work)
    assert not entered.is_set()
    with ThreadPoolExecutor(WAITERS) as threads:
        for _ in threads.map(lambda _: waiting.wait(), range(WAITERS)):
            pass
    assert (running, most) == ([1, 0], [1])


def test_work_that_is_left_is_done_though_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "usable_cores", lambda: 1)
    done: list[int] = []
    with ahead.making:
        left = Ahead(lambda: done.append(1))
        left.leave()
    left.wait()
    assert done == [1]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="pins a process to a core")
def test_threads_compile_products_on_one_core() -> None:
    """They share the micro-kernels, of which nobody makes the code on the side."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
