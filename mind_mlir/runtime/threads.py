"""The number of threads that compiled code uses, and the pool that they stand in (`threads.mlir`)."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.diagnostics.display import brief
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.runtime.kept_images import find_image, keep_image, runtime_text
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.releasing import for_ever
from mind_mlir.support.resources import usable_cores
from mind_mlir.target.abi import PARALLEL_SYMBOL

if TYPE_CHECKING:
    from mind_mlir.codegen.library import NativeCode
    from mind_mlir.image.image import Image

#: More threads than any machine gains from.
MOST_THREADS = 1024

VARIABLE = "MIND_MLIR_NUM_THREADS"

#: How long an idle worker waits for more work before it sleeps. Waking it takes some tens of microseconds
#: (`python -m benchmarks.threads`); so between two loops a worker burns no more than a few times that.
SPIN_NS = 200_000

_TEXTS = ("threads", "threads_workers")
_MACHINES = {"x86_64": "threads_x86_64", "aarch64": "threads_aarch64"}
#: What the pool calls, and what tells of forks: under one name in glibc, under another in musl.
_CALLED = """
aligned_alloc clock_gettime free prctl pthread_create pthread_detach pthread_sigmask sched_yield sigdelset
sigfillset syscall
"""
#: What it is told and asked by, besides `PARALLEL_SYMBOL`.
_CONFIGURE, _FORKED = "mind_threads_configure", "mind_threads_forked"
_AT_FORK = ("__register_atfork", "pthread_atfork")


class NoPoolError(RuntimeError):
    """Code has loops that threads share, and there is no pool of them: compile it for one thread."""


@dataclass(frozen=True, slots=True)
class _Pool:
    """The pool of this process; its code stays until that ends, for threads may be running it.

    Attributes:
        address: Where what runs loops is.
        configure: Sets how many threads loops may use from now on.
    """

    address: int
    configure: Callable[[int], object]


def _loaded(image: Image) -> _Pool:
    """Return the pool of an image of the runtime's own texts."""
    from mind_mlir.image.loading import Loaded  # noqa: PLC0415 -- loads numpy, which the number of threads does without

    loaded = for_ever(Loaded(image))
    configure = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(loaded.address_of(_CONFIGURE))
    process = ctypes.CDLL(None)
    register = next(getattr(process, name) for name in _AT_FORK if hasattr(process, name))
    # Three handlers and, for glibc, the library that they stand in: none, since they are never unloaded.
    register(None, None, ctypes.c_void_p(loaded.address_of(_FORKED)), None)
    return _Pool(
        loaded.address_of(PARALLEL_SYMBOL),
        lambda threads: configure(threads, SPIN_NS, int(threads > usable_cores())),
    )


class _PoolState:
    """The thread settings of this process, and the pool once it is needed."""

    lock = threading.RLock()
    setting: int | None = None
    pool: _Pool | None = None
    #: Its code, where that is at hand.
    image: Image | None = None


if hasattr(os, "register_at_fork"):  # not on Windows
    _after = {"after_in_parent": _PoolState.lock.release, "after_in_child": _PoolState.lock.release}
    os.register_at_fork(before=_PoolState.lock.acquire, **_after)


@public
def set_num_threads(threads: int) -> None:
    """Set how many threads of this process compiled code may use at any time, those of callers included.

    Loops that start from now on see it, those of executables that exist as well. Where there is no pool for
    this system (see `is_available`), loops run on one thread whatever is set.

    Args:
        threads: 1 to 1024.

    Raises:
        TypeError: ``threads`` is no integer.
        ValueError: It is out of range.
    """
    count = check_threads(threads, "threads")
    with _PoolState.lock:
        _PoolState.setting = count
        if _PoolState.pool is not None:
            _PoolState.pool.configure(count)


@public
def get_num_threads() -> int:
    """Return how many threads compiled code may use.

    Unless `set_num_threads` has said so, this is the variable ``MIND_MLIR_NUM_THREADS`` and, without one, the
    number of cores that this process may run on: no more than the quota of its control group, in a container.

    Raises:
        ValueError: The variable is not an integer from 1 to 1024.
    """
    if not is_available():
        return 1
    setting = _PoolState.setting
    return _default() if setting is None else setting


def check_threads(threads: object, parameter: str) -> int:
    """Return a number of threads that somebody has asked for."""
    count = argument_checks.integer(threads, parameter)
    if not 1 <= count <= MOST_THREADS:
        raise ValueError(f"{parameter} must be between 1 and {MOST_THREADS}, not {count}")
    return count


