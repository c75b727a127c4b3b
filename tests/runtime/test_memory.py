"""The pool of memory that outputs and arenas come from: who has which block when, whatever happens."""

from __future__ import annotations

import gc
import mmap
import os
import pickle
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir.runtime import memory
from mind_mlir.runtime.memory import POOLED, Pool, size_class

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, np.dtype[Any]]

KB = 1 << 10
MB = 1 << 20
BYTES = np.dtype(np.uint8)


def address(array: Array) -> int:
    return int(array.ctypes.data)


@pytest.fixture
def pool() -> Pool:
    return Pool(64 * MB)


def test_memory_is_used_again_when_the_array_has_died(pool: Pool) -> None:
    new = pool.allocator((MB,), BYTES)
    first = new()
    place = address(first)
    second = new()
    assert address(second) != place
    del first
    assert address(new()) == place


def test_arrays_are_what_numpy_makes(pool: Pool) -> None:
    for shape, name in [((64, 300), "<f4"), ((0, 5), "<f8"), ((), "<i8"), ((200, 100, 3), "bool")]:
        array = pool.allocator(shape, np.dtype(name))()
        assert (type(array), array.shape, array.dtype.str.lstrip("|<")) == (
            np.ndarray,
            shape,
            np.dtype(name).str.lstrip("|<"),
        )
        flags = array.flags
        assert flags.c_contiguous
        assert flags.aligned
        assert flags.writeable
        array[...] = 1
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(array)), array)  # noqa: S301 -- our own bytes
        assert array.copy().flags.owndata
        np.testing.assert_array_equal(array.reshape(-1).view(np.uint8).view(name).reshape(shape), array)


def test_pooled_arrays_cannot_be_resized(pool: Pool) -> None:
    array = pool.allocator((MB,), BYTES)()
    with pytest.raises(ValueError, match="resize"):
        array.resize((2 * MB,), refcheck=False)


def test_where_blocks_lie(pool: Pool) -> None:
    assert address(pool.allocator((POOLED,), BYTES)()) % 64 == 0
    assert address(pool.allocator((3 * MB,), BYTES)()) % (2 * MB) == 0
    assert pool.scratch(100 * KB).address % 64 == 0


@pytest.mark.parametrize(
    "view",
    [
        lambda array: array[5:9],
        lambda array: array.reshape(2, -1).T[1:],
        lambda array: memoryview(array)[5:9],
        lambda array: np.frombuffer(array, np.uint8, 7),
        lambda array: array.view(np.float32)[::2],
    ],
)
def test_the_last_view_keeps_the_block(pool: Pool, view: Callable[[Array], Any]) -> None:
    new = pool.allocator((MB,), BYTES)
    array = new()
    array[:] = 7
    part, expected = view(array), bytes(view(array.copy()))
    place = address(array)
    del array
    other = new()
    assert address(other) != place
    other[:] = 1
    assert bytes(part) == expected
    del part
    assert address(new()) == place


def test_what_is_counted(pool: Pool) -> None:
    new = pool.allocator((MB,), BYTES)
    small = pool.allocator((POOLED - 1,), BYTES)()
    arrays = [new(), new()]
    assert (pool.info().in_use, pool.info().idle) == (2 * MB, 0)
    arrays.pop()
    assert (pool.info().in_use, pool.info().idle) == (MB, MB)
    pool.trim(0)
    assert (pool.info().in_use, pool.info().idle) == (MB, 0)
    assert small.flags.owndata


def test_blocks_not_used_for_longest_go_first() -> None:
    pool = Pool(6 * MB)
    held = [pool.allocator((size,), BYTES)() for size in (2 * MB, 1 * MB, 3 * MB)]
    while held:
        held.pop()
    assert pool.info().idle == 6 * MB
    pool.allocator((512 * KB,), BYTES)()  # comes back at once, and is more than there is room for
    assert pool.info().idle == 4.5 * MB
    pool.trim(4 * MB)
    assert pool.info().idle == 3.5 * MB


