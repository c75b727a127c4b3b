"""Transposes tensors in squares that fit the vector registers, by networks of shuffles between these.

Squares at the end of a dimension overlap their neighbours rather than be smaller: what is written twice is
written the same. Several squares next to one another in the result are done together, a band of rows of the
source, so that what is written is longer than a line of the cache. Where that is written past the cache, and
takes no longer in shorter pieces, what is read of a row is longer than a line, too.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.emission import constants
from mind_mlir.lowering.emission.decision import Choice, chosen
from mind_mlir.lowering.emission.shuffles import transpose
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
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.linalg_view.view import Env, View
    from mind_mlir.target import Target


#: Emits something at given values of loops, on what is carried.
_Body: TypeAlias = "Callable[[Env, list[Value]], list[Value]]"


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
    nest: Transposition, target: Target
) -> TranspositionSchedule | NarrowSchedule:
    """Return how to transpose."""
    return narrow_schedule(nest, target) or _in_squares(nest, target)


def _in_squares(nest: Transposition, target: Target) -> TranspositionSchedule:
    extents, row, column, size = nest.extents, nest.row, nest.column, element_bytes(nest.element)
    fitting = min(extents[row], extents[column], target.lanes(8 * size), constants.LARGEST_SQUARE)
    lanes = 1 << (fitting.bit_length() - 1)
    many = extents[column] >= constants.FEWEST_SHARED * constants.BAND * lanes
    band = constants.BAND * lanes if many else lanes
    units = [-(-extent // band) if dim == column else extent for dim, extent in enumerate(extents)]
    units[row] = 0
    enough = (dim for dim, count in enumerate(units) if count >= constants.FEWEST_SHARED)
    shared = next(enough, units.index(max(units)))
    result = math.prod(extents) * size
    cut = split(extents[shared], 2 * result * target.rates.byte_ns, multiple=band if shared == column else 1)
    step = cut.step
    if shared != column and cut.count > 1:
        # As groups over the same loop are cut, and products: they are then one loop (see `buffers/merging`).
        wanted = max(constants.FEWEST_CHUNKS, result // constants.CHUNK_BYTES)
        step = min(step, 1 << (max(1, extents[shared] // wanted).bit_length() - 1))
    elif shared == column and 0 < extents[column] % step < lanes:
        step += lanes  # else the squares of the last chunk would overlap those of the one before
    cut = dataclasses.replace(cut, step=step, count=-(-extents[shared] // step))
    large = past_caches(result, 2 * result, target)
    whole = lanes * size == target.vector_bytes and extents[column] % lanes == 0
    distance = constants.PREFETCH_SQUARES if result > target.l2_bytes else 0
    return TranspositionSchedule(lanes, band, shared, cut, large and whole, distance)


class TranspositionEmitter:
    """Emits one transposition as its schedule says."""

    def __init__(self, emitter: Emitter, nest: Transposition, schedule: TranspositionSchedule) -> None:
        self._e, self._t, self._s = emitter, nest, schedule
        self._lanes = schedule.lanes
        self._vector = emitter.vector_type(schedule.lanes, nest.element)
        self._padding = emitter.number(nest.element, 0)

    def emit(self) -> Value:
        """Emit the nest at the insertion point and return the result tensor."""
        t, shared = self._t, self._s.shared
        result = self._e.empty(t.view.shapes[1], t.element)
        outer = [dim for dim in range(len(t.extents)) if dim not in (t.row, t.column)]
        order = [shared, *(dim for dim in (*outer, t.column) if dim != shared)]
        return self._e.chunks(
            self._s.split,
            t.extents[shared],
            [result],
            lambda first, end, carried: self._loops(order, (first, end), {}, carried),
        )[0]

    def _loops(
        self,
        dims: list[int],
        bounds: tuple[Index, Index],
        env: Env,
        carried: list[Value],
        band: tuple[Index, Index] = (0, 0),
    ) -> list[Value]:
        """Emit the loops over ``dims``, the first within ``bounds``, and what is inside, within ``band``."""
        if not dims:
            is_tiled = self._s.streaming and self._s.band > self._lanes
            return (self._tiles if is_tiled else self._columns)(band, env, carried)
        dim, *rest = dims
        following = (0, self._t.extents[rest[0]]) if rest else (0, 0)
        is_column = dim == self._t.column

        def body(i: Index, inside: list[Value]) -> list[Value]:
            if not is_column:
                return self._loops(rest, following, env | {dim: i}, inside, band)
            end = self._e.minimum(self._e.add(i, self._s.band), bounds[1])
            return self._loops(rest, following, env, inside, (i, end))

        return self._e.loop((*bounds, self._s.band if is_column else 1), carried, body)

    def _tiles(self, band: tuple[Index, Index], env: Env, carried: list[Value]) -> list[Value]:
        """Emit the squares of ``band`` a few columns of the source at a time, row after row of squares.

        What is read of a row is then several lines of the cache that lie behind one another.
        """
        row, column = self._t.row, self._t.column
        extent, width = self._t.extents[row], self._s.band

        def tile(j: Index, inside: list[Value]) -> list[Value]:
            end = self._e.add(j, width)
            end = self._e.minimum(end, extent) if extent % width else end
            line = self._squares(row, (j, end), self._square, streaming=self._lanes)
            return self._squares(column, band, line)(env, inside)

        return self._e.loop((0, extent, width), carried, tile)

    def _columns(self, band: tuple[Index, Index], env: Env, carried: list[Value]) -> list[Value]:
        """Emit the squares of ``band``, column after column of squares."""
        row, column = self._t.row, self._t.column

        def single(here: Env, inside: list[Value]) -> list[Value]:
            return self._square(here | {column: self._inside(column, band[0])}, inside)

        across = self._squares(column, band, self._square) if self._s.band > self._lanes else single
        return self._squares(row, (0, self._t.extents[row]), across)(env, carried)

    def _squares(self, dim: int, bounds: tuple[Index, Index], body: _Body, *, streaming: int = 0) -> _Body:
        """Return what emits ``body`` for each square along ``dim`` within ``bounds``."""
        return lambda env, carried: self._e.loop(
            (*bounds, self._lanes),
            carried,
            lambda i, inside: body(env | {dim: self._inside(dim, i)}, inside),
            streaming=streaming,
        )

    def _inside(self, dim: int, i: Index) -> Index:
        """Return where a square at ``i`` or so begins in order not to end behind the end of ``dim``."""
        extent = self._t.extents[dim]
        return self._e.minimum(i, extent - self._lanes) if extent % self._lanes else i

    def _square(self, env: Env, carried: list[Value]) -> list[Value]:
        e, row, column, source = self._e, self._t.row, self._t.column, self._t.view.operands[0]
        if self._s.prefetch_distance:
            ahead = e.add(env[row], self._s.prefetch_distance * self._lanes)
            there = env | {row: e.minimum(ahead, self._t.extents[row] - 1)}
            for lane in range(self._lanes):
                e.prefetch(source, self._place(0, there, column, lane), write=False)
        rows = [
            e.read(self._vector, source, self._place(0, env, column, lane), self._padding)
            for lane in range(self._lanes)
        ]
        (result,) = carried
        for lane, value in enumerate(transpose(rows)):
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
