"""A contraction as loops over memory, and the macro-tiles that its result is computed in.

Loops have extents, and how far each operand moves in a step.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.linalg_view.layout import Strides, strides_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mind_mlir.lowering.schedule.contraction.match import Contraction
    from mind_mlir.lowering.schedule.linalg_view.view import Access


@dataclass(frozen=True)
class Loop:
    """A loop, and by how many elements a step of it moves in each operand."""

    extent: int
    left: int
    right: int
    out: int

    def follows(self, inner: Loop) -> bool:
        """Return whether a step of this loop is as far as all of ``inner`` in each operand."""
        return all(
            getattr(self, name) == inner.extent * getattr(inner, name) for name in ("left", "right", "out")
        )


#: A loop of one iteration.
ONCE = Loop(1, 0, 0, 0)


@dataclass(frozen=True)
class Geometry:
    """The loops of a contraction by their roles, neighbours merged where memory allows.

    Attributes:
        columns: The loop along which vectors run.
        rows: The loops that only the left factor has, besides batches: the rows of tiles first, innermost.
        batch: Those that the right factor has, too, innermost first.
        depth: The reductions, innermost first.
        first: Where each operand starts: left, right, out, in elements.
    """

    columns: Loop
    rows: tuple[Loop, ...]
    batch: tuple[Loop, ...]
    depth: tuple[Loop, ...]
    first: tuple[int, int, int]

    @property
    def steps(self) -> int:
        """Products in a sum."""
        return math.prod(loop.extent for loop in self.depth)

    @property
    def packed(self) -> tuple[Loop, ...]:
        """The reductions as the right factor alone sees them, which merge more often."""
        return merged(dataclasses.replace(loop, left=loop.right, out=0) for loop in self.depth)

    @property
    def is_strided(self) -> bool:
        """Whether the right factor is not contiguous along the columns, so that it has to be packed."""
        return self.columns.right != 1 and self.columns.extent > 1

    @property
    def packs_steps(self) -> bool:
        """Whether a chunk of packing is some steps of all panels, which are read on through memory."""
        return not self.is_strided and not self.batch and len(self.packed) == 1

    @property
    def form(self) -> object:
        """The form that schedules depend on: the loops, and which of them run along elements side by side.

        Of two memories that have the same, the schedule for one computes with the other.
        """
        loops = (self.columns, *self.rows, *self.batch, *self.depth)
        extents = [[loop.extent for loop in each] for each in (self.rows, self.batch, self.depth)]
        return extents, [(loop.left == 1, loop.right == 1, loop.out == 1) for loop in loops]


def memory_strides(contraction: Contraction) -> list[Strides]:
    """Return the strides of the memory of the left factor, of the right one and of the result."""
    left, right, out = contraction.left.value, contraction.right.value, contraction.view.inits[0]
    return [strides_of(value) for value in (left, right, out)]


def geometry(contraction: Contraction, strides: Sequence[Sequence[int]]) -> Geometry:
    """Return the loops of ``contraction``, whose left factor, right factor and result have ``strides``."""
    accesses = (contraction.left.access, contraction.right.access, contraction.out)

    def loop(dim: int) -> Loop:
        steps = (_stride(access, each, dim) for access, each in zip(accesses, strides, strict=True))
        return Loop(contraction.extent(dim), *steps)

    def innermost_first(dims: Iterable[int]) -> tuple[Loop, ...]:
        return merged(loop(dim) for dim in sorted(dims, reverse=True))

    rows = innermost_first((*contraction.rows, *(() if contraction.m is None else (contraction.m,))))
    tiled = max(rows, key=lambda each: min(each.extent, 16), default=ONCE)
    first = [
        sum(index.constant * stride for index, stride in zip(access, each, strict=True))
        for access, each in zip(accesses, strides, strict=True)
    ]
    return Geometry(
        columns=loop(contraction.n),
        rows=(tiled, *(each for each in rows if each is not tiled)) if rows else (ONCE,),
        batch=innermost_first(contraction.batch),
        depth=merged([loop(contraction.k), *innermost_first(contraction.inner)]) or (ONCE,),
        first=(first[0], first[1], first[2]),
    )


def merged(loops: Iterable[Loop]) -> tuple[Loop, ...]:
    """Return ``loops``, innermost first, with neighbours as one where they run on through memory."""
    found: list[Loop] = []
    for loop in loops:
        if loop.extent == 1:
            continue
        if found and loop.follows(found[-1]):
            found[-1] = dataclasses.replace(found[-1], extent=found[-1].extent * loop.extent)
        else:
            found.append(loop)
    return tuple(found)


def _stride(access: Access, strides: Sequence[int], dim: int) -> int:
    return sum(
        coefficient * stride
        for index, stride in zip(access, strides, strict=True)
        for term, coefficient in index.terms
        if term == dim
    )


@dataclass(frozen=True)
class TiledLoop:
    """A loop over the elements of a result, in macro-tiles.

    Attributes:
        extent: Its iterations.
        size: Iterations in a macro-tile; the last one may have fewer.
        stride: How far a step of it moves in the result, in elements.
    """

    extent: int
    size: int
    stride: int

    @property
    def count(self) -> int:
        """The number of macro-tiles along the loop."""
        return -(-self.extent // self.size)


def in_memory_order(tiled_loops: tuple[TiledLoop, ...]) -> tuple[int, ...] | None:
    """Return which of ``tiled_loops`` make up a row-major tensor, outermost first; None if they do not.

    Those of one iteration are left out. The last one are the columns.
    """
    live = [number for number, part in enumerate(tiled_loops) if part.extent > 1]
    order = sorted(live, key=lambda number: -tiled_loops[number].stride)
    for place, number in enumerate(order):
        inside = math.prod(tiled_loops[other].extent for other in order[place + 1 :])
        if tiled_loops[number].stride != inside:
            return None
    return tuple(order) if order and order[-1] == COLUMNS else None


#: Which part is the columns.
COLUMNS = 2
