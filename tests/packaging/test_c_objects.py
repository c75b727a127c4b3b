"""Objects for C: what they show and refuse, and that programs in C compute what Python does, to the bit."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import TensorType, register_custom_call
from mind_mlir.builders.builder import Builder
from mind_mlir.codegen.disassemble import disassemble
from mind_mlir.diagnostics import ArtefactError, VerificationError
from mind_mlir.image import elf
from mind_mlir.image.linking import link
from mind_mlir.image.loading import Loaded
from mind_mlir.ir.analysis.restriction import restricted
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ir.types import DType
from mind_mlir.packaging.header import header_text
from mind_mlir.packaging.objects import ObjectFile, object_of
from mind_mlir.runtime.declared_constants import with_constants
from mind_mlir.support.options import CompileOptions
from mind_mlir.target import X86_64, artefact_target, host_architecture

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mind_mlir.packaging.c_interface import CFunction

on_linux = pytest.mark.skipif(
    shutil.which("cc") is None or sys.platform != "linux", reason="links with cc on Linux"
)
MANY = 150
#: What must not be unloaded.
LOADED: list[Loaded] = []
LONG = 300_000
#: What may be undefined in an object: functions of libc and libm, and what the linker makes.
OUTSIDE = {
    *(
        "_GLOBAL_OFFSET_TABLE_",
        "aligned_alloc",
        "clock_gettime",
        "free",
        "memcpy",
        "memmove",
        "memset",
        "prctl",
    ),
    *("pthread_atfork", "pthread_create", "pthread_detach", "pthread_once", "pthread_sigmask", "syscall"),
    *("sched_getaffinity", "sched_yield", "sigdelset", "sigfillset", "prctl"),
}


def every_kind() -> Module:
    """Return functions of every dtype, of several ranks, with and without checks, under difficult names."""
    functions = []
    for dtype in DType:
        builder = Builder(profile="ptir-v0.4")
        x = builder.parameter(TensorType(dtype, (2, 3)), "x")
        y = builder.emit("Transpose", x, permutation=[1, 0])
        z = builder.emit("Not" if dtype is DType.I1 else "Neg", x)
        functions.append(builder.function(f"of.{dtype.value}", [y, z, x]))
    builder = Builder(profile="ptir-v0.4")
    a = builder.parameter(TensorType(DType.F64), "float")
    functions.append(builder.function("free", [builder.emit("Exp", a)]))
    builder = Builder(profile="ptir-v0.4")
    e = builder.parameter(TensorType(DType.F32, (0, 3)), "e")
    functions.append(builder.function("main", [e, builder.emit("Sum", e, axes=[0], keepdims=False)]))
    builder = Builder(profile="ptir-v0.4")
    big = [builder.parameter(TensorType(DType.SI16, (2,)), f"p.{number}") for number in range(MANY)]
    functions.append(builder.function("many", [builder.emit("Add", big[0], big[-1]), *big[1:]]))
    builder = Builder(profile="ptir-v0.4")
    x = builder.parameter(TensorType(DType.F32, (LONG,)), "x")
    y = builder.emit("Exp", x)
    functions.append(builder.function("long", [y, builder.emit("Sum", y, axes=[0], keepdims=False)]))
    builder = Builder(profile="ptir-v0.4")
    x = builder.parameter(TensorType(DType.F32, (5, 2)), "x")
    i = builder.parameter(TensorType(DType.SI64, (3,)), "i")
    n = builder.parameter(TensorType(DType.SI32, (3,)), "n")
    outputs = [builder.emit("Gather", x, i), builder.emit("Div", n, n)]
    functions.append(builder.function("checked", outputs))
    builder = Builder(profile="ptir-v0.4")
    x, w = (builder.parameter(TensorType(DType.F32, (600, 500)), name) for name in ("x", "w"))
    t = builder.parameter(TensorType(DType.SI64, (10_000,)), "t")
    functions.append(builder.function("constants", [builder.emit("Add", x, w), t]))
    builder = Builder(profile="ptir-v0.4")
    functions.append(builder.function("alone", [builder.constant(np.arange(7), DType.F16)]))
    random = np.random.default_rng(0)
    given = {
        "w": random.standard_normal((600, 500)).astype(np.float32),
        "t": random.integers(-9, 9, 10_000),
    }
    return with_constants(Module(Functions(functions), "ptir-v0.4"), given)


@pytest.fixture(scope="module")
def module() -> Module:
    return every_kind()


@pytest.fixture(scope="module")
def built(module: Module) -> ObjectFile:
    return object_of(module, CompileOptions(), library="lib", target=artefact_target())


@pytest.fixture(scope="module")
def folder(built: ObjectFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the object, its header and a shared library of it are."""
    path = tmp_path_factory.mktemp("lib")
    (path / "lib.o").write_bytes(built.data)
    text = header_text(
        built.library, file="lib.h", machine=built.machine, features=built.features, version="1"
    )
    (path / "lib.h").write_text(text, encoding="utf-8")
    command = "cc -shared -Wl,-z,text,-z,defs,--fatal-warnings -o lib.so lib.o -lm"
    subprocess.run(command.split(), cwd=path, check=True)
    return path


