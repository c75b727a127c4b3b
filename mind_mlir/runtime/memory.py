"""Memory for outputs and scratch arenas that comes back when it is no longer used.

The first touch of a page that is fresh from the system takes 1 to 2 us, for most outputs longer than what is
written there. `Pool` keeps the blocks of arrays that have died and hands them out again, up to a limit; the
ones not used for longest go back to the system first.

Nothing here takes a lock: blocks come back in finalizers, which the garbage collector may run at any
allocation in any thread, also in the middle of another function of the pool. All state is in deques and dicts
whose single operations are atomic, and every block is in exactly one place.

No finalizer runs Python code: a signal's handler would run in it, and what it raises be lost. So what comes
back is put into a deque of bounded length, one for each size, and no more; what all sizes have together
beyond the limit goes when memory is asked for again.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import mmap
import sys
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.releasing import at_release
from mind_mlir.support.resources import memory_left, memory_limit
from mind_mlir.target.abi import ALIGNMENT

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

#: Arrays of fewer bytes are numpy's own: the C library reuses small memory without giving it back between.
POOLED = 1 << 15
#: Blocks of at least this size lie on huge pages where the system has them: these take a fifth of the time to
#: touch first, and no longer afterwards.
_HUGE_PAGE = 1 << 21
#: Before blocks of at least this size, what compiling has left in the heap goes back to the system: that
#: takes no longer than touching them first.
_TRIMMING = 1 << 19
_PRIVATE = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
#: The part of the memory that this process may use of which so much may be idle.
_IDLE_SHARE = 8
#: How often memory is asked for between two looks at what the system has left: a look takes 50 us.
_LOOK_EVERY = 256


@dataclass(frozen=True, slots=True)
class MemoryInfo:
    """The memory of outputs and intermediate values, in bytes.

    Attributes:
        in_use: Memory of living arrays and running calls. An array of less than 32 KB counts for nothing.
        idle: Memory that waits to be used again.
        limit: What `idle` is kept below.
    """

    in_use: int
    idle: int
    limit: int


class _Block:
    """A piece of memory from the system, which goes back there when this object dies.

    Attributes:
        address: Where it begins: at a multiple of 64, and of 2 MB if it has huge pages.
        since: A number that grows from one use of any block to the next.
        lease: The one that has it, or had it last.
    """

    __slots__ = ("__weakref__", "_memory", "address", "lease", "since")

    def __init__(self, size: int) -> None:
        align = _HUGE_PAGE if size >= _HUGE_PAGE else ALIGNMENT
        slack = align if align > mmap.PAGESIZE else 0
        self._memory = _map(size + slack)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.address = -(-start // align) * align
        self.since = 0
        self.lease: Callable[[], _Lease | None] = _nobody
        if slack and hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # the system may have none
                self._memory.madvise(mmap.MADV_HUGEPAGE, self.address - start, size // align * align)


def _nobody() -> None:
    return None


class _Lease(ctypes.Array):  # type: ignore[type-arg] # a type argument is the same class while running, and slower
    """The memory of one array: numpy's base of it, which gives the block back when the last view has died.

    What does so is a function of C, each instance's own. Each size has a subclass, since ctypes wants the
    length of an array in its type.
    """

    __slots__ = ("__del__", "__weakref__")
    _length_ = 0
    _type_ = ctypes.c_ubyte


class _Kind:
    """The blocks of one size in a pool.

    Attributes:
        size: Theirs, in bytes.
        idle: Those that nobody uses, the one that came back last at the right. One too many drives out
            the one at the left.
    """

    __slots__ = ("_lease", "_pool", "idle", "size")

    def __init__(self, size: int, pool: Pool) -> None:
        self.size = size
        self.idle: deque[_Block] = deque(maxlen=pool.limit // size)
        self._pool = pool
        self._lease: Any = type("_Lease", (_Lease,), {"__slots__": (), "_length_": size})

    def take(self) -> Any:
        """Return a lease of a block, as a buffer."""
        pool = self._pool
        try:
            block = self.idle.pop()
        except IndexError:
            block = pool.fresh(self.size)
        block.since = next(pool.ticks)
        lease = self._lease.from_address(block.address)
        self.return_to(lease, block)
        if pool.size > pool.limit:
            pool.trim(pool.limit)
        if not block.since % _LOOK_EVERY:
            pool.leave_room(0)
        return lease

    def return_to(self, lease: Any, block: _Block) -> None:
        """Let ``block`` come back here when ``lease`` dies."""
        block.lease = weakref.ref(lease)
        lease.__del__ = partial(self.idle.append, block)

    def resize(self) -> None:
        """Keep as many blocks as the limit of the pool has room for now."""
        self.idle = deque(self.idle, self._pool.limit // self.size)


class Pool:
    """Blocks of memory that are used again and again, by any number of threads.

    Attributes:
        limit: How many bytes may be idle.
        size: How many bytes there are, in use and idle, or more: it is counted when blocks are added.
        ticks: Numbers for blocks that are used.
        leftover: Whether something has been compiled since the heap has been trimmed: some megabytes of it
            are free then. Compiling again uses these, so they stay until a call needs memory.
    """

    def __init__(self, limit: int | None = None) -> None:
        """Make an empty pool."""
        self._limit = limit
        self.size = 0
        self.leftover = False
        self.ticks = itertools.count(1)
        self._kinds: dict[int, _Kind] = {}
        # The sizes of all blocks. A block that dies takes itself out, by a function of C.
        self._sizes: dict[weakref.ref[_Block], int] = {}

    @property
    def limit(self) -> int:
        """Return how many bytes may be idle."""
        if self._limit is None:
            self._limit = memory_limit() // _IDLE_SHARE
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        self._limit = limit
        kinds = self._kinds.copy()
        for kind in kinds.values():
            kind.resize()
        for found, size in self._sizes.copy().items():
            block = found()
            lease = None if block is None else block.lease()
            if block is not None and lease is not None:
                kinds[size].return_to(lease, block)
        self.trim(limit)

    def allocator(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Callable[[], Array]:
        """Return a function that makes arrays of ``shape`` and ``dtype`` with no particular contents.

        They are C-contiguous, aligned and writeable. The function raises `MemoryError` where there is no
        memory; it must not be called for more elements than an address space has.
        """
        shape = tuple(shape)
        count = math.prod(shape) * dtype.itemsize
        if count < POOLED:
            return partial(np.empty, shape, dtype)
        array, take = np.ndarray, self._kind(count).take
        return lambda: array(shape, dtype, take())

    def scratch(self, size: int) -> Scratch:
        """Return memory of ``size`` bytes at a multiple of 64; it comes back when the object dies."""
        return Scratch(self._kind(size).take())

    def info(self) -> MemoryInfo:
        """Return how much memory is in use and idle now."""
        self.trim(self.limit)
        idle = self._idle_bytes()
        return MemoryInfo(max(0, self._counted() - idle), idle, self.limit)

    def trim(self, limit: int) -> None:
        """Give idle blocks back to the system until they are at most ``limit`` bytes."""
        while self._idle_bytes() > limit:
            ages = []
            for kind in self._kinds.copy().values():
                with suppress(IndexError):  # it has none
                    ages.append((kind.idle[0].since, kind.idle))
            if ages:
                oldest = min(ages, key=itemgetter(0))[1]
                with suppress(IndexError):  # others were quicker
                    oldest.popleft()

    def fresh(self, size: int) -> _Block:
        """Return a block that is new from the system."""
        if self.leftover and size >= _TRIMMING:
            self.leftover = False
            trim_heap()
        if size >= _TRIMMING:
            self.leave_room(size)
        try:
            block = _Block(size)
        except MemoryError:
            self.trim(0)
            block = _Block(size)
        self._sizes[weakref.ref(block, self._sizes.pop)] = size
        while self.size != (size := self._counted()):  # once more if another thread has counted meanwhile
            self.size = size
        return block

    def leave_room(self, size: int) -> None:
        """Keep no more idle than the system has left besides, once it has given ``size`` bytes."""
        left = memory_left() if any(kind.idle for kind in self._kinds.copy().values()) else None
        if left is not None:
            self.trim(max(0, left - size))

    def _kind(self, size: int) -> _Kind:
        rounded = size_class(size)
        kind = self._kinds.get(rounded)
        return kind if kind is not None else self._kinds.setdefault(rounded, _Kind(rounded, self))

    def _idle_bytes(self) -> int:
        return sum(len(kind.idle) * kind.size for kind in self._kinds.copy().values())

    def _counted(self) -> int:
        return sum(self._sizes.copy().values())


class Scratch:
    """Memory of one running call, which comes back when this object dies.

    Attributes:
        address: Where it begins, a multiple of 64.
    """

    __slots__ = ("_lease", "address")

    def __init__(self, lease: Any) -> None:
        self._lease = lease
        self.address = ctypes.addressof(lease)


def size_class(size: int) -> int:
    """Return how large a block for ``size`` bytes is: of whole pages, and at most an eighth larger."""
    step = max(mmap.PAGESIZE, 1 << max(0, size.bit_length() - 4))
    return min(-(-size // step) * step, sys.maxsize)  # which no system has


def _map(size: int) -> mmap.mmap:
    try:
        return mmap.mmap(-1, size, flags=_PRIVATE) if _PRIVATE else mmap.mmap(-1, size)
    except (OSError, OverflowError, ValueError) as error:
        raise MemoryError(f"{size} bytes could not be had") from error


def _heap_trimmer() -> Callable[[int], int] | None:
    """Return the function of the C library that gives its free memory back; only glibc has one."""
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return trim


_trim_heap = _heap_trimmer()


def trim_heap() -> None:
    """Give the memory back to the system that is free in the C library's heap."""
    if _trim_heap is not None:
        _trim_heap(0)


#: The pool of this process.
pool = Pool()


@public
def memory_info() -> MemoryInfo:
    """Return how much memory outputs and intermediate values of compiled functions take at the moment."""
    return pool.info()


@public
def release_memory() -> None:
    """Give all memory back to the system that waits to be used again; also what compiling has left behind."""
    pool.trim(0)
    for release in at_release:
        release()
    pool.leftover = False
    trim_heap()


@public
def set_memory_limit(limit: int) -> None:
    """Set how many bytes may wait to be used again in this process.

    By default that is an eighth of the memory that it may use: that of the machine, or less where control
    groups, as containers have, or limits on the process (``ulimit -v``, ``ulimit -d``) leave it less.

    Raises:
        TypeError: ``limit`` is not an integer.
        ValueError: It is negative.
    """
    count = argument_checks.integer(limit, "limit")
    if count < 0:
        raise ValueError(f"limit must be a number of bytes, not {count}")
    pool.limit = count
