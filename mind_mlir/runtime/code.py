"""Machine code of a module in the memory of this process, and the engines that hold it."""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING

from mind_mlir.abi import PARALLEL_SYMBOL
from mind_mlir.bindings import ExecutionEngine, code_maker, ir
from mind_mlir.runtime.constants import Constants
from mind_mlir.runtime.kernels import take_kernels
from mind_mlir.runtime.library import fill_table
from mind_mlir.runtime.threads import get_num_threads, parallel_address, usable_cores
from mind_mlir.runtime.units import PUBLISH, TABLE, cut_into_units, inline_in_wrappers, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.bindings import Module
    from mind_mlir.mlir.references import References
    from mind_mlir.runtime.units import Unit


class _Table:
    """The addresses of the functions that units call in one another, in the form that the engine takes."""

    def __init__(self, length: int) -> None:
        self._slots = (ctypes.c_void_p * length)()
        self.value = ctypes.addressof(self._slots)


class MachineCode:
    """The machine code of a module; it lives as long as this object."""

    def __init__(
        self,
        module: Module,
        *,
        opt_level: int,
        standalone: bool,
        together: bool,
        references: References | None = None,
    ) -> None:
        """Compile an LLVM dialect module, as `to_llvm` leaves it.

        Args:
            module: Loses kernels, and the data of large constants.
            opt_level: The most that LLVM optimises, 0 to 3.
            standalone: Make code that an object file can hold: position-independent, all constants inside.
            together: Make one piece of code, which `write_object` can write.
            references: The data of constants that the module knows by name only.

        Raises:
            RuntimeError: Threads are to share its loops, and there is no pool of them for this system.
        """
        self._constants = None if standalone else Constants(module, references)
        shares_loops = _declares(module, PARALLEL_SYMBOL)
        self._parallel = ctypes.c_void_p(parallel_address()) if shares_loops else None
        self._kernels: dict[str, ctypes.c_void_p] = {}
        if standalone or together:
            units, slots = [whole(module, opt_level)], 0
        else:
            self._kernels = {name: ctypes.c_void_p(at) for name, at in take_kernels(module).items()}
            units, slots = cut_into_units(module, opt_level, min(get_num_threads(), usable_cores()))
            for unit in units:
                inline_in_wrappers(unit)
        self._table = _Table(slots)
        self._engines = [self._engine(unit, pic=standalone) for unit in units]
        if len(units) > 1:
            self._generate(units)

    def _engine(self, unit: Unit, *, pic: bool) -> ExecutionEngine:
        engine = ExecutionEngine(unit.module, opt_level=unit.level, enable_pic=pic)
        if self._constants is not None:
            self._constants.define_in(engine)
        if self._parallel is not None:
            engine.raw_register_runtime(PARALLEL_SYMBOL, self._parallel)
        engine.raw_register_runtime(TABLE, self._table)
        for name, address in self._kernels.items():
            engine.raw_register_runtime(name, address)
        return engine

    def _generate(self, units: Sequence[Unit]) -> None:
        """Make the code of all units at the same time, and tell each where the others' functions are."""
        made = list(zip(self._engines, units, strict=True))
        first, *others = [code_maker(engine, unit.function) for engine, unit in made]
        threads = []
        for make in others:
            thread = threading.Thread(target=make)
            try:
                thread.start()
            except RuntimeError:  # the process may have no more threads: the code is made below
                break
            threads.append(thread)
        first()
        for thread in threads:
            thread.join()
        for engine, unit in made:
            if unit.publishes:
                fill_table(engine.raw_lookup(PUBLISH), self._table.value)

    def address_of(self, function: str) -> int:
        """Return where the code of a public function is (see `NativeFunction.address`)."""
        return int(self._engines[0].raw_lookup(function))

    def write_object(self, path: str) -> None:
        """Write the code, whose functions have all been asked for, as an object file."""
        (engine,) = self._engines
        engine.dump_to_object_file(path)


def _declares(module: Module, symbol: str) -> bool:
    return any(
        op.operation.name == "llvm.func" and ir.StringAttr(op.attributes["sym_name"]).value == symbol
        for op in module.body.operations
    )
