"""Memory for outputs and scratch arenas that comes back when it is no longer used.

The first touch of a page that is fresh from the system takes 1 to 2 us, for most outputs longer than what is
written there. `Pool` keeps the blocks of arrays that have died and hands them out again, up to a limit; the
ones not used for longest go back to the system first.

Nothing here takes a lock: blocks come back in finalizers, which the garbage collector may run at any
allocation in any thread, also in the middle of another function of the pool. All state is in deques and dicts
whose single operations are atomic, and every block is in exactly one place.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import mmap
import os
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir import border
from mind_mlir.abi import ALIGNMENT
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.releasing import at_release

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
#: Where the physical memory is not known.
_ASSUMED_MEMORY = 1 << 33


@dataclass(frozen=True, slots=True)
class MemoryInfo:
    """What the memory of outputs and intermediate values comes to, in bytes.

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
        since: A number that grows from one return of any block to the next.
    """

    __slots__ = ("_memory", "_sizes", "address", "since")

    def __init__(self, size: int, sizes: dict[int, int]) -> None:
        """Get ``size`` bytes, whose number stands in ``sizes`` by address as long as they are had."""
        align = _HUGE_PAGE if size >= _HUGE_PAGE else ALIGNMENT
        slack = align if align > mmap.PAGESIZE else 0
        self._sizes = sizes
        self._memory = _map(size + slack)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.address = -(-start // align) * align
        self.since = 0
        sizes[self.address] = size
        if slack and hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # the system may have none
                self._memory.madvise(mmap.MADV_HUGEPAGE, self.address - start, size // align * align)

    def __del__(self) -> None:
        self._sizes.pop(getattr(self, "address", 0), None)


class _Lease(ctypes.Array):  # type: ignore[type-arg] # a type argument is the same class while running, and slower
    """The memory of one array: numpy's base of it, which gives the block back when the last view has died.

    Each size has a subclass, since ctypes wants the length of an array in its type.
    """

    _length_ = 0
    _type_ = ctypes.c_ubyte
    kind: _Kind
    block: _Block | None = None  # while it is being made

    def __del__(self) -> None:
        if self.block is not None:
            self.kind.give(self.block)


class _Kind:
    """The blocks of one size in a pool.

    Attributes:
        size: Theirs, in bytes.
        idle: Those that nobody uses, the one used last at the right.
    """

    __slots__ = ("_lease", "_pool", "idle", "size")

    def __init__(self, size: int, pool: Pool) -> None:
        self.size = size
        self.idle: deque[_Block] = deque()
        self._pool = pool
        self._lease: Any = type("_Lease", (_Lease,), {"_length_": size, "kind": self})

    def take(self) -> Any:
        """Return a lease of a block, as a buffer."""
        try:
            block = self.idle.pop()
        except IndexError:
            block = self._pool.fresh(self.size)
        lease = self._lease.from_address(block.address)
        lease.block = block
        return lease

    def give(self, block: _Block) -> None:
        """Take a block back; this may run anywhere (see the module)."""
        pool = self._pool
        if self.size > pool.limit:
            return
        block.since = next(pool.ticks)
        self.idle.append(block)
        if pool.size > pool.limit:
            pool.trim(pool.limit)


class Pool:
    """Blocks of memory that are used again and again, by any number of threads.

    Attributes:
        limit: How many bytes may be idle.
        size: How many bytes there are, in use and idle, or more: it is counted when blocks are added.
        ticks: Numbers for blocks that come back.
        leftover: Whether something has been compiled since the heap has been trimmed: some megabytes of it
            are free then. Compiling again uses these, so they stay until a call needs memory.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.leftover = False
        self.ticks = itertools.count()
        self._kinds: dict[int, _Kind] = {}
        self._sizes: dict[int, int] = {}  # of all blocks by address

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
        """Return memory of ``size`` bytes at a multiple of 64; it comes back when the object dies.

        Raises:
            MemoryError: There is none.
        """
        return Scratch(self._kind(size).take())

    def info(self) -> MemoryInfo:
        """Return how much memory is in use and idle now."""
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
        try:
            block = _Block(size, self._sizes)
        except MemoryError:
            self.trim(0)
            block = _Block(size, self._sizes)
        while self.size != (size := self._counted()):  # once more if another thread has counted meanwhile
            self.size = size
        return block

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


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return _ASSUMED_MEMORY


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
pool = Pool(_physical_memory() // 8)


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
    """Set how many bytes may wait to be used again in this process; an eighth of the memory by default.

    Raises:
        TypeError: ``limit`` is not an integer.
        ValueError: It is negative.
    """
    count = border.integer(limit, "limit")
    if count < 0:
        raise ValueError(f"limit must be a number of bytes, not {count}")
    pool.limit = count
    pool.trim(count)
