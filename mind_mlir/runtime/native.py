"""Compiled functions at the level of pointers.

Nothing is checked here: a wrong pointer corrupts memory. `CompiledFunction` checks arrays before they come
here.
"""

from __future__ import annotations

import ctypes
import struct
from collections import deque
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mind_mlir.abi import ALIGNMENT, SCRATCH_ATTRIBUTE, TABLE_ATTRIBUTE
from mind_mlir.bindings import ir
from mind_mlir.interrupts import held
from mind_mlir.runtime.code import MachineCode
from mind_mlir.runtime.memory import POOLED, pool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from mind_mlir.bindings import Module, Operation
    from mind_mlir.mlir.references import References
    from mind_mlir.target import Target

# A foreign function of this type runs without the interpreter lock.
_PACKED = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
#: How many frames a function keeps between calls.
_IDLE = 16


class Frame:
    """What one running call needs: the pointers to the buffers, how they are passed, and a small arena.

    A large arena is not kept with it: it comes from the pool, where other functions find it after the call.
    """

    __slots__ = ("_arena", "_arguments", "_table", "address", "values")

    def __init__(self, parameters: int, scratch_bytes: int, *, takes_table: bool) -> None:
        word = ctypes.sizeof(ctypes.c_void_p)
        self.values = (ctypes.c_void_p * (parameters + 1))()
        if scratch_bytes < POOLED:
            self._arena = np.empty(scratch_bytes + ALIGNMENT, np.uint8)
            self.values[parameters] = -(-self._arena.ctypes.data // ALIGNMENT) * ALIGNMENT
        first = ctypes.addressof(self.values)
        self._table = ctypes.c_void_p(first)
        arguments = [first + word * index for index in range(parameters + 1)]
        if takes_table:
            arguments = [ctypes.addressof(self._table)]
        self._arguments = (ctypes.c_void_p * len(arguments))(*arguments)
        self.address = ctypes.addressof(self._arguments)


class NativeModule:
    """Machine code of a module, for the processor it was made on, in the memory of this process.

    The code lives as long as this object or one of its functions.
    """

    @held()
    def __init__(
        self,
        module: Module,
        *,
        opt_level: int = 3,
        standalone: bool = False,
        together: bool = False,
        target: Target | None = None,
        references: References | None = None,
    ) -> None:
        """Compile an LLVM dialect module, as `to_llvm` leaves it.

        Args:
            module: May be dropped afterwards; loses what `MachineCode` says.
            opt_level: The most that LLVM optimises, 0 to 3.
            standalone: Make code that an object file can hold: position-independent, all constants inside.
            together: Make one piece of code, which `write_object` can write.
            target: As `MachineCode` takes it.
            references: The data of constants that the module knows by name only.

        Raises:
            RuntimeError: Threads are to share its loops, and there is no pool of them for this system.
            InternalError: LLVM does not take the module, or it refers to what this process does not have.
        """
        self.signatures: Mapping[str, _Signature] = MappingProxyType(_signatures(module))
        self._code = MachineCode(
            module,
            opt_level=opt_level,
            standalone=standalone,
            together=together,
            target=target,
            references=references,
        )

    def address_of(self, function: str) -> int:
        """Return where the code of a function is (see `NativeFunction.address`)."""
        return self._code.address_of(function)

    @held()
    def write_object(self, path: Path) -> None:
        """Write the machine code as an object file; it can be linked if it was made ``standalone``.

        It was made so, or ``together``.

        Functions have the names that they have in the module: C functions that take the pointers to inputs,
        outputs and a scratch arena of `NativeFunction.scratch_bytes` at a multiple of 64, in this order. If
        these are more than 64 pointers, they take one argument instead, a pointer to an array of them.
        """
        # Code is made when it is first asked for. MLIR would ask for every function, also for kernels that
        # nobody can call from outside, and write nothing where one has no wrapper for that.
        for function in self.signatures:
            self.address_of(function)
        self._code.write_object(str(path))


class NativeFunction:
    """Machine code of one function, and the scratch memory of its calls.

    Attributes:
        parameters: Number of pointers that a call takes: inputs, then outputs.
        scratch_bytes: Size of the scratch arena that each running call uses.
        address: Where the code is: a C function ``void (void **arguments)``, whose argument points to the
            addresses of the values of the function's arguments (see `NativeModule.write_object`).
        takes_table: Whether those are one pointer, to the table of all.
    """

    @held()
    def __init__(
        self,
        module: Module | NativeModule,
        *,
        opt_level: int = 3,
        entry: str = "main",
        standalone: bool = False,
    ) -> None:
        """Compile function ``entry``, or take it from a module that has been compiled.

        Args:
            module: A `NativeModule`, or what one is made of, as the next two say.
            opt_level: As `NativeModule` takes it.
            entry: The name of a public function.
            standalone: As `NativeModule` takes it.

        Raises:
            ValueError: There is no function of that name.
        """
        if not isinstance(module, NativeModule):
            module = NativeModule(module, opt_level=opt_level, standalone=standalone)
        if entry not in module.signatures:
            raise ValueError(f"the module does not define @{entry}")
        self._module = module
        self.parameters, self.scratch_bytes, self.takes_table = module.signatures[entry]
        self.address = module.address_of(entry)
        self._invoke = _PACKED(self.address)
        self._pack = struct.Struct(f"{self.parameters}P").pack_into
        self._takes_scratch = self.scratch_bytes >= POOLED
        self._idle: deque[Frame] = deque(maxlen=_IDLE)  # appending and popping are atomic

    def call(self, pointers: Iterable[int]) -> None:
        """Run the function; any number of threads may do so at the same time.

        Args:
            pointers: Addresses of the inputs, which are only read, then of the outputs. All are contiguous,
                aligned for their element type, of exactly the compiled types; outputs overlap nothing.

        Raises:
            ValueError: There are more or fewer than `parameters`, or one is not an integer.
            MemoryError: There is no memory for the arena.
        """
        try:
            frame = self._idle.pop()
        except IndexError:
            frame = Frame(self.parameters, self.scratch_bytes, takes_table=self.takes_table)
        try:
            self._pack(frame.values, 0, *pointers)
        except struct.error as error:
            raise ValueError(f"the function takes {self.parameters} pointers: {error}") from None
        if self._takes_scratch:
            scratch = pool.scratch(self.scratch_bytes)
            frame.values[self.parameters] = scratch.address
        self._invoke(frame.address)
        self._idle.append(frame)

    def write_object(self, path: Path) -> None:
        """Write the machine code of its module (see `NativeModule.write_object`)."""
        self._module.write_object(path)


class _Signature(NamedTuple):
    """How a function is called: by how many pointers but that to its arena, whose size follows, and how."""

    parameters: int
    scratch_bytes: int
    takes_table: bool


def _signatures(module: Module) -> dict[str, _Signature]:
    """Return how the functions of an LLVM dialect module that have a body are called, by name."""
    return {
        ir.StringAttr(op.attributes["sym_name"]).value: _signature(module, op)
        for op in module.body.operations
        if op.operation.name == "llvm.func" and op.regions[0].blocks and "sym_visibility" not in op.attributes
    }


def _signature(module: Module, function: Operation) -> _Signature:
    own, shared = function.attributes, module.operation.attributes
    scratch = own[SCRATCH_ATTRIBUTE] if SCRATCH_ATTRIBUTE in own else shared[SCRATCH_ATTRIBUTE]
    takes_table = TABLE_ATTRIBUTE in own
    pointers = (
        int(ir.IntegerAttr(own[TABLE_ATTRIBUTE]).value)
        if takes_table
        else len(function.regions[0].blocks[0].arguments)
    )
    return _Signature(pointers - 1, int(ir.IntegerAttr(scratch).value), takes_table)
