"""The nests around the products of Winograd's form: they transform image, filter and products."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.constants import BYTE_NS, VECTOR_NS
from mind_mlir.lowering.schedule.emission.split import Split, split
from mind_mlir.lowering.schedule.windows.winograd_transforms import (
    TAPS,
    both_axes,
    data_transform,
    filter_transform,
    output_transform,
)
from mind_mlir.mlir.bindings import Type, Value, arith

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
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
class Image:
    """An image within margins.

    Attributes:
        value: The image, ``[N, H, W, C]``.
        low: Rows above it, and columns to its left.
        margin: What the margins are filled with; None where there are none.
    """

    value: Value
    low: tuple[int, int]
    margin: Value | None


class WinogradEmitter:
    """Emits the nests of one convolution.

    Args:
        tiles: The tiles of its result.
        element: The dtype, a float.
    """

    def __init__(self, emitter: Emitter, tiles: Tiles, element: Type, target: Target) -> None:
        self._e, self._tiles, self._element = emitter, tiles, element
        self._bytes = element.width // 8
        self._lanes = target.lanes(element.width)
        self._vector = emitter.vector_type(self._lanes, element)
        self._zero = emitter.number(element, 0)

    def filter(self, value: Value) -> Value:
        """Emit the transform of a filter ``[3, 3, C, F]``; return it as ``[products, C, F]``."""
        size, (channels, features) = self._tiles.size, (self._tiles.channels, self._tiles.shape[3])

        def vector(c: Index, f: Index, mask: Value | None, carried: list[Value]) -> list[Value]:
            taps = [[self._read(value, [i, j, c, f], mask) for j in range(TAPS)] for i in range(TAPS)]
            return self._planes(both_axes(filter_transform, self, size - 2, taps), [c, f], mask, carried)

        def chunk(first: Index, end: Index, carried: list[Value]) -> list[Value]:
            return self._e.loop(
                (first, end, 1),
                carried,
                lambda c, inner: self._vectors(
                    features, inner, lambda f, mask, inside: vector(c, f, mask, inside)
                ),
            )

        cut = self._split(channels, features)
        result = self._e.empty([size * size, channels, features], self._element)
        return self._e.chunks(cut, channels, [result], chunk)[0]

    def data(self, image: Image, first: Index) -> Value:
        """Emit the transform of the tiles from row ``first`` on; return it as ``[products, tiles, C]``."""
        tiles = self._tiles
        height, width = image.value.type.shape[1:3]
        ends = [(low, low + extent) for low, extent in zip(image.low, (height, width), strict=True)]

        def tile(n: Index, corner: tuple[Index, Index], number: Index, carried: list[Value]) -> list[Value]:
            def whole(inside: list[Value]) -> list[Value]:
                return self._tile(image, n, corner, number, inside)

            def border(inside: list[Value]) -> list[Value]:
                return self._border(image, n, corner, number, inside)

            conditions = []
            for start, count, (low, end) in zip(corner, tiles.grid, ends, strict=True):
                if end < tiles.size:
                    return border(carried)
                if low:
                    conditions.append(self._e.compare("uge", start, low))
                if (count - 1) * tiles.outputs + tiles.size > end:
                    conditions.append(self._e.compare("ule", start, end - tiles.size))
            if not conditions:
                return whole(carried)
            return self._e.either(self._e.all(conditions), carried, whole, border)

        result = self._e.empty([tiles.products, tiles.count, tiles.channels], self._element)
        return self._each_tile(first, tiles.channels, result, tile)

    def output(self, products: Value, first: Index, result: Value) -> Value:
        """Emit the transform of ``products``, ``[products, tiles, F]``, and return ``result`` with it."""
        tiles = self._tiles

        def tile(n: Index, corner: tuple[Index, Index], number: Index, carried: list[Value]) -> list[Value]:
            def rows(count: int) -> Callable[[list[Value]], list[Value]]:
                return lambda inside: self._last(
                    corner[1], 2, inside, lambda width: lambda each: write((count, width), each)
                )

            def write(kept: tuple[int, int], carried: list[Value]) -> list[Value]:
                return self._results(products, n, corner, number, kept, carried)

            return self._last(corner[0], 1, carried, rows)

        return self._each_tile(first, tiles.shape[3], result, tile)

    # Arithmetic, as the transforms use it.

    def add(self, left: Value, right: Value) -> Value:
        """Return the sum of two vectors."""
        return arith.AddFOp(left, right).result

    def sub(self, left: Value, right: Value) -> Value:
        """Return the difference of two vectors."""
        return arith.SubFOp(left, right).result

    def scale(self, value: Value, factor: float) -> Value:
        """Return the product of a vector with a constant."""
        return arith.MulFOp(value, self._e.number(self._vector, factor)).result

    # Tiles.

    def _each_tile(
        self,
        start: Index,
        channels: int,
        result: Value,
        body: Callable[[Index, tuple[Index, Index], Index, list[Value]], list[Value]],
    ) -> Value:
        """Emit ``body`` for each tile: its image, the corner of its outputs, its number, what is carried."""
        tiles, e = self._tiles, self._e
        (along, across), outputs = tiles.grid, tiles.outputs

        def row(number: Index, carried: list[Value]) -> list[Value]:
            place = e.add(start, number)
            n, top = e.floordiv(place, along), e.mul(e.modulo(place, along), outputs)
            first = e.mul(number, across)
            return e.loop(
                (0, across, 1),
                carried,
                lambda t, inside: body(n, (top, e.mul(t, outputs)), e.add(first, t), inside),
            )

        cut = self._split(tiles.block, across * channels)
        return e.chunks(
            cut, tiles.block, [result], lambda first, end, inside: e.loop((first, end, 1), inside, row)
        )[0]

    def _tile(
        self, image: Image, n: Index, corner: tuple[Index, Index], number: Index, carried: list[Value]
    ) -> list[Value]:
        """Emit the transform of a tile that lies within the image."""
        top, left = (self._e.sub(first, low) for first, low in zip(corner, image.low, strict=True))
        places = [
            [(self._e.add(top, i), self._e.add(left, j)) for j in range(self._tiles.size)]
            for i in range(self._tiles.size)
        ]

        def vector(c: Index, mask: Value | None, inside: list[Value]) -> list[Value]:
            square = [[self._read(image.value, [n, *place, c], mask) for place in row] for row in places]
            return self._transformed(square, number, c, mask, inside)

        return self._vectors(self._tiles.channels, carried, vector)

    def _border(
        self, image: Image, n: Index, corner: tuple[Index, Index], number: Index, carried: list[Value]
    ) -> list[Value]:
        """Emit the transform of a tile that margins are part of."""
        e, axes = self._e, []
        for first, low, extent in zip(corner, image.low, image.value.type.shape[1:3], strict=True):
            places = [e.add(first, i) for i in range(self._tiles.size)]
            axes.append(
                [
                    (
                        e.sub(e.minimum(e.maximum(place, low), low + extent - 1), low),
                        e.all([e.compare("uge", place, low), e.compare("ult", place, low + extent)]),
                    )
                    for place in places
                ]
            )
        margin = self._zero if image.margin is None else image.margin
        fill = e.broadcast(self._vector, margin)
        inner = [
            [((row, column), e.all([here, there])) for column, there in axes[1]] for row, here in axes[0]
        ]

        def vector(c: Index, mask: Value | None, inside: list[Value]) -> list[Value]:
            square = [
                [e.select(live, self._read(image.value, [n, *place, c], mask), fill) for place, live in row]
                for row in inner
            ]
            return self._transformed(square, number, c, mask, inside)

        return self._vectors(self._tiles.channels, carried, vector)

    def _transformed(
        self, square: list[list[Value]], number: Index, c: Index, mask: Value | None, carried: list[Value]
    ) -> list[Value]:
        transformed = both_axes(data_transform, self, self._tiles.outputs, square)
        return self._planes(transformed, [number, c], mask, carried)

    def _last(
        self,
        first: Index,
        axis: int,
        carried: list[Value],
        body: Callable[[int], Callable[[list[Value]], list[Value]]],
    ) -> list[Value]:
        """Emit ``body`` for as many rows or columns as a tile that begins at ``first`` has of the result."""
        outputs, extent = self._tiles.outputs, self._tiles.shape[axis]
        rest = extent % outputs
        if not rest:
            return body(outputs)(carried)
        if extent < outputs:
            return body(rest)(carried)
        whole = self._e.compare("ule", first, extent - outputs)
        return self._e.either(whole, carried, body(outputs), body(rest))

    def _results(
        self,
        products: Value,
        n: Index,
        corner: tuple[Index, Index],
        number: Index,
        kept: tuple[int, int],
        carried: list[Value],
    ) -> list[Value]:
        size, e = self._tiles.size, self._e
        places = [[e.add(first, i) for i in range(count)] for first, count in zip(corner, kept, strict=True)]

        def vector(f: Index, mask: Value | None, inside: list[Value]) -> list[Value]:
            square = [
                [self._read(products, [size * i + j, number, f], mask) for j in range(size)]
                for i in range(size)
            ]
            found = both_axes(output_transform, self, self._tiles.outputs, square)
            (result,) = inside
            for (i, row), (j, column) in itertools.product(enumerate(places[0]), enumerate(places[1])):
                result = e.write(found[i][j], result, [n, row, column, f], mask)
            return [result]

        return self._vectors(self._tiles.shape[3], carried, vector)

    # Vectors.

    def _vectors(
        self,
        extent: int,
        carried: list[Value],
        body: Callable[[Index, Value | None, list[Value]], list[Value]],
    ) -> list[Value]:
        return self._e.vectors(extent, self._lanes, carried, body)

    def _read(self, source: Value, place: list[Index], mask: Value | None) -> Value:
        return self._e.read(self._vector, source, place, self._zero, mask)

    def _planes(
        self, square: list[list[Value]], place: list[Index], mask: Value | None, carried: list[Value]
    ) -> list[Value]:
        """Write each element of ``square`` to ``place`` of a plane of its own."""
        (result,) = carried
        for plane, value in enumerate(itertools.chain.from_iterable(square)):
            result = self._e.write(value, result, [plane, *place], mask)
        return [result]

    def _split(self, rows: int, elements: int) -> Split:
        """Return how a loop over ``rows`` is split, each of so many squares of elements."""
        products = self._tiles.products
        vectors = rows * -(-elements // self._lanes) * products
        time = vectors * (_OPERATIONS * VECTOR_NS + self._lanes * self._bytes * BYTE_NS)
        return split(rows, time)
