"""What only makes things faster fails no call, whichever of its steps fails and whatever that raises."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir.codegen import library
from mind_mlir.image import perf
from mind_mlir.runtime import call, call_abi, compiled_code, function, kept_images, threads
from mind_mlir.runtime.call import CALLS_BEFORE, Called
from mind_mlir.support.speed_ups import Attempts

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.arange(4, dtype=np.float32)
#: A loop that threads share.
LONG = np.ones(1 << 20, np.float32)

needs_native = pytest.mark.skipif(call_abi.layout() is None, reason="calls are made from Python here")


def doubled(extent: int = 4, **given: Any) -> mind_mlir.Executable:
    """Return ``x + x``."""
    type_ = f"tensor<f32[{extent}]>"
    text = f'%0 = Input {{name="x"}} : {type_}\n%1 = Add (%0, %0) : {type_}\noutputs: %1\n'
    return mind_mlir.compile(mind_mlir.parse(text, format="core"), **given)


class Fault:
    """What raises as long as it is broken, and does what it stands for otherwise."""

    def __init__(self, before: Callable[..., Any], error: Exception) -> None:
        self.before, self.error, self.broken, self.count = before, error, True, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.broken:
            self.count += 1
            raise self.error
        return self.before(*args, **kwargs)


def break_(patch: pytest.MonkeyPatch, place: Any, name: str, error: Exception | None = None) -> Fault:
    fault = Fault(getattr(place, name), error or OSError(24, "Too many open files"))
    patch.setattr(place, name, fault)
    return fault


def test_attempts_come_ever_later_until_one_goes_well() -> None:
    made: list[int] = []
    broken = True

    def make() -> None:
        made.append(occasion)
        if broken:
            raise MemoryError

    attempts = Attempts(3, 10)
    for occasion in range(1, 100):  # noqa: B007 -- `make` reads it
        attempts.take(make)
    assert made == [3, 13, 33, 73]
    broken = False
    for occasion in range(100, 200):  # noqa: B007 -- as above
        attempts.take(make)
    assert made[4:] == list(range(153, 200))


def test_interrupts_pass() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Attempts(1, 1).take(interrupt)


# Native calls


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process have no native calls yet, where no class of ours has the native method."""
    for kind in Called.__subclasses__():
        if "_call_python" in vars(kind):
            monkeypatch.setattr(kind, "__call__", vars(kind)["_call_python"])
    monkeypatch.setattr(call._NativeCalls, "available", None)
    monkeypatch.setattr(call._NativeCalls, "image", None)
    monkeypatch.setattr(call._NativeCalls, "address", None)
    monkeypatch.setattr(call._NativeCalls, "attempts", Attempts(CALLS_BEFORE, CALLS_BEFORE))


STEPS = {
    "the layout": (call, "layout"),
    "the text": (call, "runtime_text"),
    "what is kept": (call, "find_image"),
    "the code": (call, "_compile"),
    "keeping it": (call, "keep_image"),
    "loading it": (call, "Loaded"),
    "its imports": (call, "addresses"),
    "its first method": (call, "_install"),
    "LLVM's engine": (library, "Making"),
}


ERRORS = (OSError(24, "Too many open files"), ValueError("no such setting"), MemoryError())
#: Each step with one error, and one step with all.
FAULTS = [(step, ERRORS[place % 3]) for place, step in enumerate(STEPS)]
FAULTS += [("loading it", error) for error in ERRORS if ("loading it", error) not in FAULTS]


@needs_native
@pytest.mark.parametrize(("step", "error"), FAULTS)
@pytest.mark.usefixtures("anew")
def test_calls_go_on_in_python_and_are_native_later(
    step: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_images, "_find", lambda *_: None)
    monkeypatch.setattr(kept_images, "_received", {})
    run = doubled(cache=False)
    fault = break_(monkeypatch, *STEPS[step], error)
    for _ in range(CALLS_BEFORE + 1):
        assert (run(X)[0] == X + X).all()
    assert fault.count == 1
    assert run._words is None
    fault.broken = False
    for _ in range(CALLS_BEFORE):
        assert (run(X)[0] == X + X).all()
    assert run._words is not None
    assert (run(X)[0] == X + X).all()


