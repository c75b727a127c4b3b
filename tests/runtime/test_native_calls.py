"""Calls from native code: the same results, errors and references as calls from Python."""

from __future__ import annotations

import gc
import inspect
import pickle
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import ArgumentError, Builder, DType, Executable, ExecutionError, TensorType
from mind_mlir.runtime import call, call_abi

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, np.dtype[Any]]
F32, I1, SI64 = DType.F32, DType.I1, DType.SI64

pytestmark = pytest.mark.skipif(call_abi.layout() is None, reason="calls are made from Python here")


@pytest.fixture(autouse=True)
def enabled() -> None:
    assert call.enable()


def ready(build: Callable[[Builder], list[Any]], *arguments: object) -> Executable:
    """Return a compiled function that has been called once, from Python, and natively from now on."""
    b = Builder()
    executable = mind_mlir.compile(b.build(build(b)))
    executable(*arguments)
    assert executable._words is not None
    return executable


def add() -> Executable:
    """Return x + y."""

    def build(b: Builder) -> list[Any]:
        return [b.emit("Add", b.input("x", TensorType(F32, (4,))), b.input("y", TensorType(F32, (4,))))]

    return ready(build, np.zeros(4, np.float32), np.zeros(4, np.float32))


X, Y = np.arange(4, dtype=np.float32), np.full(4, 10, np.float32)


class Subclass(np.ndarray[Any, Any]):
    """Another class of arrays."""


class Watched:
    """Counts the calls that a function leaves to Python."""

    count: int

    def __init__(self, executable: Executable, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        before = Executable._call_python

        def counted(self_: Executable, /, *args: object, **kwargs: object) -> tuple[Array, ...]:
            self.count += self_ is executable
            return before(self_, *args, **kwargs)

        monkeypatch.setattr(Executable, "_call_python", counted)


NATIVE: dict[str, Callable[[Executable], tuple[Array, ...]]] = {
    "by position": lambda f: f(X, Y),
    "by name": lambda f: f(x=X, y=Y),
    "both": lambda f: f(X, y=Y),
    "names that are other objects": lambda f: f(**{"".join(["x"]): X, "".join(["y", ""]): Y}),
    "unpickled": lambda f: f(pickle.loads(pickle.dumps(X)), Y),  # noqa: S301 -- our own; of a dtype of its own
    "read-only": lambda f: f(np.frombuffer(X.tobytes(), np.float32), Y),
    "out": lambda f: f(X, Y, out=np.empty(4, np.float32)),
    "out in a tuple, by name": lambda f: f(x=X, y=Y, out=(np.empty(4, np.float32),)),
}
LEFT: dict[str, Callable[[Executable], tuple[Array, ...]]] = {
    "names in another order": lambda f: f(y=Y, x=X),
    "strided": lambda f: f(np.repeat(X, 2)[::2], Y),
    "a list": lambda f: f([*X], Y),
    "a subclass": lambda f: f(X.view(Subclass), Y),
    "misaligned": lambda f: f(np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float32), Y),
    "out before an input": lambda f: f(X, out=np.empty(4, np.float32), y=Y),
    "out in a list": lambda f: f(X, Y, out=[np.empty(4, np.float32)]),
    "out is None": lambda f: f(X, Y, out=None),
}


