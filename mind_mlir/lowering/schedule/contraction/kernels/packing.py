"""The micro-kernels that pack factors of contractions into panels."""

from __future__ import annotations

import dataclasses

from mind_mlir.lowering.schedule.contraction.kernels.kernel import MicroKernel, symbol
from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import Text, byte_width, convert, vector
from mind_mlir.lowering.schedule.contraction.kernels.loops import (
    Moving,
    along_panels,
    begin,
    count_of,
    stored,
    walk,
)
from mind_mlir.lowering.schedule.contraction.kernels.vnni import (
    WORD,
    PackingInfo,
    append_vnni_packing,
    vnni_steps,
)
from mind_mlir.lowering.schedule.movement.transposition import exchange
from mind_mlir.mlir.records import spelled

#: The arguments behind the two buffers of a packing.
PACK_ARGUMENTS = ("source_first", "target_first", "columns", "depth", "stride", "panel", "info_first")
#: Larger squares than this take more registers than there are.
_LARGEST_SQUARE = 16
#: Steps of a panel are written in macro-tiles of so many bytes: to choose instructions for shuffles across
#: all of a wide register takes LLVM several times as long.
_CHUNK_BYTES = 16


@dataclasses.dataclass(frozen=True)
class PackKernel(MicroKernel):
    """A right factor on its way into panels ``[column / columns][step][columns]`` of accumulator elements.

    Columns past the last one hold anything: what is computed from them is never stored.

    Attributes:
        columns: Columns of a panel.
        lanes: Elements of an accumulator vector, of which panels are a multiple wide.
        element: The type of accumulators.
        source: The type of elements in memory, and conversions to accumulators.
        transposes: Whether the source is contiguous along the steps, not along the columns. Then a panel
            holds a multiple of ``square`` steps.
        masks: Whether loads take masks.
        vnni: Elements in a word; then panels are of words, a step is one of words, and there are masks.
        info: What it does besides, one of those of `contraction.kernels.vnni`.
    """

    columns: int
    lanes: int
    element: str
    source: str
    transposes: bool
    masks: bool
    vnni: int = dataclasses.field(default=1, metadata=spelled("group"))
    info: str = dataclasses.field(default="", metadata=spelled("notes"))

    kind = "pack"
    buffers = ("source", "target")
    numbers = PACK_ARGUMENTS

    @property
    def name(self) -> str:
        """The symbol of the function."""
        element = self.element if self.vnni == 1 else f"words {self.vnni}"
        rest = [*(["masks"] if self.masks else []), *([self.info] if self.info else [])]
        parts = [f"{self.columns}x{self.lanes}", self.source, element, *rest]
        return symbol("transpose" if self.transposes else self.kind, parts)

    @property
    def square(self) -> int:
        """Rows and columns of the squares that are transposed in registers."""
        return min(self.lanes, _LARGEST_SQUARE)

    @property
    def part(self) -> str:
        """The type of elements as panels, or their words, hold them."""
        *_, last = self.source.split(":")
        return last.split(" ")[-1]

    def append(self, t: Text) -> None:
        """Append the body."""
        if self.transposes:
            _Transpose(t, self).append()
        elif self.vnni > 1:
            append_vnni_packing(t, self)
        else:
            _append_copy(t, self)


def _append_copy(t: Text, kernel: PackKernel) -> None:
    source_type, lanes, element = stored(kernel.source), kernel.lanes, kernel.element

    def vectors(here: str, there: str, live: str | None) -> None:
        for first in range(0, kernel.columns, lanes):
            place = t.step(here, first, source_type)
            mask = None if live is None else t.mask(live, first, lanes)
            value = t.read(place, kernel.source, lanes, mask)
            t.store(value, t.step(there, first, element), vector(lanes, element), byte_width(element))

    def write(rows: list[str], there: str, live: str | None) -> None:
        (here,) = rows
        if live is None or kernel.masks:
            vectors(here, there, live)
        else:
            walk(t, live, (), lambda column: single(here, there, column))

    def single(here: str, there: str, column: str) -> None:
        value = t.read(t.step(here, column, source_type), kernel.source, 0)
        t.store(value, t.step(there, column, element), element, byte_width(element))

    source, target = begin(t, "source", source_type), begin(t, "target", element)
    moving = [Moving(source, "%stride", source_type), Moving(target, kernel.columns, element)]
    panels = count_of(t, "%columns", kernel.columns)
    walk(t, "%depth", moving, lambda _, here, there: along_panels(t, kernel, panels, [here], there, write))