def loop_threads(limit: int | None) -> int | None:
    """Return how many threads may share a loop of an executable, as `to_llvm` takes it.

    Raises:
        ValueError: The variable ``MIND_MLIR_NUM_THREADS`` is wrong, and nothing else is set.
    """
    get_num_threads()
    return limit if is_available() else 1


@functools.cache
def is_available() -> bool:
    """Return whether there is a thread pool for this system: Linux on 64-bit x86 or Arm."""
    if sys.platform != "linux" or os.uname().machine not in _MACHINES or sys.maxsize < 1 << 32:
        return False
    process = ctypes.CDLL(None)
    return all(hasattr(process, name) for name in _CALLED.split()) and any(
        hasattr(process, name) for name in _AT_FORK
    )


def begin_pool(limit: int | None) -> None:
    """Begin to make the pool if there is none yet, unless loops are to run on one thread.

    Where a core is idle, this takes less time than making it when the first loop needs it.
    """
    if _PoolState.pool is not None or not is_available() or limit == 1:
        return
    if min(get_num_threads(), usable_cores()) > 1 and _kept() is None:
        _begin()


def parallel_address() -> int:
    """Return where ``mind_parallel`` is, after making the pool if there is none yet.

    Raises:
        NoPoolError: There is none for this system, or what making it takes cannot be had now.
    """
    if not is_available():
        raise NoPoolError("there is no pool of threads for this system: lower with threads=1")
    try:
        return _made_pool()
    except Exception as error:
        raise NoPoolError(f"there is no pool of threads now: {error}") from error


def _made_pool() -> int:
    if _PoolState.pool is not None:
        return _PoolState.pool.address
    # Making code has a lock of its own. A fork takes all locks, in another order than doing this below would.
    found = _kept()
    if found is None:
        found = _PoolState.image = _begin().image()
        keep_image(_text(), None, found)
    with _PoolState.lock:
        return _use(partial(_loaded, found))


def shared_pool(address: int, configure: int, code: object) -> int:
    """Return where what runs loops in this process is, for code that brings a pool of its own.

    Where there is none yet, and none is kept, it is that of the code: making one takes MLIR, which loading
    code does without. The code then stays until the process ends.

    Args:
        address: Where the code's own `mind_parallel` is.
        configure: Where its function is that sets the number of threads, ``void (int)``.
        code: What keeps it in memory.

    Raises:
        ValueError: The variable ``MIND_MLIR_NUM_THREADS`` is wrong, and nothing else is set.
    """
    found = None if _PoolState.pool is not None else _kept()
    own = _Pool(address, ctypes.CFUNCTYPE(None, ctypes.c_int)(configure))
    with _PoolState.lock:
        used = _use(partial(_loaded, found) if found is not None else lambda: own)
    if used == address:
        for_ever(code)
    return used


def _use(make: Callable[[], _Pool]) -> int:
    """Return where what runs loops is, after making the pool if need be; the caller holds the lock."""
    if _PoolState.pool is None:
        count = get_num_threads()
        pool = make()
        pool.configure(count)
        _PoolState.setting, _PoolState.pool = count, pool
    return _PoolState.pool.address


def _begin() -> NativeCode:
    from mind_mlir.codegen.library import begin  # noqa: PLC0415 -- MLIR, which the number of threads does without

    return begin(_text(), opt_level=0, anywhere=True)


def own_image() -> tuple[str, Image] | None:
    """Return the text of the pool of this process, and its code; None where there is none."""
    found = _kept() if is_available() else None
    return None if found is None else (_text(), found)


def _kept() -> Image | None:
    """Return the code of the pool where that has been kept."""
    if _PoolState.image is None:
        found = find_image(_text(), None)
        names = set() if found is None else {symbol.name for symbol in found.symbols}
        _PoolState.image = found if names.issuperset((PARALLEL_SYMBOL, _CONFIGURE, _FORKED)) else None
    return _PoolState.image


def _text() -> str:
    return runtime_text(*_TEXTS, _MACHINES[os.uname().machine])


def _default() -> int:
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return min(usable_cores(), MOST_THREADS)
    if not (text.isascii() and text.isdecimal() and len(text) <= argument_checks.MAX_DIGITS):
        raise ValueError(f"the variable {VARIABLE} must be an integer, not {brief(repr(text))}")
    return check_threads(int(text), f"the variable {VARIABLE}")
