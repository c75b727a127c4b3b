"""The micro-kernels that pack factors of contractions into panels."""

from __future__ import annotations

import dataclasses

from mind_mlir.lowering.emission.shuffles import exchange
from mind_mlir.lowering.kernels.llvm_function import MicroKernel, Text, symbol
from mind_mlir.lowering.kernels.llvm_text import TextValue, byte_width
from mind_mlir.lowering.kernels.vnni import WORD, PackingInfo, vnni_steps
from mind_mlir.mlir.records import spelled
from mind_mlir.support.lazy_dataclass import dataclass

#: Larger squares than this take more registers than there are.
_LARGEST_SQUARE = 16
#: Factors that are read as tiles, squares of words: left ones, whose squares are ``[column][step]``, and
#: right ones, whose squares are ``[step][column]``.
LEFT_TILES, RIGHT_TILES = "left tiles", "right tiles"
#: Steps of a panel are written in macro-tiles of so many bytes: to choose instructions for shuffles across
#: all of a wide register takes LLVM several times as long.
_CHUNK_BYTES = 16


@dataclass(frozen=True)
class PackKernel(MicroKernel):
    """A right factor on its way into panels ``[column / columns][step][columns]`` of accumulator elements.

    Columns past the last one hold anything: what is computed from them is never stored.

    Attributes:
        columns: Columns of a panel.
        lanes: Elements of an accumulator vector, of which panels are a multiple wide.
        transposes: Whether the source is contiguous along the steps, not along the columns.
        vnni: Elements in a word; then panels are of words, a step is one of words, and there are masks.
        info: What it does besides, one of those of `vnni`.
        tiles: Whether words are for tiles, and of which factor.
    """

    columns: int
    lanes: int
    element: str
    source: str
    transposes: bool
    masks: bool
    vnni: int = dataclasses.field(default=1, metadata=spelled("group"))
    info: str = dataclasses.field(default="", metadata=spelled("notes"))
    tiles: str = ""

    kind = "pack"
    buffers = ("source", "target")
    numbers = ("columns", "depth", "stride", "panel", "info_first")

    @property
    def name(self) -> str:
        """The symbol of the function."""
        element = self.element if self.vnni == 1 else f"words {self.vnni}"
        rest = [*(["masks"] if self.masks else []), *filter(None, (self.info, self.tiles))]
        parts = [f"{self.columns}x{self.lanes}", self.source, element, *rest]
        return symbol("transpose" if self.transposes else self.kind, parts)

    @property
    def square(self) -> int:
        """Rows and columns of the squares that are transposed in registers."""
        return min(self.lanes, _LARGEST_SQUARE)

    @property
    def multiple(self) -> int:
        """What the steps of a panel are a multiple of; tiles have zeros past the last one."""
        return self.square if self.transposes or self.tiles else 1

    @property
    def part(self) -> str:
        """The type of elements as panels, or their words, hold them."""
        *_, last = self.source.split(":")
        return last.split(" ")[-1]

    def append(self, t: Text) -> None:
        """Append the body."""
        if self.transposes:
            _Transpose(t, self).append()
        elif self.tiles == LEFT_TILES:
            _append_squares(t, self)
        else:
            _append_copy(t, self)


def _append_copy(t: Text, k: PackKernel) -> None:
    """Append what packs a factor whose columns are contiguous, as many steps side by side as a word has."""
    info = PackingInfo(t, k)
    source, target = t.begin("source", k.source), t.begin("target", k.element)
    panels = t["columns"].blocks(k.columns)

    def columns(
        rows: list[TextValue], flags: list[TextValue], there: TextValue, live: TextValue | None
    ) -> None:
        """Append a step of a panel, of ``rows`` of the source; ``live`` columns, if not all, are there."""
        if live is not None and not k.masks:
            with t.loop(live) as (column, _):
                value = (rows[0] + column.number).read()
                (there + column.number).store(value)
            return
        for first in range(0, k.columns, k.lanes):
            places = [row + first for row in rows]
            mask = None if live is None else live.mask(first, k.lanes)
            value = info.seen(_word(k, places, flags, mask))
            (there + first).store(value)
        info.keep()

    steps = vnni_steps(t, k)
    steps = steps.blocks(k.multiple) * k.multiple if k.tiles else steps
    with t.loop(steps, source, target) as (step, (source, target)):
        rows, flags = _lines(t, k, source, step.number)
        with t.loop(panels, *rows, target, t["columns"]) as (panel, (*here, there, live)):
            for whole in t.branches(live.compare("uge", k.columns)):
                columns(here, flags, there, None if whole else live)
            after = [row + k.columns for row in here]
            panel.next(*after, there + t["panel"], live - k.columns)
        step.next(source + (t["stride"] * k.vnni if k.vnni > 1 else t["stride"]), target + k.columns)
    info.write(panels)


