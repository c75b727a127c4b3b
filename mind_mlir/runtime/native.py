"""Compiled functions at the level of pointers.

Nothing is checked here: a wrong pointer corrupts memory. `CompiledFunction` checks arrays before they come
here.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.image.loading import Loaded, process_symbol
from mind_mlir.runtime.collective_calls import collective_address
from mind_mlir.runtime.memory import POOLED, pool
from mind_mlir.runtime.threads import parallel_address
from mind_mlir.target.abi import ALIGNMENT, CLOCK_SYMBOL, COLLECTIVE_SYMBOL, PARALLEL_SYMBOL, PYTHON_SYMBOLS

if TYPE_CHECKING:
    from mind_mlir.image.compiled import Data
    from mind_mlir.image.image import Image
    from mind_mlir.ir.attributes import Array

# A foreign function of this type runs without the interpreter lock.
_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
#: How many frames a function keeps between calls.
_IDLE = 16


class Frame:
    """The memory of one running call: the table of the addresses of its buffers, and a small arena.

    A large arena is not kept with it: it comes from the pool, where other functions find it after the call.

    Attributes:
        values: The table.
        address: Where that is.
    """

    __slots__ = ("_arena", "address", "values")

    def __init__(self, pointers: int, scratch_bytes: int) -> None:
        self.values = (ctypes.c_void_p * (pointers + 1))()
        if scratch_bytes < POOLED:
            self._arena = np.empty(scratch_bytes + ALIGNMENT, np.uint8)
            self.values[pointers] = -(-self._arena.ctypes.data // ALIGNMENT) * ALIGNMENT
        self.address = ctypes.addressof(self.values)


class NativeModule:
    """Machine code of a module in the memory of this process, which it is for.

    The code lives as long as this object or one of its functions.
    """

    def __init__(self, image: Image, data: Sequence[Data] = ()) -> None:
        """Load code, with the large constants that it imports.

        Raises:
            NoPoolError: Threads are to share its loops, and there is no pool of them.
            LoadingError: It is for another machine, or refers to what this process does not have.
            MemoryError: There is no memory for it.
        """
        self._data = {each.symbol: _in_place(each) for each in data}
        self._loaded = Loaded(image, self._address)

    def address_of(self, symbol: str) -> int:
        """Return where a function is; a `KeyError` where there is none of that name."""
        return self._loaded.address_of(symbol)

    def _address(self, symbol: str) -> int | None:
        if symbol in self._data:
            return int(self._data[symbol].ctypes.data)
        if symbol == PARALLEL_SYMBOL:
            return parallel_address()
        if symbol == COLLECTIVE_SYMBOL:
            return collective_address()
        return _python_address(symbol) if symbol in PYTHON_SYMBOLS else process_symbol(symbol)


def _python_address(name: str) -> int | None:
    """Return the address of a function of CPython, or None."""
    function = getattr(ctypes.pythonapi, name, None)
    return None if function is None else ctypes.cast(function, ctypes.c_void_p).value


@functools.cache
def has_python_functions() -> bool:
    """Return whether loops can look for interrupts: this process has what they call."""
    return bool(process_symbol(CLOCK_SYMBOL)) and all(map(_python_address, PYTHON_SYMBOLS))


class NativeFunction:
    """Machine code of one function, and the scratch memory of its calls.

    Attributes:
        pointers: Number of addresses that a call takes: inputs, outputs, and the status if there is one.
        scratch_bytes: Size of the scratch arena that each running call uses.
        address: Where the code is, an entry as `mind_mlir.target.abi` describes it.
        fixed: Arrays that are the same in all calls, by their places; no call is given these.
    """

    def __init__(
        self,
        module: NativeModule,
        symbol: str,
        pointers: int,
        scratch_bytes: int,
        fixed: Mapping[int, Array] | None = None,
    ) -> None:
        """Take a function from a module that is loaded; a `KeyError` where it has none of that name."""
        self._module = module
        self.fixed = dict(sorted((fixed or {}).items()))
        self._inserted = [(place, int(array.ctypes.data)) for place, array in self.fixed.items()]
        self.pointers, self.scratch_bytes = pointers, scratch_bytes
        self.address = module.address_of(symbol)
        self._invoke = _ENTRY(self.address)
        self._pack = struct.Struct(f"{pointers}P").pack_into
        self._takes_scratch = scratch_bytes >= POOLED
        self._idle: deque[Frame] = deque(maxlen=_IDLE)  # appending and popping are atomic

    def call(self, pointers: Iterable[int]) -> None:
        """Run the function; any number of threads may do so at the same time.

        Args:
            pointers: Addresses of the inputs, which are only read, then of the outputs. All are contiguous,
                aligned for their element type, of exactly the compiled types; outputs overlap nothing.

        Raises:
            ValueError: There are more or fewer than `pointers`, or one is not an integer.
            MemoryError: There is no memory for the arena.
        """
        try:
            frame = self._idle.pop()
        except IndexError:
            frame = Frame(self.pointers, self.scratch_bytes)
        if self._inserted:
            pointers = [*pointers]
            for place, address in self._inserted:
                pointers.insert(place, address)
        try:
            self._pack(frame.values, 0, *pointers)
        except struct.error as error:
            raise ValueError(f"the function takes {self.pointers} pointers: {error}") from None
        if self._takes_scratch:
            scratch = pool.scratch(self.scratch_bytes)
            frame.values[self.pointers] = scratch.address
        self._invoke(frame.address)
        self._idle.append(frame)


def _in_place(data: Data) -> Array:
    """Return the bytes of a constant where its code may read them: mostly where they are."""
    found = np.frombuffer(data.data, np.uint8)
    if not data.aligned or found.ctypes.data % ALIGNMENT == 0:
        return found
    memory = np.empty(found.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    copy = memory[start : start + found.nbytes]
    copy[:] = found
    return copy
