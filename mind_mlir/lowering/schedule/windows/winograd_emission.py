"""The nests around the products of Winograd's form: they transform image, filter and products."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mind_mlir.lowering.emission.split import split
from mind_mlir.lowering.schedule.windows.axis import WindowAxis, where_inside
from mind_mlir.lowering.schedule.windows.winograd_transforms import (
    TAPS,
    both_axes,
    data_transform,
    filter_transform,
    output_transform,
)
from mind_mlir.mlir.bindings import Type, Value, arith
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target.rates import REFERENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index, LoopBody
    from mind_mlir.lowering.schedule.linalg_view.layout import Window
    from mind_mlir.lowering.schedule.windows.winograd_transforms import Elements
    from mind_mlir.target import Target

#: Where the elements of a square are: their indices, but for the last one.
Places: TypeAlias = "list[list[list[Index]]]"

#: Operations of a transform of a tile for each of its elements, about.
_OPERATIONS = 6


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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
        channels, features = self._tiles.channels, self._tiles.shape[3]
        transform = partial(filter_transform, outputs=self._tiles.outputs)

        def channel(c: Index, carried: list[Value]) -> list[Value]:
            taps: Places = [[[i, j, c] for j in range(TAPS)] for i in range(TAPS)]
            return self._squares(features, transform, (value, taps), self._planes(c), carried)

        result = self._e.empty([self._tiles.products, channels, features], self._element)
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
        return self._each_tile(first, self._tiles.shape[3], result, partial(self._outputs, products, ()))

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
        self, image: Window, axes: Sequence[WindowAxis], tile: _Tile, within: bool, carried: list[Value]
    ) -> list[Value]:
        """Emit the transform of a tile that lies ``within`` the image, or has part of its margins."""
        e = self._e
        rows, columns = (
            [axis.element(e, e.add(start, i), within=within) for i in range(axis.window)]
            for axis, start in zip(axes, self._corner(tile), strict=True)
        )
        places = [[[tile.image, row, column] for column, _ in columns] for row, _ in rows]
        conditions = [[[*here, *there] for _, there in columns] for _, here in rows]
        live = [[e.all(each) if each else None for each in line] for line in conditions]
        fill = e.broadcast(self._vector, self._zero if image.margin is None else image.margin)

        def kept(i: int, j: int, value: Value) -> Value:
            known = live[i][j]
            return value if known is None else e.select(known, value, fill)

        source, targets = (image.source, places), self._planes(tile.number)
        return self._squares(self._tiles.channels, data_transform, source, targets, carried, kept)

    def _corner(self, tile: _Tile) -> list[Index]:
        """Return where the outputs of a tile begin."""
        return [self._e.mul(place, self._tiles.outputs) for place in tile.places]

    def _outputs(
        self, products: Value, kept: tuple[int, ...], tile: _Tile, carried: list[Value]
    ) -> list[Value]:
        """Emit a tile's part of the result, of which ``kept`` are the rows and columns known so far."""
        e, axis, outputs = self._e, len(kept), self._tiles.outputs
        if axis == 2:
            return self._results(products, kept, tile, carried)
        extent = self._tiles.shape[axis + 1]
        rest = extent % outputs
        whole, part = (partial(self._outputs, products, (*kept, count), tile) for count in (outputs, rest))
        if not rest or extent < outputs:
            return (part if rest else whole)(carried)
        return e.either(e.compare("ult", tile.places[axis], extent // outputs), carried, whole, part)

    def _results(
        self, products: Value, kept: tuple[int, ...], tile: _Tile, carried: list[Value]
    ) -> list[Value]:
        rows, columns = (
            [self._e.add(first, i) for i in range(count)]
            for first, count in zip(self._corner(tile), kept, strict=True)
        )
        targets = [[[tile.image, row, column] for column in columns] for row in rows]
        source = products, self._planes(tile.number)
        return self._squares(self._tiles.shape[3], output_transform, source, targets, carried)

    def _planes(self, place: Index) -> Places:
        """Return where the elements of a square are that has each in a plane of its own."""
        size = self._tiles.size
        return [[[size * i + j, place] for j in range(size)] for i in range(size)]

    def _squares(
        self,
        extent: int,
        transform: Callable[[Elements], list[Any]],
        source: tuple[Value, Places],
        targets: Places,
        carried: list[Value],
        kept: Callable[[int, int, Value], Value] = lambda i, j, value: value,
    ) -> list[Value]:
        """Emit ``transform`` of squares of a tensor, for each vector of the ``extent`` elements at a place.

        Of what is read, it is given what is ``kept``; of its results, those that have a target are written.
        """
        e, (tensor, places) = self._e, source

        def vector(at: Index, mask: Value | None, inside: list[Value]) -> list[Value]:
            square = []
            for i, line in enumerate(places):
                found = (e.read(self._vector, tensor, [*place, at], self._zero, mask) for place in line)
                square.append([_Vector(kept(i, j, value), e) for j, value in enumerate(found)])
            (result,) = inside
            for line, row in zip(targets, both_axes(transform, square), strict=False):
                for place, vector in zip(line, row, strict=False):
                    result = e.write(vector.value, result, [*place, at], mask)
            return [result]

        return e.vectors(extent, self._lanes, carried, vector)

    def _shared(self, rows: int, elements: int, result: Value, body: LoopBody) -> Value:
        """Emit ``body`` for each of ``rows``, each of so many squares of elements, among threads."""
        vectors = rows * -(-elements // self._lanes) * self._tiles.products
        time = vectors * (_OPERATIONS * REFERENCE.vector_ns + self._lanes * self._bytes * REFERENCE.byte_ns)
        return self._e.iterations(split(rows, time), rows, [result], body)[0]