@pytest.fixture(scope="module")
def shared(folder: Path) -> Iterator[ctypes.CDLL]:
    library = ctypes.CDLL(str(folder / "lib.so"))
    library.lib_message.restype = ctypes.c_char_p
    yield library
    library.lib_set_num_threads(1)


def scratch_of(function: CFunction) -> np.ndarray[Any, Any]:
    """Return aligned memory for a call, with something in it."""
    memory = np.full(function.entry.scratch_bytes + 64, 0xA5, np.uint8)
    return memory[-memory.ctypes.data % 64 :]


def call(library: ctypes.CDLL, function: CFunction, arrays: list[Any], scratch: Any = None) -> int:
    """Call an entry point with the addresses of arrays, or with addresses."""
    memory = scratch_of(function)
    addresses = [each if isinstance(each, int) else each.ctypes.data for each in arrays]
    last = ctypes.c_void_p(memory.ctypes.data if scratch is None else scratch)
    if function.takes_table:
        return int(getattr(library, function.name)((ctypes.c_void_p * len(addresses))(*addresses), last))
    return int(getattr(library, function.name)(*map(ctypes.c_void_p, addresses), last))


def some(parameter: Any, count: int) -> np.ndarray[Any, Any]:
    values = np.asarray(np.random.default_rng(count).integers(0, 2, parameter.shape))
    return np.asarray(values if parameter.dtype.itemsize == 1 else values * 1.25, parameter.dtype)


def test_an_object_shows_the_functions_of_c_and_needs_libc_alone(built: ObjectFile) -> None:
    symbols = elf.read_object(built.data).symbols
    shown = {each.name for each in symbols if each.binding == elf.GLOBAL and each.section != elf.UNDEFINED}
    assert shown == {*built.library.names}
    assert {each.name for each in symbols if each.section == elf.UNDEFINED and each.name} <= OUTSIDE
    inside = {each.name for each in symbols if each.section != elf.UNDEFINED}
    assert {entry.symbol for entry in built.entries} <= inside


def test_the_same_module_gives_the_same_bytes(module: Module) -> None:
    long = restricted(module, "long")

    def made(threads: int | None) -> ObjectFile:
        return object_of(long, CompileOptions(threads=threads), library="a", target=artefact_target())

    assert made(None) == made(None)
    alone = made(1)
    assert alone.library.names == ("a_long", "a_message")
    names = {each.name for each in elf.read_object(alone.data).symbols}
    assert not any("pthread" in name or "pool" in name for name in names)


@on_linux
def test_functions_compute_what_python_does(module: Module, built: ObjectFile, shared: ctypes.CDLL) -> None:
    executable = mind_mlir.compile(module)
    for number, function in enumerate(built.library.functions):
        inputs = [some(each, number) for each in function.entry.parameters]
        outputs = [np.full(each.type.extents, 0, each.type.dtype.numpy) for each in function.entry.outputs]
        if function.entry.checks:
            inputs[2][:] = 3  # divisors
        expected = executable[function.entry.name](*inputs)
        assert call(shared, function, [*inputs, *outputs]) == 0, function.name
        assert [each.tobytes() for each in outputs] == [each.tobytes() for each in expected], function.name
    assert {function.takes_table for function in built.library.functions} == {True, False}


