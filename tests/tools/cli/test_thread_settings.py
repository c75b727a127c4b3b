"""How many threads compiled code uses, and who says so."""

from __future__ import annotations

import os
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cli_harness import SUM, invoke, succeed
from native_code import native_function

import mind_mlir
from mind_mlir.lowering.to_llvm import to_llvm
from mind_mlir.mlir.bindings import ir, new_context
from mind_mlir.runtime import threads
from mind_mlir.support.resources import quota_cores

if TYPE_CHECKING:
    from collections.abc import Callable

VARIABLE = "MIND_MLIR_NUM_THREADS"
X = np.arange(6, dtype=np.float32).reshape(2, 3)

#: A loop that threads share; what there is to know of a loop of one thread is that it calls nothing.
LOOP = """
func.func @main(%x: memref<1000xf32>, %out: memref<1000xf32>, %arena: memref<0xi8>)
    attributes {mind.scratch_bytes = 0 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1000 = arith.constant 1000 : index
  scf.for %i = %c0 to %c1000 step %c1 {
    %value = memref.load %x[%i] : memref<1000xf32>
    %sum = arith.addf %value, %value : f32
    memref.store %sum, %out[%i] : memref<1000xf32>
  } {mind.parallel}
  return
}
"""


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let tests say what is set; afterwards it is what it was."""
    before = mind_mlir.get_num_threads()
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(threads._PoolState, "setting", None)
    yield
    monkeypatch.undo()
    mind_mlir.set_num_threads(before)


def cores() -> int:
    allowed = len(os.sched_getaffinity(0))
    return min(allowed, quota_cores() or allowed)


def test_one_thread_a_core() -> None:
    assert mind_mlir.get_num_threads() == cores()


@pytest.mark.parametrize(
    ("text", "count"), [("1", 1), ("3", 3), (" 7\n", 7), ("007", 7), ("1024", 1024), ("", None), (" ", None)]
)
def test_the_variable(text: str, count: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
    assert mind_mlir.get_num_threads() == (count or cores())


@pytest.mark.parametrize(
    "text", ["0", "-1", "x", "1.0", "1025", "2 3", "\u00b2", "\u0663", "9" * 50, "9" * 9999]
)
def test_a_wrong_variable(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
    uses: tuple[Callable[[], object], ...] = (
        mind_mlir.get_num_threads,
        lambda: mind_mlir.compile(mind_mlir.parse(SUM)),
        lambda: mind_mlir.compile(mind_mlir.parse(SUM), threads=2),
    )
    for use in uses:
        with pytest.raises(ValueError, match=f"^the variable {VARIABLE} must be ") as raised:
            use()
        assert len(str(raised.value)) < 200
    for command in (("compile", "-"), ("run", "-", "--input=ones"), ("grad", "-", "--emit=llvm")):
        result = invoke(*command, stdin=SUM)
        assert result.exit_code == 2
        assert f"Error: the variable {VARIABLE} must be " in result.stderr
    assert f"threads: unknown: the variable {VARIABLE} must be " in succeed("--version")
    mind_mlir.set_num_threads(3)
    assert mind_mlir.get_num_threads() == 3


@pytest.mark.parametrize("count", [1, 2, 1024, np.int8(3), np.array(4)])
def test_numbers_that_can_be_set(count: Any) -> None:
    mind_mlir.set_num_threads(count)
    assert mind_mlir.get_num_threads() == int(count)
    assert type(mind_mlir.get_num_threads()) is int
    executable = mind_mlir.compile(mind_mlir.parse(SUM), threads=count)
    assert executable.as_text("llvm") == pickle.loads(pickle.dumps(executable)).as_text("llvm")  # noqa: S301 -- ours


@pytest.mark.parametrize(
    ("count", "kind"),
    [(0, ValueError), (-1, ValueError), (1025, ValueError), (10**50, ValueError)]
    + [(value, TypeError) for value in (True, 2.0, "2", np.array([2]), np.True_, [2])],
)
def test_numbers_that_cannot_be_set(count: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"^threads must be "):
        mind_mlir.set_num_threads(count)
    with pytest.raises(kind, match=r"^threads must be "):
        mind_mlir.compile(mind_mlir.parse(SUM), threads=count)
    assert mind_mlir.get_num_threads() == len(os.sched_getaffinity(0))


def test_none_is_no_number() -> None:
    nothing: Any = None
    with pytest.raises(TypeError, match=r"^threads must be an integer, not None"):
        mind_mlir.set_num_threads(nothing)


@pytest.mark.parametrize("count", ["0", "1025", "x", "1.5"])
@pytest.mark.parametrize("command", ["run", "compile"])
def test_wrong_options(command: str, count: str) -> None:
    result = invoke(command, "-", f"--threads={count}", stdin=SUM)
    assert result.exit_code == 2
    assert "--threads" in result.stderr


def test_the_option() -> None:
    results = {succeed("run", "-", "--input=ones", f"--threads={count}", stdin=SUM) for count in (1, 2, 5)}
    assert len(results) == 1
    assert mind_mlir.get_num_threads() == 5
    assert "llvm.func" in succeed("compile", "-", "--threads=1", stdin=SUM)


def test_a_system_without_a_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "is_available", lambda: False)
    mind_mlir.set_num_threads(4)
    assert mind_mlir.get_num_threads() == 1
    assert threads.loop_threads(None) == threads.loop_threads(7) == 1
    assert succeed("--version").endswith("\nthreads: 1 (no thread pool on this system)\n")
    with pytest.raises(RuntimeError, match="no pool of threads"):
        _run_loop(None)


@pytest.mark.skipif(not threads.is_available(), reason="there is no pool for this system")
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("limit", [None, 1, 2])
def test_a_loop_that_threads_share(count: int, limit: int | None) -> None:
    mind_mlir.set_num_threads(count)
    _run_loop(limit)


def _run_loop(limit: int | None) -> None:
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(LOOP)
        to_llvm(module, threads=limit)
        assert ("mind_parallel" in str(module)) == (limit != 1)
        native = native_function(module)
    given, result = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    native.call([given.ctypes.data, result.ctypes.data])
    assert np.array_equal(result, 2 * given)
