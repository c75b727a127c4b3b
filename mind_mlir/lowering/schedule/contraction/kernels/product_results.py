"""Results of product kernels on their way to memory: in place, past the cache, or by way of a buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import Text, byte_width, vector

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.kernels.product import ProductKernel


def has_row(t: Text, live: str, row: int) -> str:
    """Append whether a tile that ``live`` rows are left for has row ``row``."""
    return t.compare("ugt", live, t.number(row))


class Results:
    """Appends what adds the sums of a tile to the results, or to a start value.

    Args:
        t: The kernel so far; memory for edges and start values is appended.
        kernel: Which one it is.
    """

    def __init__(self, t: Text, kernel: ProductKernel) -> None:
        self._t, self._kernel, self._element = t, kernel, kernel.element
        self._columns = kernel.vectors * kernel.lanes
        self._vector = vector(kernel.lanes, kernel.element)
        self._cells = [(row, v) for row in range(kernel.rows) for v in range(kernel.vectors)]
        start = t.splat("%start", kernel.lanes, self._element)
        self._edge = "" if kernel.masks else self.buffer(kernel.rows)
        self._starts = self._start_values(start)
        self._spare = self.buffer(1)
        self._aligned = ""

    def look_at(self, out: str) -> None:
        """Append what has to be known of the result, which begins at ``out``."""
        self._aligned = self._alignment(out) if self._kernel.streams else ""

    def add(self, out: str, live: str, sums: list[str], masks: list[str], bounds: tuple[str, str]) -> None:
        """Append the results of a tile.

        Args:
            out: Where its first row begins.
            live: The rows that are left, which the tile may have more than.
            sums: What is added, row by row.
            masks: The columns that there are; none where the kernel takes no masks.
            bounds: How many columns are left, and whether sums are added to what is in memory.
        """
        outs = self._outs(out, live)
        if self._kernel.streams:
            self._stream(outs, sums, masks, bounds)
        elif self._kernel.masks:
            self._add(outs, sums, masks, bounds)
        else:
            rows = self._t.minimum(live, self._t.number(self._kernel.rows))
            self._add_by_way_of_buffer(outs, sums, rows, bounds)

    def buffer(self, rows: int) -> str:
        """Append memory for so many rows of a tile or panel."""
        cells = self._t.number(rows * self._columns)
        return self._t.op(
            f"llvm.alloca {cells} x {self._element} {{alignment = 64 : i64}} : (i64) -> !llvm.ptr"
        )

    def _alignment(self, out: str) -> str:
        """Append whether each vector of the result is aligned to its own size."""
        t, width = self._t, byte_width(self._element)
        address = t.op(f"llvm.ptrtoint {out} : !llvm.ptr to i64")
        strides = t.binary("or", "%out_row", "%out_plane")
        bits = t.binary("or", address, t.mul(strides, t.number(width)))
        misplaced = t.binary("and", bits, t.number(self._kernel.lanes * width - 1))
        return t.compare("eq", misplaced, t.number(0))

    def _start_values(self, start: str) -> str:
        """Append memory for a row of a tile that holds what sums start from."""
        t, lanes = self._t, self._kernel.lanes
        values = self.buffer(1)
        for v in range(self._kernel.vectors):
            place = t.step(values, v * lanes, self._element)
            t.store(start, place, self._vector, lanes * byte_width(self._element))
        return values

    def _outs(self, out: str, live: str) -> list[str]:
        """Append where the rows of a tile are stored: those past the last one where nobody reads them."""
        t = self._t
        found = [out]
        for row in range(1, self._kernel.rows):
            out = t.step(out, "%out_row", self._element)
            found.append(t.select(has_row(t, live, row), out, self._spare, "!llvm.ptr"))
        return found

    def _sum(self, left: str, right: str) -> str:
        return self._t.sum(left, right, self._element, self._kernel.lanes)

    def _add(self, outs: list[str], sums: list[str], masks: list[str], bounds: tuple[str, str]) -> None:
        """Append results, with masks where columns are missing alone: they take longer."""
        t, lanes, width = self._t, self._kernel.lanes, byte_width(self._element)
        live, adds = bounds
        zero = t.zero(self._element, lanes)
        olds = [t.select(adds, place, self._starts, "!llvm.ptr") for place in outs]

        def add(*, whole: bool) -> None:
            for (row, v), value in zip(self._cells, sums, strict=True):
                old, new = (t.step(each[row], v * lanes, self._element) for each in (olds, outs))
                if whole:
                    t.store(self._sum(t.load(old, self._vector, width), value), new, self._vector, width)
                    continue
                before = t.masked_load(old, masks[v], zero, lanes, self._element)
                t.masked_store(self._sum(before, value), new, masks[v], lanes, self._element)

        whole = t.compare("uge", live, t.number(self._columns))
        t.either(whole, lambda: add(whole=True), lambda: add(whole=False))

    def _stream(
        self,
        outs: list[str],
        sums: list[str],
        masks: list[str],
        bounds: tuple[str, str],
    ) -> None:
        """Append results, which go past the cache where all columns are there and are aligned."""
        t = self._t
        live, adds = bounds
        whole = t.compare("uge", live, t.number(self._columns))
        first = t.binary("xor", adds, t.constant("true", "i1"), "i1")
        past = t.binary("and", t.binary("and", whole, first, "i1"), self._aligned, "i1")

        def stream() -> None:
            start = t.load(self._starts, self._vector, byte_width(self._element))
            for (row, v), value in zip(self._cells, sums, strict=True):
                place = t.step(outs[row], v * self._kernel.lanes, self._element)
                t.stream(self._sum(start, value), place, self._kernel.lanes, self._element)

        t.either(past, stream, lambda: self._add(outs, sums, masks, bounds))

    def _add_by_way_of_buffer(
        self, outs: list[str], sums: list[str], rows: str, bounds: tuple[str, str]
    ) -> None:
        """Append results: in place if all columns are there, else in memory of their own on the way."""
        t, lanes, element = self._t, self._kernel.lanes, self._element
        live, adds = bounds
        whole = t.compare("uge", live, t.number(self._columns))
        partial = t.compare("ult", live, t.number(self._columns))
        first = outs[0]

        def copy(into: bool) -> None:
            def cell(row: str, column: str) -> list[str]:
                place = t.step(first, t.add(t.mul(row, "%out_row"), column), element)
                own = t.step(self._edge, t.add(t.mul(row, t.number(self._columns)), column), element)
                source, target = (place, own) if into else (own, place)
                width = byte_width(element)
                t.store(t.load(source, element, width), target, element, width)
                return []

            def row(number: str, _: list[str]) -> list[str]:
                return t.loop(live, [], lambda column, _: cell(number, column))

            t.loop(rows, [], row)

        t.either(t.binary("and", partial, adds, "i1"), lambda: copy(into=True))
        for (row, v), value in zip(self._cells, sums, strict=True):
            edge = t.step(self._edge, row * self._columns + v * lanes, element)
            place = t.select(whole, t.step(outs[row], v * lanes, element), edge, "!llvm.ptr")
            start = t.step(self._starts, v * lanes, element)
            old = t.load(t.select(adds, place, start, "!llvm.ptr"), self._vector, byte_width(element))
            t.store(self._sum(old, value), place, self._vector, byte_width(element))
        t.either(partial, lambda: copy(into=False))
