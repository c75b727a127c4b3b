"""Runs a tool in a child process, so that a crash inside of MLIR ends in a message and an exit code.

Passes of MLIR's abort the process where they meet what they did not expect, and no exception comes of that.
The child does all of the work, on the same streams; the parent waits, and hands its exit code on. Where the
system does not tell who sent a signal (Windows, macOS), the tool runs in this process.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

EXIT_CRASHED = 1

_STAGE_BYTES = 1024
_CRASHES = frozenset(
    getattr(signal, name)
    for name in ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGTRAP", "SIGSYS")
    if hasattr(signal, name)
)
_FORWARDED = frozenset(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)
)

#: What the child is doing, in memory that it shares with its parent; None in a process that nobody watches.
_stage: mmap.mmap | None = None


def tell_stage(stage: str) -> None:
    """Let a parent that watches know what is being done."""
    if _stage is not None:
        _stage[:] = stage.encode(errors="replace")[:_STAGE_BYTES].ljust(_STAGE_BYTES, b"\0")


def supervise(tool: str, run: Callable[[], object]) -> None:
    """Run ``run``, which ends in `SystemExit`, in a child process, and exit as the child does.

    Where the child crashes, that is said on standard error, with what it was doing, and the exit code is 1.
    """
    global _stage  # noqa: PLW0603 -- the memory is one a process, as its stage is
    if not hasattr(signal, "sigwaitinfo"):
        run()
        return
    _stage = mmap.mmap(-1, _STAGE_BYTES)
    alive, watched = os.pipe()
    # Where it is ignored, as some who start processes leave it, nobody is told that a child has ended.
    told = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*_FORWARDED, signal.SIGCHLD})
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGCHLD, told)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(watched)
        _die_with_parent(alive)
        run()
        return
    os.close(alive)
    code = _wait(child, tool)
    sys.stderr.flush()
    os._exit(code)  # the child has cleaned up; doing so again would take as long as the fork


def _die_with_parent(alive: int) -> None:
    """Ask for SIGIO, which ends a process, once the other end of a pipe is closed: its holder is gone."""
    import fcntl  # noqa: PLC0415 -- Windows has none

    with suppress(OSError, AttributeError):
        fcntl.fcntl(alive, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(alive, fcntl.F_SETFL, os.O_ASYNC | fcntl.fcntl(alive, fcntl.F_GETFL))


def _wait(child: int, tool: str) -> int:
    """Return the exit code for the end of ``child``; the signals to forward are blocked."""
    done, status = 0, 0
    while not done:
        received = signal.sigwaitinfo({*_FORWARDED, signal.SIGCHLD})
        # What the terminal or the kernel sends, the child is sent as well.
        if received.si_signo in _FORWARDED and received.si_code <= 0:
            os.kill(child, received.si_signo)
        done, status = os.waitpid(child, os.WNOHANG)
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code
    number = signal.Signals(-code)
    if number not in _CRASHES:
        return 128 + number  # what a shell says of a process that a signal ended
    stage = bytes(_stage or b"").rstrip(b"\0").decode(errors="replace")
    where = f" in {stage!r}" if stage else ""
    sys.stderr.write(
        f"{tool}: error: MLIR crashed{where} ({number.name}): it met something that it does not expect, "
        "and has no diagnostic for\n"
    )
    return EXIT_CRASHED
