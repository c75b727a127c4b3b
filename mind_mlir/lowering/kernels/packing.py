"""The micro-kernels that pack factors of contractions into panels."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.kernels.llvm_function import MicroKernel, Text, symbol
from mind_mlir.lowering.kernels.packing_info import PackingInfo, vnni_steps
from mind_mlir.lowering.kernels.packing_transposed import TransposingPack, transposed
from mind_mlir.lowering.kernels.tile_operations import LEFT_TILES
from mind_mlir.mlir.records import spelled
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.lowering.kernels.llvm_text import TextValue

#: Larger squares than this take more registers than there are.
_LARGEST_SQUARE = 16


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
        summands: Of how many bf16 elements are the sums, as `summands` has it; words are of one each.
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
    summands: int = 1

    kind = "pack"
    buffers = ("source", "target")
    numbers = ("columns", "depth", "stride", "panel", "info_first")

    @property
    def name(self) -> str:
        """The symbol of the function."""
        element = self.element if self.vnni == 1 else f"words {self.vnni}"
        flags = self.masks and "masks", self.summands > 1 and f"summands {self.summands}"
        rest = [each for each in (*flags, self.info, self.tiles) if each]
        parts = [f"{self.columns}x{self.lanes}", self.source, element, *rest]
        return symbol("transpose" if self.transposes else self.kind, parts)

    @property
    def line(self) -> int:
        """Elements of a step of a panel."""
        return self.columns * self.summands

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
            TransposingPack(t, self).append()
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
            for number, value in enumerate(_words(k, info, places, flags, mask)):
                (there + (first + number * k.columns)).store(value)
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
        step.next(source + (t["stride"] * k.vnni if k.vnni > 1 else t["stride"]), target + k.line)
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


def _words(
    k: PackKernel,
    info: PackingInfo,
    places: list[TextValue],
    flags: list[TextValue],
    mask: TextValue | None,
) -> list[TextValue]:
    """Append words of what stands at ``places``: zero where ``flags``, of the last of them, do not hold."""
    terms = []
    for term, place in enumerate(places):
        element = place.read(k.lanes, mask)
        if term >= len(places) - len(flags):
            element = flags[term - len(places)].select(element, element.like(0))
        terms.append(element)
    return info.words(terms)


def _append_squares(t: Text, k: PackKernel) -> None:
    """Append what packs a factor whose columns are contiguous into squares of contiguous steps."""
    info, size = PackingInfo(t, k), k.square
    source, target = t.begin("source", k.source), t.begin("target", k.element)
    panels, line = t["columns"].blocks(k.columns), t["stride"] * k.vnni
    squares = vnni_steps(t, k).blocks(size)
    with t.loop(squares, source, target) as (square, (here, place)):
        with t.loop(panels, here, place, t["columns"]) as (panel, (there, panel_target, live)):
            with t.loop(k.columns // size, there, panel_target, live) as (group, (first, to, left)):
                mask, words, at = left.mask(0, size), [], first
                for step in range(size):
                    lines, flags = _lines(t, k, at, square.number * size + step)
                    words.append(_words(k, info, lines, flags, mask))
                    for each in lines:  # too many of them for the processor to notice that it goes along all
                        (each + 2 * size).prefetch(level=2)
                    at = at + line
                info.keep()
                for number, lines_of_one in enumerate(zip(*words, strict=True)):
                    for column, value in enumerate(transposed(lines_of_one)):
                        (to + (column * k.summands + number) * size).store(value)
                group.next(first + size, to + k.summands * size * size, left.maximum(size) - size)
            panel.next(there + k.columns, panel_target + t["panel"], live - k.columns)
        square.next(here + line * size, place + k.line * size)
    info.write(panels)