def test_what_was_used_last_is_used_next(pool: Pool) -> None:
    new = pool.allocator((MB,), BYTES)
    one, two = new(), new()
    place = address(one)
    del two
    del one
    assert address(new()) == place


def test_a_block_beyond_the_limit_is_not_kept_and_drives_nothing_out() -> None:
    pool = Pool(4 * MB)
    pool.allocator((MB,), BYTES)()
    pool.allocator((8 * MB,), BYTES)()
    assert pool.info() == mind_mlir.MemoryInfo(in_use=0, idle=MB, limit=4 * MB)


def test_the_limit_may_change_while_arrays_live(pool: Pool) -> None:
    new = pool.allocator((MB,), BYTES)
    held = [new() for _ in range(4)]
    pool.limit = 2 * MB
    del held
    assert pool.info().idle == 2 * MB
    held = [new() for _ in range(4)]
    pool.limit = 0
    del held
    assert pool.info() == mind_mlir.MemoryInfo(in_use=0, idle=0, limit=0)


def test_no_python_runs_when_memory_comes_back() -> None:
    """What a handler of a signal raises in a finalizer is lost."""
    pool = Pool(4 * MB)
    held = [pool.allocator((size,), BYTES)() for size in (MB, MB, 3 * MB, 8 * MB)]
    scratch = [pool.scratch(MB)]
    called: list[str] = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        held.clear()
        scratch.clear()
    finally:
        sys.setprofile(None)
    assert called == []
    assert pool.info() == mind_mlir.MemoryInfo(in_use=0, idle=4 * MB, limit=4 * MB)


