"""Sums over ranks in an order that depends on their number alone: a binary tree.

The ranks of a group are the leaves, in order. A node of several leaves is the sum of two: of the greatest
power of two of them that is not all, and of the rest. So whoever has all leaves below a node can compute it
before any other rank is heard of, and the result is the same bits however ranks are spread over processes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

    #: The leaves below a node: from the first up to, and without, the last.
    Span: TypeAlias = tuple[int, int]


def _extreme(join: Callable[..., Array], negative: bool, left: Array, right: Array, out: Array) -> Array:
    """Join two nodes; of two zeros, -0.0 is the lesser, whereas numpy's functions give either."""
    zeros = (left == 0) & (right == 0) if out.dtype.kind not in "biu" else None
    if zeros is None or not zeros.any():
        return join(left, right, out=out)
    signs = (np.signbit(left) | np.signbit(right)) if negative else (np.signbit(left) & np.signbit(right))
    join(left, right, out=out)
    out[zeros] = np.where(signs[zeros], -0.0, 0.0).astype(out.dtype)
    return out


#: What joins two nodes, by the kind of a reduction; a mean is a sum that is divided at the end.
JOINS: Mapping[str, Callable[..., Array]] = {
    "sum": np.add,
    "mean": np.add,
    "max": partial(_extreme, np.maximum, False),
    "min": partial(_extreme, np.minimum, True),
}


def halves(span: Span) -> tuple[Span, Span]:
    """Return the two nodes that a node of several leaves is made of."""
    first, last = span
    middle = first + (1 << ((last - first - 1).bit_length() - 1))
    return (first, middle), (middle, last)


def nodes_within(span: Span, leaves: Collection[int]) -> list[Span]:
    """Return the fewest nodes, of those below ``span``, that have these leaves below them and no others."""
    inside = sum(1 for leaf in range(*span) if leaf in leaves)
    if inside == span[1] - span[0]:
        return [span]
    return [node for half in halves(span) for node in nodes_within(half, leaves)] if inside else []


def joined(kind: str, known: Mapping[Span, Array], span: Span, out: Array | None = None) -> Array:
    """Return the value of a node.

    Args:
        kind: One of `JOINS`.
        known: Values of nodes below it, of arrays of one shape, which are not written to.
        span: The node.
        out: Takes the value, where it is given; it overlaps no other array.
    """
    found = known.get(span)
    if found is not None:
        if out is None:
            return found
        np.copyto(out, found)
        return out
    left, right = halves(span)
    first = joined(kind, known, left)
    second = joined(kind, known, right)
    if out is None and left not in known:
        out = first  # made here, and nobody else's
    elif out is None and right not in known:
        out = second
    with np.errstate(all="ignore"):
        return JOINS[kind](first, second, out=np.empty_like(first) if out is None else out)


def finish(kind: str, total: Array, count: int) -> None:
    """Make the root of a tree the result of a reduction over ``count`` ranks, in place."""
    if kind == "mean":
        with np.errstate(all="ignore"):
            np.divide(total, np.asarray(count, total.dtype), out=total)
