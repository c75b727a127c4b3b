"""Results of product kernels on their way to memory: in place, past the cache, or by way of a buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.kernels.llvm_text import TextValue, byte_width

if TYPE_CHECKING:
    from mind_mlir.lowering.kernels.llvm_function import Text


class Panel(NamedTuple):
    """A panel in a block of sums.

    Attributes:
        depth: The steps of the block.
        taps: Its taps.
        columns: How many columns are left, of which the panel may have more.
        adds: Whether sums are added to what is in memory.
        masks: The columns that there are; none where the kernel takes no masks.
        first: What sums of each vector of a row start from.
    """

    depth: TextValue
    taps: TextValue
    columns: TextValue
    adds: TextValue
    masks: list[TextValue]
    first: list[TextValue]


class ResultTile(NamedTuple):
    """Sums that are added to the results at once.

    Attributes:
        rows: Rows of them.
        vectors: Vectors in a row.
        lanes: Sums in a vector.
        element: Their type.
        masks: Whether loads and stores take masks; else those at edges go through a buffer.
        streams: Whether results that start a sum go past the cache where whole vectors of them are aligned.
    """

    rows: int
    vectors: int
    lanes: int
    element: str
    masks: bool
    streams: bool

    @property
    def columns(self) -> int:
        """Columns of the tile."""
        return self.vectors * self.lanes


class Results:
    """Appends what adds the sums of a tile to the results, or to a start value; memory for that first."""

    def __init__(self, t: Text, tile: ResultTile) -> None:
        self._t, self._k = t, tile
        self._cells = [(row, v * tile.lanes) for row in range(tile.rows) for v in range(tile.vectors)]
        start = t.start(tile.element).splat(tile.lanes)
        if not tile.masks:
            self._edge = t.buffer(tile.rows * tile.columns, tile.element)
        #: A row of a tile that holds what sums start from, and one that nobody reads.
        self._starts = t.buffer(tile.columns, tile.element)
        for _, column in self._cells[: tile.vectors]:
            (self._starts + column).store(start, alignment=tile.lanes * byte_width(tile.element))
        self._spare = t.buffer(tile.columns, tile.element)

    def look_at(self, out: TextValue) -> None:
        """Append whether each vector of the result, which begins at ``out``, is aligned to its own size."""
        if self._k.streams:
            t, width = self._t, byte_width(self._k.element)
            address = out.cast("ptrtoint", "i64", 0)
            bits = address | (t["out_row"] | t["out_plane"]) * width
            self._aligned = (bits & (self._k.lanes * width - 1)).compare("eq", 0)

    def add(self, out: TextValue, live: TextValue, sums: list[TextValue], panel: Panel) -> None:
        """Append the results of a tile, whose first row is ``out``; it may have more rows than are left."""
        outs, following = [out], out
        for row in range(1, self._k.rows):  # those past the last one go where nobody reads them
            following = following + self._t["out_row"]
            outs.append(live.compare("ugt", row).select(following, self._spare))
        if self._k.streams:
            self._stream(outs, sums, panel)
        elif self._k.masks:
            self._add(outs, sums, panel)
        else:
            self._add_by_way_of_buffer(outs, sums, live.minimum(self._k.rows), panel)

    def _add(self, outs: list[TextValue], sums: list[TextValue], panel: Panel) -> None:
        """Append results, with masks where columns are missing alone: they take longer."""
        t, lanes = self._t, self._k.lanes
        olds = [panel.adds.select(place, self._starts) for place in outs]
        for whole in t.branches(panel.columns.compare("uge", self._k.columns)):
            for (row, column), value in zip(self._cells, sums, strict=True):
                old, new = (each[row] + column for each in (olds, outs))
                mask = None if whole else panel.masks[column // lanes]
                new.store(old.load(lanes, mask) + value, mask)

    def _stream(self, outs: list[TextValue], sums: list[TextValue], panel: Panel) -> None:
        """Append results, which go past the cache where all columns are there and are aligned."""
        t, k = self._t, self._k
        whole = panel.columns.compare("uge", k.columns)
        for past in t.branches(whole & (panel.adds ^ "true") & self._aligned):
            if not past:
                self._add(outs, sums, panel)
                continue
            start = self._starts.load(k.lanes)
            for (row, column), value in zip(self._cells, sums, strict=True):
                place = outs[row] + column
                place.store(start + value, alignment=k.lanes * byte_width(k.element), streams=True)

    def _add_by_way_of_buffer(
        self, outs: list[TextValue], sums: list[TextValue], rows: TextValue, panel: Panel
    ) -> None:
        """Append results: in place if all columns are there, else in memory of their own on the way."""
        t, k = self._t, self._k
        whole, partial = (panel.columns.compare(each, k.columns) for each in ("uge", "ult"))
        with t.when(partial & panel.adds):
            self._copy(outs[0], rows, panel.columns, into=True)
        for (row, column), value in zip(self._cells, sums, strict=True):
            edge = self._edge + (row * k.columns + column)
            place = whole.select(outs[row] + column, edge)
            old = panel.adds.select(place, self._starts + column).load(k.lanes)
            place.store(old + value)
        with t.when(partial):
            self._copy(outs[0], rows, panel.columns, into=False)

    def _copy(self, out: TextValue, rows: TextValue, columns: TextValue, *, into: bool) -> None:
        """Append a copy of the tile of the result at ``out`` into memory of its own, or from there."""
        t, k = self._t, self._k
        with t.loop(rows) as (row, _), t.loop(columns) as (column, _):
            place = out + (row.number * t["out_row"] + column.number)
            own = self._edge + (row.number * k.columns + column.number)
            source, target = (place, own) if into else (own, place)
            target.store(source.load())