@pytest.mark.skipif(sys.platform != "linux", reason="objects are for Linux")
def test_an_object_is_loaded_without_a_linker(module: Module, built: ObjectFile) -> None:
    loaded = Loaded(link([built.data]))
    LOADED.append(loaded)  # its pool stays
    ctypes.CFUNCTYPE(None, ctypes.c_int)(loaded.address_of("lib_set_num_threads"))(2)
    x = np.linspace(-1, 1, LONG, dtype=np.float32)
    outputs = [np.zeros(LONG, np.float32), np.zeros((), np.float32)]
    (function,) = (each for each in built.library.functions if each.entry.name == "long")
    scratch = scratch_of(function)
    table = [each.ctypes.data for each in (x, *outputs, scratch)]
    entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address_of(function.entry.symbol))
    entry((ctypes.c_void_p * len(table))(*table))
    expected = mind_mlir.compile(restricted(module, "long"))(x)
    assert [each.tobytes() for each in outputs] == [each.tobytes() for each in expected]


@on_linux
def test_what_is_wrong_is_a_status(built: ObjectFile, shared: ctypes.CDLL) -> None:
    functions = {function.entry.name: function for function in built.library.functions}
    checked = functions["checked"]
    buffers = [np.zeros(each.type.extents, each.type.dtype.numpy) for each in checked.buffers]
    buffers[2][:] = 1
    assert call(shared, checked, buffers) == 0
    for place, step in enumerate((1, 4, 2, 3, 3)):
        wrong: list[Any] = list(buffers)
        wrong[place] = 0
        assert call(shared, checked, wrong) == 1
        wrong[place] = buffers[place].ctypes.data + step
        assert call(shared, checked, wrong) == 2
    buffers[1][2] = 5
    assert call(shared, checked, buffers) == 16
    buffers[1][2], buffers[2][1] = -5, 0
    assert call(shared, checked, buffers) == 17
    index, divisor = (shared.lib_message(status).decode() for status in (16, 17))
    assert index.startswith(
        "lib_checked: E6001: Gather %3: an index is out of bounds for axis 0 with extent 5"
    )
    assert divisor.startswith("lib_checked: E6009: Div %4: division of an integer by zero")
    assert [shared.lib_message(status) for status in (0, 1)] == [b"success", b"a pointer is null"]
    assert len({shared.lib_message(status) for status in (-(2**31), 4, 15, 18, 2**31 - 1)}) == 1

    many = functions["many"]
    rows = [np.zeros(2, np.int16) for _ in many.buffers]
    assert call(shared, many, rows) == 0
    assert call(shared, many, [*rows[:-1], 0]) == 1
    assert call(shared, many, [*rows[:-1], rows[-1].ctypes.data + 1]) == 2
    assert shared.lib_many(None, None) == 1
    # No memory lies behind what has no elements.
    empty = functions["main"]
    assert call(shared, empty, [0, 1, np.zeros(3, np.float32)]) == 0
    using = functions["long"]
    if using.entry.scratch_bytes:
        long = [np.zeros(LONG, np.float32), np.zeros(LONG, np.float32), np.zeros((), np.float32)]
        assert call(shared, using, long, scratch=0) == 1
        assert call(shared, using, long, scratch=scratch_of(using).ctypes.data + 8) == 2


DRIVER = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib.h"

enum { N = 300000 };
static float x[N], reference[N], total;
static unsigned char memory[8][LIB_LONG_SCRATCH_BYTES + LIB_SCRATCH_ALIGNMENT];

static void run(int place, float *y, float *sum)
{
    unsigned char *start = memory[place];
    void *scratch = start + LIB_SCRATCH_ALIGNMENT - (uintptr_t)start % LIB_SCRATCH_ALIGNMENT;
    int status = lib_long(x, y, sum, scratch);
    if (status != 0) {
        fprintf(stderr, "%s\n", lib_message(status));
        exit(3);
    }
}

static void compare(int place, const char *when)
{
    float *y = malloc(sizeof reference), sum;
    run(place, y, &sum);
    if (memcmp(y, reference, sizeof reference) != 0 || memcmp(&sum, &total, sizeof sum) != 0) {
        fprintf(stderr, "other bits %s\n", when);
        exit(4);
    }
    free(y);
}

static void *many(void *place)
{
    int i;
    for (i = 0; i < 20; ++i)
        compare(*(int *)place, "in a thread");
    return NULL;
}

