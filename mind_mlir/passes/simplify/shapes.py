"""The shapes that reshapes, broadcasts, transposes and slices make of others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

from mind_mlir.ops.reassociation import common_groups
from mind_mlir.ops.shapes import sliced_positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite

#: Of each axis, the positions that a slice takes.
Positions: TypeAlias = "list[range]"


def aligned(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Return ``shape`` with extents of 1 in front, as broadcasting aligns it."""
    return (1,) * (rank - len(shape)) + shape


def larger(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the extents other than 1."""
    return tuple([extent for extent in shape if extent != 1])


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return what shapes that fit, and are not empty, broadcast to."""
    rank = max(map(len, shapes))
    return tuple(map(max, zip(*(aligned(shape, rank) for shape in shapes), strict=True)))


def only_moves_ones(permutation: Sequence[int], shape: Sequence[int]) -> bool:
    """Return whether a transposition lets all axes of more than one element be in order."""
    moved = [axis for axis in permutation if shape[axis] != 1]
    return moved == sorted(moved)


def mixes(source: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Return whether a reshape merges and splits the same axes, so that no view of strides shows it."""
    groups = common_groups(larger(source), larger(target))
    return any(len(merged) > 1 and len(split) > 1 for merged, split in groups)


def only_merges(source: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Return whether a reshape splits no axis."""
    return all(len(split) == 1 for _, split in common_groups(larger(source), larger(target)))


def permutation_of(operation: CoreOperation) -> tuple[int, ...]:
    """Return the permutation of a Transpose."""
    permutation: Any = operation.attributes["permutation"]
    return tuple(permutation)


def inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    """Return the permutation that undoes ``permutation``."""
    return tuple([permutation.index(axis) for axis in range(len(permutation))])


def positions_of(operation: CoreOperation, shape: Sequence[int]) -> Positions:
    """Return what a Slice takes of an operand of ``shape``."""
    return sliced_positions(operation.attributes, shape)


def sliced(at: Rewrite, value: ValueId, positions: Positions) -> ValueId:
    """Return what is at ``positions`` of ``value``, of which there are some on each axis."""
    type_ = at.type_of(value)
    if positions == [range(extent) for extent in type_.extents]:
        return value
    ends = [
        r[-1] + 1 if r.step > 0 else r[-1] - 1 if r[-1] else -extent - 1
        for r, extent in zip(positions, type_.extents, strict=True)
    ]
    return at.emit(
        "Slice",
        (value,),
        type_.with_shape(tuple(map(len, positions))),
        starts=tuple([r.start for r in positions]),
        ends=tuple(ends),
        steps=tuple([r.step for r in positions]),
    )


def element_count(shape: Sequence[int]) -> int:
    """Return how many elements a tensor of ``shape`` has."""
    return math.prod(shape)