@needs_native
def test_the_last_of_several_methods_cannot_be_made(anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: list[type[Called]] = []
    install = call._install

    def fail_at_last(kind: type[Called], address: int) -> None:
        kinds.append(kind)
        if len(kinds) == 2:
            raise MemoryError
        install(kind, address)

    monkeypatch.setattr(call, "_install", fail_at_last)
    run = doubled(cache=False)
    for _ in range(2 * CALLS_BEFORE + 1):
        assert (run(X)[0] == X + X).all()
    assert run._words is not None
    assert len(kinds) > 2


@needs_native
@pytest.mark.parametrize("variable", ["MIND_MLIR_CACHE", "MIND_MLIR_CACHE_LIMIT", "MIND_MLIR_PERF"])
def test_a_setting_that_is_wrong_is_none_of_a_call(
    anew: None, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = doubled(cache=False)
    monkeypatch.setenv(variable, "nonsense")
    for _ in range(CALLS_BEFORE + 1):
        assert (run(X)[0] == X + X).all()


USED_UP = """
import os, resource
import numpy as np
import mind_mlir
x = np.ones(4, np.float32)
text = '%0 = Input {name="x"} : tensor<f32[4]>\\n%1 = Add (%0, %0) : tensor<f32[4]>\\noutputs: %1\\n'
run = mind_mlir.compile(mind_mlir.parse(text, format="core"), cache=False)
traced = mind_mlir.jit(lambda x: x + x, cache=False)
traced(x)
held = []
try:
    while True:
        held.append(os.dup(0))
except OSError:
    pass
for _ in range(150):
    assert (run(x)[0] == 2).all() and (traced(x) == 2).all()
assert run._words is None
for each in held:
    os.close(each)
for _ in range(150):
    assert (run(x)[0] == 2).all() and (traced(x) == 2).all()
"""


@needs_native
def test_descriptors_may_be_used_up() -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
    command = [sys.executable, "-c", limit + textwrap.dedent(USED_UP)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@needs_native
@pytest.mark.parametrize("kind", ["executable", "bound", "traced"])
def test_records_that_cannot_be_had_are_had_later(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call.enable()
    fault = break_(monkeypatch, function, "CallRecord", MemoryError())
    executable = doubled()
    traced = mind_mlir.jit(lambda x: x + x)
    runs: dict[str, Callable[[], Any]] = {
        "executable": lambda: executable(X)[0],
        "bound": executable.bind(X).__call__,
        "traced": lambda: traced(X),
    }
    for _ in range(3):
        assert (np.asarray(runs[kind]()) == X + X).all()
    assert fault.count == (2 if kind == "traced" else 1)  # its program is called from Python, too
    fault.broken = False
    for _ in range(CALLS_BEFORE):
        runs[kind]()
    words = {"executable": executable, "traced": traced}
    assert kind == "bound" or words[kind]._words is not None


# The cache


@pytest.mark.parametrize("name", ["key_of", "find_code", "keep_code", "labels_digest"])
def test_programs_compile_whatever_the_cache_does(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = break_(monkeypatch, compiled_code, name, MemoryError())
    text = (
        '%0 = Input {name="x"} : tensor<f32[4]>\n%1 = Input {name="i"} : tensor<i64[2]>\n'
        "%2 = Gather (%0, %1) : tensor<f32[2]>\noutputs: %2\n"
    )
    run = mind_mlir.compile(mind_mlir.parse(text, format="core"), cache=tmp_path)
    assert run(X, np.array([2, 1]))[0].tolist() == [2, 1]
    assert fault.count == 1


# Threads


@pytest.mark.skipif(not threads.is_available(), reason="there is no pool for this system")
def test_loops_run_on_one_thread_where_there_is_no_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    setting, before = mind_mlir.get_num_threads(), _tasks()
    monkeypatch.setattr(threads._PoolState, "pool", None)
    fault = break_(monkeypatch, threads, "_loaded", MemoryError())
    run = doubled(len(LONG), cache=False)
    assert (run(LONG)[0] == 2).all()
    assert fault.count == 1
    fault.broken = False
    assert (doubled(len(LONG), cache=False)(LONG)[0] == 2).all()
    assert threads._PoolState.pool is not None
    mind_mlir.set_num_threads(1)  # the workers of this pool end, of which nobody knows afterwards
    while not _tasks() <= before:
        pass
    mind_mlir.set_num_threads(setting)


def _tasks() -> set[str]:
    return {task.name for task in Path("/proc/self/task").iterdir()}


def test_a_pool_need_not_be_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = break_(monkeypatch, compiled_code, "begin_pool")
    assert (doubled(cache=False)(X)[0] == X + X).all()
    assert fault.count == 1


# Telling perf


def test_code_runs_though_perf_cannot_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf, "_state", perf._PerfState())
    monkeypatch.setattr(perf, "_MAPS", tmp_path)
    monkeypatch.setenv(perf.VARIABLE, "map")
    break_(monkeypatch, perf, "_write", MemoryError())
    with pytest.warns(RuntimeWarning, match="perf is told of no code"):
        run = doubled(cache=False)
    assert (run(X)[0] == X + X).all()
    assert (doubled(cache=False)(X)[0] == X + X).all()
