"""`NativeFunction`: a compiled function at the level of pointers.

Nothing is checked here: a wrong pointer corrupts memory. `Executable` checks arrays before it comes here.
"""

from __future__ import annotations

import ctypes
import struct
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.abi import ALIGNMENT, SCRATCH_ATTRIBUTE, TABLE_ATTRIBUTE
from mind_mlir.bindings import ExecutionEngine, ir
from mind_mlir.interrupts import held
from mind_mlir.runtime.constants import Constants

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mind_mlir.bindings import Module, Operation

# A foreign function of this type runs without the interpreter lock.
_PACKED = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Frame:
    """What one running call needs: the pointers to the buffers, how they are passed, and a scratch arena."""

    __slots__ = ("_arena", "_arguments", "_table", "address", "values")

    def __init__(self, parameters: int, scratch_bytes: int, *, takes_table: bool) -> None:
        word = ctypes.sizeof(ctypes.c_void_p)
        self._arena = np.empty(scratch_bytes + ALIGNMENT, np.uint8)
        self.values = (ctypes.c_void_p * (parameters + 1))()
        self.values[parameters] = -(-self._arena.ctypes.data // ALIGNMENT) * ALIGNMENT
        first = ctypes.addressof(self.values)
        self._table = ctypes.c_void_p(first)
        arguments = [first + word * index for index in range(parameters + 1)]
        if takes_table:
            arguments = [ctypes.addressof(self._table)]
        self._arguments = (ctypes.c_void_p * len(arguments))(*arguments)
        self.address = ctypes.addressof(self._arguments)


class NativeFunction:
    """Machine code of one function, for the processor it was made on, in the memory of this process.

    The code and the scratch memory live as long as this object.

    Attributes:
        parameters: Number of pointers that a call takes: inputs, then outputs.
        scratch_bytes: Size of the scratch arena that each running call uses.
        address: Where the code is: a C function ``void (void **arguments)``, whose argument points to the
            addresses of the values of the function's arguments (see `write_object`).
        takes_table: Whether those are one pointer, to the table of all.
    """

    @held()
    def __init__(
        self, module: Module, *, opt_level: int = 3, entry: str = "main", standalone: bool = False
    ) -> None:
        """Compile function ``entry`` of an LLVM dialect module, as `to_llvm` leaves it.

        Args:
            module: Loses the data of large constants, unless ``standalone``; may be dropped afterwards.
            opt_level: LLVM's optimisation level, 0 to 3.
            entry: The name of a public function.
            standalone: Make code that an object file can hold: position-independent, all constants inside.
        """
        attributes = module.operation.attributes
        self.scratch_bytes = int(ir.IntegerAttr(attributes[SCRATCH_ATTRIBUTE]).value)
        function = _find(module, entry)
        self.takes_table = TABLE_ATTRIBUTE in function.attributes
        self.parameters = _count_pointers(function) - 1
        self._constants = None if standalone else Constants(module)
        self._engine = ExecutionEngine(module, opt_level=opt_level, enable_pic=standalone)
        if self._constants is not None:
            self._constants.define_in(self._engine)
        self.address = int(self._engine.raw_lookup(entry))
        self._invoke = _PACKED(self.address)
        self._pack = struct.Struct(f"{self.parameters}P").pack_into
        self._idle: deque[Frame] = deque()  # appending and popping are atomic

    def call(self, pointers: Iterable[int]) -> None:
        """Run the function; any number of threads may do so at the same time.

        Args:
            pointers: Addresses of the inputs, which are only read, then of the outputs. All are contiguous,
                aligned for their element type, of exactly the compiled types; outputs overlap nothing.

        Raises:
            ValueError: There are more or fewer than `parameters`, or one is not an integer.
        """
        try:
            frame = self._idle.pop()
        except IndexError:
            frame = Frame(self.parameters, self.scratch_bytes, takes_table=self.takes_table)
        try:
            self._pack(frame.values, 0, *pointers)
        except struct.error as error:
            raise ValueError(f"the function takes {self.parameters} pointers: {error}") from None
        self._invoke(frame.address)
        self._idle.append(frame)

    @held()
    def write_object(self, path: Path) -> None:
        """Write the machine code as an object file; it can be linked if the function is ``standalone``.

        The function's name is that of ``entry``: a C function that takes the pointers to inputs, outputs and
        a scratch arena of `scratch_bytes` at a multiple of 64, in this order. If these are more than 64
        pointers, it takes one argument instead, a pointer to an array of them.
        """
        self._engine.dump_to_object_file(str(path))


def _find(module: Module, entry: str) -> Operation:
    for op in module.body.operations:
        if op.operation.name == "llvm.func" and ir.StringAttr(op.attributes["sym_name"]).value == entry:
            return op
    raise ValueError(f"the module does not define @{entry}")


def _count_pointers(function: Operation) -> int:
    """Return how many pointers ``function`` is given, as arguments or in a table."""
    if TABLE_ATTRIBUTE in function.attributes:
        return int(ir.IntegerAttr(function.attributes[TABLE_ATTRIBUTE]).value)
    return len(function.regions[0].blocks[0].arguments)
