"""`plan_buffers`: the scratch memory of compiled functions as data (ptir-v0.4.md, Conversion infrastructure).

The plan is what happens: it is taken down while the compiler places the buffers of the program, and the arena
that it shows is the one that the compiled function asks for. For people, it is a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from mind_mlir.diagnostics.display import short_repr
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.analysis.restriction import restricted
from mind_mlir.ir.entry import exported
from mind_mlir.ir.interface import Interface, interface_of
from mind_mlir.ir.module import MODULE, Module
from mind_mlir.languages.programs.kinds import as_module
from mind_mlir.languages.ptir.program import Program
from mind_mlir.languages.ptir.regions import restricted as restricted_program
from mind_mlir.languages.ptir.symbols import bind, checked_bindings, symbols_of
from mind_mlir.languages.ptir.to_module import convert
from mind_mlir.lowering.buffers.placement import Lifetime, most_alive
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.mlir.references import References
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.options import CompileOptions
from mind_mlir.target import TARGETS, named_target
from mind_mlir.target.abi import ALIGNMENT, symbol_of

if TYPE_CHECKING:
    from mind_mlir.ir.types import TensorType
    from mind_mlir.languages.programs.kinds import AnyProgram
    from mind_mlir.lowering.buffers.plan import Arena, Buffer


@dataclass(frozen=True)
class FunctionBuffers:
    """The memory of one function.

    Attributes:
        interface: What callers see of it; parameters are read where they lie, and results computed in memory
            that the caller provides: neither takes part in the plan.
        arena: Its scratch memory: the size, and every buffer with its values, life and place. Buffers within
            an arena lie at multiples of `ALIGNMENT` bytes, as the arena itself does.
    """

    interface: Interface
    arena: Arena

    @property
    def name(self) -> str:
        """Return what the program calls the function."""
        return self.interface.name

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """Return the buffers, in order of allocation."""
        return self.arena.buffers

    @property
    def bytes_after_reuse(self) -> int:
        """Return the size of the arena, with buffers that never live together in the same place."""
        return self.arena.bytes

    @cached_property
    def bytes_before_reuse(self) -> int:
        """Return what the buffers would take if each had memory of its own."""
        return sum(_aligned(buffer) for buffer in self.buffers)

    @cached_property
    def bytes_alive(self) -> int:
        """Return the most that is in use at one moment, which no arena of these buffers is below."""
        return most_alive([Lifetime(_aligned(each), each.start, each.end) for each in self.buffers])

    @cached_property
    def slots(self) -> Mapping[tuple[int, int], tuple[Buffer, ...]]:
        """Return the buffers by the part of the arena that they lie in: first byte, and the one behind."""
        places = sorted({(each.offset, each.stop) for each in self.buffers})
        return {
            place: tuple(each for each in self.buffers if (each.offset, each.stop) == place)
            for place in places
        }


@dataclass(frozen=True)
class BufferPlan:
    """The memory of the exported functions of a program.

    Attributes:
        functions: One for each, by name, in the program's order.
        inner: The arenas of functions that only these call, callees first: buffers of their callers.
        alignment: What every offset is a multiple of, in bytes.
    """

    functions: Mapping[str, FunctionBuffers]
    inner: tuple[Arena, ...] = ()
    alignment: int = ALIGNMENT

    __repr__ = short_repr

    def __str__(self) -> str:
        return table(self)


@public
def plan_buffers(
    program: AnyProgram,
    *,
    function: str | None = None,
    bindings: Mapping[str, int] | None = None,
    target: str | None = None,
    winograd: bool = False,
    bf16x6: bool = True,
) -> BufferPlan:
    """Return the memory in which the compiled functions of ``program`` will work; nothing is run.

    The plan depends on the program and the processor alone, not on the number of threads.

    Args:
        program: A module of any profile, or a program; it is verified first.
        function: The exported function to plan for; all of them unless given.
        bindings: Extents for the symbolic dimensions of a program, by name without the ``?``.
        target: The processor, as `mind_mlir.compile` takes it.
        winograd: As `mind_mlir.compile` takes it.
        bf16x6: The same.

    Raises:
        VerificationError: The program breaks a rule; the exception holds all findings. E2002, E2101: there is
            no such function, or it is not exported. E4303: a symbolic dimension is not bound.
        ExecutionError: E6004, intermediate values need more memory than any address space has.
        TypeError: An argument is not of the type above.
        ValueError: ``target`` is none of those, or ``bindings`` names a symbol that there is not.
    """
    machine = named_target(None if target is None else argument_checks.choice(target, TARGETS, "target"))
    options = CompileOptions(
        target=target,
        winograd=argument_checks.flag(winograd, "winograd"),
        bf16x6=argument_checks.flag(bf16x6, "bf16x6"),
    )
    program, bindings, function = as_module(program, bindings, function)
    if not isinstance(program, Program):
        argument_checks.refuse_bindings(bindings)
        module = restricted(
            argument_checks.expect(program, Module, "program", f"{MODULE}, or a Program"), function
        )
    else:
        kept = program if function is None else restricted_program(program, function)
        extents = checked_bindings({} if bindings is None else bindings, symbols_of(kept))
        module = convert(bind(kept, extents)).module
    references = References()
    lowering = Lowering(
        machine,
        options=options,
        kernels=lambda _kernels: None,
        references=references,
        plan_wanted=True,
    )
    lowering.run(module, "bufferized")  # which holds signals meanwhile
    assert lowering.canonical is not None, "a lowering that went through has a canonical module"
    arenas = {arena.function: arena for arena in lowering.arenas}
    functions = {
        each.name: FunctionBuffers(interface_of(each), arenas.pop(symbol_of(each.name)))
        for each in exported(lowering.canonical)
    }
    return BufferPlan(functions, tuple(arenas.values()))


def _aligned(buffer: Buffer) -> int:
    return -(-buffer.total_bytes // ALIGNMENT) * ALIGNMENT


_HEAD = ("slot", "offset", "bytes", "type", "from", "to", "holds")
#: Columns of numbers.
_RIGHT = ("slot", "offset", "bytes")
_MOST_VALUES = 4


def table(plan: BufferPlan) -> str:
    """Return ``plan`` as text: each function with its arena, and a line for each buffer in it."""
    parts = ["\n".join(_function(each)) for each in plan.functions.values()]
    parts += ["\n".join(_inner(each)) for each in plan.inner]
    return "\n\n".join(parts)


def described(buffer: Buffer) -> str:
    """Return what a buffer is, in a few words."""
    if buffer.callee is not None:
        return f"the arena of @{buffer.callee}"
    shown = ", ".join(buffer.values[:_MOST_VALUES]) or "a part of a computation"
    if len(buffer.values) > _MOST_VALUES:
        shown += f" and {len(buffer.values) - _MOST_VALUES} more"
    return f"{shown} (a thread's own)" if buffer.own else shown


def counted_bytes(count: int) -> str:
    """Return a number of bytes as people read it: 12,544."""
    return f"{count:,}"


def summary(function: FunctionBuffers) -> str:
    """Return the sizes of a function's memory in one line."""
    before, after = function.bytes_before_reuse, function.bytes_after_reuse
    return (
        f"{counted_bytes(after)} bytes of scratch memory for {len(function.buffers)} buffers "
        f"({counted_bytes(before)} without reuse, {counted_bytes(function.bytes_alive)} in use at one moment)"
    )


