"""Machine code in memory for Linux's `perf`, which finds no file that it would belong to.

``MIND_MLIR_PERF=map`` writes ``/tmp/perf-PID.map``, a line for each function. ``MIND_MLIR_PERF=jitdump``
writes ``jit-PID.dump`` for ``perf inject --jit``, with the code and, where that has them, its lines, into the
directory ``JITDUMPDIR`` or the working directory. Files of other users and symbolic links are left alone. A
forked process writes files of its own.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import stat
import struct
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mind_mlir.image.lines import rows_within

if TYPE_CHECKING:
    from mind_mlir.image.image import Image, Symbol

#: What says whether and how code is made known.
VARIABLE = "MIND_MLIR_PERF"
#: Where jitdump files go.
DIRECTORY_VARIABLE = "JITDUMPDIR"
_MAPS = Path("/tmp")  # noqa: S108 -- perf looks nowhere else
_MACHINES = {"x86_64": 62, "aarch64": 183}


class LoadedCode(Protocol):
    """Code in the memory of this process, see `loading.Loaded`."""

    address: int
    image: Image


class _Map:
    """A file of addresses, sizes and names."""

    def __init__(self) -> None:
        # Others write there, too, such as CPython: what is there stays.
        self.file = _opened(_MAPS / f"perf-{os.getpid()}.map", shared=True)

    def add(self, code: LoadedCode) -> None:
        """Make the functions of ``code`` known."""
        lines = [f"{code.address + each.offset:x} {each.size:x} {each.name}\n" for each in _functions(code)]
        _write(self.file, "".join(lines).encode())  # at once, so that lines of others are not torn


class _Dump:
    """A file of records as `tools/perf/Documentation/jitdump-specification.txt` of Linux has them."""

    _MAGIC, _VERSION = 0x4A695444, 1
    _LOAD, _LINES = 0, 2
    _HEADER, _RECORD = struct.Struct("=IIIIIIQQ"), struct.Struct("=IIQ")

    def __init__(self) -> None:
        directory = Path(os.environ.get(DIRECTORY_VARIABLE) or ".")
        self.file = _opened(directory / f"jit-{os.getpid()}.dump", shared=False)
        self._begun = False
        self._number = 0
        # That a page of the file is mapped as code is what tells perf of it; nothing is read there.
        os.ftruncate(self.file, mmap.PAGESIZE)
        self._mark = mmap.mmap(self.file, mmap.PAGESIZE, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
        os.ftruncate(self.file, 0)

    def add(self, code: LoadedCode) -> None:
        """Make the functions of ``code`` known."""
        parts = [] if self._begun else [self._header(_MACHINES[code.image.machine])]
        for symbol in _functions(code):
            parts += [self._lines(code, symbol), self._load(code, symbol)]
        _write(self.file, b"".join(parts))
        self._begun = True

    def _header(self, machine: int) -> bytes:
        size, now = self._HEADER.size, time.monotonic_ns()
        return self._HEADER.pack(self._MAGIC, self._VERSION, size, machine, 0, os.getpid(), now, 0)

    def _record(self, kind: int, content: bytes) -> bytes:
        return self._RECORD.pack(kind, self._RECORD.size + len(content), time.monotonic_ns()) + content

    def _load(self, code: LoadedCode, symbol: Symbol) -> bytes:
        address, self._number = code.address + symbol.offset, self._number + 1
        ids = os.getpid(), threading.get_native_id()
        fixed = struct.pack("=IIQQQQ", *ids, address, address, symbol.size, self._number)
        instructions = ctypes.string_at(address, symbol.size)
        return self._record(self._LOAD, fixed + symbol.name.encode() + b"\0" + instructions)

    def _lines(self, code: LoadedCode, symbol: Symbol) -> bytes:
        rows = [row for row in rows_within(code.image.lines, symbol.offset, symbol.size) if row.line]
        if not rows:
            return b""
        fixed = struct.pack("=QQ", code.address + symbol.offset, len(rows))
        entries = [
            struct.pack("=QII", code.address + row.offset, row.line, 0) + row.file.encode() + b"\0"
            for row in rows
        ]
        return self._record(self._LINES, fixed + b"".join(entries))


_WRITERS: dict[str, type[_Map | _Dump]] = {"map": _Map, "jitdump": _Dump}


class _PerfState:
    """The writers of this process, and the code that it has in memory."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.code: weakref.WeakSet[LoadedCode] = weakref.WeakSet()
        self.writers: dict[str, _Map | _Dump] = {}
        self.failed = False

    def add(self, kind: str, code: LoadedCode) -> None:
        if self.failed:
            return
        try:
            writer = self.writers.get(kind)
            if writer is None:
                writer = self.writers[kind] = _WRITERS[kind]()
            writer.add(code)
        except Exception as error:
            self.failed = True
            warnings.warn(
                f"{VARIABLE}={kind}: perf is told of no code: {error}", RuntimeWarning, stacklevel=4
            )


_state = _PerfState()


def announce(code: LoadedCode) -> None:
    """Make code that has been loaded known to perf, if the environment says so.

    What keeps the file from being written is a `RuntimeWarning`, the first time: the code runs without it.

    Raises:
        ValueError: The variable says something else than ``map`` or ``jitdump``.
    """
    kind = os.environ.get(VARIABLE)
    if not kind:
        return
    if kind not in _WRITERS:
        raise ValueError(f"{VARIABLE} must be one of {', '.join(_WRITERS)}, not {kind!r}")
    with _state.lock:
        _state.code.add(code)
        _state.add(kind, code)


def _begin_anew() -> None:
    """Write files of its own in a process that has been forked: what is in memory is so there, too."""
    global _state  # noqa: PLW0603 -- the lock may be held by a thread that is not here
    writers, known = _state.writers, list(_state.code)
    _state = _PerfState()
    for kind, writer in writers.items():
        os.close(writer.file)
        for code in known:
            _state.code.add(code)
            _state.add(kind, code)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def _functions(code: LoadedCode) -> Iterator[Symbol]:
    return (each for each in code.image.symbols if each.size and each.offset < code.image.text)


def _opened(path: Path, *, shared: bool) -> int:
    """Open a file of our own to write to.

    Args:
        path: Where it is.
        shared: Whether others of this process write there, too: what they have written stays.

    Raises:
        OSError: It cannot be, it is a link, or somebody else's.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_APPEND if shared else 0)
    file = os.open(path, flags, 0o600)
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink != 1:
        os.close(file)
        raise PermissionError(f"{path} is no file of this user alone")
    if not shared or found.st_mtime < _started():
        os.ftruncate(file, 0)
    return file


def _started() -> float:
    """Return when this process began, or a second before: what is older was written by another one."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        up = float(Path("/proc/uptime").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0
    return time.time() - up + ticks / os.sysconf("SC_CLK_TCK") - 1


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
