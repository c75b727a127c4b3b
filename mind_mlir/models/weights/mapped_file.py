"""A file in memory, as the system maps it: pages are read when they are touched, and shared by processes."""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import stat
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.nested import MAX_DEPTH
from mind_mlir.models.weights.errors import WeightsProblem

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

#: No address space has more bytes.
_MOST_BYTES = 1 << 62


class MappedFile:
    """A regular file, mapped to be read; links are followed.

    The map stays as long as an array of it does. Who shortens the file meanwhile ends the process that reads
    what is gone (SIGBUS), as with any map.

    Attributes:
        path: Where it is.
        size: How many bytes it has.
    """

    def __init__(self, path: str, directory: int | None = None) -> None:
        """Map the file at ``path``, seen from an open directory where one is given.

        Raises:
            WeightsProblem: It cannot be opened, is empty, or is no regular file.
        """
        self.path = path
        try:
            # What is no file, such as a pipe that nobody writes to, must not be waited for.
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK, dir_fd=directory)
        except (OSError, ValueError) as error:  # such as a NUL character in the path
            raise WeightsProblem(getattr(error, "strerror", None) or str(error)) from None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise WeightsProblem("it is no regular file")
            if not status.st_size:
                raise WeightsProblem("it is empty")
            self.size = status.st_size
            self._map = mmap.mmap(descriptor, self.size, access=mmap.ACCESS_READ)
            _in_large_pages(self._map)
        except (OSError, ValueError) as error:  # there is no address space, or the file has become shorter
            raise WeightsProblem(getattr(error, "strerror", None) or str(error)) from None
        finally:
            os.close(descriptor)

    def bytes(self, offset: int, count: int) -> bytes:
        """Return a copy of some bytes.

        Raises:
            WeightsProblem: The file has fewer.
        """
        if not 0 <= offset <= offset + count <= self.size:
            raise WeightsProblem(f"it ends at byte {self.size}, before byte {offset + count}")
        return self._map[offset : offset + count]

    def bytes_in_place(self, count: int) -> memoryview:
        """Return the first bytes as they are mapped, all of them or as many as there are."""
        return memoryview(self._map)[:count]

    def unpack(self, form: str, offset: int) -> tuple[Any, ...]:
        """Return numbers as `struct.unpack_from` has them.

        Raises:
            WeightsProblem: The file ends before.
        """
        try:
            return struct.unpack_from(form, self._map, offset)
        except (struct.error, OverflowError):
            raise WeightsProblem(f"it ends at byte {self.size}, before byte {offset}") from None

    def array(self, offset: int, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
        """Return an array of the file that cannot be written to.

        It is a view of the map where the processor can read its elements as they lie; where the file has
        them at odd places, it is a copy.

        Raises:
            WeightsProblem: The file ends before, or no array has that shape.
        """
        count = size_of(shape, dtype.itemsize) // dtype.itemsize
        if not 0 <= offset <= offset + count * dtype.itemsize <= self.size:
            raise WeightsProblem(
                f"it ends at byte {self.size}, before byte {offset + count * dtype.itemsize}"
            )
        flat = np.frombuffer(self._map, dtype, count, offset) if count else np.empty(0, dtype)
        return settled(flat.reshape(shape))


def _in_large_pages(map_: mmap.mmap) -> None:
    """Ask for large pages: what then comes from the disk lies in these, and is read faster by half."""
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a system that has none
            map_.madvise(mmap.MADV_HUGEPAGE)


def size_of(shape: Sequence[int], itemsize: int) -> int:
    """Return how many bytes an array has.

    Raises:
        WeightsProblem: There is no array of that shape.
    """
    if len(shape) > MAX_DEPTH:
        raise WeightsProblem(f"a tensor has {len(shape)} dimensions, and arrays have at most {MAX_DEPTH}")
    # numpy wants even an empty array to have extents whose product, without the zeros, is a size.
    if math.prod(extent or 1 for extent in shape) * itemsize > _MOST_BYTES:
        raise WeightsProblem("a tensor has more bytes than any memory")
    return math.prod(shape) * itemsize


def settled(array: Array) -> Array:
    """Return an array in row-major order, whose elements lie as the processor reads them, not to be written.

    It is a copy only where it has to be: one copy now is less than one in each call.
    """
    result = np.require(array, requirements=("C", "A"))
    if result.flags.writeable:
        result.setflags(write=False)
    return result
