"""Transposes tensors in squares that fit the vector registers, by networks of shuffles between these.

Squares at the end of a dimension overlap their neighbours rather than be smaller: what is written twice is
written the same. Several squares next to one another in the result are done together, a band of rows of the
source, so that what is written is longer than a line of the cache. Where that is written past the cache, or
is whole rows of the result, which lie behind one another, what is read of a row is longer than a line, too.
Squares of numbers of few bits are as wide as 16 bytes, and several below one another fill the registers: what
one instruction does to one it does to all.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.emission import constants
from mind_mlir.lowering.emission.decision import Choice, chosen
from mind_mlir.lowering.emission.shuffles import joined, transpose, transpose_side_by_side
from mind_mlir.lowering.emission.split import Split, split
from mind_mlir.lowering.emission.stores import past_caches
from mind_mlir.lowering.schedule.kind import Kind, Refusal, Site, ViewNest, emitted, merged
from mind_mlir.lowering.schedule.linalg_view.values import inverse_permutation, transposed
from mind_mlir.lowering.schedule.movement.narrow import NarrowEmitter, NarrowSchedule, narrow_schedule
from mind_mlir.mlir.bindings import Value, ir
from mind_mlir.mlir.memory import element_bytes
from mind_mlir.mlir.values import definition, is_result_of, terminator_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.linalg_view.view import Env, View
    from mind_mlir.target import Target


#: Emits something at given values of loops, on what is carried.
_Body: TypeAlias = "Callable[[Env, list[Value]], list[Value]]"
#: Where a loop begins and ends.
_Bounds: TypeAlias = "tuple[Index, Index]"


@dataclass(frozen=True)
class Transposition(ViewNest):
    """A copy whose source is contiguous along loop ``row``, and whose result is along another, ``column``.

    Both have more than one iteration.
    """

    row: int
    column: int


def match_transposition(view: View) -> Transposition | None:
    """Return ``view`` as a transposition if it is one."""
    if len(view.operands) != 2 or view.reductions or not view.extents or 0 in view.extents:
        return None
    if list(terminator_of(view.body).operands) != [view.body.arguments[0]]:
        return None
    tensors = all(isinstance(operand.type, ir.RankedTensorType) for operand in view.operands)
    if not tensors or isinstance(view.operands[0].type.element_type, ir.ComplexType):
        return None  # vectors hold no complex numbers
    source, result = ([index.dim for index in access] for access in view.accesses)
    dims = set(range(len(view.extents)))
    if set(source) != dims or set(result) != dims or len(source) != len(result):
        return None
    row, column = source[-1], result[-1]
    if row is None or column is None or row == column or 1 in (view.extents[row], view.extents[column]):
        return None
    return Transposition(view, row, column)


@dataclass(frozen=True)
class TranspositionSchedule:
    """The schedule of a transposition.

    Attributes:
        lanes: The extent of a square.
        abreast: How many squares below one another are transposed at once, in vectors as long as all of them.
        band: Rows of the source in a band, a multiple of ``lanes``.
        shared: The loop that threads share.
        split: How it is split.
        streaming: Whether stores may go past the cache.
        prefetch_distance: Squares ahead along the rows of the source whose lines are prefetched.
        tiled: Whether whole lines of the source are read at once, a few columns of it at a time.
    """

    lanes: int
    abreast: int
    band: int
    shared: int
    split: Split
    streaming: bool
    prefetch_distance: int
    tiled: bool

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, and why."""
        distance = self.prefetch_distance
        return chosen(
            ("square", str(self.lanes), "a vector register has that many elements, or the matrix"),
            self.abreast > 1 and ("abreast", str(self.abreast), "they fill vectors of the result together"),
            ("band", str(self.band), "whole lines of the result are written at once"),
            ("chunks", f"{self.split.count} of loop {self.shared}", self.split.reason),
            self.streaming and ("stores", "past the cache", "the result is larger than it"),
            distance > 0 and ("prefetch", f"{distance} squares ahead", "rows lie on pages of their own"),
        )


def choose_transposition_schedule(
    nest: Transposition, target: Target
) -> TranspositionSchedule | NarrowSchedule:
    """Return how to transpose."""
    return narrow_schedule(nest, target) or _in_squares(nest, target)


