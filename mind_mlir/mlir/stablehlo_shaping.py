"""StableHLO operations that move elements to places that are known beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.stablehlo_builder import HloValue, StablehloBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.types import TensorType


class ShapingBuilder(StablehloBuilder):
    """Appends what moves elements, too."""

    def reshape(self, x: HloValue, shape: Sequence[int]) -> HloValue:
        """Append the same elements, row by row, in another shape."""
        return x if x.shape == tuple(shape) else self.emit("reshape", [x], x.type.with_shape(tuple(shape)))

    def transpose(self, x: HloValue, permutation: Sequence[int]) -> HloValue:
        """Append ``x`` with axis ``permutation[i]`` as axis ``i``."""
        if list(permutation) == list(range(x.rank)):
            return x
        type_ = x.type.with_shape(tuple(x.shape[axis] for axis in permutation))
        return self.emit("transpose", [x], type_, permutation=self.integers(permutation))

    def reverse(self, x: HloValue, axes: Sequence[int]) -> HloValue:
        """Append ``x`` with its elements along ``axes`` from back to front."""
        return self.emit("reverse", [x], x.type, dimensions=self.integers(axes)) if axes else x

    def slice(
        self, x: HloValue, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None
    ) -> HloValue:
        """Append elements ``starts:limits:strides`` of each axis; strides are positive, 1 by default."""
        strides = [1] * x.rank if strides is None else strides
        ranges = zip(starts, limits, strides, strict=True)
        shape = tuple(len(range(start, limit, stride)) for start, limit, stride in ranges)
        if shape == x.shape:
            return x
        return self.emit(
            "slice",
            [x],
            x.type.with_shape(shape),
            start_indices=self.integers(starts),
            limit_indices=self.integers(limits),
            strides=self.integers(strides),
        )

    def part(self, x: HloValue, axis: int, start: int, limit: int) -> HloValue:
        """Append elements ``start:limit`` of one axis, and all of the others."""
        starts, limits = [0] * x.rank, list(x.shape)
        starts[axis], limits[axis] = start, limit
        return self.slice(x, starts, limits)

    def concatenate(self, values: Sequence[HloValue], axis: int) -> HloValue:
        """Append values one after the other along an axis."""
        if len(values) == 1:
            return values[0]
        shape = list(values[0].shape)
        shape[axis] = sum(value.shape[axis] for value in values)
        return self.emit(
            "concatenate",
            values,
            values[0].type.with_shape(tuple(shape)),
            dimension=self.integer(axis),
        )

    def pad(
        self,
        x: HloValue,
        fill: complex | HloValue,
        low: Sequence[int],
        high: Sequence[int],
        interior: Sequence[int] | None = None,
    ) -> HloValue:
        """Append ``x`` with ``fill``, a number or of rank 0, around and between its elements.

        Negative numbers of ``low`` and ``high`` take elements away.
        """
        interior = [0] * x.rank if interior is None else interior
        if not any((*low, *high, *interior)):
            return x
        shape = tuple(
            before + extent + max(extent - 1, 0) * between + after
            for extent, before, after, between in zip(x.shape, low, high, interior, strict=True)
        )
        value = fill if isinstance(fill, HloValue) else self.constant(fill, x.type.with_shape(()))
        return self.emit(
            "pad",
            [x, value],
            x.type.with_shape(shape),
            edge_padding_low=self.integers(low),
            edge_padding_high=self.integers(high),
            interior_padding=self.integers(interior),
        )

    def iota(self, type_: TensorType, axis: int) -> HloValue:
        """Append each element's place on ``axis``."""
        return self.emit("iota", [], type_, iota_dimension=self.integer(axis))
