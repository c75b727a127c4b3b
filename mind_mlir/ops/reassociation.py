"""Reshapes that move no data: which axes merge and split, and the operations that say so; transposes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mind_mlir.ir.types import TensorType
    from mind_mlir.mlir.context import LoweringContext

#: Source axes and target axes that hold the same elements.
AxisGroup = tuple[list[int], list[int]]


def common_groups(source: tuple[int, ...], target: tuple[int, ...]) -> list[AxisGroup]:
    """Return the finest split of two shapes into runs of axes with equal element counts.

    Both shapes have positive extents and the same element count. Every axis of both is in exactly one group,
    in order, unless one of the shapes has rank 0: then there are no groups.

    Example:
        >>> common_groups((4, 6, 1), (2, 2, 6))
        [([0], [0, 1]), ([1, 2], [2])]
    """
    groups: list[AxisGroup] = []
    i = j = 0
    while i < len(source) and j < len(target):
        first, second = i, j
        left, right = source[i], target[j]
        i, j = i + 1, j + 1
        while left != right:
            if left < right:
                left, i = left * source[i], i + 1
            else:
                right, j = right * target[j], j + 1
        groups.append((list(range(first, i)), list(range(second, j))))
    if groups:  # what is left on either side are trailing extents of 1
        groups[-1][0].extend(range(i, len(source)))
        groups[-1][1].extend(range(j, len(target)))
    return groups


def reshape(context: LoweringContext, value: Any, source: TensorType, target: tuple[int, ...]) -> Any:
    """Append what shows ``value`` with the shape ``target``: a `collapse_shape`, an `expand_shape` or both.

    Args:
        context: The operation being lowered.
        value: A tensor of type ``source``.
        source: Its type, in our terms.
        target: A shape with the same element count.
    """
    if source.extents == target:
        return value
    result = source.with_shape(target)
    if result.element_count == 0:
        return context.empty(result)
    groups = common_groups(source.extents, target)
    merged = tuple(math.prod(source.extents[axis] for axis in axes) for axes, _ in groups)
    if merged != source.extents:
        value = _collapse(context, value, source.with_shape(merged), [axes for axes, _ in groups])
    if merged != target:
        value = _expand(context, value, result, [axes for _, axes in groups])
    return value


def _collapse(context: LoweringContext, value: Any, type_: TensorType, groups: list[list[int]]) -> Any:
    return context.mlir.tensor.collapse_shape(_mlir_type(context, type_), value, groups)


def _expand(context: LoweringContext, value: Any, type_: TensorType, groups: list[list[int]]) -> Any:
    extents = list(type_.extents)
    return context.mlir.tensor.expand_shape(_mlir_type(context, type_), value, groups, [], extents)


def _mlir_type(context: LoweringContext, type_: TensorType) -> Any:
    return context.mlir.ir.RankedTensorType.get(list(type_.extents), context.element(type_.dtype))


def transposed(context: LoweringContext, value: Any, type_: TensorType, axes: tuple[int, ...]) -> Any:
    """Return ``value``, of ``type_``, with ``axes`` in this order."""
    if axes == tuple(range(type_.rank)):
        return value
    moved = type_.with_shape(tuple(type_.extents[axis] for axis in axes))
    permutation = context.mlir.ir.DenseI64ArrayAttr.get(list(axes))
    return context.named("transpose", [value], context.empty(moved), moved, permutation=permutation)
