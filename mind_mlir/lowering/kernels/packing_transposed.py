"""What packs a factor that lies transposed, square by square."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.shuffles import exchange
from mind_mlir.lowering.kernels.llvm_text import byte_width
from mind_mlir.lowering.kernels.packing_info import PackingInfo, vnni_steps
from mind_mlir.lowering.kernels.tile_operations import LEFT_TILES
from mind_mlir.lowering.kernels.vnni import WORD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.kernels.llvm_function import Text
    from mind_mlir.lowering.kernels.llvm_text import TextValue
    from mind_mlir.lowering.kernels.packing import PackKernel

#: Steps of a panel are written in macro-tiles of so many bytes: to choose instructions for shuffles across
#: all of a wide register takes LLVM several times as long.
_CHUNK_BYTES = 16


def transposed(values: Sequence[TextValue], lanes: int | None = None) -> list[TextValue]:
    """Append the columns of squares, as `exchange` does."""
    return exchange(values, lambda left, right, lanes: left.shuffle(right, lanes), lanes)


class TransposingPack:
    """Writes one packing kernel that transposes."""

    def __init__(self, t: Text, kernel: PackKernel) -> None:
        self._k, self._t, self._size = kernel, t, kernel.square
        self._info = PackingInfo(self._t, kernel)
        #: How far a column is from the next one in a square.
        self._line = self._size * kernel.summands if kernel.tiles == LEFT_TILES else 1
        #: Columns whose squares stand side by side in vectors.
        self._few = min(self._size, max(4, _CHUNK_BYTES // byte_width(kernel.element)))
        self._source = t.begin("source", kernel.source)

    def append(self) -> None:
        """Append the body of the kernel."""
        t, k, size = self._t, self._k, self._size
        target = t.begin("target", k.element)
        panels = t["columns"].blocks(k.columns)
        self._squares = vnni_steps(t, k).blocks(size)
        self._last_column = t["columns"] - 1
        with t.loop(panels, target, t.number(0)) as (panel, (there, column)):
            # As many columns at a time as a square has.
            with t.loop(k.columns // size, there, column) as (group, (here, first)):
                if k.masks:
                    self._in_squares(here, first)
                else:
                    for is_long in t.branches(t["depth"].compare("uge", size)):
                        (self._in_squares if is_long else self._one_by_one)(here, first)
                group.next(here + size * self._line, first + size)
            panel.next(there + t["panel"], column + k.columns)
        self._info.write(panels)

    def _in_squares(self, there: TextValue, column: TextValue) -> None:
        t, few = self._t, self._few
        with (
            t.loop(self._squares) as (square, _),
            t.loop(self._size // few, there, column) as (part, (here, first)),
        ):
            rows = [self._row(first + lane) for lane in range(few)]
            self._part(here, rows, square.number)
            part.next(here + few * self._line, first + few)

    def _part(self, there: TextValue, rows: list[TextValue], number: TextValue) -> None:
        """Append the packing of some columns of square ``number``."""
        t, k, size = self._t, self._k, self._size
        first = number * size
        if k.vnni > 1:
            values = self._words_of(rows, first)
        elif k.masks:
            mask = (t["depth"] - first).mask(0, size)
            values = [[(row + first).load(size, mask) for row in rows]]
        else:
            first = first.minimum(t["depth"] - size)
            values = [[(row + first).load(size) for row in rows]]
        place = there + first * k.line
        for summand, each in enumerate(values):
            self._store(place, summand, each)

    def _store(self, place: TextValue, summand: int, values: list[TextValue]) -> None:
        """Append stores of some columns of a square."""
        k, size = self._k, self._size
        if k.tiles == LEFT_TILES:
            for lane, value in enumerate(values):
                (place + (lane * k.summands + summand) * size).store(value)
            return
        for step, moved in enumerate(transposed(values, size)):
            value = moved.converted(k.source) if k.vnni == 1 else moved
            for lane in range(0, size, self._few):
                columns = value.part(lane, self._few)
                (place + ((lane + step) * k.line + summand * k.columns)).store(columns)

    def _words_of(self, rows: list[TextValue], first: TextValue) -> list[list[TextValue]]:
        """Append words of some columns, from word ``first`` on; past the last element there are zeros.

        Of each summand there is a list, of a word for each column.
        """
        t, k = self._t, self._k
        lanes = self._size * k.vnni
        start = first * k.vnni
        mask = (t["depth"] - start).mask(0, lanes)
        found = []
        for row in rows:
            terms = (row + start).read(lanes, mask)
            if k.summands > 1:
                places = (range(term, lanes, k.vnni) for term in range(k.vnni))
                found.append(self._info.words([terms.shuffle(terms, each) for each in places]))
            else:
                found.append([self._info.seen(terms.cast("bitcast", WORD, self._size))])
        self._info.keep()
        return [list(each) for each in zip(*found, strict=True)]

    def _one_by_one(self, there: TextValue, column: TextValue) -> None:
        t, k = self._t, self._k
        with t.loop(self._size) as (lane, _):
            row, place = self._row(column + lane.number), there + lane.number
            with t.loop(t["depth"]) as (step, _):
                value = (row + step.number).read()
                (place + step.number * k.columns).store(value)

    def _row(self, column: TextValue) -> TextValue:
        """Append the pointer to the steps of a column, or of the last one there is."""
        return self._source + column.minimum(self._last_column) * self._t["stride"]
