"""The nests around the products of Winograd's form: they transform image, filter and products."""

from __future__ import annotations

import dataclasses
import itertools
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.schedule.emission.constants import BYTE_NS, VECTOR_NS
from mind_mlir.lowering.schedule.emission.split import split
from mind_mlir.lowering.schedule.windows.axis import WindowAxis, where_inside
from mind_mlir.lowering.schedule.windows.winograd_transforms import (
    TAPS,
    both_axes,
    data_transform,
    filter_transform,
    output_transform,
)
from mind_mlir.mlir.bindings import Type, Value, arith

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index, LoopBody
    from mind_mlir.lowering.schedule.linalg_view.layout import Window
    from mind_mlir.target import Target

#: Operations of a transform of a tile for each of its elements, about.
_OPERATIONS = 6


@dataclasses.dataclass(frozen=True)
class Tiles:
    """The tiles of a convolution's result.

    Attributes:
        outputs: Rows and columns of a tile of the result; the last ones may reach beyond it.
        shape: The result's shape, ``[N, H, W, F]``.
        channels: The channels of the image.
        block: Rows of tiles that are computed at once.
    """

    outputs: int
    shape: tuple[int, int, int, int]
    channels: int
    block: int

    @property
    def size(self) -> int:
        """Return the rows and columns of the image that a tile is computed from."""
        return self.outputs + TAPS - 1

    @property
    def products(self) -> int:
        """Return how many matrices are multiplied."""
        return self.size**2

    @property
    def grid(self) -> tuple[int, int]:
        """Return how many tiles there are along height and width."""
        return -(-self.shape[1] // self.outputs), -(-self.shape[2] // self.outputs)

    @property
    def rows(self) -> int:
        """Return how many rows of tiles there are, those of all images."""
        return self.shape[0] * self.grid[0]

    @property
    def count(self) -> int:
        """Return how many tiles a block has."""
        return self.block * self.grid[1]


@dataclasses.dataclass(frozen=True)
class _Vector:
    """A vector of floats, as the transforms compute with it."""

    value: Value
    emitter: Emitter

    def __add__(self, other: _Vector) -> _Vector:
        return dataclasses.replace(self, value=arith.AddFOp(self.value, other.value).result)

    def __sub__(self, other: _Vector) -> _Vector:
        return dataclasses.replace(self, value=arith.SubFOp(self.value, other.value).result)

    def __mul__(self, factor: float) -> _Vector:
        number = self.emitter.number(self.value.type, factor)
        return dataclasses.replace(self, value=arith.MulFOp(self.value, number).result)


class _Tile(NamedTuple):
    """A tile: of which image it is, in which row of tiles and where there, and its number in the block."""

    image: Index
    places: tuple[Index, Index]
    number: Index


class WinogradEmitter:
    """Emits the nests of one convolution, of floats."""

    def __init__(self, emitter: Emitter, tiles: Tiles, element: Type, target: Target) -> None:
        self._e, self._tiles, self._element = emitter, tiles, element
        self._bytes = element.width // 8
        self._lanes = target.lanes(element.width)
        self._vector = emitter.vector_type(self._lanes, element)
        self._zero = emitter.number(element, 0)

    def filter(self, value: Value) -> Value:
        """Emit the transform of a filter ``[3, 3, C, F]``; return it as ``[products, C, F]``."""
        tiles, e = self._tiles, self._e
        channels, features = tiles.channels, tiles.shape[3]
        transform = partial(filter_transform, outputs=tiles.outputs)

        def channel(c: Index, carried: list[Value]) -> list[Value]:
            def vector(f: Index, mask: Value | None, inside: list[Value]) -> list[Value]:
                taps = [[self._read(value, [i, j, c, f], mask) for j in range(TAPS)] for i in range(TAPS)]
                return self._planes(both_axes(transform, taps), [c, f], mask, inside)

            return e.vectors(features, self._lanes, carried, vector)

        result = e.empty([tiles.products, channels, features], self._element)
        return self._shared(channels, features, result, channel)

    def data(self, image: Window, first: Index) -> Value:
        """Emit the transform of the tiles from row ``first`` on; return it as ``[products, tiles, C]``."""
        tiles, extents = self._tiles, image.source.type.shape[1:3]
        rows = zip(extents, image.first[1:3], tiles.grid, strict=True)
        axes = [WindowAxis(extent, -low, count, tiles.size, tiles.outputs) for extent, low, count in rows]

        def each(tile: _Tile, carried: list[Value]) -> list[Value]:
            whole, border = (partial(self._transformed, image, axes, tile, each) for each in (True, False))
            return where_inside(self._e, axes, tile.places, carried, whole, border)

        result = self._e.empty([tiles.products, tiles.count, tiles.channels], self._element)
        return self._each_tile(first, tiles.channels, result, each)

    def output(self, products: Value, first: Index, result: Value) -> Value:
        """Emit the transform of ``products``, ``[products, tiles, F]``, and return ``result`` with it."""

        def each(tile: _Tile, carried: list[Value]) -> list[Value]:
            return self._outputs(products, tile, (), carried)

        return self._each_tile(first, self._tiles.shape[3], result, each)

    def _each_tile(
        self, start: Index, channels: int, result: Value, body: Callable[[_Tile, list[Value]], list[Value]]
    ) -> Value:
        """Emit ``body`` for each tile of the block whose first row is ``start``."""
        tiles, e = self._tiles, self._e
        along, across = tiles.grid

        def row(number: Index, carried: list[Value]) -> list[Value]:
            place = e.add(start, number)
            n, down = e.floordiv(place, along), e.modulo(place, along)
            first = e.mul(number, across)

            def tile(t: Index, inside: list[Value]) -> list[Value]:
                return body(_Tile(n, (down, t), e.add(first, t)), inside)

            return e.loop((0, across, 1), carried, tile)

        return self._shared(tiles.block, across * channels, result, row)

    def _transformed(
        self,
        image: Window,
        axes: Sequence[WindowAxis],
        tile: _Tile,
        within: bool,
        carried: list[Value],
    ) -> list[Value]:
        """Emit the transform of a tile that lies ``within`` the image, or has part of its margins."""
        e = self._e
        rows, columns = (
            [axis.element(e, e.add(start, i), within=within) for i in range(axis.window)]
            for axis, start in zip(axes, self._corner(tile), strict=True)
        )
        places = [[(row, column, [*here, *there]) for column, there in columns] for row, here in rows]
        live = [[e.all(conditions) if conditions else None for *_, conditions in row] for row in places]
        fill = e.broadcast(self._vector, self._zero if image.margin is None else image.margin)

        def vector(c: Index, mask: Value | None, inside: list[Value]) -> list[Value]:
            square = [
                [
                    self._read(image.source, [tile.image, row, column, c], mask, known, fill)
                    for (row, column, _), known in zip(*line, strict=True)
                ]
                for line in zip(places, live, strict=True)
            ]
            return self._planes(both_axes(data_transform, square), [tile.number, c], mask, inside)

        return e.vectors(self._tiles.channels, self._lanes, carried, vector)

    def _corner(self, tile: _Tile) -> list[Index]:
        """Return where the outputs of a tile begin."""
        return [self._e.mul(place, self._tiles.outputs) for place in tile.places]

    def _outputs(
        self, products: Value, tile: _Tile, kept: tuple[int, ...], carried: list[Value]
    ) -> list[Value]:
        """Emit a tile's part of the result, of which ``kept`` are the rows and columns known so far."""
        e, axis, outputs = self._e, len(kept), self._tiles.outputs
        if axis == 2:
            return self._results(products, tile, kept, carried)
        extent = self._tiles.shape[axis + 1]
        rest = extent % outputs
        whole, part = (partial(self._outputs, products, tile, (*kept, count)) for count in (outputs, rest))
        if not rest or extent < outputs:
            return (part if rest else whole)(carried)
        return e.either(e.compare("ult", tile.places[axis], extent // outputs), carried, whole, part)

    def _results(
        self, products: Value, tile: _Tile, kept: tuple[int, ...], carried: list[Value]
    ) -> list[Value]:
        size, e = self._tiles.size, self._e
        rows, columns = (
            [e.add(first, i) for i in range(count)]
            for first, count in zip(self._corner(tile), kept, strict=True)
        )

        def vector(f: Index, mask: Value | None, inside: list[Value]) -> list[Value]:
            square = [
                [self._read(products, [size * i + j, tile.number, f], mask) for j in range(size)]
                for i in range(size)
            ]
            found = both_axes(output_transform, square)
            (result,) = inside
            for (i, row), (j, column) in itertools.product(enumerate(rows), enumerate(columns)):
                result = e.write(found[i][j].value, result, [tile.image, row, column, f], mask)
            return [result]

        return e.vectors(self._tiles.shape[3], self._lanes, carried, vector)

    def _read(
        self,
        source: Value,
        place: list[Index],
        mask: Value | None,
        live: Value | None = None,
        fill: Value | None = None,
    ) -> _Vector:
        """Return a vector of ``source``; ``fill`` where ``live`` is a condition that does not hold."""
        value = self._e.read(self._vector, source, place, self._zero, mask)
        return _Vector(value if live is None else self._e.select(live, value, fill), self._e)

    def _planes(
        self, square: list[list[_Vector]], place: list[Index], mask: Value | None, carried: list[Value]
    ) -> list[Value]:
        """Write each element of ``square`` to ``place`` of a plane of its own."""
        (result,) = carried
        for plane, vector in enumerate(itertools.chain.from_iterable(square)):
            result = self._e.write(vector.value, result, [plane, *place], mask)
        return [result]

    def _shared(self, rows: int, elements: int, result: Value, body: LoopBody) -> Value:
        """Emit ``body`` for each of ``rows``, each of so many squares of elements, among threads."""
        vectors = rows * -(-elements // self._lanes) * self._tiles.products
        time = vectors * (_OPERATIONS * VECTOR_NS + self._lanes * self._bytes * BYTE_NS)

        def chunk(first: Index, end: Index, carried: list[Value]) -> list[Value]:
            return self._e.loop((first, end, 1), carried, body)

        return self._e.chunks(split(rows, time), rows, [result], chunk)[0]
