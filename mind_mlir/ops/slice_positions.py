"""The elements that a Slice takes on each axis (core-ir.md, "Indexing and slicing")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def sliced_positions(attributes: Mapping[str, Any], extents: Sequence[int]) -> list[range]:
    """Return, for each axis, the positions that the result takes from the operand, in order.

    As in numpy, a negative start or end counts from the end, and what is still outside of the axis is moved
    to its nearest end. A range of one element has step 1, whatever step was asked for.
    """
    bounds = zip(attributes["starts"], attributes["ends"], attributes["steps"], extents, strict=True)
    ranges = [range(*slice(start, end, step).indices(extent)) for start, end, step, extent in bounds]
    return [r if len(r) > 1 else range(r.start, r.start + len(r)) for r in ranges]