def test_no_more_is_idle_than_the_system_has_left(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    left = [64 * MB]
    monkeypatch.setattr(memory, "memory_left", lambda: left[0])
    held = [pool.allocator((size * MB,), BYTES)() for size in range(1, 9)]
    del held
    assert pool.info().idle > 20 * MB
    left[0] = 20 * MB
    kept = pool.allocator((9 * MB,), BYTES)()
    assert pool.info().idle <= 11 * MB
    left[0] = 0
    same = pool.allocator((MB,), BYTES)
    for _ in range(256):  # nothing new is asked for, but the system is looked at now and then
        same()
    assert pool.info().idle <= MB
    assert kept.nbytes == 9 * MB


def test_size_classes() -> None:
    sizes = sorted(
        {size + more for size in (1, 4096, POOLED, MB, 3 * MB, 1 << 33) for more in range(-1, 5000, 617)}
    )
    classes = [size_class(size) for size in sizes if size > 0]
    assert classes == sorted(classes)
    for size, rounded in zip([size for size in sizes if size > 0], classes, strict=True):
        assert size <= rounded <= max(1.125 * size, size + mmap.PAGESIZE)
        assert rounded % mmap.PAGESIZE == 0
        assert size_class(rounded) == rounded


def test_no_memory_is_a_memory_error(pool: Pool) -> None:
    with pytest.raises(MemoryError):
        pool.allocator((1 << 62,), BYTES)()


def test_threads_never_share_a_block(pool: Pool) -> None:
    failures: list[int] = []
    shapes = [40 * KB, 40 * KB, 100 * KB, 3 * MB]

    def work(number: int) -> None:
        allocators = [pool.allocator((size,), BYTES) for size in shapes]
        held: list[Array] = []
        for step in range(400):
            array = allocators[(step + number) % len(shapes)]()
            array[:: 4 * KB] = number
            held.append(array)
            if len(held) > 3:
                oldest = held.pop(step % 3)
                failures.extend(int(found) for found in oldest[:: 4 * KB] if found != number)

    pool.limit = 2 * MB
    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    gc.collect()
    info = pool.info()
    assert info.in_use == 0
    assert info.idle <= info.limit


class _Node:
    """Part of a cycle that only the garbage collector finds, and that uses the pool when it dies."""

    def __init__(self, new: Callable[[], Array]) -> None:
        self.new = new
        self.array = new()
        self.me = self

    def __del__(self) -> None:
        self.array[0] = 1
        self.new()[0] = 2


def test_finalizers_may_run_anywhere(pool: Pool) -> None:
    new = pool.allocator((64 * KB,), BYTES)
    pool.limit = 256 * KB
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(300):
            _Node(new)
            new()
            pool.info()
            pool.trim(128 * KB)
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert pool.info().in_use == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of other threads in the process
def test_a_forked_child_has_its_own(pool: Pool) -> None:
    new = pool.allocator((MB,), BYTES)
    array = new()
    array[:] = 3
    idle = new()
    idle[:] = 4
    place = address(idle)
    del idle
    child = os.fork()
    if not child:
        status = 1
        try:
            array[:] = 9
            other = new()
            other[:] = 9
            pool.trim(0)
            status = 0 if address(other) == place else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (array == 3).all()
    assert (new() == 4).all()


def test_the_public_functions() -> None:
    before = mind_mlir.memory_info()
    executable = mind_mlir.compile(
        mind_mlir.parse(
            """
%x = Input {name="x"} : tensor<f32[1000, 1000]>
%y = Exp(%x) : tensor<f32[1000, 1000]>
outputs: %y
"""
        )
    )
    given = np.zeros((1000, 1000), np.float32)
    (result,) = executable(given)
    assert mind_mlir.memory_info().in_use >= before.in_use + result.nbytes
    del result
    assert mind_mlir.memory_info().idle >= given.nbytes
    mind_mlir.release_memory()
    assert mind_mlir.memory_info().idle == 0
    try:
        mind_mlir.set_memory_limit(0)
        executable(given)
        assert mind_mlir.memory_info().idle == 0
    finally:
        mind_mlir.set_memory_limit(before.limit)
    for wrong in (-1, 1.5, "much", None):
        with pytest.raises((TypeError, ValueError), match="limit"):
            mind_mlir.set_memory_limit(wrong)  # type: ignore[arg-type] # that is the point
    assert mind_mlir.memory_info().limit == before.limit


def test_threads_that_call_one_function() -> None:
    source = """
%a = Input {name="a"} : tensor<f32[200, 300]>
%b = Input {name="b"} : tensor<f32[300, 200]>
%p = MatMul(%a, %b) : tensor<f32[200, 200]>
%e = Relu(%p) : tensor<f32[200, 200]>
%q = MatMul(%e, %a) : tensor<f32[200, 300]>
outputs: %q
"""
    executable = mind_mlir.compile(mind_mlir.parse(source))
    generator = np.random.default_rng(0)
    cases = []
    for _ in range(8):
        a, b = (generator.standard_normal(shape).astype(np.float32) for shape in ((200, 300), (300, 200)))
        cases.append((a, b, executable(a, b)[0].tobytes()))
    before = mind_mlir.memory_info().in_use
    others = [mind_mlir.compile(mind_mlir.parse(source)) for _ in range(4)]  # not called yet
    wrong: list[int] = []

    def work(number: int) -> None:
        a, b, expected = cases[number]
        for other in others:
            wrong.extend(step for step in range(30) if other(a, b)[0].tobytes() != expected)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(cases))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    gc.collect()
    assert mind_mlir.memory_info().in_use == before


def run(source: str) -> str:
    """Run a program in a process of its own; return what it prints."""
    child = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=120, check=False
    )
    assert (child.returncode, child.stderr) == (0, "")
    return child.stdout


_EXECUTABLE = """
import atexit, gc, resource, threading
import numpy as np
import mind_mlir
from mind_mlir.runtime.call import CALLS_BEFORE
executable = mind_mlir.compile(mind_mlir.parse('''
%x = Input {name="x"} : tensor<f32[500, 500]>
%y = Exp(%x) : tensor<f32[500, 500]>
%z = Mul(%x, %y) : tensor<f32[500, 500]>
%s = MatMul(%z, %y) : tensor<f32[500, 500]>
%t = MatMul(%s, %z) : tensor<f32[500, 500]>
outputs: %t, %y, %z'''))
x = np.zeros((500, 500), np.float32)
"""


