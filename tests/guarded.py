"""Calls compiled functions where every access outside of their arguments and scratch memory is found out.

Each buffer lies against a page that nothing may touch, first one behind it, then one before it, and the call
runs in a process of its own: what would read or write over an edge kills that and fails the test. It shares
the memory of this process, as a thread does: to copy tables of all memory takes longer than most tests.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.runtime import threads
from mind_mlir.runtime.native import Frame

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mind_mlir import Executable
    from mind_mlir.runtime.native import NativeFunction

Array = np.ndarray[Any, np.dtype[Any]]

_PROT_NONE = 0
_libc = ctypes.CDLL(None, use_errno=True)
_mprotect = _libc.mprotect
_mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_libc.clone.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_CLONE_VM = 0x100
#: The signals that faulty code gets, what `sigaction` takes at most, and its default, which ends the process.
_DEADLY = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT)
_SIGACTION = 256
_DEFAULT = ctypes.create_string_buffer(_SIGACTION)
_STACK = np.frombuffer(mmap.mmap(-1, 8 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
_STACK_TOP = _STACK.ctypes.data + _STACK.nbytes
resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def call(native: NativeFunction, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Call ``native`` and fill ``outputs``; fails where it breaks a promise about memory.

    It must read and write its arguments and its scratch memory only, write no input, and give the same bits
    wherever the buffers lie and whatever outputs and scratch memory hold before.
    """
    placements = [
        _Placement(native, inputs, outputs, at_end=True, fill=0xA5),
        _Placement(native, inputs, outputs, at_end=False, fill=0x5A),
    ]
    results = []
    with _one_thread():
        for placement in placements:
            placement.call()
            results.append(placement.results())
    for first, second, array in zip(*results, outputs, strict=True):
        assert first == second, "the results depend on where buffers lie or on what was in them"
        array[...] = np.frombuffer(first, array.dtype).reshape(array.shape)


def call_executable(executable: Executable, arguments: Mapping[str, Array]) -> list[Array]:
    """Call ``executable`` as a user does, having called its function between guard pages."""
    function = executable._called()
    outputs = [np.empty(shape, dtype) for shape, dtype in function._layouts]
    call(function._native, [arguments[parameter.name] for parameter in function.parameters], outputs)
    results = list(executable(**arguments))
    for result, output in zip(results, outputs, strict=False):  # the last output may be the status
        assert result.tobytes() == output.tobytes(), "two calls give different bits"
    return results


class _Placement:
    """All buffers of a call flush with one of the guard pages around each."""

    def __init__(
        self,
        native: NativeFunction,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        *,
        at_end: bool,
        fill: int,
    ) -> None:
        self._inputs = inputs
        self._given = [_Fenced(array.nbytes, at_end=at_end, fill=fill) for array in inputs]
        for memory, array in zip(self._given, inputs, strict=True):
            memory.contents[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self._results = [_Fenced(array.nbytes, at_end=at_end, fill=fill) for array in outputs]
        self._scratch = _Fenced(native.scratch_bytes, at_end=at_end, fill=fill)
        self._frame = Frame(native.pointers, 0)
        for index, memory in enumerate((*self._given, *self._results, self._scratch)):
            self._frame.values[index] = memory.address
        self._function = native.address
        self.where = f"buffers lie {'before' if at_end else 'behind'} the guard pages"

    def call(self) -> None:
        """Call the function; fails where a signal ends it."""
        status = _runs_alone(self._function, self._frame.address)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            outside = number in (signal.SIGSEGV, signal.SIGBUS)
            words = "reads or writes outside of its memory" if outside else f"ends with {-number}"
            raise AssertionError(f"the function {words}; {self.where}")

    def results(self) -> list[bytes]:
        """Return the outputs; fails where the call wrote anything else."""
        for memory, array in zip(self._given, self._inputs, strict=True):
            memory.check("an input")
            assert memory.contents.tobytes() == array.tobytes(), "an input was written"
        for memory in self._results:
            memory.check("an output")
        self._scratch.check("scratch memory")
        return [memory.contents.tobytes() for memory in self._results]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let one thread run all loops meanwhile: workers belong to this process."""
    count, setting = threads.get_num_threads(), threads._PoolState.setting
    threads.set_num_threads(1)
    try:
        yield
    finally:
        threads.set_num_threads(count)
        threads._PoolState.setting = setting


def _runs_alone(address: int, argument: int) -> int:
    """Call a native function in a process that shares memory with this one; return how that ended.

    Nothing of Python runs there. Signals that end it are not to reach what Python does about them.
    """
    old = {number: ctypes.create_string_buffer(_SIGACTION) for number in _DEADLY}
    for number, action in old.items():
        _libc.sigaction(number, _DEFAULT, action)
    try:
        child = _libc.clone(address, _STACK_TOP, _CLONE_VM | signal.SIGCHLD, argument)
    finally:
        for number, action in old.items():
            _libc.sigaction(number, action, None)
    if child < 0:
        raise OSError(ctypes.get_errno(), "clone")
    return os.waitpid(child, 0)[1]


class _Fenced:
    """Memory that a child process shares, with guard pages on both sides, flush with one of them."""

    def __init__(self, size: int, *, at_end: bool, fill: int) -> None:
        page = mmap.PAGESIZE
        pages = -(-size // page)
        memory = np.frombuffer(mmap.mmap(-1, (pages + 2) * page), np.uint8)
        for guard in (memory[:page], memory[(pages + 1) * page :]):
            if _mprotect(guard.ctypes.data, page, _PROT_NONE):
                raise OSError(ctypes.get_errno(), "mprotect")
        start = page + (pages * page - size if at_end else 0)
        self._fill = fill
        self.contents = memory[start : start + size]
        self._gap = memory[page:start] if at_end else memory[start + size : (pages + 1) * page]
        self._memory = memory
        self.contents[:] = self._gap[:] = fill

    @property
    def address(self) -> int:
        """Where the contents begin."""
        return int(self.contents.ctypes.data)

    def check(self, what: str) -> None:
        """Fail if anything has been written between the contents and the other guard page."""
        assert (self._gap == self._fill).all(), f"memory beside {what} was written"
