"""Windows whose positions are known and grow evenly along each axis, such as frames: views of memory.

Overlapping frames, `x[160 * i + j]`, are read where they lie, by whoever reads them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ops.windows import Bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.windows import Windows


def affine_places(context: LoweringContext, windows: Windows, numbers: Sequence[Any]) -> Any:
    """Return the map from elements of windows to those of the operand, where ``numbers`` are known.

    None where they are not, where a place is outside, and where one is no sum of multiples of loops.
    """
    if windows.bounds is Bounds.SKIPPED or not math.prod(windows.shape) or not math.prod(windows.operand):
        return None
    shape, ir = [windows.shape[dim] for dim in windows.scattered], context.mlir.ir
    expressions = []
    for dim, extent in enumerate(windows.operand):
        loops = (windows.sources[dim], windows.batched[dim])
        steps: list[tuple[int, int]] = [
            (loop, 1) for loop in loops if loop is not None and windows.shape[loop] > 1
        ]
        place = 0
        if dim in windows.indexed:
            begins = _known(context, numbers[windows.indexed.index(dim)], shape)
            if begins is None:
                return None
            begins = np.where(begins < 0, begins + extent, begins) if windows.wraps(dim) else begins
            even = _even_steps(begins)
            if even is None or begins.min() < 0 or begins.max() > extent - windows.sizes[dim]:
                return None
            place = int(begins.flat[0])
            steps += zip(windows.scattered, even, strict=True)
        steps = [(loop, step) for loop, step in steps if step]
        if place == 0 and len(steps) == 1 and steps[0][1] == 1 and windows.shape[steps[0][0]] != extent:
            return None  # an index that is a loop is one over all elements
        terms = [ir.AffineDimExpr.get(loop) * step for loop, step in steps]
        expressions.append(sum(terms, ir.AffineConstantExpr.get(place)))
    return ir.AffineMap.get(len(windows.shape), 0, expressions)


def _known(context: LoweringContext, numbers: Any, shape: Sequence[int]) -> Array | None:
    """Return the elements of ``numbers``, of a shape, if they are constants or repetitions of such."""
    ir = context.mlir.ir
    source, access = context.read_through(numbers, ir.AffineMap.get_identity(len(shape)))
    known = context.known_integers(source)
    if known is None:
        return None
    places = np.indices(shape, sparse=True)
    index = tuple(
        places[each.position] if isinstance(each, ir.AffineDimExpr) else 0 for each in access.results
    )
    found = np.broadcast_to(known, source.type.shape)[index]
    return np.broadcast_to(found, shape).astype(np.int64)


def _even_steps(numbers: Array) -> list[int] | None:
    """Return by how much numbers grow along each axis, 0 or more; None where that is not always as much."""
    first = numbers.flat[0]
    steps = [
        int(np.take(numbers, 1, axis).flat[0] - first) if extent > 1 else 0
        for axis, extent in enumerate(numbers.shape)
    ]
    wanted = first + np.tensordot(steps, np.indices(numbers.shape), 1) if steps else first
    return steps if np.array_equal(numbers, wanted) and min(steps, default=0) >= 0 else None
