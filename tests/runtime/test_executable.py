"""Calling compiled functions: fresh outputs, threads, run-time errors, memory."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mind_mlir
from mind_mlir import Builder, DType, Executable, ExecutionError, TensorType
from mind_mlir.mlir.bindings import ir

F32 = DType.F32


def affine(rows: int = 64, columns: int = 32) -> Executable:
    """Return relu(x @ w) summed over rows, compiled."""
    b = Builder()
    x = b.input("x", TensorType(F32, (rows, columns)))
    w = b.input("w", TensorType(F32, (columns, 8)))
    return mind_mlir.compile(b.build([b.emit("Sum", b.emit("Relu", b.emit("MatMul", x, w)), axes=(0,))]))


def test_outputs_are_fresh() -> None:
    b = Builder()
    x = b.input("x", TensorType(F32, (3,)))
    k = b.constant([1.0, 2.0, 3.0], F32)
    f = mind_mlir.compile(b.build([x, x, k, b.emit("Add", x, x)]))
    argument = np.ones(3, np.float32)
    first, second = f(argument), f(argument)
    arrays = [*first, *second, argument]
    for i, a in enumerate(arrays):
        for c in arrays[i + 1 :]:
            assert not np.shares_memory(a, c)
    first[0][:] = 9
    first[2][:] = 9
    assert argument.tolist() == [1, 1, 1]
    assert f(argument)[2].tolist() == [1, 2, 3]


def test_module_without_inputs() -> None:
    b = Builder()
    (value,) = mind_mlir.compile(b.build([b.constant(7, DType.SI64)]))()
    assert value.shape == ()
    assert value == 7


@pytest.mark.parametrize("keyword", ["function", "entry"])
def test_names_of_functions(keyword: str) -> None:
    """An array of names is refused as such, not compared; an unknown name is E2002."""
    module = mind_mlir.parse(str(affine()), format="core")
    with pytest.raises(TypeError, match="must be a string, not an object of type ndarray"):
        Executable(module, **{keyword: np.array(["main", "main"])})  # type: ignore[arg-type] # it is the point
    with pytest.raises(mind_mlir.VerificationError, match="there is no function 'other'"):
        Executable(module, **{keyword: "other"})  # type: ignore[arg-type] # any keyword


def test_many_threads_share_one_executable() -> None:
    f = affine()
    rng = np.random.default_rng(0)
    cases = [
        (rng.standard_normal((64, 32), np.float32), rng.standard_normal((32, 8), np.float32))
        for _ in range(64)
    ]
    expected = [f(*case)[0].tobytes() for case in cases]

    def call(index: int) -> bool:
        return all(f(*cases[index])[0].tobytes() == expected[index] for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(len(cases))))


def test_native_code_runs_without_the_interpreter_lock() -> None:
    b = Builder()
    x = b.input("x", TensorType(F32, (1536, 1536)))
    f = mind_mlir.compile(b.build([b.emit("MatMul", b.emit("MatMul", x, x), x)]))
    argument = np.zeros((1536, 1536), np.float32)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(f, argument)
        ticks = 0
        while not future.done():
            ticks += 1
            time.sleep(0.001)
    # With the lock held, this thread would stand still during the one long native call.
    assert ticks >= 4


def test_every_index_out_of_range_is_reported() -> None:
    b = Builder()
    x = b.input("x", TensorType(DType.F32, (5,)))
    indices = [b.input(f"i{number}", TensorType(DType.SI32, (2,))) for number in range(4)]
    f = mind_mlir.compile(b.build([b.emit("Gather", x, index) for index in indices]))
    given = [[0, 4], [5, 0], [-5, -1], [1, -6]]
    with pytest.raises(ExecutionError) as caught:
        f(np.zeros(5, np.float32), *(np.array(pair, np.int32) for pair in given))
    assert [finding.context["index"] for finding in caught.value.diagnostics] == [5, -6]


@pytest.mark.parametrize(
    ("index", "ok"), [(0, True), (4, True), (-5, True), (5, False), (-6, False), (2**40, False)]
)
def test_out_of_range_gather(index: int, ok: bool) -> None:
    b = Builder()
    x = b.input("x", TensorType(F32, (5, 2)))
    i = b.input("i", TensorType(DType.SI64, (3,)))
    f = mind_mlir.compile(b.build([b.emit("Gather", x, i)]))
    table = np.arange(10, dtype=np.float32).reshape(5, 2)
    indices = np.array([1, index, 2])
    if ok:
        assert np.array_equal(f(table, indices)[0], table[indices])
        return
    with pytest.raises(ExecutionError, match=f"index {index} is out of bounds") as caught:
        f(table, indices)
    assert caught.value.code == "E6001"


MEMORY_SCRIPT = """
import gc, sys
import numpy as np
import mind_mlir
from mind_mlir import Builder, DType, TensorType

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096