static int threads(void)
{
    char line[200];
    int found = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "Threads: %d", &found);
    fclose(file);
    return found;
}

int main(void)
{
    static int places[4] = {0, 1, 2, 3};
    pthread_t running[4];
    int i, status;
    for (i = 0; i < N; ++i)
        x[i] = (float)(i % 97) * 0.125f - 6.0f;
    run(0, reference, &total);
    printf("%d", threads());
    lib_set_num_threads(1);
    compare(0, "with one thread");
    lib_set_num_threads(2);
    compare(0, "with two threads");
    printf(" %d", threads());
    lib_set_num_threads(3);
    compare(0, "with three threads");
    printf(" %d\n", threads());
    fflush(stdout);
    lib_set_num_threads(2);
    if (fork() == 0) {
        compare(0, "in a child");
        _exit(threads() == 2 ? 0 : 5);
    }
    wait(&status);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return 6;
    for (i = 0; i < 4; ++i)
        pthread_create(&running[i], NULL, many, &places[i]);
    for (i = 0; i < 4; ++i)
        pthread_join(running[i], NULL);
    lib_set_num_threads(0);
    compare(0, "with all cores");
    fwrite(reference, sizeof reference, 1, stdout);
    fwrite(&total, sizeof total, 1, stdout);
    return 0;
}
"""


@on_linux
def test_threads_and_children_of_a_program_in_c(module: Module, folder: Path) -> None:
    (folder / "driver.c").write_text(DRIVER, encoding="utf-8")
    flags = "-std=gnu99 -O1 -Wall -Wextra -Werror -pthread -Wl,--fatal-warnings"
    command = f"cc {flags} -o driver driver.c lib.o -lm"
    subprocess.run(command.split(), cwd=folder, check=True)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[:2])
    try:
        done = subprocess.run([str(folder / "driver")], capture_output=True, timeout=60, check=False)
    finally:
        os.sched_setaffinity(0, cores)
    assert (done.returncode, done.stderr) == (0, b"")
    started, data = done.stdout.split(b"\n", 1)
    assert started.decode() == f"{min(len(cores), 2)} 2 3"  # how many threads there are
    x = (np.arange(LONG) % 97).astype(np.float32) * np.float32(0.125) - np.float32(6)
    exponentials, total = mind_mlir.compile(module)["long"](x)
    assert data == exponentials.tobytes() + total.tobytes()


@pytest.mark.skipif(host_architecture() != X86_64, reason="an object for x86-64, which the engine makes")
def test_code_for_the_least_processor_has_no_instructions_of_this_one(module: Module) -> None:
    pytest.importorskip("capstone")
    pytest.importorskip("elftools")
    target = artefact_target("x86_64-linux")
    found = object_of(restricted(module, "long"), CompileOptions(), library="l", target=target)
    assert found.features == ()
    assert re.findall(r"(?m)^ +v\w+|[yz]mm", disassemble(found.data)) == []


def test_no_folder_of_who_compiles_is_in_an_object() -> None:
    text = """%0 = Input {name="x"} : tensor<f32[4]>
%1 = Input {name="i"} : tensor<i64[2]>
%2 = Gather (%0, %1) : tensor<f32[2]>
outputs: %2"""
    module = mind_mlir.parse(text, "folder/program.ir")
    found = object_of(module, CompileOptions(threads=1), library="l", target=artefact_target())
    assert b"E6001: program.ir:3:1: Gather %2: an index" in found.data
    assert b"folder" not in found.data


def identity(types: Any, _: object) -> Any:
    return types[0]


def test_c_functions_of_this_process_are_refused() -> None:
    name = "test.c_objects.f.v1"
    register_custom_call(name, types=identity, evaluate=identity, native=1 << 20)
    builder = Builder(profile="ptir-v0.4")
    x = builder.emit("CustomCall", builder.parameter(TensorType(DType.F32), "x"), target=name)
    module = Module(Functions((builder.function("f", [x]),)), "ptir-v0.4")
    with pytest.raises(ArtefactError, match="E6504"):
        object_of(module, CompileOptions(), library="l", target=artefact_target())


def test_a_library_has_functions() -> None:
    module = Module(Functions(()), "ptir-v0.4")
    with pytest.raises(VerificationError, match="E2102"):
        object_of(module, CompileOptions(), library="l", target=artefact_target())
