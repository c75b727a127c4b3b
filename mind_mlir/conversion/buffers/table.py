"""A buffer plan as text, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mind_mlir.conversion.buffers.plan import BufferPlan, FunctionBuffers
    from mind_mlir.ir.types import TensorType
    from mind_mlir.lowering.buffers.plan import Arena, Buffer

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
        _type(buffer),
        buffer.first,
        buffer.last,
        described(buffer),
    )


def _type(buffer: Buffer) -> str:
    return " x ".join([*(str(each.count) for each in buffer.copies), buffer.type])