def build(scale):
    b = Builder()
    x = b.input("x", TensorType(DType.F32, (64, 64)))
    y = b.emit("Exp", b.emit("MatMul", x, x))
    return b.build([b.emit("Mul", y, b.constant(scale, DType.F32))])

def calls(count):
    f = mind_mlir.compile(build(2.0))
    x = np.zeros((64, 64), np.float32)
    def run(n):
        for _ in range(n):
            f(x)
    return run

def compilations(count):
    def run(n):
        for i in range(n):
            mind_mlir.compile(build(float(i)))(np.zeros((64, 64), np.float32))
    return run

kind, warm, count, leak = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
run = {"calls": calls, "compilations": compilations}[kind](count)
held = []
run(warm); gc.collect()
before = resident()
for _ in range(count):
    run(1)
    if leak:
        held.append(bytearray(leak))
gc.collect()
print(resident() - before)
"""


def growth(kind: str, warm: int, count: int, leak: int = 0) -> int:
    child = subprocess.run(
        [sys.executable, "-c", MEMORY_SCRIPT, kind, str(warm), str(count), str(leak)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    return int(child.stdout)


MIB = 1 << 20


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads resident memory from /proc")
def test_memory_is_flat_over_calls() -> None:
    """10,000 calls of a function whose output and scratch memory take 16 KiB each."""
    assert growth("calls", 500, 10_000) < MIB


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads resident memory from /proc")
def test_memory_is_flat_over_compilations() -> None:
    """80 compilations; a kept context or engine would leave more than 100 KiB each."""
    assert growth("compilations", 20, 80) < 5 * MIB


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads resident memory from /proc")
def test_memory_measurement_sees_a_leak() -> None:
    """The same measurement, with a deliberate leak, fails the bounds above."""
    assert growth("calls", 500, 10_000, leak=512) >= MIB
    assert growth("compilations", 5, 40, leak=192 * 1024) >= 5 * MIB


def test_compiling_leaves_nothing_of_mlir() -> None:
    """Contexts die when the code is made: what a cycle holds lives until garbage is collected some day.

    One may wait for the next program, until `release_memory`.
    """
    b = Builder()
    x = b.input("x", TensorType(DType.F32, (64, 64)))
    module = b.build([b.emit("Sum", b.emit("Exp", b.emit("MatMul", x, x)), axes=(0,), keepdims=True)])
    mind_mlir.compile(module)
    gc.collect()
    gc.disable()
    try:
        mind_mlir.release_memory()
        before = ir.Context._get_live_count()
        executables = [mind_mlir.compile(module) for _ in range(20)]
        assert ir.Context._get_live_count() <= before + 1
        mind_mlir.release_memory()
        assert ir.Context._get_live_count() == before
    finally:
        gc.enable()
    assert executables[-1](np.zeros((64, 64), np.float32))[0].shape == (1, 64)


def test_memory_that_cannot_be_had() -> None:
    b = Builder()
    x = b.input("x", TensorType(F32, ()))
    f = mind_mlir.compile(b.build([b.emit("BroadcastTo", x, result_shape=(2**40, 2**10))]))
    with pytest.raises(ExecutionError, match="cannot allocate") as caught:
        f(1.0)
    assert caught.value.code == "E6004"


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ("core", "%7 = Neg (%3)"),
        ("canonical", "%1 = Neg (%0)"),
        ("mind", "mind.neg"),
        ("linalg", "linalg."),
        ("scheduled", "vector."),
        ("bufferized", "memref<64xf32>"),
        ("llvm", "llvm.func @main"),
        ("asm", "main:"),
    ],
)
def test_text_of_every_stage(stage: str, words: str) -> None:
    if stage == "asm":
        pytest.importorskip("capstone")
        pytest.importorskip("elftools")
    text = "%3 = Input {name=x} : tensor<f32[64]>\n%7 = Neg (%3) : tensor<f32[64]>\noutputs: %7\n"
    assert words in mind_mlir.compile(mind_mlir.parse(text)).as_text(stage)
