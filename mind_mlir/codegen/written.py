"""Capture, as bytes, what functions of LLVM write to files: they end the process where writing fails."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from mind_mlir.outputs.errors import refused

if TYPE_CHECKING:
    from collections.abc import Callable


def written(write: Callable[[str], object]) -> bytes:
    """Return what ``write`` writes to the path that it is given.

    It writes something, and to memory. Where the system shows no files of memory (there is no ``/proc``), or
    limits how large files may be (``ulimit -f``), as counts for these, too, a pipe takes their place.

    Raises:
        UnsupportedError: E7102, there are no descriptors left, no threads, or no directory for a pipe.
    """
    try:
        data = _written(write)
        if not data:  # it says on standard error why, and nothing to its caller
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    except OSError as error:
        raise refused("codegen", error) from error
    return data


def _written(write: Callable[[str], object]) -> bytes:
    if not _limits_files():
        file = os.memfd_create("object")
        try:
            path = f"/proc/self/fd/{file}"
            if os.path.exists(path):  # noqa: PTH110 -- of a descriptor, not of what it links to
                os.close(os.dup(file))  # is there a descriptor left to write with?
                write(path)
                return os.pread(file, os.fstat(file).st_size, 0)
        finally:
            os.close(file)
    import tempfile  # noqa: PLC0415 -- takes 4 ms, and memory does without

    with tempfile.TemporaryDirectory(prefix="mind-mlir-", ignore_cleanup_errors=True) as folder:
        return _piped(Path(folder, "object"), write)


def _piped(path: Path, write: Callable[[str], object]) -> bytes:
    os.mkfifo(path, 0o600)
    found: list[bytes] = []

    def read() -> None:
        while part := os.read(source, 1 << 16):
            found.append(part)

    source = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        end = os.open(path, os.O_WRONLY | os.O_CLOEXEC)  # there is a writer until all has been written
        try:
            os.set_blocking(source, True)
            reader = threading.Thread(target=read)
            try:
                reader.start()
            except RuntimeError as error:
                raise BlockingIOError(errno.EAGAIN, str(error)) from error
            write(str(path))
        finally:
            os.close(end)
        reader.join()
    finally:
        os.close(source)
    return b"".join(found)


def _limits_files() -> bool:
    try:
        import resource  # noqa: PLC0415 -- Windows has none
    except ImportError:
        return False
    return resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY
