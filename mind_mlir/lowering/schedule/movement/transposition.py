"""Transposes tensors in squares that fit the vector registers, by networks of shuffles between these.

Squares at the end of a dimension overlap their neighbours rather than be smaller: what is written twice is
written the same. Several squares next to one another in the result are done together, a band of rows of the
source, so that what is written is longer than a line of the cache. Where that is written past the cache, and
takes no longer in shorter pieces, what is read of a row is longer than a line, too.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, TypeVar

from mind_mlir.lowering.schedule.emission.constants import (
    BAND,
    BYTE_NS,
    CHUNK_BYTES,
    FEWEST_CHUNKS,
    FEWEST_SHARED,
    LARGEST_SQUARE,
    PREFETCH_SQUARES,
    STREAMED_CACHES,
    STREAMED_SHARE,
)
from mind_mlir.lowering.schedule.emission.decision import Choice, chosen
from mind_mlir.lowering.schedule.emission.split import Split, split
from mind_mlir.lowering.schedule.linalg_view.values import end_of, inverse_permutation
from mind_mlir.mlir.bindings import Operation, Type, Value, ir, vector
from mind_mlir.mlir.memory import element_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.linalg_view.view import Access, Env, View
    from mind_mlir.target import Target


_Vector = TypeVar("_Vector")


def transpose(rows: Sequence[Value]) -> list[Value]:
    """Return the columns of a square of vectors: as many vectors as each has lanes, a power of two."""
    return exchange(rows, lambda left, right, lanes: vector.ShuffleOp(left, right, lanes).result)


def exchange(
    rows: Sequence[_Vector],
    shuffle: Callable[[_Vector, _Vector, list[int]], _Vector],
    lanes: int | None = None,
) -> list[_Vector]:
    """Return the columns of squares of vectors, given what emits a shuffle of two of them.

    Each stage exchanges between partners at one distance: off-diagonal blocks of two by two blocks swap.

    Args:
        rows: As many as a square has, a power of two.
        shuffle: Takes lanes of two vectors.
        lanes: Of a vector, a multiple of the rows: squares stand side by side. As many as rows by default.
    """
    lanes = lanes or len(rows)
    values = list(rows)
    distance = 1
    while distance < len(rows):
        low = [lane if not lane & distance else lanes + lane - distance for lane in range(lanes)]
        high = [lane + distance if not lane & distance else lanes + lane for lane in range(lanes)]
        for row in range(len(rows)):
            if row & distance:
                continue
            pair = values[row], values[row + distance]
            values[row] = shuffle(*pair, low)
            values[row + distance] = shuffle(*pair, high)
        distance *= 2
    return values


@dataclasses.dataclass(frozen=True)
class Transposition:
    """A copy whose source and result are contiguous along different loops, all of more than one iteration.

    Attributes:
        view: the operation: one input, one result of the same element type, a body that copies.
        row: the loop along which the source is contiguous.
        column: the loop along which the result is contiguous.
    """

    view: View
    row: int
    column: int

    @property
    def reads(self) -> tuple[Value, ...]:
        """What it reads."""
        return self.view.operands

    @property
    def computes(self) -> tuple[Operation, ...]:
        """The operation."""
        return (self.view.op,)

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of the loops."""
        return self.view.extents

    @property
    def element(self) -> Type:
        """The type of the elements."""
        return ir.RankedTensorType(self.view.operands[0].type).element_type

    @property
    def bits(self) -> int:
        """The width of an element in memory."""
        return 8 * element_bytes(self.element)


def match_transposition(view: View) -> Transposition | None:
    """Return ``view`` as a transposition if it is one."""
    if len(view.operands) != 2 or view.reductions or not view.extents or 0 in view.extents:
        return None
    if list(end_of(view.body).operands) != [view.body.arguments[0]]:
        return None
    types = [operand.type for operand in view.operands]
    if not all(isinstance(type_, ir.RankedTensorType) for type_ in types):
        return None
    if isinstance(ir.RankedTensorType(types[0]).element_type, ir.ComplexType):
        return None  # vectors hold none
    source, result = ([index.dim for index in access] for access in view.accesses)
    dims = set(range(len(view.extents)))
    if set(source) != dims or set(result) != dims or len(source) != len(result):
        return None
    row, column = source[-1], result[-1]
    if row is None or column is None or row == column or 1 in (view.extents[row], view.extents[column]):
        return None
    return Transposition(view, row, column)


@dataclasses.dataclass(frozen=True)
class TranspositionSchedule:
    """The schedule of a transposition.

    Attributes:
        lanes: The extent of a square.
        band: Rows of the source in a band, a multiple of ``lanes``.
        shared: The loop that threads share: one of those around the squares, or ``column``.
        split: How it is split.
        streaming: Whether stores may go past the cache.
        prefetch_distance: Squares ahead along the rows of the source whose lines are prefetched.
    """

    lanes: int
    band: int
    shared: int
    split: Split
    streaming: bool
    prefetch_distance: int

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, and why."""
        distance = self.prefetch_distance
        return chosen(
            ("square", str(self.lanes), "a vector register has that many elements, or the matrix"),
            ("band", str(self.band), "whole lines of the result are written at once"),
            ("chunks", f"{self.split.count} of loop {self.shared}", self.split.reason),
            self.streaming and ("stores", "past the cache", "the result is larger than it"),
            distance > 0 and ("prefetch", f"{distance} squares ahead", "rows lie on pages of their own"),
        )


def choose_transposition_schedule(
    extents: tuple[int, ...], row: int, column: int, bits: int, target: Target
) -> TranspositionSchedule:
    """Return how to transpose.

    Args:
        extents: The extents of the loops.
        row: The loop along which the source is contiguous.
        column: The loop along which the result is contiguous.
        bits: The width of an element.
        target: The processor.
    """
    fitting = min(extents[row], extents[column], target.lanes(max(8, bits)), LARGEST_SQUARE)
    lanes = 1 << (fitting.bit_length() - 1)
    band = BAND * lanes if extents[column] >= FEWEST_SHARED * BAND * lanes else lanes
    units = [-(-extent // band) if dim == column else extent for dim, extent in enumerate(extents)]
    units[row] = 0
    shared = next((dim for dim, count in enumerate(units) if count >= FEWEST_SHARED), units.index(max(units)))
    nanoseconds = 2 * math.prod(extents) * max(8, bits) // 8 * BYTE_NS
    chosen = split(extents[shared], nanoseconds, multiple=band if shared == column else 1)
    if shared != column and chosen.count > 1:
        # As groups over the same loop are cut, and products: they are then one loop (see `buffers/merging`).
        wanted = max(FEWEST_CHUNKS, math.prod(extents) * max(8, bits) // 8 // CHUNK_BYTES)
        step = min(chosen.step, 1 << (max(1, extents[shared] // wanted).bit_length() - 1))
        chosen = dataclasses.replace(chosen, step=step, count=-(-extents[shared] // step))
    if shared == column and 0 < extents[column] % chosen.step < lanes:
        # The squares of the last chunk would overlap those of the one before.
        step = chosen.step + lanes
        chosen = dataclasses.replace(chosen, step=step, count=-(-extents[column] // step))
    size = max(8, bits) // 8
    result = math.prod(extents) * size
    large = result >= STREAMED_CACHES * target.l2_bytes and 2 * result * STREAMED_SHARE >= target.l3_bytes
    whole = lanes * size == target.vector_bytes and extents[column] % lanes == 0
    distance = PREFETCH_SQUARES if result > target.l2_bytes else 0
    return TranspositionSchedule(
        lanes, band, shared, chosen, streaming=large and whole, prefetch_distance=distance
    )


class TranspositionEmitter:
    """Emits one transposition as its schedule says."""

    def __init__(
        self, emitter: Emitter, transposition: Transposition, schedule: TranspositionSchedule
    ) -> None:
        self._e = emitter
        self._t = transposition
        self._view = transposition.view
        self._element = element = transposition.element
        self._schedule = schedule
        self._lanes = self._schedule.lanes
        self._vector = emitter.vector_type(self._lanes, element)
        self._padding = emitter.number(element, 0)

    def emit(self) -> Value:
        """Emit the nest at the insertion point and return the result tensor."""
        shape = list(self._view.shapes[1])
        result = self._e.empty(shape, self._element)
        outer = [dim for dim in range(len(self._view.extents)) if dim not in (self._t.row, self._t.column)]
        shared = self._schedule.shared
        order = [shared, *(dim for dim in (*outer, self._t.column) if dim != shared)]

        def chunk(first: Index, end: Index, carried: list[Value]) -> list[Value]:
            return self._loops(order, (first, end), (0, 0), {}, carried)

        return self._e.chunks(self._schedule.split, self._view.extents[shared], [result], chunk)[0]

    def _loops(
        self,
        dims: list[int],
        bounds: tuple[Index, Index],
        band: tuple[Index, Index],
        env: Env,
        carried: list[Value],
    ) -> list[Value]:
        """Emit the loops over ``dims``, of which the first runs within ``bounds``, and what is inside.

        ``band`` is where the column loop is, once it has been emitted.
        """
        if not dims and self._schedule.streaming and self._schedule.band > self._lanes:
            return self._tiles(band, env, carried)
        if not dims:
            return self._squares(
                self._t.row,
                (0, self._view.extents[self._t.row]),
                carried,
                lambda j, inner: self._across(band, env | {self._t.row: j}, inner),
            )
        dim, *rest = dims
        following = (0, self._view.extents[rest[0]]) if rest else (0, 0)
        if dim != self._t.column:
            return self._e.loop(
                (*bounds, 1),
                carried,
                lambda i, inside: self._loops(rest, following, band, env | {dim: i}, inside),
            )

        def body(i: Index, inside: list[Value]) -> list[Value]:
            end = self._e.minimum(self._e.add(i, self._schedule.band), bounds[1])
            return self._loops(rest, following, (i, end), env, inside)

        return self._e.loop((*bounds, self._schedule.band), carried, body)

    def _tiles(self, band: tuple[Index, Index], env: Env, carried: list[Value]) -> list[Value]:
        """Emit the squares of ``band`` a few columns of the source at a time, row after row of squares.

        What is read of a row is then several lines of the cache that lie behind one another.
        """
        row, column = self._t.row, self._t.column
        extent, width = self._view.extents[row], self._schedule.band

        def tile(j: Index, inside: list[Value]) -> list[Value]:
            end = self._e.add(j, width)
            end = self._e.minimum(end, extent) if extent % width else end
            return self._e.loop((*band, self._lanes), inside, lambda i, inner: line((j, end), i, inner))

        def line(bounds: tuple[Index, Index], i: Index, inside: list[Value]) -> list[Value]:
            here = env | {column: self._inside(column, i)}
            return self._e.loop(
                (*bounds, self._lanes),
                inside,
                lambda j, inner: [self._square(here | {row: self._inside(row, j)}, inner[0])],
                streaming=self._lanes,
            )

        return self._e.loop((0, extent, width), carried, tile)

    def _across(self, band: tuple[Index, Index], env: Env, carried: list[Value]) -> list[Value]:
        """Emit the squares of ``band``."""
        column = self._t.column
        if self._schedule.band > self._lanes:
            return self._e.loop(
                (*band, self._lanes),
                carried,
                lambda i, inner: [self._square(env | {column: self._inside(column, i)}, inner[0])],
            )
        return [self._square(env | {column: self._inside(column, band[0])}, carried[0])]

    def _squares(
        self,
        dim: int,
        bounds: tuple[Index, Index],
        carried: list[Value],
        body: Callable[[Index, list[Value]], list[Value]],
    ) -> list[Value]:
        return self._e.loop(
            (*bounds, self._lanes), carried, lambda i, inside: body(self._inside(dim, i), inside)
        )

    def _inside(self, dim: int, i: Index) -> Index:
        """Return where a square at ``i`` or so begins in order not to end behind the end of ``dim``."""
        extent = self._view.extents[dim]
        return self._e.minimum(i, extent - self._lanes) if extent % self._lanes else i

    def _square(self, env: Env, result: Value) -> Value:
        source = self._view.operands[0]
        if self._schedule.prefetch_distance:
            last = self._view.extents[self._t.row] - 1
            there = self._e.minimum(
                self._e.add(env[self._t.row], self._schedule.prefetch_distance * self._lanes), last
            )
            for lane in range(self._lanes):
                indices = self._place(0, env | {self._t.row: there}, self._t.column, lane)
                self._e.prefetch(source, indices, write=False)
        rows = [
            self._e.read(self._vector, source, self._place(0, env, self._t.column, lane), self._padding)
            for lane in range(self._lanes)
        ]
        for lane, value in enumerate(transpose(rows)):
            result = self._e.write(value, result, self._place(1, env, self._t.row, lane))
        return result

    def _place(self, operand: int, env: Env, dim: int, lane: int) -> list[Index]:
        """Return the indices of an operand ``lane`` steps along ``dim`` from the corner of a square."""
        access: Access = self._view.accesses[operand]
        here = env | {dim: self._e.add(env[dim], lane)}
        return [index.emit(self._e, here) for index in access]


def through_transposes(view: View) -> View:
    """Return ``view`` reading the sources of transposes instead of their results."""
    operands, accesses, shapes = list(view.operands), list(view.accesses), list(view.shapes)
    for number in range(len(view.inputs)):
        op = None if isinstance(operands[number], ir.BlockArgument) else operands[number].owner
        if op is None or op.name != "linalg.transpose":
            continue
        operands[number], inverse = op.operands[0], inverse_permutation(op)
        accesses[number] = tuple(accesses[number][place] for place in inverse)
        shapes[number] = tuple(shapes[number][place] for place in inverse)
    return dataclasses.replace(view, operands=tuple(operands), accesses=tuple(accesses), shapes=tuple(shapes))
