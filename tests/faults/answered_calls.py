"""System calls of a child process that a parent lets fail: seccomp's user notifications.

The child asks the kernel to report some system calls rather than make them. The parent answers each: it is to
be made, or to fail. No compiler and no other program is needed; Linux 5.6 and x86-64 are.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import platform
import select
import struct
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: The number on x86-64 of each system call that may fail, and what it fails with.
CALLS = {
    "read": (0, errno.EIO),
    "write": (1, errno.ENOSPC),
    "mmap": (9, errno.ENOMEM),
    "mprotect": (10, errno.ENOMEM),
    "brk": (12, errno.ENOMEM),  # which says so by leaving the end of the heap where it is
    "pread64": (17, errno.EIO),
    "pwrite64": (18, errno.ENOSPC),
    "mremap": (25, errno.ENOMEM),
    "madvise": (28, errno.EINVAL),
    "dup": (32, errno.EMFILE),
    "clone": (56, errno.EAGAIN),
    "fsync": (74, errno.EIO),
    "ftruncate": (77, errno.ENOSPC),
    "rename": (82, errno.EACCES),
    "mkdir": (83, errno.EROFS),
    "link": (86, errno.EPERM),
    "unlink": (87, errno.EACCES),
    "utime": (280, errno.EPERM),
    "openat": (257, errno.EMFILE),
    "mkdirat": (258, errno.EROFS),
    "unlinkat": (263, errno.EACCES),
    "renameat2": (316, errno.EINVAL),
    "memfd_create": (319, errno.EMFILE),
    "clone3": (435, errno.EAGAIN),
}
#: Those that give memory.
MEMORY = ("mmap", "mprotect", "brk", "mremap")

_X86_64 = 0xC000003E
_SECCOMP, _PIDFD_GETFD = 317, 438
_NEW_LISTENER = 1 << 3
_NO_NEW_PRIVS = 38
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_LOAD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1
_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")


def can_notify() -> bool:
    """Return whether this machine reports system calls."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    try:
        return "user_notif" in Path("/proc/sys/kernel/seccomp/actions_avail").read_text("ascii").split()
    except OSError:
        return False


def report(names: tuple[str, ...]) -> None:
    """Have the kernel report these calls of this thread, and of all that it starts, to file `next_file` says.

    Until somebody answers there, the first of them waits.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = [CALLS[name][0] for name in names]
    steps = [(_LOAD, 0, 0, 4), (_JUMP_EQUAL, 0, len(numbers) + 1, _X86_64), (_LOAD, 0, 0, 0)]
    steps += [(_JUMP_EQUAL, len(numbers) - place, 0, number) for place, number in enumerate(numbers)]
    steps += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _NOTIFY)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = struct.pack("=HxxxxxxQ", len(steps), ctypes.addressof(code))
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    if libc.syscall(_SECCOMP, 1, _NEW_LISTENER, program) < 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def next_file() -> int:
    """Return the number that the next file gets which this process opens."""
    number = os.dup(0)
    os.close(number)
    return number


def listener_of(process: int, file: int) -> int | None:
    """Return where to answer what a child reports, once it does; None where it has ended without.

    Args:
        process: The child.
        file: What `next_file` said there.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    handle = os.pidfd_open(process)
    try:
        while (listener := libc.syscall(_PIDFD_GETFD, handle, file, 0)) < 0:
            if ctypes.get_errno() == errno.ESRCH:
                return None  # a call that it reports would have kept it
            if ctypes.get_errno() != errno.EBADF:
                raise OSError(ctypes.get_errno(), "pidfd_getfd")
            time.sleep(0.0005)
        return int(listener)
    finally:
        os.close(handle)


def answer(listener: int, names: tuple[str, ...], fails: Callable[[str], bool], timeout: float) -> None:
    """Answer what is reported until nobody is left who could report.

    Args:
        listener: Where to answer.
        names: The calls that are reported.
        fails: Whether a call of this name, the next one, is to fail.
        timeout: How many seconds may go by without a call.

    Raises:
        TimeoutError: Nothing was reported for so long.
    """
    known = {CALLS[name][0]: name for name in names}
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    while True:
        events = poll.poll(timeout * 1000)
        if not events:
            raise TimeoutError
        if not events[0][1] & select.POLLIN:
            return
        notification = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(listener, _RECEIVE, notification)
            each, thread, _, number, _, _, *arguments = _NOTIFICATION.unpack(notification)
            name = known[number]
            value, error, flags = 0, 0, _CONTINUE
            if not _must_succeed(name, arguments, thread) and fails(name):
                value, error, flags = (_heap_end(thread), 0, 0) if name == "brk" else (0, -CALLS[name][1], 0)
            fcntl.ioctl(listener, _SEND, _ANSWER.pack(each, value, error, flags))
        except OSError as gone:  # the thread has been killed meanwhile
            if gone.errno not in (errno.ENOENT, errno.EINTR):
                raise


def _must_succeed(name: str, arguments: list[int], thread: int) -> bool:
    """Return whether a call is one without which LLVM does not survive, or one that only asks.

    LLVM ends a process that cannot write to a file, so that its objects are written to memory; and it frees
    memory that it has told the unwinder of where that may not become code or constants, so that the system is
    asked first. What gives memory asks that it may be read and written.
    """
    if name == "mprotect":
        return arguments[2] != mmap.PROT_READ | mmap.PROT_WRITE
    if name == "write":
        with contextlib.suppress(OSError):
            return str(Path(f"/proc/{thread}/fd/{arguments[0]}").readlink()).startswith("/memfd:")
    return name == "brk" and not arguments[0]


def _heap_end(thread: int) -> int:
    """Return where the heap of a process ends, at the end of a page."""
    process = Path(f"/proc/{thread}")
    lines = [line for line in (process / "maps").read_text("utf-8").splitlines() if line.endswith("[heap]")]
    if not lines:  # it has none yet, and begins where the 47th word says
        return int((process / "stat").read_text("utf-8").rpartition(")")[2].split()[44])
    return int(lines[-1].split()[0].split("-")[1], 16)