class _Transpose:
    """Writes one packing kernel that transposes."""

    def __init__(self, t: Text, kernel: PackKernel) -> None:
        self._kernel = kernel
        self._t = t
        self._stored = stored(kernel.source)
        self._size = kernel.square
        self._info = PackingInfo(self._t, kernel)
        #: What is transposed: words, or elements that are converted afterwards.
        self._moved = self._stored if kernel.vnni == 1 else WORD
        #: Columns whose squares stand side by side in vectors.
        self._few = min(self._size, max(4, _CHUNK_BYTES // byte_width(kernel.element)))
        self._source = begin(self._t, "source", self._stored)

    def append(self) -> None:
        """Append the body of the kernel."""
        t, kernel = self._t, self._kernel
        target = begin(t, "target", kernel.element)
        width, size = t.number(kernel.columns), t.number(self._size)
        panels = count_of(t, "%columns", kernel.columns)
        self._squares = t.binary("udiv", t.add(vnni_steps(t, kernel), t.number(self._size - 1)), size)
        self._last_column = t.binary("sub", "%columns", t.number(1))
        groups = t.number(kernel.columns // self._size)

        def panel(there: str, column: str) -> list[str]:
            t.loop(groups, [(there, "!llvm.ptr"), (column, "i64")], lambda _, inside: self._group(*inside))
            return [t.step(there, "%panel", kernel.element), t.add(column, width)]

        carried = [(target, "!llvm.ptr"), (t.number(0), "i64")]
        t.loop(panels, carried, lambda _, inside: panel(*inside))
        self._info.write(panels)

    def _group(self, there: str, column: str) -> list[str]:
        """Append the packing of as many columns as a square has, from ``column`` on."""
        t, size = self._t, self._size
        if self._kernel.masks:
            self._in_squares(there, column)
        else:
            t.either(
                t.compare("uge", "%depth", t.number(size)),
                lambda: self._in_squares(there, column),
                lambda: self._one_by_one(there, column),
            )
        return [t.step(there, size, self._kernel.element), t.add(column, t.number(size))]

    def _in_squares(self, there: str, column: str) -> None:
        t, few = self._t, self._few

        def part(number: str, here: str, column: str) -> list[str]:
            rows = [self._row(t.add(column, t.number(lane))) for lane in range(few)]
            self._part(here, rows, number)
            return [t.step(here, few, self._kernel.element), t.add(column, t.number(few))]

        def square(number: str) -> None:
            carried = [(there, "!llvm.ptr"), (column, "i64")]
            parts = t.number(self._size // few)
            t.loop(parts, carried, lambda _, inside: part(number, *inside))

        walk(t, self._squares, (), square)

    def _part(self, there: str, rows: list[str], number: str) -> None:
        """Append the packing of some columns of square ``number``."""
        t, kernel, size, stored = self._t, self._kernel, self._size, self._stored
        type_, element = vector(size, self._moved), kernel.element
        first = t.mul(number, t.number(size))
        if kernel.vnni > 1:
            values = self._words_of(rows, first)
        elif kernel.masks:
            mask = t.mask(t.binary("sub", "%depth", first), 0, size)
            off = t.zero(stored, size)
            values = [t.masked_load(t.step(row, first, stored), mask, off, size, stored) for row in rows]
        else:
            first = t.minimum(first, t.binary("sub", "%depth", t.number(size)))
            values = [t.load(t.step(row, first, stored), type_, byte_width(stored)) for row in rows]
        place = t.step(there, t.mul(first, t.number(kernel.columns)), element)
        transposed = exchange(values, lambda left, right, lanes: t.shuffle(left, right, lanes, type_), size)
        for step, several in enumerate(transposed):
            value = convert(t, kernel.source, several, size) if kernel.vnni == 1 else several
            for lane in range(0, size, self._few):
                lanes = list(range(lane, lane + self._few))
                columns = t.shuffle(value, value, lanes, vector(size, element))
                pointer = t.step(place, (lane + step) * kernel.columns, element)
                t.store(columns, pointer, vector(self._few, element), byte_width(element))

    def _words_of(self, rows: list[str], first: str) -> list[str]:
        """Append words of some columns, from word ``first`` on; past the last element there are zeros."""
        t, kernel, stored = self._t, self._kernel, self._stored
        lanes = self._size * kernel.vnni
        start = t.mul(first, t.number(kernel.vnni))
        mask = t.mask(t.binary("sub", "%depth", start), 0, lanes)
        before = vector(lanes, kernel.part)
        found = []
        for row in rows:
            value = t.read(t.step(row, start, stored), kernel.source, lanes, mask)
            value = t.op(f"llvm.bitcast {value} : {before} to {vector(self._size, WORD)}")
            found.append(self._info.seen(value, self._size))
        self._info.keep()
        return found

    def _one_by_one(self, there: str, column: str) -> None:
        t, element = self._t, self._kernel.element

        def single(row: str, place: str, step: str) -> None:
            value = t.read(t.step(row, step, self._stored), self._kernel.source, 0)
            here = t.step(place, t.mul(step, t.number(self._kernel.columns)), element)
            t.store(value, here, element, byte_width(element))

        def lane(number: str) -> None:
            row, place = self._row(t.add(column, number)), t.step(there, number, element)
            walk(t, "%depth", (), lambda step: single(row, place, step))

        walk(t, t.number(self._size), (), lane)

    def _row(self, column: str) -> str:
        """Append the pointer to the steps of a column, or of the last one there is."""
        t = self._t
        return t.step(self._source, t.mul(t.minimum(column, self._last_column), "%stride"), self._stored)