def _function(function: FunctionBuffers) -> Iterator[str]:
    interface = function.interface
    taken = _given("argument", [each.type for each in interface.parameters])
    given = _given("result", [each.type for each in interface.outputs])
    yield f"@{function.name}: {taken}, {given}"
    yield f"  {summary(function)}"
    yield from _rows(function.buffers)


def _given(noun: str, types: Sequence[TensorType]) -> str:
    """Return how much memory of the caller some arguments or results are."""
    count = sum(each.element_count * each.dtype.itemsize for each in types)
    return f"{len(types)} {noun}{'' if len(types) == 1 else 's'} of {counted_bytes(count)} bytes"


def _inner(arena: Arena) -> Iterator[str]:
    yield f"@{arena.function}, called by these"
    yield f"  {counted_bytes(arena.bytes)} bytes of scratch memory for {len(arena.buffers)} buffers"
    yield from _rows(arena.buffers)


def _rows(buffers: Sequence[Buffer]) -> Iterator[str]:
    if not buffers:
        return
    places = sorted({(each.offset, each.stop) for each in buffers})
    slots = {place: number for number, place in enumerate(places)}
    rows = [_HEAD, *(_row(each, slots[each.offset, each.stop]) for each in buffers)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if name in _RIGHT else cell.ljust(width)
            for name, cell, width in zip(_HEAD, row, widths, strict=True)
        )
        yield f"  {'  '.join(cells)}".rstrip()


def _row(buffer: Buffer, slot: int) -> tuple[str, ...]:
    return (
        str(slot),
        counted_bytes(buffer.offset),
        counted_bytes(buffer.total_bytes),
        " x ".join([*(str(each.count) for each in buffer.copies), buffer.type]),
        buffer.first,
        buffer.last,
        described(buffer),
    )
