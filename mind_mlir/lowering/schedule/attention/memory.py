"""The memory of each thread that computes an attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mind_mlir.lowering.schedule.contraction.kernels.library import private_memory
from mind_mlir.mlir.bindings import Type, Value, ir, memref

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.lowering.schedule.attention.nest import AttentionNest
    from mind_mlir.lowering.schedule.emission.emitter import Index

    #: A room by what it is for, and by number.
    Key: TypeAlias = "tuple[str, int]"
    #: The memory of a thread.
    Scratch: TypeAlias = "Mapping[Key, Value]"

#: Keys whose terms are summed one after the other.
TERMS = 32


class Room(NamedTuple):
    """What a room has place for."""

    rows: int
    columns: int
    type: Type


class Rooms:
    """The rooms of a thread, and those that all threads see, for some heads one after the other.

    ============= ===========================================================================================
    ``values``    the values of an output in words, panel after panel, and a row for packing info: those of a
                  block of queries where the output has rows for keys
    ``queries``   the rows of a kind of scores, ``[depth][query]``; of words, a row more, for packing info
    ``row``       a number for each query
    ``greatest``  the greatest score of each query so far
    ``sums``      the sum of each query so far
    ``least``     packing info of the keys of each kind of scores
    ``array``     scores and what becomes of them, ``[key][query]``
    ``halves``    what becomes of scores as bf16, ``[key][query]``, by the array that has it otherwise
    ``tiles``     elements of an input that were transposed, ``[key][query]``
    ``output``    the sums of an output that is rounded when it is complete, ``[query][column]``
    ============= ===========================================================================================
    """

    def __init__(self, nest: AttentionNest) -> None:
        self._nest = nest
        program = nest.program
        self._rooms = dict(self._all(nest))
        #: The arrays where elements that are results are.
        self.kept = nest.places_of(program.kept)
        self._shared: list[Key] = []
        if nest.schedule.together:
            self._shared += [("array", place) for place in self.kept]
            if nest.schedule.pairs:
                self._shared += [("values", each.number) for each in nest.outputs if each.by_row]
                self._shared.append(("least", 0))

    @staticmethod
    def _all(nest: AttentionNest) -> list[tuple[Key, Room]]:
        program, s = nest.program, nest.schedule
        element, word, half = nest.element, *(ir.IntegerType.get_signless(bits) for bits in (32, 16))
        square = nest.kernels.queries(transposed=True).square

        def squares(rows: int) -> int:
            return -(-rows // square) * square

        pairs: list[tuple[Key, Room]] = []
        halves: list[tuple[Key, Room]] = []
        if s.pairs:
            columns = s.out_vectors * s.lanes
            pairs = [(("values", each.number), Room(each.word_rows, columns, word)) for each in nest.outputs]
            places = nest.places_of(program.column_terms)
            halves = [(("halves", place), Room(2 * nest.value_words, s.queries, half)) for place in places]
        per, type_ = (2, word) if s.pairs else (1, element)
        tiled = nest.tiled_inputs
        rounded = [each for each in nest.outputs if each.rounds]
        queries = [
            (("queries", each.number), Room(squares(each.depth // per) + s.pairs, s.queries, type_))
            for each in nest.scores
        ]
        rows = [((name, 0), Room(1, s.queries, element)) for name in ("row", "greatest", "sums")]
        return [
            *pairs,
            *(queries if s.pairs else []),
            *rows,
            *([] if s.pairs else queries),
            (("least", 0), Room(len(nest.scores), 1, word)),
            *((("array", place), Room(s.keys, s.queries, element)) for place in range(program.arrays)),
            *halves,
            *(
                (("tiles", each.number), Room(squares(TERMS), s.queries, _stored(each.type)))
                for each in tiled
            ),
            *(
                (("output", each.number), Room(s.queries, -(-each.width // s.lanes) * s.lanes, element))
                for each in rounded
            ),
        ]

    def shared(self) -> Scratch:
        """Emit the rooms that all threads see: arrays that are summed, and what is prepared once a head."""
        rooms = ((key, self._rooms[key]) for key in self._shared)
        together = self._nest.schedule.together
        return {key: _emitted(room._replace(rows=together * room.rows)) for key, room in rooms}

    def own(self, shared: Scratch, *, parallel: bool) -> Scratch:
        """Emit the rooms of a thread, but for those that are ``shared``."""
        return {
            key: shared[key] if key in shared else _emitted(room, private=parallel)
            for key, room in self._rooms.items()
        }

    def part(self, own: Scratch, shared: Scratch, head: Index) -> Scratch:
        """Emit the rooms of a thread for the head of that number: it has its part of what is shared."""
        e = self._nest.e
        parts = dict(own)
        for key, room in shared.items():
            rows = self._rooms[key].rows
            parts[key] = _rows(room, e.index(e.mul(head, rows)), rows)
        return parts


def _emitted(room: Room, *, private: bool = False) -> Value:
    type_ = ir.MemRefType.get([room.rows, room.columns], room.type)
    return private_memory(type_) if private else memref.AllocOp(type_, [], []).result


def _stored(type_: Type) -> Type:
    """Return the type of elements that are kept: a condition is a byte."""
    return ir.IntegerType.get_signless(8) if str(type_) == "i1" else type_


def _rows(room: Value, first: Value, size: int) -> Value:
    """Emit ``size`` rows of a room, from ``first`` on."""
    anywhere = ir.ShapedType.get_dynamic_stride_or_offset()
    columns = room.type.shape[1]
    layout = ir.StridedLayoutAttr.get(anywhere, [columns, 1])
    part = ir.MemRefType.get([size, columns], room.type.element_type, layout)
    return memref.SubViewOp(part, room, [first], [], [], [anywhere, 0], [size, columns], [1, 1]).result
