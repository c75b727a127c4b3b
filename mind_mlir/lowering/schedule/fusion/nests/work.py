"""The work of a group's nest in numbers: all that its schedule is chosen from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import SLOW
from mind_mlir.lowering.schedule.fusion.groups.group import Group, widest
from mind_mlir.lowering.schedule.linalg_view.layout import overlap, window_of
from mind_mlir.lowering.schedule.linalg_view.values import filler
from mind_mlir.lowering.schedule.scalars.axes import axes_of
from mind_mlir.mlir.bindings import Value, ir
from mind_mlir.mlir.memory import bytes_of
from mind_mlir.mlir.values import definition
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target.rates import REFERENCE

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from mind_mlir.lowering.schedule.linalg_view.view import Access, View
    from mind_mlir.target import Target


@dataclass(frozen=True)
class Work:
    """A group's nest in numbers.

    Attributes:
        extents: Iterations of each loop.
        vector: The loop along which vectors run; -1 where there is none.
        reductions: The loops that are reduced.
        bits: Width of the widest element in vectors.
        weight: Operations in the bodies.
        operations: The same, with those that take longer counted as often as they are slower.
        bytes: Bytes that are read or written, each once.
        stored: Bytes of the results, those of reductions left out.
        sums: Whether floating-point numbers are summed: then the order matters for accuracy.
        overlaps: Whether iterations of the innermost of the outer loops read the same elements of windows.
        shares: Whether they reduce the vector loop alone, and read the same row besides rows of their own.
        short: Whether some of the elements are bf16, of which a register has twice as many in memory.
    """

    extents: tuple[int, ...]
    vector: int
    reductions: tuple[int, ...]
    bits: int
    weight: int
    operations: int
    bytes: int
    stored: int
    sums: bool = False
    overlaps: bool = False
    shares: bool = False
    short: bool = False

    @property
    def outer(self) -> tuple[int, ...]:
        """The loops around the vector loop that are not reduced, outermost first."""
        dims = range(len(self.extents))
        return tuple(dim for dim in dims if dim != self.vector and dim not in self.reductions)

    @property
    def row_bytes(self) -> int:
        """Bytes of the elements along the vector loop."""
        return self.extents[self.vector] * self.bits // 8

    def nanoseconds(self, target: Target) -> float:
        """Return how long one thread takes, about.

        Threads that share a sum change its order: of reductions it is the same on all machines.
        """
        rates = REFERENCE if self.reductions else target.rates
        vectors = math.prod(self.extents) / target.lanes(self.bits)
        moving = self.bytes * (rates.byte_ns if self.bytes > target.l2_bytes else rates.l2_byte_ns)
        return max(moving, vectors * self.operations * rates.vector_ns)


def work_of(group: Group, results: Iterable[Value]) -> Work:
    """Return the work of ``group``.

    Args:
        group: Operations over the same loops.
        results: Those of its results that are written to memory.
    """
    written, reductions = list(results), [view for view in group.members if view.reductions]
    read = read_by(group.members, group.produced)
    return Work(
        group.extents,
        group.vector,
        group.reductions,
        widest(group.members, group.vector),
        group.weight,
        sum(operations_of(view) for view in group.members),
        touched_bytes(dict.fromkeys((*written, *read))),
        sum(bytes_of(result) for result in written if not group.produced[result].reductions),
        any(op.operation.name == "arith.addf" for view in reductions for op in view.body.operations),
        *_alike(group),
        is_short(group.members),
    )


def is_short(members: Iterable[View]) -> bool:
    """Return whether some of what ``members`` read and write is bf16."""
    arguments = (argument for view in members for argument in view.body.arguments)
    return any(isinstance(argument.type, ir.BF16Type) for argument in arguments)


def _alike(group: Group) -> tuple[bool, bool]:
    """Return whether next iterations of the loop over rows read the same elements of windows.

    And, if they reduce a row alone, whether all read the same row, and each one of its own.
    """
    outer = [dim for dim in range(len(group.extents)) if dim != group.vector]
    if group.reductions not in ((), (group.vector,)) or group.vector < 0 or not outer:
        return False, False
    dim, reads = outer[-1], _reads_beside(group, outer[-1])
    if group.reductions:
        loops = [axes_of(access) for _, access in reads]
        return False, len({dim in used for used in loops if group.vector in used}) == 2
    found: dict[Value, list[Access]] = {}
    for value, access in reads:
        window = window_of(value)
        if window is not None:
            found.setdefault(window.source, []).append(window.access(access))
    return any(overlap(accesses, dim) for accesses in found.values()), False


def _reads_beside(group: Group, dim: int) -> list[tuple[Value, Access]]:
    """Return what is read from tensors, and how; nothing if iterations of ``dim`` cannot do so at once.

    They cannot where an element belongs to a whole iteration, or a body looks where it is.
    """
    found: list[tuple[Value, Access]] = []
    for view in group.members:
        if any(op.operation.name in ("linalg.index", "tensor.extract") for op in view.body.operations):
            return []
        for number, value in enumerate(view.inputs):
            if not view.used(number) or value in group.produced or filler(value) is not None:
                continue
            access = view.accesses[number]
            used = axes_of(access)
            if dim in used and group.vector not in used:
                return []
            if isinstance(value.type, ir.RankedTensorType):
                found.append((value, access))
    return found


def read_by(members: Iterable[View], produced: Container[Value]) -> list[Value]:
    """Return what ``members`` read from memory, which none of them has ``produced``."""
    found: dict[Value, None] = {}
    for view in members:
        for value in view.reads:
            if value not in produced and filler(value) is None:
                found[value] = None
    return list(found)


def touched_bytes(values: Iterable[Value]) -> int:
    """Return the bytes that different tensors take in memory: windows of one no more than it does."""
    whole: dict[Value, int] = {}
    for value in values:
        op = definition(value)
        window = window_of(value)
        source = op.operands[0] if op is not None and op.name == "tensor.extract_slice" else value
        source = source if window is None else window.source
        whole[source] = min(bytes_of(source), whole.get(source, 0) + bytes_of(value))
    return sum(whole.values())


def operations_of(view: View) -> int:
    """Return the operations in the body of ``view``, slow ones counted as often as they are slower."""
    return sum(SLOW.get(str(op.operation.name), 1) for op in view.body.operations) - 1
