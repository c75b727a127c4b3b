"""The micro-kernels of products of few rows, which read a large right factor once.

Such a product takes as long as memory needs to bring the right factor. That is fastest in the order in which
it lies there, without a tile of registers that would have several rows of it under way at a time: a sweep row
by row, and the results of its parts are added up; or, where columns are contiguous, dot products.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.kernels.llvm_function import MicroKernel, Text, add_where, store_sums
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mind_mlir.lowering.kernels.llvm_text import TextValue

#: Partial results that one accumulator sums.
JOINED = 32
#: Rows of the right factor that are read side by side, for one row of results and for several: so many
#: streams the processor prefetches, and a result is loaded and stored once for all of them. For one row of
#: results they are far apart, so that each stream goes on through memory, which is read faster by half on one
#: thread. For several they are neighbours, and products are added up in the order of tiles.
_BESIDE = 4, 8


@dataclass(frozen=True)
class AxpyKernel(MicroKernel):
    """``out[i, j] = sum over k of left[i, k] * right[k, j]``, some rows of the right factor after others.

    The results, few rows of them, stay in the first-level cache meanwhile. Their rows have room for whole
    vectors. What is at edges is computed one by one where there are no ``masks``.
    """

    rows: int
    lanes: int
    element: str
    left: str
    right: str
    fma: bool
    masks: bool

    kind = "sweep"
    buffers = ("left", "right", "out")
    numbers = ("columns", "depth", "left_row", "left_step", "right_step", "out_row")

    def append(self, t: Text) -> None:
        """Append the body: results are cleared, then groups of rows of the right factor are added."""
        left, right = t.begin("left", self.left), t.begin("right", self.right)
        out = t.begin("out", self.element)
        outs = [out + t["out_row"] * row for row in range(self.rows)]
        lefts = [left + t["left_row"] * row for row in range(self.rows)]
        beside = _BESIDE[min(self.rows, 2) - 1]
        groups = t["depth"] // beside
        apart, onward = (groups, t.number(1)) if self.rows == 1 else (t.number(1), t.number(beside))
        for first, lanes, _ in _along(t, t["columns"], self.lanes, masks=self.masks):
            for result in outs:
                (result + first).store(t.constant(0, self.element, lanes))
        done = groups * beside
        rest = t["depth"] - done

        def some(number: TextValue, there: TextValue, count: int) -> None:
            """Append what adds the products of ``count`` rows of the right factor, from ``number`` on."""
            rights = [there]
            for _ in range(1, count):
                rights.append(rights[-1] + t["right_step"] * apart)
            places = [number + t.number(each) * apart for each in range(count)]
            offsets = [place * t["left_step"] for place in places]
            scalars = [[(each + offset).read() for offset in offsets] for each in lefts]
            splats = [[each.splat(self.lanes) for each in several] for several in scalars]
            for first, lanes, mask in _along(t, t["columns"], self.lanes, masks=self.masks):
                values = [(each + first).read(lanes, mask) for each in rights]
                for result, factors in zip(outs, splats if lanes else scalars, strict=True):
                    place = result + first
                    total = place.load(lanes)
                    for factor, value in zip(factors, values, strict=True):
                        total = factor.multiply_add(value, total, fma=self.fma)
                    place.store(total)

        with t.loop_if_any(groups, right) as (group, (there,)):
            some(group.number * onward, there, beside)
            group.next(there + t["right_step"] * onward)
        with t.loop_if_any(rest, right + done * t["right_step"]) as (single, (there,)):
            some(done + single.number, there, 1)
            single.next(there + t["right_step"])


@dataclass(frozen=True)
class JoinKernel(MicroKernel):
    """``out[i, j] (+)= sum over p of source[p, i, j]``: adds up partial results, in their order."""

    lanes: int
    element: str
    masks: bool

    kind = "join"
    buffers = ("source", "out")
    numbers = ("rows", "columns", "parts", "source_row", "source_part", "out_row")
    adds = True

    def append(self, t: Text) -> None:
        """Append the body: row after row, vector after vector, part after part."""
        source, out = t.begin("source", self.element), t.begin("out", self.element)
        start = t.start(self.element)
        starts = start.splat(self.lanes)
        groups = t["parts"].blocks(JOINED)
        with t.loop(t["rows"], source, out) as (rows, (here, there)):
            for first, lanes, mask in _along(t, t["columns"], self.lanes, masks=self.masks):
                total = self._total(t, groups, here + first, lanes)
                place = there + first
                if mask is None:
                    store_sums(t, [(place, total)], starts if lanes else start)
                else:
                    add_where(t, place, total, starts, mask)
            rows.next(here + t["source_row"], there + t["out_row"])

    def _total(self, t: Text, groups: TextValue, first: TextValue, lanes: int) -> TextValue:
        """Append the sum of all parts of what is at ``first`` in the first one."""
        zero = t.constant(0, self.element, lanes)
        with t.loop(groups, first, t["parts"], zero) as (group, (begin, left, before)):
            with t.loop(left.minimum(JOINED), begin, zero) as (part, (here, some)):
                value = here.load(lanes)
                following, added = here + t["source_part"], some + value
                part.next(following, added)
            rest, total = left - JOINED, before + added
            group.next(following, rest, total)
        return total


@dataclass(frozen=True)
class DotKernel(MicroKernel):
    """``out[i, j] (+)= sum over k of left[i, k] * right[j, k]``, some columns after others, for all rows.

    Both factors are contiguous along the products. Sums of a block start at zero, in several accumulators.
    Columns are computed side by side so that what is loaded of the left factor serves all of them.

    Attributes:
        beside: Columns that are computed side by side; those that are left, one after the other.
        vectors: Accumulators of an element of the result.
        ragged: Whether loads behind the last whole step take masks; else a block has whole steps only.
    """

    rows: int
    beside: int
    vectors: int
    lanes: int
    element: str
    left: str
    right: str
    fma: bool
    ragged: bool

    kind = "dots"
    buffers = ("left", "right", "out")
    numbers = ("columns", "depth", "last_depth", "blocks", "left_row", "right_column", "out_row")
    adds = True

    def append(self, t: Text) -> None:
        """Append the body: columns side by side, then those that are left."""
        right, out = t.begin("right", self.right), t.begin("out", self.element)
        if self.beside == 1:
            with t.loop(t["columns"], right, out) as (loop, inside):
                loop.next(*self._columns(t, 1, *inside))
            return
        whole = t["columns"] // self.beside
        rest = t["columns"] - whole * self.beside
        behind = right + whole * self.beside * t["right_column"], out + whole * self.beside
        for count, first, beside in ((whole, (right, out), self.beside), (rest, behind, 1)):
            with t.loop_if_any(count, *first) as (loop, inside):
                loop.next(*self._columns(t, beside, *inside))

    def _columns(
        self, t: Text, beside: int, first: TextValue, result: TextValue
    ) -> tuple[TextValue, TextValue]:
        """Append ``beside`` columns from ``first`` on, whose results go to ``result`` and what follows.

        Returns the next column, and where its results go.
        """
        left = t.begin("left", self.left)
        lefts = [left + t["left_row"] * row for row in range(self.rows)]
        rights = [t["right_column"] * column for column in range(beside)]

        def multiplied(
            offset: TextValue,
            there: TextValue,
            sums: Sequence[TextValue],
            masks: Sequence[TextValue | None] = (None,) * self.vectors,
        ) -> list[TextValue]:
            """Append ``sums`` plus the products of a step; those of one that is not whole have ``masks``."""
            following = list(sums)
            for v, mask in enumerate(masks):
                place = there + t.number(v * self.lanes)
                factors = [(place + each).read(self.lanes, mask) for each in rights]
                place = offset + v * self.lanes
                for row, each in enumerate(lefts):
                    value = (each + place).read(self.lanes, mask)
                    for column, factor in enumerate(factors):
                        cell = (row * beside + column) * self.vectors + v
                        following[cell] = value.multiply_add(factor, sums[cell], fma=self.fma)
            return following

        width, last = t.number(self.lanes * self.vectors), t["blocks"] - 1
        cells = self.rows * beside
        starts = t.number(0), first, *[t.constant(0, self.element)] * cells
        with t.loop(t["blocks"], *starts) as (block, (offset, there, *before)):
            depth = block.number.compare("eq", last).select(t["last_depth"], t["depth"])
            zeros = [t.constant(0, self.element, self.lanes)] * (cells * self.vectors)
            with t.loop(depth // width, offset, there, *zeros) as (step, (at, here, *some)):
                sums = multiplied(at, here, some)
                onward = at + width, here + width
                step.next(*onward, *sums)
            if self.ragged:
                rest = depth % width
                masks = [rest.mask(v * self.lanes, self.lanes) for v in range(self.vectors)]
                sums = multiplied(*onward, sums, masks)
            several = [sums[cell : cell + self.vectors] for cell in range(0, len(sums), self.vectors)]
            totals = [total + _sum_of_lanes(each) for total, each in zip(before, several, strict=True)]
            block.next(*onward, *totals)
        places = [
            result + t["out_row"] * row + t.number(column)
            for row in range(self.rows)
            for column in range(beside)
        ]
        store_sums(t, list(zip(places, totals, strict=True)), t.start(self.element))
        return first + t["right_column"] * beside, result + beside


def _sum_of_lanes(vectors: Sequence[TextValue]) -> TextValue:
    """Append the sum of all lanes of ``vectors``, pair by pair."""
    while len(vectors) > 1:
        half = len(vectors) // 2
        vectors = [one + other for one, other in zip(vectors[:half], vectors[half:], strict=True)]
    return vectors[0].lane_sum()


def _along(
    t: Text, columns: TextValue, lanes: int, *, masks: bool
) -> Iterator[tuple[TextValue, int, TextValue | None]]:
    """Append loops over ``columns``: yields a first column, how many lanes, and a mask of these.

    Those are the lanes of a vector, or none for a single column: those at the end, without masks.
    """
    whole = columns // lanes
    with t.loop_if_any(whole) as (loop, _):
        yield loop.number * lanes, lanes, None
    done = whole * lanes
    rest = columns - done
    if masks:
        mask = rest.mask(0, lanes)
        with t.when(rest.compare("ne", 0)):
            yield done, lanes, mask
    else:
        with t.loop_if_any(rest) as (loop, _):
            yield done + loop.number * 1, 0, None
