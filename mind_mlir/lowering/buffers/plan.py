"""The memory plan of a function, as data: where `arena` placed its buffers (`mind_mlir.plan_buffers`)."""

from __future__ import annotations

import itertools
import math
from dataclasses import field
from typing import TYPE_CHECKING

from mind_mlir.lowering.buffers.aliases import buffer_uses
from mind_mlir.lowering.emission.emitter import PRIVATE_ATTRIBUTE
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.locations import labels_of, place_of, places_of
from mind_mlir.mlir.memory import byte_size
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mind_mlir.diagnostics.checks import Place
    from mind_mlir.mlir.bindings import MLIRLocation, Operation


#: What writes to memory for the value that its location names; of what a call writes, the buffer itself is
#: named.
_WRITES = ("memref.store", "vector.transfer_write", "vector.store", "memref.copy")


@dataclass(frozen=True, slots=True)
class Copies:
    """That iterations of a parallel loop have a buffer each: how many, and how far apart, in bytes."""

    count: int
    stride: int


@dataclass(frozen=True, slots=True)
class Buffer:
    """One temporary of compiled code.

    Attributes:
        values: What the program calls the values that it holds, one after the other or at the same time: the
            one that it was made for, and those computed in its place.
        type: Its elements and extents, as MLIR says them: ``32x64xf32``.
        bytes: The size of one copy.
        offset: Where it, or its first copy, lies in the arena, in bytes.
        copies: One for each parallel loop around it whose iterations need it at the same time.
        start: When it is allocated: the number of that operation of compiled code.
        end: The number of the last operation that reads or writes it.
        first: What the program calls what is computed then, where that is known.
        last: The same of what is computed in the end.
        place: Where the program defines the value that it was made for: file, line and column.
        callee: The function whose arena it is, for the time of a call; None for others.
        own: Whether each thread that shares a loop brings one of its own besides.
        places: Where the program defines the values that it holds.
    """

    values: tuple[str, ...]
    type: str
    bytes: int
    offset: int
    copies: tuple[Copies, ...]
    start: int
    end: int
    first: str
    last: str
    place: Place | None = None
    callee: str | None = None
    own: bool = False
    places: tuple[Place, ...] = ()

    @property
    def total_bytes(self) -> int:
        """Return the size of all copies together, without what lies between them."""
        return self.bytes * math.prod(copies.count for copies in self.copies)

    @property
    def stop(self) -> int:
        """Return where it ends in the arena, with all its copies: the first byte behind it."""
        return self.offset + self.bytes + sum((each.count - 1) * each.stride for each in self.copies)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Yield where each copy begins and ends in the arena."""
        for numbers in itertools.product(*(range(copies.count) for copies in self.copies)):
            begin = self.offset
            for number, copies in zip(numbers, self.copies, strict=True):
                begin += number * copies.stride
            yield begin, begin + self.bytes

    def lives_with(self, other: Buffer) -> bool:
        """Return whether there is a moment at which both are in use."""
        return self.start <= other.end and other.start <= self.end


@dataclass(frozen=True, slots=True)
class Arena:
    """The scratch memory of one function.

    Attributes:
        function: Its name in compiled code.
        public: Whether it is one that callers see: its arena comes from them.
        bytes: The size of the arena.
        buffers: What lies in it, in order of allocation.
    """

    function: str
    public: bool
    bytes: int
    buffers: tuple[Buffer, ...]


@dataclass(slots=True)
class Moments:
    """Numbers the operations of a function, those of regions after the one that holds them.

    Attributes:
        number: Of each operation.
        last: The greatest number within it.
    """

    number: dict[Operation, int] = field(default_factory=dict)
    last: dict[Operation, int] = field(default_factory=dict)

    @classmethod
    def of(cls, function: Operation) -> Moments:
        """Number the operations of ``function``."""
        moments = cls()
        path: list[Operation] = []

        def see(op: Operation) -> ir.WalkResult:
            moments.number[op.operation] = len(moments.number)
            path.append(op.operation)
            return ir.WalkResult.ADVANCE

        function.operation.walk(see, ir.WalkOrder.PRE_ORDER)
        for op in reversed(path):  # what is inside comes before what holds it
            end = moments.last.setdefault(op, moments.number[op])
            if op != function.operation:
                around = op.parent.operation
                moments.last[around] = max(end, moments.last.get(around, 0))
        return moments


@dataclass(frozen=True, slots=True)
class Life:
    """The live range of a buffer: from the operation ``first`` to ``last``, which is in the same block."""

    first: Operation
    last: Operation


def describe(allocation: Operation, life: Life, moments: Moments, callees: Mapping[Operation, str]) -> Buffer:
    """Say what there is to say of a buffer before a view takes its place, but where it lies.

    Some allocations are the arenas of ``callees``.
    """
    uses = buffer_uses(allocation.result).found
    users = sorted({use.user for use in uses}, key=lambda user: moments.number[user])
    located = [allocation.location, *(user.location for user in users if _writes(user))]
    values = dict.fromkeys(label for location in located for label in labels_of(location))
    places = dict.fromkeys(place for location in located for place in places_of(location))
    type_ = ir.MemRefType(allocation.result.type)
    return Buffer(
        values=tuple(values),
        type="x".join([*map(str, type_.shape), str(type_.element_type)]),
        bytes=byte_size(type_),
        offset=0,
        copies=(),
        start=moments.number[life.first],
        end=moments.last[life.last],
        first=_label(users[0].location),
        last=_label(users[-1].location),
        place=place_of(allocation.location),
        callee=callees.get(allocation.operation),
        own=PRIVATE_ATTRIBUTE in allocation.attributes,
        places=tuple(places),
    )


def _label(location: MLIRLocation) -> str:
    labels = labels_of(location)
    return labels[0] if labels else ""


def _writes(user: Operation) -> bool:
    return user.name in _WRITES
