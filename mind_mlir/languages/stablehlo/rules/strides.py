"""Windows whose places are known, or that are one: parts of a tensor with a step along each dimension.

jax writes `x.at[1:-1].set(y)` and `x.at[::2].set(y)` as scatters. What gathers and scatters read or write
together is often a single part of the operand, which slices take and updates replace, at the speed of memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array


@dataclass(frozen=True, slots=True)
class StrideNumbering:
    """Which dimensions of a gather's result, or a scatter's updates, run over windows and which over indices.

    Attributes:
        windows: Those that run over a window, in the order of the operand's thick dimensions.
        thin: The dimensions of the operand along which windows are one element thick and the others lack.
        batching: Those of them along which the window begins where its index lies in the indices.
        batches: For each of them, that dimension of the indices.
        indexed: The dimensions of the operand that the numbers of an index vector are positions in.
        vector: The dimension of the indices along which the vectors lie.
    """

    windows: tuple[int, ...]
    thin: tuple[int, ...]
    batching: tuple[int, ...]
    batches: tuple[int, ...]
    indexed: tuple[int, ...]
    vector: int

    @classmethod
    def of(cls, dims: Any, *, scatters: bool) -> StrideNumbering:
        """Return those of a gather or a scatter of the bindings."""
        if scatters:
            return cls(
                tuple(dims.update_window_dims),
                tuple(sorted((*dims.inserted_window_dims, *dims.input_batching_dims))),
                tuple(dims.input_batching_dims),
                tuple(dims.scatter_indices_batching_dims),
                tuple(dims.scattered_dims_to_operand_dims),
                dims.index_vector_dim,
            )
        return cls(
            tuple(dims.offset_dims),
            tuple(sorted((*dims.collapsed_slice_dims, *dims.operand_batching_dims))),
            tuple(dims.operand_batching_dims),
            tuple(dims.start_indices_batching_dims),
            tuple(dims.start_index_map),
            dims.index_vector_dim,
        )

    def window(self, rank: int, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the extents of a window, for each dimension of the operand.

        Args:
            rank: That of the operand.
            shape: That of the tensor of windows.
        """
        sizes = iter([shape[axis] for axis in self.windows])
        return tuple([1 if axis in self.thin else next(sizes) for axis in range(rank)])

    def is_single(self, shape: Sequence[int]) -> bool:
        """Return whether a tensor of windows of this shape holds one."""
        return all(extent == 1 for axis, extent in enumerate(shape) if axis not in self.windows)

    def single(self, rank: int) -> tuple[int, ...]:
        """Return the `StridedPart.order` of one window, of which the tensor has this rank."""
        return (*self.windows, *(axis for axis in range(rank) if axis not in self.windows))

    def places(self, rank: int) -> list[int | None]:
        """Return for each dimension of the operand which number of an index vector is meant for it."""
        return [self.indexed.index(axis) if axis in self.indexed else None for axis in range(rank)]

    def starts(self, indices: Array, rank: int) -> Array:
        """Return where each window begins: for each dimension of the operand, an array over the windows."""
        if self.vector == indices.ndim:
            indices = indices[..., None]
        vectors = np.moveaxis(np.asarray(indices, np.int64), self.vector, -1)
        found = np.zeros((rank, *vectors.shape[:-1]), np.int64)
        for number, dimension in enumerate(self.indexed):
            found[dimension] = vectors[..., number]
        for dimension, axis in zip(self.batching, self.batches, strict=True):
            place = axis - (axis > self.vector)
            shape = [-1 if each == place else 1 for each in range(vectors.ndim - 1)]
            found[dimension] = np.arange(vectors.shape[place]).reshape(shape)
        return found


@dataclass(frozen=True, slots=True)
class StridedPart:
    """A part of a tensor, and how the windows lie in it.

    Attributes:
        starts: Where it begins along each dimension.
        sizes: How many elements it has.
        steps: How far these are from one another, at least 1.
        order: The dimensions of the windows' tensor in the order of the part's, then those of extent 1 that
            it lacks.
    """

    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def ends(self) -> tuple[int, ...]:
        """Return the places behind its last elements."""
        triples = zip(self.starts, self.sizes, self.steps, strict=True)
        return tuple([start + (size - 1) * step + 1 for start, size, step in triples])

    @property
    def is_dense(self) -> bool:
        """Return whether its elements are neighbours."""
        return set(self.steps) <= {1}

    def lies_within(self, extents: Sequence[int]) -> bool:
        """Return whether all of it is inside a tensor."""
        return all(
            start >= 0 and end <= extent
            for start, end, extent in zip(self.starts, self.ends, extents, strict=True)
        )


def part_of(
    numbering: StrideNumbering, starts: Array, window: Sequence[int], shape: Sequence[int]
) -> StridedPart | None:
    """Return the part that windows make together, each element once; None where there is no such.

    Args:
        numbering: How the tensor of windows is numbered.
        starts: Where each of them begins, as `StrideNumbering.starts` gives it.
        window: The extents of a window, for each dimension of the operand.
        shape: That of the tensor of windows.
    """
    count = starts.shape[1:]
    if 0 in window or 0 in count:
        return None
    first = [int(each[(0,) * each.ndim]) for each in starts]
    steps = _steps(starts, first)
    if steps is None:
        return None
    over_indices = [axis for axis in range(len(shape)) if axis not in numbering.windows]
    of_window = dict(
        zip(
            [axis for axis in range(len(window)) if axis not in numbering.thin],
            numbering.windows,
            strict=True,
        )
    )
    sizes, strides, order, used = [], [], [], set()
    for dimension, step in enumerate(steps):
        if step is not None:
            axis, distance = step
            if distance < 1 or window[dimension] != 1 or axis in used:
                return None
            used.add(axis)
            sizes.append(count[axis])
            strides.append(distance)
            order.append(over_indices[axis])
        else:
            sizes.append(window[dimension])
            strides.append(1)
            order += [of_window[dimension]] if dimension in of_window else []
    rest = [axis for axis in range(len(shape)) if axis not in order]
    if math.prod(shape[axis] for axis in rest) != 1:
        return None
    return StridedPart(tuple(first), tuple(sizes), tuple(strides), (*order, *rest))


def _steps(starts: Array, first: Sequence[int]) -> list[tuple[int, int] | None] | None:
    """Return along which axis of the windows they move in each dimension, and by how much; None where not so.

    Of a dimension in which all windows begin at the same place, that is None.
    """
    found: list[tuple[int, int] | None] = []
    for each, base in zip(starts, first, strict=True):
        moved = [
            (axis, int(np.take(each, 1, axis).flat[0]) - base)
            for axis in range(each.ndim)
            if each.shape[axis] > 1 and np.take(each, 1, axis).flat[0] != base
        ]
        if len(moved) > 1:
            return None
        expected = np.full(each.shape, base)
        if moved:
            axis, distance = moved[0]
            ramp = np.arange(each.shape[axis]) * distance
            expected = expected + ramp.reshape([-1 if at == axis else 1 for at in range(each.ndim)])
        if not np.array_equal(expected, each):
            return None
        found.append(moved[0] if moved else None)
    return found
