"""The pool of threads: each chunk runs once, whoever calls, with as many threads as may."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from regions import meet, region, words, workers

import mind_mlir
from mind_mlir.codegen import library
from mind_mlir.image.loading import Loaded
from mind_mlir.mlir.bindings import ir, llvm, new_context
from mind_mlir.runtime import threads
from mind_mlir.target.abi import BRIEF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(not threads.is_available(), reason="there is no pool for this system")


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = mind_mlir.get_num_threads()
    yield
    mind_mlir.set_num_threads(before)


def child(script: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a script with the names of `regions` in another process."""
    return subprocess.run(
        # Python 3.12 warns of every fork of a process with threads, and these are tests of that.
        [
            sys.executable,
            "-W",
            "ignore::DeprecationWarning",
            "-c",
            f"import mind_mlir\nfrom regions import *\n{textwrap.dedent(script)}",
        ],
        cwd=Path(__file__).parent,
        env={
            "PYTHONPATH": f"{Path(mind_mlir.__file__).parents[1]}:{Path(__file__).parent}",
            "MIND_MLIR_CACHE": "off",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def succeeds(script: str) -> None:
    done = child(script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# For each machine


@pytest.mark.parametrize("machine", threads._MACHINES.values())
def test_the_text_for_each_machine_is_one_of_llvm(machine: str) -> None:
    files = ("threads", "threads_workers", machine)
    folder = Path(threads.__file__).parent
    text = "\n".join((folder / f"{file}.mlir").read_text(encoding="utf-8") for file in files)
    with new_context(("llvm",)):
        module = ir.Module.parse(text)
        translated = llvm.translate_module_to_llvmir(module.operation)
    assert "define void @mind_parallel(" in translated


# Each chunk once


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("chunks", [0, 1, 2, 3, 5, 64, 1000])
def test_each_chunk_runs_once(count: int, chunks: int) -> None:
    mind_mlir.set_num_threads(count)
    data = words(chunks + 1)
    for turn in range(1, 101):
        region("count", data, chunks)
        assert list(data) == [turn] * chunks + [0]


@pytest.mark.parametrize("chunks", [-1, -(1 << 63)])
def test_fewer_chunks_than_none(chunks: int) -> None:
    region("count", words(1), chunks)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_very_many_chunks(count: int) -> None:
    mind_mlir.set_num_threads(count)
    data = words(250_000)
    region("count", data, 250_000)
    assert set(data) == {1}


def test_more_chunks_than_a_ticket_holds() -> None:
    mind_mlir.set_num_threads(2)
    data = words(1)
    region("total", data, (1 << 18) + 5)
    assert data[0] == (1 << 18) + 5


def test_two_threads_begin_at_both_ends() -> None:
    mind_mlir.set_num_threads(2)
    data = words(101)
    region("arrive", data, 100)
    assert data[0] == 100
    assert sorted(data[1:]) == list(range(100))
    assert {data[1], data[100]} == {0, 1}


def test_loops_in_loops() -> None:
    mind_mlir.set_num_threads(4)
    data = words(32 * 16)
    for turn in range(1, 101):
        region("nest", data, 32)
        assert set(data) == {turn}


def test_sixteen_callers() -> None:
    mind_mlir.set_num_threads(4)
    wrong = []

    def hammer(chunks: int) -> None:
        data = words(chunks)
        for turn in range(1, 2001):
            region("count", data, chunks)
            if set(data) != {turn}:
                wrong.append((chunks, turn))

    callers = [threading.Thread(target=hammer, args=(chunks,)) for chunks in range(2, 18)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []
    meet(4)  # the pool is as it was


# How many threads


@pytest.mark.parametrize("count", [2, 3, 4])
def test_as_many_threads_as_are_set(count: int) -> None:
    mind_mlir.set_num_threads(count)
    for _ in range(50):
        meet(count)


def test_sleeping_workers_are_woken() -> None:
    mind_mlir.set_num_threads(4)
    for _ in range(5):
        meet(4)
        _wait_until_all_sleep()


def test_nobody_is_woken_for_a_brief_loop() -> None:
    succeeds("""
        from mind_mlir.target.abi import BRIEF
        from test_threads import _times, _wait_until_all_sleep
        mind_mlir.set_num_threads(2)
        data = words(16)
        region("count", data, 16, BRIEF)
        assert workers() == []  # nor is one started
        meet(2)
        _wait_until_all_sleep()
        (worker,) = workers()
        before = _times(worker)
        for _ in range(1000):
            region("count", data, 16, BRIEF)
        assert set(data) == {1001}
        assert _times(worker) == before
    """)


def test_a_brief_loop_is_shared_with_those_that_are_awake() -> None:
    mind_mlir.set_num_threads(2)
    for _ in range(100_000):
        meet(2)
        data = words(2)
        region("crowd", data, 16, BRIEF)
        if data[1] == 2:
            return
    pytest.fail("the worker has never come, though it had just run a chunk")


@pytest.mark.parametrize(
    ("setting", "limit", "most"), [(4, 2, 2), (4, 1, 1), (2, 0, 2), (2, 4, 2), (1, 4, 1)]
)
def test_no_more_than_may(setting: int, limit: int, most: int) -> None:
    mind_mlir.set_num_threads(4)
    meet(4)
    mind_mlir.set_num_threads(setting)
    data = words(2)
    for _ in range(100):
        region("crowd", data, 20, limit)
    assert data[0] == 0
    assert data[1] <= most


def test_the_setting_grows_and_shrinks() -> None:
    for count in (1, 3, 2, 4):
        mind_mlir.set_num_threads(count)
        assert mind_mlir.get_num_threads() == count
        meet(count)
    assert len(workers()) >= 3


# In a process that has no other pools: libraries of C programs bring their own.
def test_workers_end_when_the_number_is_lowered() -> None:
    succeeds("""
        from pathlib import Path
        from test_threads import _wait
        before = {int(each.name) for each in Path("/proc/self/task").iterdir()}
        for count, left in ((12, 3), (9, 1), (5, 2)):
            mind_mlir.set_num_threads(count)
            meet(count)
            mind_mlir.set_num_threads(left)
            _wait(lambda: len(workers()) < left)
            if left > 1:
                meet(left)
                assert len(workers()) == left - 1
        mind_mlir.set_num_threads(1)
        _wait(lambda: not workers())
        assert {int(each.name) for each in Path("/proc/self/task").iterdir()} <= before
    """)


def test_the_number_changes_while_others_are_in_loops() -> None:
    """Workers that end and begin meanwhile leave no chunk out, and none is left over."""
    succeeds("""
        import threading
        from test_threads import _wait
        wrong = []

        def work():
            for _ in range(300):
                data = words(64)
                region("count", data, 64)
                wrong.extend(each for each in data if each != 1)

        callers = [threading.Thread(target=work) for _ in range(2)]
        for caller in callers:
            caller.start()
        count = 0
        while any(caller.is_alive() for caller in callers):
            count += 1
            mind_mlir.set_num_threads(1 + count * 5 % 7)
        assert not wrong
        mind_mlir.set_num_threads(4)
        meet(4)
        _wait(lambda: len(workers()) == 3)
    """)


def test_helpers_leave_when_others_call() -> None:
    mind_mlir.set_num_threads(2)
    data, others = words(4), words(2)
    helped = threading.Thread(target=region, args=("queue", data, 200))
    helped.start()
    _wait(lambda: data[0] == 2)
    others[1] = 2
    other = threading.Thread(target=region, args=("meet", others, 2))  # alone: its first chunk waits
    other.start()
    _wait(lambda: others[0] == 1)
    data[3] = 2
    _wait(lambda: data[2] - data[0] >= 2)  # both have been through the gate
    data[1] = 0
    while data[3] < 199:
        data[3] += 1
        _wait(lambda: data[2] > data[3])
    data[3], others[1] = 200, 0
    helped.join()
    other.join()
    assert list(data[:3]) == [0, 1, 200]


def _wait(condition: Callable[[], bool]) -> None:
    while not condition():
        threading.Event().wait(0.0001)


def test_a_loop_runs_without_workers_where_the_system_gives_none() -> None:
    succeeds("""
        import resource, threading
        mind_mlir.set_num_threads(4)
        data = words(1000)
        region("count", data, 1)
        over = threading.Event()
        for _ in range(8):  # they take the stacks that the system has kept of threads that have ended
            threading.Thread(target=over.wait, daemon=True).start()
        size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 20), resource.RLIM_INFINITY))
        region("count", data, 1000)
        assert workers() == []
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        region("count", data, 1000)
        assert workers() == []  # it is not asked again and again
        mind_mlir.set_num_threads(3)
        meet(3)
        over.set()
        assert sorted(set(data)) == [2, 3]
    """)


# What threads are


def _times(task: Path) -> str:
    return (task / "schedstat").read_text()


def _wait_until_all_sleep() -> None:
    for task in workers():
        while (task / "stat").read_text().split(") ")[1][0] != "S":
            threading.Event().wait(0.001)


def test_idle_workers_use_no_time() -> None:
    succeeds("""
        import time
        from test_threads import _times, _wait_until_all_sleep
        mind_mlir.set_num_threads(4)
        meet(4)
        _wait_until_all_sleep()
        before = [_times(task) for task in workers()]
        time.sleep(1)
        assert [_times(task) for task in workers()] == before
        assert len(before) == 3
    """)


def test_signals_go_to_other_threads() -> None:
    mind_mlir.set_num_threads(2)
    meet(2)
    for task in workers():
        (line,) = [line for line in (task / "status").read_text().splitlines() if line.startswith("SigBlk")]
        blocked = int(line.split()[1], 16)
        assert blocked & (1 << 1)  # SIGINT
        assert not blocked & (1 << 10)  # SIGSEGV


def test_an_interrupt_arrives_after_the_loop() -> None:
    succeeds("""
        import os, signal, threading
        mind_mlir.set_num_threads(2)
        data = words(2)
        data[1] = 3  # one more than come by themselves
        def interrupt():
            while data[0] < 2:
                threading.Event().wait(0.001)
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(0.1)
            data[0] += 1
        threading.Thread(target=interrupt).start()
        try:
            region("meet", data, 2)
            threading.Event().wait(60)
        except KeyboardInterrupt:
            meet(2)
        else:
            raise AssertionError("no interrupt")
    """)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads a register of x86-64")
def test_workers_compute_as_their_caller() -> None:
    """A caller that flushes denormal numbers to zero gets zeros from all threads; others do not."""
    mind_mlir.set_num_threads(2)
    found = Loaded(
        library.compile_text("""
        llvm.func @set(%register: i32) {
          %one = llvm.mlir.constant(1 : i32) : i32
          %at = llvm.alloca %one x i32 : (i32) -> !llvm.ptr
          llvm.store %register, %at : i32, !llvm.ptr
          llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"(%at) : (!llvm.ptr) -> ()
          llvm.return
        }
    """)
    )
    set_register = ctypes.CFUNCTYPE(None, ctypes.c_uint32)(found.address_of("set"))
    tiny = np.full(2, 2.0**-1050)
    for register, expected in ((0x1F80, 2.0**-1051), (0x9FC0, 0.0), (0x1F80, 2.0**-1051)):
        data = words(4)
        values = np.ctypeslib.as_array(data).view(np.float64)[:2]
        values[:] = tiny
        data[3] = 2
        set_register(register)
        try:
            region("halve", data, 2)
        finally:
            set_register(0x1F80)
        assert list(values) == [expected] * 2


# Processes


def test_a_forked_child_has_threads_of_its_own() -> None:
    succeeds("""
        import os
        mind_mlir.set_num_threads(3)
        meet(3)
        for _ in range(3):
            child = os.fork()
            if child:
                assert os.waitpid(child, 0)[1] == 0
                meet(3)
                break
            assert workers() == []
            meet(3)
        os._exit(0)
    """)


def test_a_child_that_is_forked_while_others_are_in_loops() -> None:
    succeeds("""
        import os, threading
        mind_mlir.set_num_threads(3)
        meet(3)
        data = words(2)
        data[1] = 10
        caller = threading.Thread(target=region, args=("meet", data, 9))  # some have not begun
        caller.start()
        while data[0] < 3:
            threading.Event().wait(0.001)
        child = os.fork()
        if not child:
            meet(3)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        data[1] = 0
        caller.join()
        meet(3)
    """)


@pytest.mark.parametrize("wait", [0, 0.0001, 0.01])
def test_a_process_ends_whatever_workers_do(wait: float) -> None:
    succeeds(f"""
        import time
        mind_mlir.set_num_threads(4)
        meet(4)
        time.sleep({wait})
    """)


def test_a_process_ends_while_a_thread_is_in_a_loop() -> None:
    succeeds("""
        import threading
        mind_mlir.set_num_threads(2)
        data = words(1000)
        bodies()  # MLIR's own threads do not like to be ended
        def work():
            while True:
                region("count", data, 1000)
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        while data[0] < 100:
            threading.Event().wait(0.001)
    """)