def _lines(
    t: Text, k: PackKernel, source: TextValue, step: TextValue
) -> tuple[list[TextValue], list[TextValue]]:
    """Append the lines of the source whose elements make step number ``step``, and whether they are there.

    The first one is at ``source``; where steps fill up squares, it is said of that one, too.
    """
    flags = []
    if k.tiles:  # what is not there is read from where the buffer begins
        flags.append((step * k.vnni).compare("ult", t["depth"]))
        source = flags[0].select(source, t.begin("source", k.source))
    lines = [source]
    for term in range(1, k.vnni):
        flags.append((step * k.vnni + term).compare("ult", t["depth"]))
        lines.append(flags[-1].select(lines[-1] + t["stride"], source))
    return lines, flags


def _word(
    k: PackKernel, places: list[TextValue], flags: list[TextValue], mask: TextValue | None
) -> TextValue:
    """Append words of what stands at ``places``: zero where ``flags``, of the last of them, do not hold."""
    value: TextValue | None = None
    for term, place in enumerate(places):
        element = place.read(k.lanes, mask)
        if term >= len(places) - len(flags):
            element = flags[term - len(places)].select(element, element.like(0))
        element = element.cast("zext", WORD) if k.vnni > 1 else element
        value = element if value is None else value | element << 8 * byte_width(k.part) * term
    assert value is not None
    return value


def _append_squares(t: Text, k: PackKernel) -> None:
    """Append what packs a factor whose columns are contiguous into squares of contiguous steps."""
    info, size = PackingInfo(t, k), k.square
    source, target = t.begin("source", k.source), t.begin("target", k.element)
    panels, line = t["columns"].blocks(k.columns), t["stride"] * k.vnni
    squares = vnni_steps(t, k).blocks(size)
    with t.loop(panels, source, target, t["columns"]) as (panel, (there, panel_target, live)):
        with t.loop(squares, there, panel_target) as (square, (here, place)):
            with t.loop(k.columns // size, here, place, live) as (group, (first, to, left)):
                mask, words, at = left.mask(0, size), [], first
                for step in range(size):
                    lines, flags = _lines(t, k, at, square.number * size + step)
                    words.append(info.seen(_word(k, lines, flags, mask)))
                    at = at + line
                info.keep()
                transposed = exchange(words, lambda one, other, lanes: one.shuffle(other, lanes))
                for column, value in enumerate(transposed):
                    (to + column * size).store(value)
                group.next(first + size, to + size * size, left.maximum(size) - size)
            square.next(here + line * size, place + k.columns * size)
        panel.next(there + k.columns, panel_target + t["panel"], live - k.columns)
    info.write(panels)


class _Transpose:
    """Writes one packing kernel that transposes."""

    def __init__(self, t: Text, kernel: PackKernel) -> None:
        self._k, self._t, self._size = kernel, t, kernel.square
        self._info = PackingInfo(self._t, kernel)
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
                group.next(here + (size * size if k.tiles == LEFT_TILES else size), first + size)
            panel.next(there + t["panel"], column + k.columns)
        self._info.write(panels)

    def _in_squares(self, there: TextValue, column: TextValue) -> None:
        t, few = self._t, self._few
        onward = few * (self._size if self._k.tiles == LEFT_TILES else 1)
        with (
            t.loop(self._squares) as (square, _),
            t.loop(self._size // few, there, column) as (part, (here, first)),
        ):
            rows = [self._row(first + lane) for lane in range(few)]
            self._part(here, rows, square.number)
            part.next(here + onward, first + few)

    def _part(self, there: TextValue, rows: list[TextValue], number: TextValue) -> None:
        """Append the packing of some columns of square ``number``."""
        t, k, size = self._t, self._k, self._size
        first = number * size
        if k.vnni > 1:
            values = self._words_of(rows, first)
        elif k.masks:
            mask = (t["depth"] - first).mask(0, size)
            values = [(row + first).load(size, mask) for row in rows]
        else:
            first = first.minimum(t["depth"] - size)
            values = [(row + first).load(size) for row in rows]
        place = there + first * k.columns
        if k.tiles == LEFT_TILES:
            for lane, value in enumerate(values):
                (place + lane * size).store(value)
            return
        transposed = exchange(values, lambda left, right, lanes: left.shuffle(right, lanes), size)
        for step, moved in enumerate(transposed):
            value = moved.converted(k.source) if k.vnni == 1 else moved
            for lane in range(0, size, self._few):
                columns = value.part(lane, self._few)
                (place + (lane + step) * k.columns).store(columns)

    def _words_of(self, rows: list[TextValue], first: TextValue) -> list[TextValue]:
        """Append words of some columns, from word ``first`` on; past the last element there are zeros."""
        t, k = self._t, self._k
        lanes = self._size * k.vnni
        start = first * k.vnni
        mask = (t["depth"] - start).mask(0, lanes)
        found = []
        for row in rows:
            words = (row + start).read(lanes, mask).cast("bitcast", WORD, self._size)
            found.append(self._info.seen(words))
        self._info.keep()
        return found

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
