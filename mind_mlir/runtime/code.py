"""Machine code of a module in the memory of this process, and the engines that hold it."""

from __future__ import annotations

import ctypes
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.abi import PARALLEL_SYMBOL
from mind_mlir.bindings import code_maker, create_engine, ir
from mind_mlir.diagnostics import InternalError
from mind_mlir.lowering.schedule.contraction.library import declared_kernels
from mind_mlir.lowering.to_llvm import linked
from mind_mlir.runtime.ahead import Ahead, making
from mind_mlir.runtime.constants import Constants
from mind_mlir.runtime.kernels import begin_kernels, kernel_address
from mind_mlir.runtime.library import read_addresses
from mind_mlir.runtime.threads import get_num_threads, parallel_address, usable_cores
from mind_mlir.runtime.units import PUBLISHED, TABLE, cut_into_units, inline_in_wrappers, whole
from mind_mlir.target import named_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mind_mlir.bindings import ExecutionEngine, Module
    from mind_mlir.mlir.references import References
    from mind_mlir.runtime.units import Unit
    from mind_mlir.target import Target


class _Table:
    """The addresses of the functions that units call in one another, in the form that the engine takes."""

    def __init__(self, length: int) -> None:
        self._slots = (ctypes.c_void_p * length)()
        self.value = ctypes.addressof(self._slots)

    def enter(self, places: Iterable[int], addresses: Iterable[int]) -> None:
        """Enter addresses at their places."""
        for place, address in zip(places, addresses, strict=True):
            self._slots[place] = address


class MachineCode:
    """The machine code of a module; it lives as long as this object."""

    def __init__(
        self,
        module: Module,
        *,
        opt_level: int,
        standalone: bool,
        together: bool,
        target: Target | None = None,
        references: References | None = None,
    ) -> None:
        """Compile an LLVM dialect module, as `to_llvm` leaves it.

        Args:
            module: Loses kernels, and the data of large constants.
            opt_level: The most that LLVM optimises, 0 to 3.
            standalone: Make code that an object file can hold: position-independent, all constants inside.
            together: Make one piece of code, which `write_object` can write.
            target: What it was lowered for, this machine unless given; its micro-kernels are made for that.
            references: The data of constants that the module knows by name only.

        Raises:
            RuntimeError: Threads are to share its loops, and there is no pool of them for this system.
            InternalError: LLVM does not take the module, or it refers to what this process does not have.
        """
        self._constants = None if standalone else Constants(module, references)
        shares_loops = _declares(module, PARALLEL_SYMBOL)
        self._parallel: ctypes.c_void_p | None = None
        elsewhere: dict[str, Callable[[], int]] = {}
        if standalone or together:
            module = linked(module, target or named_target())
            self._parallel = ctypes.c_void_p(parallel_address()) if shares_loops else None
            units, slots = [whole(module, opt_level)], 0
        else:
            elsewhere = _declared_kernels(module, target or named_target())
            if shares_loops:
                elsewhere[PARALLEL_SYMBOL] = parallel_address
            most = min(get_num_threads(), usable_cores())
            units, slots = cut_into_units(module, opt_level, most, list(elsewhere))
            for unit in units:
                inline_in_wrappers(unit)
        self._table = _Table(slots)
        self._engines = self._made(units, pic=standalone)
        for engine, unit in zip(self._engines, units, strict=True):
            if unit.published:
                addresses = read_addresses(_look_up(engine, unit, PUBLISHED), len(unit.published))
                self._table.enter(unit.published, addresses)
        _look_up(self._engines[0], units[0], units[0].function)
        # What threads have been making meanwhile.
        self._table.enter(range(len(elsewhere)), [address() for address in elsewhere.values()])

    def _made(self, units: Sequence[Unit], *, pic: bool) -> list[ExecutionEngine]:
        """Make the code of all units at the same time, and return their engines."""
        made: list[ExecutionEngine] = [None] * len(units)

        def make(number: int) -> None:
            unit = units[number]
            try:
                engine = create_engine(unit.module, opt_level=unit.level, pic=pic, dumps=len(units) == 1)
            except RuntimeError:
                return
            self._define_in(engine)
            code_maker(engine, unit.function)()
            made[number] = engine

        context = units[0].module.context
        with ExitStack() as stack:
            if len(units) > 1:
                context.enable_multithreading(True)
                stack.callback(context.enable_multithreading, False)
            with making:
                others = [Ahead(partial(make, number)) for number in range(1, len(units))]
            for other in others:
                stack.callback(other.wait)
            make(0)
        for engine, unit in zip(made, units, strict=True):
            if engine is None:  # what LLVM has to say is on standard error
                raise InternalError("codegen", "LLVM refuses the module", str(unit.module))
        return made

    def _define_in(self, engine: ExecutionEngine) -> None:
        """Define the symbols that the code of a unit refers to."""
        if self._constants is not None:
            self._constants.define_in(engine)
        if self._parallel is not None:
            engine.raw_register_runtime(PARALLEL_SYMBOL, self._parallel)
        engine.raw_register_runtime(TABLE, self._table)

    def address_of(self, function: str) -> int:
        """Return where the code of a public function is (see `NativeFunction.address`)."""
        return int(self._engines[0].raw_lookup(function))

    def write_object(self, path: str) -> None:
        """Write the code, whose functions have all been asked for, as an object file."""
        (engine,) = self._engines
        engine.dump_to_object_file(path)


def _look_up(engine: ExecutionEngine, unit: Unit, function: str) -> int:
    """Return the address of a public function of ``unit``; what LLVM has to say is on standard error."""
    address = engine.raw_lookup(function)
    if not address:
        raise InternalError("codegen", f"LLVM makes no code of @{function}", str(unit.module))
    return int(address)


def _declared_kernels(module: Module, target: Target) -> dict[str, Callable[[], int]]:
    """Return what waits for the addresses of the micro-kernels that ``module`` declares, by their names."""
    declared = [kernel for _, kernel in declared_kernels(module)]
    with module.context:
        begin_kernels(declared, target)  # most have been begun already
    return {kernel.name: partial(kernel_address, kernel, target) for kernel in declared}


def _declares(module: Module, symbol: str) -> bool:
    return any(
        op.operation.name == "llvm.func" and ir.StringAttr(op.attributes["sym_name"]).value == symbol
        for op in module.body.operations
    )
