"""Calls compiled functions where every access outside of their arguments and scratch memory is found out.

Each buffer lies against a page that nothing may touch, first one behind it, then one before it, and the call
runs in a child process: what would read or write over an edge kills the child and fails the test.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import resource
import signal
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mind_mlir.runtime.native import Frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir import Executable
    from mind_mlir.runtime.native import NativeFunction

Array = np.ndarray[Any, np.dtype[Any]]

_PROT_NONE = 0
_mprotect = ctypes.CDLL(None, use_errno=True).mprotect
_mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def call(native: NativeFunction, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Call ``native`` and fill ``outputs``; fails where it breaks a promise about memory.

    It must read and write its arguments and its scratch memory only, write no input, and give the same bits
    wherever the buffers lie and whatever outputs and scratch memory hold before.
    """
    placements = [
        _Placement(native, inputs, outputs, at_end=True, fill=0xA5),
        _Placement(native, inputs, outputs, at_end=False, fill=0x5A),
    ]
    failure = _in_child([placement.call for placement in placements])
    results = []
    for number, placement in enumerate(placements):
        if failure and failure.number == number:
            raise AssertionError(f"the function {failure.words}; {placement.where}")
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
        self._function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(native.address)
        self.where = f"buffers lie {'before' if at_end else 'behind'} the guard pages"

    def call(self) -> None:
        """Call the function."""
        self._function(self._frame.address)

    def results(self) -> list[bytes]:
        """Return the outputs; fails where the call wrote anything else."""
        for memory, array in zip(self._given, self._inputs, strict=True):
            memory.check("an input")
            assert memory.contents.tobytes() == array.tobytes(), "an input was written"
        for memory in self._results:
            memory.check("an output")
        self._scratch.check("scratch memory")
        return [memory.contents.tobytes() for memory in self._results]


class _Failure(NamedTuple):
    """Which action ended a child, and how."""

    number: int
    words: str


def _in_child(actions: Sequence[Callable[[], object]]) -> _Failure | None:
    """Take the actions, one after the other, in one child: a fork of a large process takes milliseconds."""
    done = mmap.mmap(-1, 1)
    with warnings.catch_warnings():
        # Python warns of other threads that hold locks; the child only runs native code, which takes none.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        try:
            faulthandler.disable()
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            for action in actions:
                action()
                done[0] += 1
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not status:
        return None
    outside = -status in (signal.SIGSEGV, signal.SIGBUS)
    return _Failure(done[0], "reads or writes outside of its memory" if outside else f"ends with {status}")


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
