"""Pages of memory that are written first and then run, and what keeps a system from letting them be."""

from __future__ import annotations

import ctypes
import errno
import functools
import mmap
import os
from collections.abc import Callable

from mind_mlir.diagnostics import Diagnostic, UnsupportedError

_CODE = mmap.PROT_READ | mmap.PROT_EXEC
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
#: What Python has no name for: of `mmap`, and of `memfd_create` since Linux 6.3.
_MAP_FIXED, _MFD_EXEC = 0x10, 0x10
_REFUSALS = (errno.EACCES, errno.EPERM)


def may_become_code() -> bool:
    """Return whether memory that has been written may become code; a policy may come at any time.

    Raises:
        MemoryError: There is no page of memory to ask with.
    """
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=_PRIVATE)
    except OSError as error:
        raise MemoryError(f"a page of memory could not be had: {error.strerror}") from error
    with page:
        return _protected(ctypes.addressof(ctypes.c_char.from_buffer(page)), mmap.PAGESIZE, _CODE) == 0


def make_read_only(address: int, size: int) -> None:
    """Have memory be read alone; a `MemoryError` where the system refuses."""
    if size and (refusal := _protected(address, size, mmap.PROT_READ)):
        raise MemoryError(f"{size} bytes could not be protected: {os.strerror(refusal)}")


def make_code(address: int, size: int) -> None:
    """Have memory be code, in the place where it has been written.

    Where a policy says that no memory may be both written and run, a file in memory takes its place, which is
    never written through that mapping.

    Args:
        address: Where it begins: at a page.
        size: Its bytes, whole pages; all of them are private, and writable as yet.

    Raises:
        UnsupportedError: E7104, a policy of the system forbids both.
        MemoryError: There is no memory for it.
        OSError: There is no descriptor for the file.
    """
    refusal = _protected(address, size, _CODE) if size else 0
    if refusal in _REFUSALS:
        refusal = _replaced(address, size)
    if refusal in _REFUSALS:
        raise forbidden(
            "code cannot be loaded", f"no file in memory may be run either: {os.strerror(refusal)}"
        )
    if refusal:
        raise MemoryError(f"the system does not let {size} bytes become code: {os.strerror(refusal)}")


def forbidden(what: str, help: str) -> UnsupportedError:
    """Return the error that a policy makes of something."""
    words = (
        f"{what}: the system forbids that memory which has been written becomes code (PR_SET_MDWE, "
        "MemoryDenyWriteExecute of systemd, or execmem of SELinux)"
    )
    return UnsupportedError(Diagnostic("E7104", words, help=help))


def _protected(address: int, size: int, protection: int) -> int:
    """Protect memory; return 0, or why the system refuses."""
    protect, _ = _functions()
    return ctypes.get_errno() if protect(address, size, protection) else 0


def _replaced(address: int, size: int) -> int:
    """Put a file in memory of the same bytes in the place of others, as code; return as `_protected` does."""
    _, map_ = _functions()
    file = _file()
    try:
        content = memoryview((ctypes.c_char * size).from_address(address)).cast("B")
        while content:
            content = content[os.write(file, content) :]
        # It replaces the pages at once: nothing else can come to lie there.
        found = map_(address, size, _CODE, mmap.MAP_PRIVATE | _MAP_FIXED, file, 0)
        return 0 if found == address else ctypes.get_errno()
    finally:
        os.close(file)


def _file() -> int:
    try:
        return os.memfd_create("mind-mlir-code", os.MFD_CLOEXEC | _MFD_EXEC)
    except OSError as error:
        if error.errno != errno.EINVAL:  # of an older Linux, where any such file may be run
            raise
        return os.memfd_create("mind-mlir-code", os.MFD_CLOEXEC)


@functools.cache
def _functions() -> tuple[Callable[[int, int, int], int], Callable[[int, int, int, int, int, int], int]]:
    """Return C's `mprotect` and `mmap`."""
    process = ctypes.CDLL(None, use_errno=True)
    protect, map_ = process.mprotect, process.mmap
    protect.argtypes, protect.restype = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int), ctypes.c_int
    map_.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    map_.restype = ctypes.c_void_p
    return protect, map_