@pytest.mark.parametrize("kind", [*NATIVE, *LEFT])
def test_the_same_results_either_way(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = add()
    watched = Watched(executable, monkeypatch)
    (result,) = (NATIVE.get(kind) or LEFT[kind])(executable)
    assert watched.count == (kind in LEFT)
    assert np.asarray(result).tolist() == (X + Y).tolist()


WRONG: dict[str, tuple[Callable[[Executable], object], list[str]]] = {
    "missing": (lambda f: f(X), ["E6101"]),
    "nothing": (lambda f: f(), ["E6101", "E6101"]),
    "one too many": (lambda f: f(X, Y, Y), ["E6102"]),
    "unknown name": (lambda f: f(X, z=Y), ["E6102", "E6101"]),
    "unknown name behind all": (lambda f: f(X, Y, z=Y), ["E6102"]),
    "given twice": (lambda f: f(X, Y, x=X), ["E6102"]),
    "dtype": (lambda f: f(X, Y.astype(np.float64)), ["E6103"]),
    "dtype of the same size": (lambda f: f(X.view(np.int32), Y), ["E6103"]),
    "shape": (lambda f: f(X[:3], Y), ["E6104"]),
    "rank": (lambda f: f(X[None], Y), ["E6104"]),
    "no array": (lambda f: f("x", None), ["E6105", "E6105"]),
}


@pytest.mark.parametrize("kind", WRONG)
def test_the_same_errors(kind: str) -> None:
    attempt, codes = WRONG[kind]
    with pytest.raises(ArgumentError) as caught:
        attempt(add())
    assert [finding.code for finding in caught.value.diagnostics] == codes


def test_outputs_are_fresh_plain_arrays() -> None:
    f = add()
    first, second = f(X, Y)[0], f(X, Y)[0]
    assert type(first) is np.ndarray
    assert first.base is None
    assert first.flags.writeable
    assert first.flags.c_contiguous
    assert first.dtype is np.dtype(np.float32)
    assert not np.shares_memory(first, second)


@pytest.mark.parametrize("size", [1, 7, 8, 19, 255, 256, 300, 1031])
def test_truth_values_of_any_bytes(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    f = ready(lambda b: [b.emit("Not", b.input("p", TensorType(I1, (size,))))], np.zeros(size, np.bool_))
    watched = Watched(f, monkeypatch)
    plain = np.arange(size) % 3 == 0
    assert (f(plain)[0] == ~plain).all()
    native = watched.count
    for place in (0, size // 2, size - 1):
        odd = plain.astype(np.uint8)
        odd[place] = 2 << place % 7
        assert (f(odd.view(np.bool_))[0] == (odd == 0)).all()
    assert (native, watched.count) == (0, 3)


def gather() -> Executable:
    def build(b: Builder) -> list[Any]:
        return [b.emit("Gather", b.input("x", TensorType(F32, (4,))), b.input("i", TensorType(SI64, (2,))))]

    return ready(build, X, np.array([0, 0]))


def test_failed_checks() -> None:
    f = gather()
    assert f(X, np.array([-4, 3]))[0].tolist() == [0, 3]
    for wrong in ([4, 0], [0, -5]):
        with pytest.raises(ExecutionError, match=f"index {min(wrong) or 4} is out of bounds"):
            f(X, np.array(wrong))
    assert f(X, np.array([1, -1]))[0].tolist() == [1, 3]


def test_large_outputs_and_arenas() -> None:
    """They come from the pool, also in native calls."""
    t = TensorType(F32, (150, 150))

    def build(b: Builder) -> list[Any]:
        x = b.input("x", t)
        return [b.emit("MatMul", b.emit("MatMul", x, x), x), b.emit("Add", x, x)]

    x = np.eye(150, dtype=np.float32)
    f = ready(build, x)
    kept = [f(3 * x) for _ in range(5)]
    assert all((product == 27 * x).all() and (total == 6 * x).all() for product, total in kept)


def test_more_inputs_than_registers() -> None:
    t = TensorType(F32, (2,))

    def build(b: Builder) -> list[Any]:
        inputs = [b.input(f"x{i}", t) for i in range(80)]
        return [b.emit("Neg", x) for x in inputs]

    arrays = [np.full(2, i, np.float32) for i in range(80)]
    f = ready(build, *arrays)
    assert [int(each[1]) for each in f(*arrays)] == [-i for i in range(80)]


def test_references_are_given_back() -> None:
    f, index = add(), np.array([0, 9])
    g = gather()
    out = np.empty(4, np.float32)
    attempts: list[Callable[[], object]] = [
        lambda: f(X),
        lambda: f(X, Y[:2]),
        lambda: f(X, Y, out=X),
        lambda: f(X, Y, out=(out, out)),
        lambda: g(X, index),
    ]
    # Errors keep traceback frames until the next one; let all paths run before counting.
    watched: list[object] = [X, Y, out, index, f, g, np.dtype(np.float32)]

    def run(count: int) -> list[int]:
        for _ in range(count):
            f(X, Y)
            f(x=X, y=Y)
            assert f(X, Y, out=out)[0] is out
            f(X, Y, out=(out,))
            for attempt in attempts:
                with pytest.raises(mind_mlir.MindError):
                    attempt()
        gc.collect()
        return [sys.getrefcount(each) for each in watched]

    assert run(3) == run(300)


def test_a_finalizer_calls_the_function_that_allocates() -> None:
    f = add()
    wrong: list[object] = []

    class Cycle:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            if f(Y, Y)[0].tolist() != [20] * 4:
                wrong.append(self)

    before = gc.get_threshold()
    gc.set_threshold(3)
    try:
        for _ in range(2000):
            Cycle()
            assert f(X, Y)[0].tolist() == [10, 11, 12, 13]
    finally:
        gc.set_threshold(*before)
    assert not wrong


def test_threads_share_executables() -> None:
    t = TensorType(F32, (64,))

    def function(number: int) -> Executable:
        return ready(
            lambda b: [b.emit("Add", b.emit("Exp", b.input("x", t)), b.constant(float(number), F32))],
            np.zeros(64, np.float32),
        )

    functions = [function(number) for number in range(8)]
    arguments = [np.full(64, index / 16, np.float32) for index in range(16)]
    expected = [[f._call_python(x)[0].tobytes() for f in functions] for x in arguments]
    wrong: list[int] = []

    def work(index: int) -> None:
        calls = ([f(arguments[index])[0].tobytes() for f in functions] for _ in range(200))
        wrong.extend(index for results in calls if results != expected[index])

    threads = [threading.Thread(target=work, args=(index,)) for index in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_executable_stays_what_it_is() -> None:
    f = add()
    assert list(inspect.signature(f).parameters) == ["x", "y"]
    assert list(inspect.signature(Executable.__call__).parameters) == ["self", "args", "kwargs"]
    assert "Run ``main``" in (Executable.__call__.__doc__ or "")
    assert "given by position or by input name" in (mind_mlir.CompiledFunction.__call__.__doc__ or "")
    assert callable(f)
    for each in (f, f["main"]):
        again = pickle.loads(pickle.dumps(each))  # noqa: S301 -- our own
        assert again(X, Y)[0].tolist() == (X + Y).tolist()

    class Derived(Executable):
        def __call__(self, /, *args: object, **kwargs: object) -> tuple[Array, ...]:
            return super().__call__(*args[::-1], **kwargs)

    derived = add()
    derived.__class__ = Derived
    for _ in range(3):
        assert derived(Y, X)[0].tolist() == (X + Y).tolist()
    with pytest.raises(AttributeError):
        Executable.__new__(Executable)(X)


def test_no_function_to_call() -> None:
    text = "func @a() -> (tensor<i64[]>) {\n^e:\n  %x = ConstI64 {value=1} : tensor<i64[]>\n  return %x\n}\n"
    several = mind_mlir.compile(mind_mlir.parse(text + text.replace("@a", "@b")))
    with pytest.raises(ValueError, match="no function is called 'main'"):
        several()
    assert [several["a"]()[0] for _ in range(3)] == [1, 1, 1]


def test_what_is_laid_out_otherwise_is_called_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_DATA", "_RANK", "_SHAPE", "_DTYPE", "_FLAGS", "_OBJECT_TYPE", "RECORD_SLOT", "_NUMPY_2"):
        with monkeypatch.context() as context:
            context.setattr(call_abi, name, getattr(call_abi, name) + 4)
            assert call_abi.layout.__wrapped__() is None, name


SHUTDOWN = """
import sys, threading, time
import numpy as np
import mind_mlir
from mind_mlir.runtime import call

call.enable()
text = '''%0 = Input {name="x"} : tensor<f32[700,700]>
%1 = MatMul (%0, %0) : tensor<f32[700,700]>
outputs: %1
'''
f = mind_mlir.compile(mind_mlir.parse(text))
x = np.zeros((700, 700), np.float32)
f(x)
assert f._words is not None

def run():
    while True:
        f(x)

class Late:
    def __del__(self, f=f, x=x):
        f(x)

sys.late = Late()
for _ in range(2):
    threading.Thread(target=run, daemon=True).start()
time.sleep(0.2)
print("leaving")
"""


def test_the_process_ends_while_functions_run() -> None:
    child = subprocess.run(
        [sys.executable, "-X", "dev", "-c", SHUTDOWN],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (child.returncode, child.stdout) == (0, "leaving\n"), child.stderr


def test_a_python_that_hides_its_functions_is_called_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: list[str] = []
    monkeypatch.setattr(call._NativeCalls, "available", None)
    monkeypatch.setattr(call._NativeCalls, "image", None)
    monkeypatch.setattr(call, "_is_exported", hidden.append)
    assert not call.enable()
    assert hidden == ["PyErr_Clear"]
    b = Builder()
    f = mind_mlir.compile(b.build([b.emit("Neg", b.input("x", TensorType(F32, (4,))))]))
    assert [f(X)[0].tolist() for _ in range(2)] == [(-X).tolist()] * 2
    assert f._words is None