def _in_squares(nest: Transposition, target: Target) -> TranspositionSchedule:
    extents, row, column, size = nest.extents, nest.row, nest.column, element_bytes(nest.element)
    result = math.prod(extents) * size
    far = result > target.l2_bytes
    lanes, abreast = _squares(min(extents[row], extents[column]), extents[column], size, target, far=far)
    high = lanes * abreast
    band = -(-constants.BAND_ROWS // high) * high if far else constants.BAND * lanes
    band = min(band, -(-extents[column] // high) * high)
    unit = {row: constants.BAND * lanes, column: band}
    units = [-(-extent // unit.get(dim, 1)) for dim, extent in enumerate(extents)]
    preferred = sorted(range(len(units)), key=lambda dim: dim == row)
    enough = (dim for dim in preferred if units[dim] >= constants.FEWEST_SHARED)
    shared = next(enough, units.index(max(units)))
    cut = split(extents[shared], 2 * result * target.rates.byte_ns, multiple=unit.get(shared, 1))
    step = cut.step
    if shared not in unit and cut.count > 1:
        # As groups over the same loop are cut, and products: they are then one loop (see `buffers/merging`).
        wanted = max(constants.FEWEST_CHUNKS, result // constants.CHUNK_BYTES)
        step = min(step, 1 << (max(1, extents[shared] // wanted).bit_length() - 1))
    elif shared in unit and 0 < extents[shared] % step < high:
        step += high  # else the squares of the last chunk would overlap those of the one before
    cut = dataclasses.replace(cut, step=step, count=-(-extents[shared] // step))
    large = past_caches(result, 2 * result, target)
    whole = high * size == target.vector_bytes and extents[column] % high == 0
    streaming = large and whole
    return TranspositionSchedule(
        lanes,
        abreast,
        band,
        shared,
        cut,
        streaming,
        constants.PREFETCH_SQUARES if far else 0,
        tiled=band > high and (streaming or (far and band >= extents[column])),
    )


def _squares(least: int, column: int, size: int, target: Target, *, far: bool) -> tuple[int, int]:
    """Return the extent of a square, and how many are transposed at once.

    Args:
        least: The smaller extent of the matrix.
        column: The extent of its columns.
        size: Bytes of an element.
        target: The processor.
        far: Whether the result exceeds the second-level cache.
    """
    lanes, most = target.lanes(8 * size), constants.LARGEST_SQUARE
    narrow = size == 1 or (size == 2 and far)
    if narrow:
        most = constants.NARROW_SQUARE_BYTES // size
    side = 1 << (min(least, lanes, most).bit_length() - 1)
    if not narrow or side < most:
        return side, 1
    return side, 1 << ((min(lanes, column) // side).bit_length() - 1)


class TranspositionEmitter:
    """Emits one transposition as its schedule says."""

    def __init__(self, emitter: Emitter, nest: Transposition, schedule: TranspositionSchedule) -> None:
        self._e, self._t, self._s = emitter, nest, schedule
        self._lanes = schedule.lanes
        self._sides = {nest.row: schedule.lanes, nest.column: schedule.lanes * schedule.abreast}
        self._vector = emitter.vector_type(schedule.lanes, nest.element)
        self._padding = emitter.number(nest.element, 0)

    def emit(self) -> Value:
        """Emit the nest at the insertion point and return the result tensor."""
        t, shared = self._t, self._s.shared
        result = self._e.empty(t.view.shapes[1], t.element)
        others = [dim for dim in range(len(t.extents)) if dim not in (t.row, t.column)]
        order = sorted((*others, t.column), key=lambda dim: dim != shared)

        def chunk(first: Index, end: Index, carried: list[Value]) -> list[Value]:
            bounds: dict[int, _Bounds] = {dim: (0, extent) for dim, extent in enumerate(t.extents)}
            return self._loops(order, bounds | {shared: (first, end)}, {}, carried)

        return self._e.chunks(self._s.split, t.extents[shared], [result], chunk)[0]

    def _loops(
        self, dims: list[int], bounds: Mapping[int, _Bounds], env: Env, carried: list[Value]
    ) -> list[Value]:
        """Emit the loops over ``dims`` within ``bounds``, and what is inside: the squares of a band."""
        if not dims:
            return (self._tiles if self._s.tiled else self._columns)(bounds, env, carried)
        dim, *rest = dims
        is_column = dim == self._t.column

        def body(i: Index, inside: list[Value]) -> list[Value]:
            if not is_column:
                return self._loops(rest, bounds, env | {dim: i}, inside)
            end = self._e.minimum(self._e.add(i, self._s.band), bounds[dim][1])
            return self._loops(rest, {**bounds, dim: (i, end)}, env, inside)

        return self._e.loop((*bounds[dim], self._s.band if is_column else 1), carried, body)

    def _tiles(self, bounds: Mapping[int, _Bounds], env: Env, carried: list[Value]) -> list[Value]:
        """Emit the squares of a band a few columns of the source at a time, row after row of squares.

        Of a row, whole lines of the cache are then read at once.
        """
        row, column, width = self._t.row, self._t.column, constants.BAND * self._lanes
        start, stop = bounds[row]

        def tile(j: Index, inside: list[Value]) -> list[Value]:
            end = self._e.minimum(self._e.add(j, width), stop)
            line = self._squares(row, (j, end), self._square, streaming=self._s.streaming)
            return self._squares(column, bounds[column], line)(env, inside)

        return self._e.loop((start, stop, width), carried, tile)

    def _columns(self, bounds: Mapping[int, _Bounds], env: Env, carried: list[Value]) -> list[Value]:
        """Emit the squares of a band, column after column of squares."""
        row, column = self._t.row, self._t.column

        def single(here: Env, inside: list[Value]) -> list[Value]:
            return self._square(here | {column: self._inside(column, bounds[column][0])}, inside)

        several = self._s.band > self._sides[column]
        across = self._squares(column, bounds[column], self._square) if several else single
        return self._squares(row, bounds[row], across)(env, carried)

    def _squares(self, dim: int, bounds: _Bounds, body: _Body, *, streaming: bool = False) -> _Body:
        """Return what emits ``body`` for each square along ``dim`` within ``bounds``."""
        return lambda env, carried: self._e.loop(
            (*bounds, self._sides[dim]),
            carried,
            lambda i, inside: body(env | {dim: self._inside(dim, i)}, inside),
            streaming=self._lanes if streaming else 0,
        )

    def _inside(self, dim: int, i: Index) -> Index:
        """Return where a square at ``i`` or so begins in order not to end behind the end of ``dim``."""
        extent, side = self._t.extents[dim], self._sides[dim]
        return self._e.minimum(i, extent - side) if extent % side else i

    def _square(self, env: Env, carried: list[Value]) -> list[Value]:
        e, row, column, source = self._e, self._t.row, self._t.column, self._t.view.operands[0]
        if self._s.prefetch_distance:
            ahead = e.add(env[row], self._s.prefetch_distance * self._lanes)
            there = env | {row: e.minimum(ahead, self._t.extents[row] - 1)}
            for lane in range(self._sides[column]):
                e.prefetch(source, self._place(0, there, column, lane), write=False)
        read = [
            e.read(self._vector, source, self._place(0, env, column, lane), self._padding)
            for lane in range(self._sides[column])
        ]
        if self._s.abreast == 1:
            columns = transpose(read)
        else:
            rows = [joined(read[lane :: self._lanes]) for lane in range(self._lanes)]
            columns = transpose_side_by_side(rows, self._sides[column])
        (result,) = carried
        for lane, value in enumerate(columns):
            result = e.write(value, result, self._place(1, env, row, lane))
        return [result]

    def _place(self, operand: int, env: Env, dim: int, lane: int) -> list[Index]:
        """Return the indices of an operand ``lane`` steps along ``dim`` from the corner of a square."""
        here = env | {dim: self._e.add(env[dim], lane)}
        return [index.emit(self._e, here) for index in self._t.view.accesses[operand]]


def _prepare(_: Transposition, site: Site) -> Transposition | Refusal:
    """Return the transposition with as few loops as it can have, unless only products read it."""
    if all(site.scope.absorbs(use) for use in site.op.results[0].uses):
        return Refusal("the products that read it read its source instead", stays=True)
    return with_few_loops(site.loops)


def with_few_loops(view: View) -> Transposition:
    """Return a transposition with as few loops as it can have; reshapes of its operand are emitted."""
    found = match_transposition(merged(view))
    assert found is not None, "merged loops transpose what they did"
    return found


def _emitted(
    emitter: Emitter, nest: Transposition, schedule: TranspositionSchedule | NarrowSchedule
) -> Value:
    if isinstance(schedule, NarrowSchedule):
        return NarrowEmitter(emitter, nest, schedule).emit()
    return TranspositionEmitter(emitter, nest, schedule).emit()


TRANSPOSITION: Kind[Transposition, TranspositionSchedule | NarrowSchedule] = Kind(
    "transposition",
    lambda site: None if site.view is None else match_transposition(site.view),
    choose_transposition_schedule,
    lambda nest, schedule, site: [_emitted(site.scope.emitter, nest, schedule)],
    _prepare,
)


def emit_transposed(source: View, site: Site) -> Value:
    """Emit what a transpose for the operation at ``site`` computes, and return it."""
    there = Site(source.op, source, site.scope, site.groups)
    found = emitted(TRANSPOSITION, with_few_loops(source), there)
    assert isinstance(found, list), "of each there is a schedule"
    return found[0]


def emit_in_order(value: Value, order: Sequence[int], site: Site) -> Value:
    """Emit the tensor ``value`` with its dimensions in another order, for the operation at ``site``."""
    source = site.scope.views.of(definition(transposed(value, order)))
    assert source is not None, "a transpose is loops"
    return emit_transposed(source, site)


def through_transposes(view: View) -> View:
    """Return ``view`` reading the sources of transposes instead of their results."""
    forms = {}
    for number, value in enumerate(view.inputs):
        if is_result_of(value, "linalg.transpose"):
            inverse = inverse_permutation(value.owner)
            access = tuple(view.accesses[number][place] for place in inverse)
            shape = tuple(view.shapes[number][place] for place in inverse)
            forms[number] = value.owner.operands[0], access, shape
    return view.reading(forms)