def test_arrays_may_outlive_everything() -> None:
    run(
        _EXECUTABLE
        + """
class Cycle:
    def __init__(self):
        self.arrays, self.me = executable(x), self
    def __del__(self):
        assert self.arrays[0].sum() == 0
Cycle()
kept = Cycle(), executable(x)[0][3:]
sys = __import__("sys")
sys.kept_until_the_end = executable(x)
np.kept_by_numpy = executable(x)
local = threading.local()
local.arrays = executable(x)
atexit.register(lambda arrays: executable(x), executable(x))
"""
    )


@pytest.mark.skipif(sys.platform != "linux", reason="counts page faults")
def test_calls_touch_no_fresh_pages() -> None:
    faults = run(
        _EXECUTABLE
        + """
for _ in range(CALLS_BEFORE + 10):
    results = executable(x)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    results = executable(x)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    )
    assert int(faults) < 50  # a single result of fresh pages has 245


@pytest.mark.skipif(sys.platform != "linux", reason="limits its address space")
def test_idle_memory_is_given_up_before_a_call_fails() -> None:
    out = run(
        _EXECUTABLE
        + """
from mind_mlir.runtime.memory import pool
for _ in range(CALLS_BEFORE + 10):
    executable(x)  # so that native calls are made before
held = [pool.allocator((64 << 20,), np.dtype(np.uint8))() for _ in range(4)]
del held
with open("/proc/self/statm") as file:
    size = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (32 << 20), size + (32 << 20)))
assert mind_mlir.memory_info().idle >= 256 << 20
large = pool.allocator((200 << 20,), np.dtype(np.uint8))()
print(mind_mlir.memory_info().idle)
try:
    kept = []
    while True:
        kept.append(executable(x))
except mind_mlir.ExecutionError as error:
    print(error.code)
del kept, large
mind_mlir.release_memory()
assert (executable(x)[1] == 1).all()
"""
    )
    assert out.split() == ["0", "E6004"]


def test_what_compiling_leaves_goes_before_a_call_needs_memory(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    trims: list[int] = []
    monkeypatch.setattr(memory, "trim_heap", lambda: trims.append(0))
    pool.allocator((MB,), BYTES)()
    assert not trims
    pool.leftover = True
    pool.allocator((MB,), BYTES)()
    small = pool.allocator((MB >> 2,), BYTES)()
    assert not trims, "neither memory that waits nor a small block asks the system for much"
    kept = [pool.allocator((MB,), BYTES)() for _ in range(3)]
    assert (len(trims), len(kept), small.size) == (1, 3, MB >> 2)
    mind_mlir.compile(mind_mlir.parse('%x = Input {name="x"} : tensor<f32[4]>\noutputs: %x'))
    assert memory.pool.leftover


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_compiling_and_calling_leave_nothing_behind() -> None:
    out = run(
        _EXECUTABLE
        + """
def resident():
    gc.collect()
    mind_mlir.release_memory()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

def once(extent):
    type_ = f"tensor<f32[{extent}, 500]>"
    executable = mind_mlir.compile(mind_mlir.parse(f'''
%x = Input {{name="x"}} : {type_}
%w = Input {{name="w"}} : tensor<f32[500, 500]>
%y = MatMul(%x, %w) : {type_}
%z = Exp(%y) : {type_}
outputs: %z'''), opt_level=0)
    executable(np.zeros((extent, 500), np.float32), x)

for _ in range(CALLS_BEFORE):
    executable(x)
for extent in range(100, 125):
    once(extent)
before = resident()
for extent in range(125, 150):
    once(extent)
for _ in range(100):
    executable(x)
print(resident() - before)
"""
    )
    assert int(out) < 2 * MB  # 80 KB a compilation; what is compiled takes more
