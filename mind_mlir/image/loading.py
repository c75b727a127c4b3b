"""Images in the memory of this process."""

from __future__ import annotations

import ctypes
import functools
import mmap
import platform
from collections.abc import Callable

import numpy as np

from mind_mlir.image.errors import LoadingError
from mind_mlir.image.image import Image, load_64, store_64
from mind_mlir.image.pages import make_code, make_read_only
from mind_mlir.image.perf import announce

#: What systems call the machines of images.
_MACHINES = {"x86_64": "x86_64", "AMD64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
#: Where the functions are that code generators call: the process itself mostly has them.
_LIBRARIES = (None, "libm.so.6", "libm.so")

#: The machines whose cache of instructions does not see what is written to memory, and who tells it.
_SEPARATE, _RUNTIME = ("aarch64",), "libgcc_s.so.1"

#: What is written to is not shared with a child of this process.
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS

#: What a C library may not show to those who load code, by what is called in its place.
_OTHERWISE = {"pthread_atfork": "__register_atfork"}


def host_machine() -> str:
    """Return what images call this machine; the system's name for one that has none."""
    return _MACHINES.get(platform.machine(), platform.machine())


@functools.cache
def process_symbol(name: str) -> int | None:
    """Return the address of a function of the C library or of libm in this process, or None."""
    for library in _LIBRARIES:
        try:
            function = getattr(ctypes.CDLL(library), name)
        except (AttributeError, OSError, TypeError):
            continue
        return ctypes.cast(function, ctypes.c_void_p).value
    return process_symbol(_OTHERWISE[name]) if name in _OTHERWISE else None


class Loaded:
    """An image in memory, as long as this object lives.

    Attributes:
        address: Where it begins.
        image: The image.
    """

    def __init__(self, image: Image, resolve: Callable[[str], int | None] = process_symbol) -> None:
        """Load ``image``.

        Args:
            image: An image for this machine.
            resolve: Returns the address of an import by its name, or None.

        Raises:
            LoadingError: It is for another machine, or refers to what ``resolve`` does not know.
            UnsupportedError: E7104, a policy of the system lets no new code run.
            MemoryError: There is no memory for it.
            OSError: There is no descriptor for a file that it takes under such a policy.
            ValueError: The variable ``MIND_MLIR_PERF`` is wrong (see `perf`).
        """
        if image.machine != host_machine():
            raise LoadingError(f"the code is for {image.machine}, and this machine is a {host_machine()}")
        self.image = image
        try:
            self._memory = mmap.mmap(-1, max(image.size, 1), flags=_PRIVATE)
        except (OSError, ValueError) as error:
            raise MemoryError(f"{image.size} bytes for code could not be had") from error
        memory = np.frombuffer(self._memory, np.uint8)
        memory[: len(image.memory)] = np.frombuffer(image.memory, np.uint8)
        self.address = int(memory.ctypes.data)
        places = image.rebased.astype(np.int64)
        store_64(memory, places, load_64(memory, places) + self.address)
        for each in image.imports:
            found = resolve(each.symbol)
            if found is None:
                raise LoadingError(f"the code refers to {each.symbol}, which this process does not have")
            places = each.places.astype(np.int64)
            with np.errstate(over="ignore"):  # addresses are numbers modulo 2^64
                store_64(memory, places, load_64(memory, places) + np.uint64(found).astype(np.int64))
        del memory
        make_code(self.address, image.text)
        make_read_only(self.address + image.text, image.constants)
        if image.machine in _SEPARATE:
            _flush()(self.address, self.address + image.text)
        announce(self)

    def address_of(self, symbol: str) -> int:
        """Return where a symbol is; a `KeyError` where there is none."""
        return self.address + self.image.offset_of(symbol)


@functools.cache
def _flush() -> Callable[[int, int], object]:
    """Return what has a processor with separate caches run what has been written, from an address to another.

    That is a function of GCC's run-time library, which Linux installs with the C library or with C++'s. Where
    there is none, the system alone sees to it: it does where a page first becomes code.
    """
    try:
        flush = ctypes.CDLL(_RUNTIME).__clear_cache
    except (AttributeError, OSError):
        return lambda start, end: None
    flush.argtypes, flush.restype = (ctypes.c_void_p, ctypes.c_void_p), None
    call: Callable[[int, int], object] = flush
    return call
