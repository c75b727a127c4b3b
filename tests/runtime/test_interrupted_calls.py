"""Ctrl-C ends calls of compiled code in loops; handlers of signals run meanwhile; results stay the same."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir.lowering import polling
from mind_mlir.runtime import compiled_code
from mind_mlir.runtime.call import enable

ENDLESS = """\
fn halved(y: f64) -> f64 {
    let z = y;
    while z > 1.0 { z = z * 0.5 + 1.0; }
    z
}

fn main(x: f64) -> f64 {
    let y = x;
    while y > 0.0 { y = halved(y) + 1.0; }
    y
}
"""
SUMS = """\
fn main(x: Tensor<f32, [3]>, first: i64, last: i64) -> (Tensor<f32, [3]>, i64) {
    let y = x;
    let n = first - first;
    for i in range(first, last) {
        for j in range(i, last) { y = y * 0.5 + x; n = n + (j - i); }
        while n > 100 { n = n - 77; }
    }
    (y, n)
}
"""
LONG = 10**13


@contextmanager
def interrupted(number: int = signal.SIGINT) -> Iterator[None]:
    """Send a signal to this process some time in the block, which it ends with KeyboardInterrupt."""
    timer = threading.Timer(0.05, os.kill, (os.getpid(), number))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    timer.join()


def counted(n: Any) -> Any:
    return mind_mlir.fori_loop(0, n, lambda i, s: s * 0.5 + i, 0.0)


def multiplied(x: Any, n: Any) -> Any:
    return mind_mlir.fori_loop(0, n, lambda _, y: (y @ x) / (1 + abs(y).sum()), x)


X = np.ones((24, 24), np.float32)


@pytest.mark.parametrize(
    ("make", "arguments", "quick"),
    [
        (lambda: mind_mlir.jit(mind_mlir.parse(ENDLESS, "endless.mind")), (1.0,), (-1.0,)),
        (lambda: mind_mlir.jit(counted), (np.int64(LONG),), (np.int64(9),)),
        (lambda: mind_mlir.jit(multiplied), (X, np.int64(LONG)), (X, np.int64(9))),
    ],
    ids=["while", "for", "for over nests"],
)
def test_a_call_ends_in_a_loop(
    make: Callable[[], Any], arguments: tuple[Any, ...], quick: tuple[Any, ...]
) -> None:
    function = make()
    before = function(*quick)
    with interrupted():
        function(*arguments)
    assert np.array_equal(function(*quick), before)


def test_native_calls_end_too() -> None:
    function = mind_mlir.jit(counted)
    arguments = np.array(9, np.int64)
    if not enable():
        pytest.skip("calls are Python's here")
    for _ in range(5):
        function(arguments)
    with interrupted():
        function(np.array(LONG, np.int64))
    assert function(arguments) == counted_in_python(9)


def counted_in_python(n: int) -> float:
    found = 0.0
    for i in range(n):
        found = found * 0.5 + i
    return found


def test_handlers_run_meanwhile_and_may_return() -> None:
    """The handler of the first signal sends the second one: it has run while the loop did."""

    def handler(_number: int, _frame: FrameType | None) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    function = mind_mlir.jit(mind_mlir.parse(ENDLESS, "endless.mind"))
    function(-1.0)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with interrupted(signal.SIGUSR1):
            function(1.0)
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("between", [1, 64, 1 << 18])
def test_results_do_not_depend_on_it(monkeypatch: pytest.MonkeyPatch, between: int) -> None:
    """Pieces of one turn, of a few, and of more than there are."""
    monkeypatch.setattr(polling, "_BETWEEN", between)
    program = mind_mlir.parse(SUMS, "sums.mind")
    polls, plain = (mind_mlir.jit(program, cache=False) for _ in range(2))
    x = np.array([0.1, 0.7, -3.0], np.float32)
    ranges = [
        (0, 0),
        (0, 1),
        (3, 2),
        (-5, 12),
        (0, 64),
        (7, 200),
        (2**63 - 9, 2**63 - 1),
        (-(2**63), -(2**63) + 3),
    ]
    found = [polls(x, first, last) for first, last in ranges]
    monkeypatch.setattr(compiled_code, "has_python_functions", lambda: False)
    wanted = [plain(x, first, last) for first, last in ranges]
    for (y, n), (other, count) in zip(found, wanted, strict=True):
        assert y.tobytes() == other.tobytes()
        assert n == count


def test_code_for_others_does_not_ask_python(tmp_path: Any) -> None:
    module = mind_mlir.jit(counted).lower(np.int64(1)).module
    assert "mind_poll" not in mind_mlir.jit(counted).lower(np.int64(1)).as_text("llvm")
    mind_mlir.package(module, tmp_path / "bundle")
    assert not any(b"PyErr" in path.read_bytes() for path in (tmp_path / "bundle").iterdir())
    assert mind_mlir.load_bundle(tmp_path / "bundle")(np.int64(9))[0] == counted_in_python(9)
