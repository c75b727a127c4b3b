"""Slices, and reads at constant places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.passes.simplify.pattern import Pattern, beneath
from mind_mlir.passes.simplify.shapes import positions_of, sliced

if TYPE_CHECKING:
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite
    from mind_mlir.passes.simplify.shapes import Positions


def _positions(at: Rewrite) -> Positions:
    return positions_of(at.operation, at.shape_of(at.operands[0]))


def _all_of_it(at: Rewrite) -> ValueId | None:
    (value,) = at.operands
    return value if _positions(at) == [range(extent) for extent in at.shape_of(value)] else None


@beneath("Slice")
def _slice_of_slice(at: Rewrite, inner: CoreOperation) -> ValueId | None:
    (first,) = inner.operands
    taken = zip(positions_of(inner, at.shape_of(first)), _positions(at), strict=True)
    positions = [before[r.start] if len(r) == 1 else _at(before, r) for before, r in taken]
    return sliced(at, first, [range(r, r + 1) if isinstance(r, int) else r for r in positions])


def _at(before: range, taken: range) -> range:
    """Return the positions that ``taken``, of more than one element, finds in ``before``."""
    step = before.step * taken.step
    first = before[taken.start]
    return range(first, first + step * len(taken), step)


@beneath("Concat")
def _slice_of_concat(at: Rewrite, inner: CoreOperation) -> ValueId | None:
    axis = _axis(inner.attributes["axis"])
    positions, begin = _positions(at), 0
    taken = positions[axis]
    for value in inner.operands:
        extent = at.shape_of(value)[axis]
        if begin <= min(taken[0], taken[-1]) and max(taken[0], taken[-1]) < begin + extent:
            moved = range(taken.start - begin, taken.stop - begin, taken.step)
            return sliced(at, value, [*positions[:axis], moved, *positions[axis + 1 :]])
        begin += extent
    return None


def _axis(value: Any) -> int:
    return int(value)


@beneath("Pad")
def _slice_of_pad(at: Rewrite, inner: CoreOperation) -> ValueId | None:
    if not at.is_read_once(at.operands[0]):
        return None
    lows: Any = inner.attributes["low"]
    gaps: Any = inner.attributes["interior"]
    moved = []
    shape = at.shape_of(inner.operands[0])
    for r, low, gap, extent in zip(_positions(at), lows, gaps, shape, strict=True):
        if gap or min(r[0], r[-1]) < low or max(r[0], r[-1]) >= low + extent:
            return None
        moved.append(range(r.start - low, r.stop - low, r.step))
    return sliced(at, inner.operands[0], moved)


@beneath("BroadcastTo")
def _slice_of_broadcast(at: Rewrite, inner: CoreOperation) -> ValueId | None:
    (first,) = inner.operands
    shape = at.shape_of(first)
    kept = _positions(at)[at.type.rank - len(shape) :]
    taken = [range(1) if extent == 1 else r for extent, r in zip(shape, kept, strict=True)]
    return at.as_result(sliced(at, first, taken))


def _dynamic_slice(at: Rewrite) -> ValueId | None:
    value, start = at.operands
    if at.type_of(value) == at.type:
        return value
    literal = at.literal(start)
    if literal is None:
        return None
    places = zip(literal.array.tolist(), at.type.extents, at.shape_of(value), strict=True)
    firsts = [(max(0, min(first, extent - size)), size) for first, size, extent in places]
    return sliced(at, value, [range(first, first + size) for first, size in firsts])


def _dynamic_update(at: Rewrite) -> ValueId | None:
    _, update, _ = at.operands
    return update if at.type_of(update) == at.type else None


def _rows(at: Rewrite) -> ValueId | None:
    value, indices = at.operands
    literal = at.literal(indices)
    if literal is None or len(literal.type.shape) > 1 or not literal.type.element_count:
        return None
    extent, *others = at.shape_of(value)
    numbers = literal.array.reshape(-1).astype(np.int64)
    least = -extent if at.operation.opcode == "Gather" else 0
    if numbers.min() < least or numbers.max() >= extent:
        return None  # that is found when the function runs
    places = numbers % extent
    first, step = int(places[0]), int(places[1] - places[0]) if len(places) > 1 else 1
    rows = range(first, first + step * len(places), step) if step else range(0)
    if not np.array_equal(places, rows):
        return None
    taken = sliced(at, value, [rows, *(range(each) for each in others)])
    return at.reshaped(taken, at.type.extents)


PATTERNS = (
    Pattern("slice(x) of all elements", "x", "each element is taken, in order", ("Slice",), _all_of_it),
    Pattern(
        "slice(slice(x))",
        "slice(x)",
        "positions of positions are positions, also where steps are negative",
        ("Slice",),
        _slice_of_slice,
    ),
    Pattern(
        "slice(concat(x, y))",
        "slice(x) or slice(y)",
        "all that is taken lies in one of them",
        ("Slice",),
        _slice_of_concat,
        "elements of both are taken",
    ),
    Pattern(
        "slice(pad(x))",
        "slice(x)",
        "all that is taken are elements of x; nothing else reads what is padded, which would be in the cache",
        ("Slice",),
        _slice_of_pad,
        "part of what is taken is padding, or lies between elements; somebody else reads what is padded",
    ),
    Pattern(
        "slice(broadcast(x))",
        "broadcast(slice(x))",
        "repeated elements are equal: it does not matter which of them are taken",
        ("Slice",),
        _slice_of_broadcast,
    ),
    Pattern(
        "dynamic_slice(x) of constant starts, or of all elements",
        "slice(x), or x",
        "a start is moved so that the window lies within x, as it would be when the function runs",
        ("DynamicSlice",),
        _dynamic_slice,
    ),
    Pattern(
        "dynamic_update_slice(x, y) of the shape of x",
        "y",
        "the window is moved to where all of x is",
        ("DynamicUpdateSlice",),
        _dynamic_update,
    ),
    Pattern(
        "gather(x), take(x) of constant indices that count evenly",
        "slice(x)",
        "each index is in bounds, so that there is nothing to check; gather counts negative ones from "
        "the end",
        ("Gather", "Take"),
        _rows,
        "an index out of bounds, which is an error when the function runs; an index that comes twice",
    ),
)
