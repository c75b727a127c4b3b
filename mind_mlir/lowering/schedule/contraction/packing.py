"""The micro-kernels that pack factors of contractions into panels."""

from __future__ import annotations

import dataclasses
import functools

from mind_mlir.lowering.schedule.contraction.text import Text, byte_width, convert, vector
from mind_mlir.lowering.schedule.emission.shuffle import exchange

#: The arguments behind the two buffers of a packing.
PACK_ARGUMENTS = ("source_first", "target_first", "columns", "depth", "stride", "panel")
#: Larger squares than this take more registers than there are.
_LARGEST_SQUARE = 16


@dataclasses.dataclass(frozen=True)
class PackKernel:
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
    """

    columns: int
    lanes: int
    element: str
    source: str
    transposes: bool
    masks: bool

    @property
    def name(self) -> str:
        """The symbol of the function."""
        kind = "transpose" if self.transposes else "pack"
        parts = [
            f"{self.columns}x{self.lanes}",
            self.source,
            self.element,
            *(["masks"] if self.masks else []),
        ]
        return f"mind_{kind}_" + "_".join(part.replace(":", "_").replace(" ", "_") for part in parts)

    @property
    def square(self) -> int:
        """Rows and columns of the squares that are transposed in registers."""
        return min(self.lanes, _LARGEST_SQUARE)

    def text(self) -> str:
        """Return the function in the LLVM dialect."""
        return _transpose_text(self) if self.transposes else _copy_text(self)


@functools.cache
def _copy_text(kernel: PackKernel) -> str:
    t = Text()
    stored = kernel.source.split(":")[0]
    lanes, element = kernel.lanes, kernel.element
    type_ = vector(lanes, stored)
    width = t.number(kernel.columns)
    source, target = t.step("%source", "%source_first", stored), t.step("%target", "%target_first", element)
    panels = t.binary("udiv", t.add("%columns", t.number(kernel.columns - 1)), width)
    off = t.constant("dense<0.0>" if stored[0] != "i" else "dense<0>", type_)

    def vectors(here: str, there: str, live: str | None) -> None:
        for first in range(0, kernel.columns, lanes):
            place = t.step(here, first, stored)
            if live is None:
                value = t.load(place, type_, byte_width(stored))
            else:
                value = t.masked_load(place, t.mask(live, first, lanes), off, lanes, stored)
            value = convert(t, kernel.source, value, lanes)
            t.store(value, t.step(there, first, element), vector(lanes, element), byte_width(element))

    def single(here: str, there: str, column: str) -> list[str]:
        value = convert(t, kernel.source, t.load(t.step(here, column, stored), stored, byte_width(stored)), 0)
        t.store(value, t.step(there, column, element), element, byte_width(element))
        return []

    def panel(inside: list[str]) -> list[str]:
        here, there, live = inside
        if kernel.masks:
            vectors(here, there, live)
        else:
            t.either(
                t.compare("uge", live, width),
                lambda: vectors(here, there, None),
                lambda: _ignore(t.loop(live, [], lambda column, _: single(here, there, column))),
            )
        return [
            t.step(here, kernel.columns, stored),
            t.step(there, "%panel", element),
            t.binary("sub", live, width),
        ]

    def step(inside: list[str]) -> list[str]:
        here, there = inside
        carried = [(here, "!llvm.ptr"), (there, "!llvm.ptr"), ("%columns", "i64")]
        t.loop(panels, carried, lambda _, inner: panel(inner))
        return [t.step(here, "%stride", stored), t.step(there, kernel.columns, element)]

    t.loop("%depth", [(source, "!llvm.ptr"), (target, "!llvm.ptr")], lambda _, inside: step(inside))
    return _pack_function(t, kernel)


@functools.cache
def _transpose_text(kernel: PackKernel) -> str:
    t = Text()
    stored = kernel.source.split(":")[0]
    size, element = kernel.square, kernel.element
    type_ = vector(size, stored)
    source, target = t.step("%source", "%source_first", stored), t.step("%target", "%target_first", element)
    panels = t.binary("udiv", t.add("%columns", t.number(kernel.columns - 1)), t.number(kernel.columns))
    squares = t.binary("udiv", t.add("%depth", t.number(size - 1)), t.number(size))
    last_column = t.binary("sub", "%columns", t.number(1))
    off = t.constant("dense<0.0>" if stored[0] != "i" else "dense<0>", type_)

    def square(there: str, rows: list[str], number: str) -> list[str]:
        first = t.mul(number, t.number(size))
        if kernel.masks:
            mask = t.mask(t.binary("sub", "%depth", first), 0, size)
            stored_rows = [t.masked_load(t.step(row, first, stored), mask, off, size, stored) for row in rows]
        else:
            first = t.minimum(first, t.binary("sub", "%depth", t.number(size)))
            stored_rows = [t.load(t.step(row, first, stored), type_, byte_width(stored)) for row in rows]
        place = t.step(there, t.mul(first, t.number(kernel.columns)), element)
        for step, column in enumerate(_transposed(t, stored_rows, size, stored)):
            value = convert(t, kernel.source, column, size)
            pointer = t.step(place, step * kernel.columns, element)
            t.store(value, pointer, vector(size, element), byte_width(element))
        return []

    def singles(there: str, rows: list[str], step: str) -> list[str]:
        place = t.step(there, t.mul(step, t.number(kernel.columns)), element)
        for lane, row in enumerate(rows):
            value = t.load(t.step(row, step, stored), stored, byte_width(stored))
            t.store(
                convert(t, kernel.source, value, 0),
                t.step(place, lane, element),
                element,
                byte_width(element),
            )
        return []

    def group(there: str, column: str) -> list[str]:
        numbers = [t.minimum(t.add(column, t.number(lane)), last_column) for lane in range(size)]
        rows = [t.step(source, t.mul(number, "%stride"), stored) for number in numbers]

        def in_squares() -> None:
            t.loop(squares, [], lambda number, _: square(there, rows, number))

        if kernel.masks:
            in_squares()
        else:
            t.either(
                t.compare("uge", "%depth", t.number(size)),
                in_squares,
                lambda: _ignore(t.loop("%depth", [], lambda step, _: singles(there, rows, step))),
            )
        return [t.step(there, size, element), t.add(column, t.number(size))]

    def panel(inside: list[str]) -> list[str]:
        there, column = inside
        groups = t.number(kernel.columns // size)
        t.loop(groups, [(there, "!llvm.ptr"), (column, "i64")], lambda _, inner: group(*inner))
        return [t.step(there, "%panel", element), t.add(column, t.number(kernel.columns))]

    t.loop(panels, [(target, "!llvm.ptr"), (t.number(0), "i64")], lambda _, inside: panel(inside))
    return _pack_function(t, kernel)


def _pack_function(t: Text, kernel: PackKernel) -> str:
    buffers = [("%source", "!llvm.ptr"), ("%target", "!llvm.ptr")]
    return t.function(kernel.name, [*buffers, *((f"%{name}", "i64") for name in PACK_ARGUMENTS)])


def _transposed(t: Text, rows: list[str], size: int, element: str) -> list[str]:
    """Append the network of shuffles that turns rows of a square into its columns."""
    type_ = vector(size, element)
    return exchange(
        rows, lambda left, right, lanes: t.fence(t.shuffle(left, right, lanes, type_), size, element)
    )


def _ignore(_: object) -> None:
    """Drop what a loop carries out: nothing."""
