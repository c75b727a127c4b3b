"""One attention on memory, and the memory of each thread: what all parts of its emission read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mind_mlir.lowering.emission.constants import ACCUMULATED
from mind_mlir.lowering.emission.emitter import ATTENTION_ATTRIBUTE
from mind_mlir.lowering.emission.split import emit_ranges
from mind_mlir.lowering.kernels.library import KernelCalls, private_memory
from mind_mlir.lowering.kernels.tile_operations import SIDE
from mind_mlir.lowering.schedule.attention.factors import Factors
from mind_mlir.lowering.schedule.attention.kernels import AttentionKernels
from mind_mlir.lowering.schedule.attention.marked import read
from mind_mlir.lowering.schedule.attention.schedule import AttentionSchedule
from mind_mlir.lowering.schedule.linalg_view.buffers import Buffer, Lanes
from mind_mlir.mlir.bindings import Operation, Type, Value, ir, memref
from mind_mlir.mlir.records import read_record
from mind_mlir.ops.accumulation import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.kernels.library import Library
    from mind_mlir.lowering.schedule.attention.factors import OutputFactors, ScoreFactors
    from mind_mlir.lowering.schedule.linalg_view.view import Access

    ScoreBuffers = ScoreFactors[Buffer]
    OutputBuffers = OutputFactors[Buffer]

    #: A room by what it is for, and by number.
    Key: TypeAlias = "tuple[str, int]"
    #: The memory of a thread.
    Scratch: TypeAlias = "Mapping[Key, Value]"
    #: Emits a unit of work: is given the first one of its chunk, its own number, and memory.
    Unit: TypeAlias = "Callable[[Index, Index, Scratch], object]"


#: Keys whose terms are summed one after the other.
TERMS = 32


class Room(NamedTuple):
    """What a room has place for."""

    rows: int
    columns: int
    type: Type


class AttentionNest(Factors[Buffer]):
    """One attention on memory.

    Attributes:
        e: The emitter.
        calls: Calls kernels.
        schedule: How it is computed.
        kernels: The kernels that it calls.
        lanes: Vectors of buffers.
        tiled: The inputs that go through tiles in memory of the thread.
    """

    def __init__(self, op: Operation, accesses: Sequence[Access], emitter: Emitter, library: Library) -> None:
        buffers = [Buffer.of(*each) for each in zip(op.operands, accesses, strict=True)]
        super().__init__(*read(op, accesses), _extents(op, accesses), buffers)
        self.e = emitter
        self.schedule = s = read_record(AttentionSchedule, op.attributes[ATTENTION_ATTRIBUTE])
        self.lanes = Lanes(emitter, s.lanes, s.vectors, self.element)
        self.kernels = AttentionKernels(self, s)
        most, multiple = (BLOCK, SIDE) if s.tiles else (ACCUMULATED // (1 + s.pairs), 1)
        self.calls = KernelCalls(emitter, library, self.element, most, multiple)
        self.tiled = [node for node in self.inputs if self.kernels.has_tiles(node)]
        self._rooms = dict(_rooms(self))

    @property
    def is_ragged(self) -> bool:
        """Whether the last block of queries has fewer than the others."""
        return self.queries % self.schedule.queries > 0

    @property
    def blocks(self) -> int:
        """The number of blocks of queries of a head."""
        return -(-self.queries // self.schedule.queries)

    def words(self, output: OutputBuffers) -> int:
        """Return the words in a column of the values of an output: of two keys, or of two queries."""
        return -(-self.keys // 2) if output.by_row else self.schedule.queries // 2

    # The rooms of a thread, and those that all threads see, for some heads one after the other.

    def shared(self) -> Scratch:
        """Emit the rooms that all threads see: arrays that are summed, and what is prepared once a head."""
        keys = [("array", self.program.places[node]) for node in self.program.kept]
        if self.schedule.pairs:
            keys += [*(("values", each.number) for each in self.outputs if each.by_row), ("least", 0)]
        together = self.schedule.together
        rooms = {key: self._rooms[key] for key in keys}
        return {key: _emitted(room._replace(rows=together * room.rows)) for key, room in rooms.items()}

    def chunks(self, units: int, shared: Scratch) -> Callable[[Unit], None]:
        """Return what emits ``units`` of work in chunks, the units of threads, which have rooms of their own.

        All rooms but those that are ``shared``; where there is one chunk, they are emitted here.
        """
        e, s = self.e, self.schedule

        def rooms(*, private: bool) -> Scratch:
            own = self._rooms.items()
            return {
                key: shared[key] if key in shared else _emitted(room, private=private) for key, room in own
            }

        whole = rooms(private=False) if units <= s.units else None

        def emit(unit: Unit) -> None:
            def chunk(first: Index, end: Index) -> None:
                own = whole or rooms(private=True)
                e.each((first, end, 1), lambda number: unit(first, number, own))

            emit_ranges(e, units, s.units, chunk, brief=s.brief)

        return emit

    def part(self, own: Scratch, shared: Scratch, head: Index) -> Scratch:
        """Emit the rooms of a thread for the head of that number: it has its part of what is shared."""
        parts = dict(own)
        for key, room in shared.items():
            rows = self._rooms[key].rows
            parts[key] = _rows(room, self.e.index(self.e.mul(head, rows)), rows)
        return parts


def _extents(op: Operation, accesses: Sequence[Access]) -> list[int]:
    """Return the extent of each dimension of a marked operation."""
    extents = [1] * len(ir.ArrayAttr(op.attributes["iterator_types"]))  # nobody has to index one of one
    for operand, access in zip(op.operands, accesses, strict=True):
        for extent, index in zip(operand.type.shape, access, strict=True):
            if index.dim is not None:
                extents[index.dim] = extent
    return extents


def _rooms(nest: AttentionNest) -> Iterator[tuple[Key, Room]]:
    """Return the rooms of a thread, in the order in which they are emitted.

    ============= ===========================================================================================
    ``values``    the values of an output in words, panel after panel, and a row for packing info: those of a
                  block of queries where the output has rows for keys
    ``queries``   the rows of a kind of scores, ``[depth][query]``; of words, a row more, for packing info
    ``row``       a number for each query
    ``greatest``  the greatest score of each query so far
    ``sums``      the sum of each query so far
    ``least``     packing info of the keys of each kind of scores
    ``array``     scores and what becomes of them, ``[key][query]``
    ``squares``   what becomes of scores as a left factor of tiles, by the array that has it otherwise
    ``halves``    what becomes of scores as bf16, ``[key][query]``, by the array that has it otherwise
    ``tiles``     elements of an input that were transposed, ``[key][query]``
    ``output``    the sums of an output that is rounded when it is complete, ``[query][column]``
    ============= ===========================================================================================
    """
    s, element, word = nest.schedule, nest.element, ir.IntegerType.get_signless(32)
    square, columns = nest.kernels.queries(nest.scores[0]).square, s.out_vectors * s.lanes
    per, type_ = (2, word) if s.pairs else (1, element)
    queries = [
        (("queries", each.number), Room(_up(each.depth // per, square) + s.pairs, s.queries, type_))
        for each in nest.scores
    ]
    rows = [((name, 0), Room(1, s.queries, element)) for name in ("row", "greatest", "sums")]
    if s.pairs:
        for each in nest.outputs:
            words = _up(each.width, columns) // columns * nest.words(each)
            yield ("values", each.number), Room(words + 1, columns, word)
    yield from (*queries, *rows) if s.pairs else (*rows, *queries)
    yield ("least", 0), Room(len(nest.scores), 1, word)
    for place in range(len(nest.program.places)):
        yield ("array", place), Room(s.keys, s.queries, element)
    for place in sorted({nest.program.places[node] for node in nest.program.terms}) if s.tiles else ():
        yield ("squares", place), Room(nest.keys // 2, s.queries, word)
    for node in nest.program.column_terms if s.pairs else ():
        room = Room(_up(nest.keys, 2), s.queries, ir.IntegerType.get_signless(16))
        yield ("halves", nest.program.places[node]), room
    for node in nest.tiled:  # a condition is a byte
        stored = ir.IntegerType.get_signless(8) if str(node.type) == "i1" else node.type
        yield ("tiles", node.number), Room(_up(TERMS, square), s.queries, stored)
    for each in nest.outputs:
        if each.rounds:
            yield ("output", each.number), Room(s.queries, _up(each.width, s.lanes), element)


def _up(number: int, step: int) -> int:
    """Return the next multiple of a step."""
    return -(-number // step) * step


def _emitted(room: Room, *, private: bool = False) -> Value:
    type_ = ir.MemRefType.get([room.rows, room.columns], room.type)
    return private_memory(type_) if private else memref.AllocOp(type_, [], []).result


def _rows(room: Value, first: Value, size: int) -> Value:
    """Emit ``size`` rows of a room, from ``first`` on."""
    anywhere = ir.ShapedType.get_dynamic_stride_or_offset()
    columns = room.type.shape[1]
    layout = ir.StridedLayoutAttr.get(anywhere, [columns, 1])
    part = ir.MemRefType.get([size, columns], room.type.element_type, layout)
    return memref.SubViewOp(part, room, [first], [], [], [anywhere, 0], [size, columns], [1, 1]).result
