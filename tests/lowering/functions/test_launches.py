"""Loops marked as parallel: as launches for the pool of threads, and as the loops that they are."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import guarded
import ml_dtypes
import numpy as np
import pytest
from native_harness import lowered_loops

import mind_mlir
from mind_mlir.interpreter import interpret
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.target import named_target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.ir.module import Module

Array = np.ndarray[Any, np.dtype[Any]]
F32 = np.float32
THREADS = (1, 2, 3, 4)


def module_of(arguments: str, body: str) -> str:
    """A function whose last argument is the arena; %c0, %c1 and %n, the number of chunks, are constants."""
    return f"""
    func.func @main({arguments}, %none: memref<0xi8>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant 13 : index
      {body}
      return
    }}"""


def chunked(body: str) -> str:
    return f"scf.for %c = %c0 to %n step %c1 {{ {body} }} {{mind.parallel}}"


SCALARS = {
    "i1": np.bool_,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}


@pytest.mark.parametrize("dtype", SCALARS)
def test_scalars_and_buffers_are_captured(dtype: str) -> None:
    source = module_of(
        f"%a: memref<{dtype}>, %o: memref<13x{dtype}>",
        f"%s = memref.load %a[] : memref<{dtype}>" + chunked(f"memref.store %s, %o[%c] : memref<13x{dtype}>"),
    )
    text, native = lowered_loops(source)
    assert text.count("llvm.call @mind_parallel") == 1
    value = np.array(1.5).astype(SCALARS[dtype])
    out = np.zeros(13, SCALARS[dtype])
    guarded.call(native, [value], [out])
    assert (out == value).all()


def test_vectors_indices_views_and_constants_are_captured() -> None:
    source = module_of(
        "%a: memref<20x16xf32>, %i: memref<index>, %o: memref<13x16xf32>",
        """
        %zero = arith.constant 0.0 : f32
        %two = arith.constant dense<2.0> : vector<16xf32>
        %i0 = memref.load %i[] : memref<index>
        %v = vector.load %a[%i0, %c0] : memref<20x16xf32>, vector<16xf32>
        %part = memref.subview %a[%i0, 0] [13, 16] [1, 1]
          : memref<20x16xf32> to memref<13x16xf32, strided<[16, 1], offset: ?>>
        """
        + chunked("""
        %w = vector.load %part[%c, %c0] : memref<13x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
        %s = arith.addf %v, %w : vector<16xf32>
        %t = arith.mulf %s, %two : vector<16xf32>
        vector.store %t, %o[%c, %c0] : memref<13x16xf32>, vector<16xf32>"""),
    )
    text, native = lowered_loops(source)
    (chunk,) = re.findall(r"@main_chunk_0\((.*)\) attributes", text)
    assert chunk.count("llvm.noalias") == 2
    assert "vector<16xf32>" in chunk
    a = np.arange(320, dtype=F32).reshape(20, 16)
    out = np.zeros((13, 16), F32)
    guarded.call(native, [a, np.array(5)], [out])
    assert np.array_equal(out, (a[5] + a[5:18]) * 2)


TWICE = module_of(
    "%a: memref<13xf32>, %o: memref<13xf32>, %p: memref<13xf32>",
    chunked("%x = memref.load %a[%c] : memref<13xf32>  memref.store %x, %o[%c] : memref<13xf32>")
    + chunked("%x = memref.load %o[%c] : memref<13xf32>  memref.store %x, %p[%c] : memref<13xf32>"),
)


def test_equal_loops_share_their_functions() -> None:
    text, native = lowered_loops(TWICE)
    assert text.count("llvm.call @main_chunk_0_launch(") == 2
    assert text.count("llvm.call @mind_parallel(") == 1
    assert "@main_chunk_1" not in text
    a = np.arange(13, dtype=F32)
    out = [np.zeros(13, F32), np.zeros(13, F32)]
    guarded.call(native, [a], out)
    assert np.array_equal(out[0], a)
    assert np.array_equal(out[1], a)


def test_one_thread_declares_no_pool() -> None:
    text, native = lowered_loops(TWICE, threads=1)
    assert "mind_parallel" not in text
    assert "_chunk_" not in text
    out = [np.zeros(13, F32), np.zeros(13, F32)]
    guarded.call(native, [np.ones(13, F32)], out)
    assert (out[1] == 1).all()


def test_the_limit_is_passed() -> None:
    text, _ = lowered_loops(TWICE, threads=3)
    assert re.search(r"llvm\.mlir\.constant\(3 : i64\)", text.split("@main_chunk_0_launch(")[1])


def test_only_the_outer_loop_of_a_nest_is_launched() -> None:
    inner = (
        "scf.for %d = %c0 to %n step %c1 { memref.store %x, %o[%c, %d] : memref<13x13xf32> } {mind.parallel}"
    )
    source = module_of(
        "%a: memref<13xf32>, %o: memref<13x13xf32>",
        chunked(f"%x = memref.load %a[%c] : memref<13xf32> {inner}"),
    )
    text, native = lowered_loops(source)
    assert text.count("llvm.call @mind_parallel(") == 1
    a, out = np.arange(13, dtype=F32), np.zeros((13, 13), F32)
    guarded.call(native, [a], [out])
    assert np.array_equal(out, np.repeat(a[:, None], 13, axis=1))


def test_a_launch_inside_of_a_serial_loop_keeps_the_order() -> None:
    source = module_of(
        "%a: memref<13xf32>, %o: memref<13xf32>",
        """
        %two = arith.constant 2.0 : f32
        memref.copy %a, %o : memref<13xf32> to memref<13xf32>
        scf.for %k = %c0 to %n step %c1 {"""
        + chunked("""
          %x = memref.load %o[%c] : memref<13xf32>
          %y = arith.mulf %x, %two : f32
          memref.store %y, %o[%c] : memref<13xf32>""")
        + "}",
    )
    text, native = lowered_loops(source)
    assert text.count("llvm.call @mind_parallel(") == 1
    a, out = np.arange(13, dtype=F32), np.zeros(13, F32)
    guarded.call(native, [a], [out])
    assert np.array_equal(out, a * 2**13)


def test_a_buffer_that_is_copied_to_in_each_iteration_is_not_shared() -> None:
    source = module_of(
        "%a: memref<13xf32>, %o: memref<13xf32>",
        chunked("memref.copy %a, %o : memref<13xf32> to memref<13xf32>"),
    )
    assert "mind_parallel" not in lowered_loops(source)[0]


@pytest.mark.parametrize("threads", [None, 1])
def test_memory_of_a_chunk(threads: int | None) -> None:
    """Loops that stay loops allocate it once: a million iterations would overflow the stack otherwise."""
    source = module_of(
        "%a: memref<13x8xf32>, %o: memref<13x8xf32>",
        """
        %c8 = arith.constant 8 : index
        %many = arith.constant 200000 : index
        scf.for %k = %c0 to %many step %c1 {"""
        + chunked("""
          %own = memref.alloca() : memref<8xf32>
          scf.for %i = %c0 to %c8 step %c1 {
            %x = memref.load %a[%c, %i] : memref<13x8xf32>
            memref.store %x, %own[%i] : memref<8xf32>
          }
          scf.for %i = %c0 to %c8 step %c1 {
            %x = memref.load %own[%i] : memref<8xf32>
            memref.store %x, %o[%c, %i] : memref<13x8xf32>
          }""")
        + "}",
    )
    _, native = lowered_loops(source, threads)
    a, out = np.arange(104, dtype=F32).reshape(13, 8), np.zeros((13, 8), F32)
    guarded.call(native, [a], [out])
    assert np.array_equal(out, a)


@pytest.fixture
def four_threads() -> Iterator[None]:
    """As many threads as any test wants, on whatever machine."""
    before = mind_mlir.get_num_threads()
    mind_mlir.set_num_threads(4)
    yield
    mind_mlir.set_num_threads(before)


def results(module: Module, arguments: list[Array], threads: int) -> list[bytes]:
    """Return the bits of what a program computes with so many threads."""
    executable = mind_mlir.compile(module, threads=threads)
    assert ("@mind_parallel" in executable.as_text("llvm")) == (threads > 1)
    return [np.asarray(each).tobytes() for each in executable(*arguments)]


def ir_of(inputs: list[str], steps: list[str]) -> str:
    """A program whose last step is its output."""
    lines = [f'%{i} = Input {{name="x{i}"}} : tensor<{type_}>' for i, type_ in enumerate(inputs)]
    lines += [f"%{len(inputs) + i} = {step}" for i, step in enumerate(steps)]
    return "\n".join([*lines, f"outputs: %{len(lines) - 1}"])


SCATTER = (
    "{update_window_dims=[1], inserted_window_dims=[0], scatter_dims_to_operand_dims=[0], index_vector_dim=1}"
)
KINDS = {
    "transposition": (["f32[517, 1030]"], ["Transpose (%0) {permutation=[1, 0]} : tensor<f32[1030, 517]>"]),
    "transposition-batch": (
        ["f32[9, 130, 270]"],
        ["Transpose (%0) {permutation=[0, 2, 1]} : tensor<f32[9, 270, 130]>"],
    ),
    "gather": (["f32[1000, 300]", "i32[700]"], ["Gather (%0, %1) : tensor<f32[700, 300]>"]),
    "scatter": (
        ["f32[3001, 130]", "i32[5000]", "f32[5000, 130]"],
        [f"ScatterAdd (%0, %1, %2) {SCATTER} : tensor<f32[3001, 130]>"],
    ),
    "copy": (["f32[1501, 700]"], []),
    "copy with gaps": (
        ["f32[1501, 700]"],
        ["Slice (%0) {starts=[0, 3], ends=[1501, 699], steps=[1, 2]} : tensor<f32[1501, 348]>"],
    ),
    "pad": (
        ["f32[1501, 700]"],
        ["Pad (%0) {low=[1, 2], high=[3, 4], interior=[0, 0], pad_value=0.5} : tensor<f32[1505, 706]>"],
    ),
    "fill": (
        ["f32[3]", "i32[2]", "f32[2, 700]"],
        [
            "ConstF32 {value=0.25} : tensor<f32[]>",
            "BroadcastTo (%3) {result_shape=[1501, 700]} : tensor<f32[1501, 700]>",
            f"ScatterAdd (%4, %1, %2) {SCATTER} : tensor<f32[1501, 700]>",
        ],
    ),
    "attention": (
        ["f32[12, 128, 64]", "f32[12, 64, 128]", "f32[12, 128, 64]"],
        [
            "MatMul (%0, %1) : tensor<f32[12, 128, 128]>",
            "Exp (%3) : tensor<f32[12, 128, 128]>",
            "Sum (%4) {axes=[2], keepdims=true} : tensor<f32[12, 128, 1]>",
            "Reciprocal (%5) : tensor<f32[12, 128, 1]>",
            "Mul (%4, %6) : tensor<f32[12, 128, 128]>",
            "MatMul (%7, %2) : tensor<f32[12, 128, 64]>",
        ],
    ),
    "softmax": (
        ["f32[1024, 333]"],
        [
            "Exp (%0) : tensor<f32[1024, 333]>",
            "Sum (%1) {axes=[1], keepdims=true} : tensor<f32[1024, 1]>",
            "Reciprocal (%2) : tensor<f32[1024, 1]>",
            "Mul (%1, %3) : tensor<f32[1024, 333]>",
        ],
    ),
}


def arguments_of(inputs: list[str], rows: int) -> list[Array]:
    """Return arguments of types like ``f32[3, 4]``; integers are row numbers, most of them the same few."""
    rng = np.random.default_rng(3)
    found: list[Array] = []
    for type_ in inputs:
        shape = tuple(int(extent) for extent in type_[type_.index("[") + 1 : -1].split(","))
        numbers = rng.integers(0, rows, shape)
        numbers[numbers % 3 != 0] %= 7
        floats = rng.standard_normal(shape).astype(F32)
        found.append(floats if type_.startswith("f32") else numbers.astype(np.int32))
    return found


@pytest.mark.usefixtures("four_threads")
@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_threads_changes_no_bit(kind: str) -> None:
    inputs, steps = KINDS[kind]
    module = mind_mlir.parse(ir_of(inputs, steps))
    arguments = arguments_of(inputs, 1000)
    first = results(module, arguments, 1)
    names = [f"x{i}" for i in range(len(inputs))]
    (expected,) = interpret(module, dict(zip(names, arguments, strict=True)))
    got = np.frombuffer(first[0], F32).reshape(expected.shape)
    atol = 2e-5 if kind == "attention" else 1e-6  # the exponential of a sum of 64 products, about 8
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=atol)
    for threads in THREADS[1:]:
        assert results(module, arguments, threads) == first


def test_attention_is_one_loop() -> None:
    """Each chunk takes some queries from the scores to the result, and has their scores to itself."""
    inputs, steps = KINDS["attention"]
    lowering = Lowering(target=named_target("avx512"))
    lowering.run(mind_mlir.parse(ir_of(inputs, steps)), until="bufferized")
    text = lowering.text()
    assert text.count("mind.parallel") == 1
    assert text.rindex("@mind_product") < text.index("{mind.parallel}")
    queries, keys, depth = 32, 128, 64
    assert f"mind.scratch_bytes = {4 * queries * (keys + depth)} " in text


STACKS = """
import threading
import numpy as np
import mind_mlir
mind_mlir.set_num_threads(THREADS)
executable = mind_mlir.compile(mind_mlir.parse(PROGRAM))
arguments = [np.linspace(-1, 1, 48 * 256 * 64, dtype=np.float32).reshape(shape) for shape in SHAPES]
expected = np.asarray(executable(*arguments))
found = []
def run():
    for _ in range(5):
        found.append(np.array_equal(executable(*arguments), expected))
threading.stack_size(96 << 10)
threads = [threading.Thread(target=run) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert found == [True] * 10, found
"""


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_callers_with_small_stacks(threads: int) -> None:
    """What a chunk has to itself, here 260 KB, is on nobody's stack."""
    shapes = [(48, 256, 64), (48, 64, 256), (48, 256, 64)]
    inputs, steps = KINDS["attention"]
    program = ir_of(inputs, steps).replace("128", "256").replace("[12,", "[48,")
    names = {"THREADS": threads, "PROGRAM": program, "SHAPES": shapes}
    settings = "\n".join(f"{name} = {value!r}" for name, value in names.items())
    done = subprocess.run(
        [sys.executable, "-c", settings + STACKS], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


LOOP = """\
func @main(%x: tensor<f32[700, 512]>, %n: tensor<i64[]>) -> (tensor<f32[700, 512]>) {
^entry:
  %zero = ConstI64 {value=0} : tensor<i64[]>
  br ^test(%x, %zero)
^test(%s: tensor<f32[700, 512]>, %i: tensor<i64[]>):
  %more = Compare (%i, %n) {op=Less} : tensor<i1[]>
  cond_br %more, ^step(%s, %i), ^end(%s)
^step(%a: tensor<f32[700, 512]>, %j: tensor<i64[]>):
  %e = Exp (%a) : tensor<f32[700, 512]>
  %sum = Sum (%e) {axes=[1], keepdims=true} : tensor<f32[700, 1]>
  %r = Reciprocal (%sum) : tensor<f32[700, 1]>
  %m = Mul (%e, %r) : tensor<f32[700, 512]>
  %t = Transpose (%m) {permutation=[1, 0]} : tensor<f32[512, 700]>
  %f = Reshape (%t) {new_shape=[700, 512]} : tensor<f32[700, 512]>
  %u = STEP
  %k = Add (%j, %u) : tensor<i64[]>
  br ^test(%f, %k)
^end(%o: tensor<f32[700, 512]>):
  return %o
}
"""
COUNTED = "ConstI64 {value=1} : tensor<i64[]>"


@pytest.mark.usefixtures("four_threads")
@pytest.mark.parametrize("step", [COUNTED, "Add (%j, %n) : tensor<i64[]>"], ids=["for", "while"])
def test_loops_of_the_program_launch_in_their_bodies(step: str) -> None:
    module = mind_mlir.parse(LOOP.replace("STEP", step))
    arguments = [np.linspace(-1, 1, 700 * 512, dtype=F32).reshape(700, 512), np.array(5)]
    first = results(module, arguments, 1)
    (expected,) = interpret(module, dict(zip("xn", arguments, strict=True)))
    np.testing.assert_allclose(np.frombuffer(first[0], F32).reshape(700, 512), expected, rtol=1e-5)
    for threads in THREADS[1:]:
        assert results(module, arguments, threads) == first


@pytest.mark.usefixtures("four_threads")
def test_more_buffers_than_pointers_are_passed() -> None:
    """Functions of a table of pointers, cut into parts, launch as others do."""
    count = 70
    inputs = ["f32[256, 300]"] * count
    steps = [f"Transpose (%{i}) {{permutation=[1, 0]}} : tensor<f32[300, 256]>" for i in range(count)]
    text = ir_of(inputs, steps)
    text = text.rsplit("\n", 1)[0] + "\noutputs: " + ", ".join(f"%{count + i}" for i in range(count))
    module = mind_mlir.parse(text)
    arguments = [np.full((256, 300), i, F32) + np.arange(300, dtype=F32) for i in range(count)]
    executable = mind_mlir.compile(module)
    assert "mind_parallel" in executable.as_text("llvm")
    for result, argument in zip(executable(*arguments), arguments, strict=True):
        assert np.array_equal(result, argument.T)
