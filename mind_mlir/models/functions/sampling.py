"""Images that are read between their elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    Array: TypeAlias = Any


def sampled(
    rows: Array, extents: Sequence[int], at: Sequence[Array], mode: str, padding: str, *, aligned: bool
) -> Array:
    """Return elements of images at places between their elements.

    Args:
        rows: The images, [N, elements, C].
        extents: The extents that the elements make up.
        at: Of each axis the places, [N, P].
        mode: ``linear``, ``nearest`` or ``cubic``.
        padding: What is outside: ``zeros``, the ``border``, or a ``reflection``.
        aligned: Whether a reflection is at the middle of the last elements, rather than at their ends.

    Returns:
        The elements, [N, P, C].
    """
    batch = np.arange(rows.shape[0]).reshape((-1, 1))
    taps = [_taps(each, mode) for each in at]
    total: Array = None
    for chosen in itertools.product(*taps):
        weight: Array = None
        place: Array = None
        for (index, whole), extent in zip(chosen, extents, strict=True):
            held, inside = _held(index, extent, padding, aligned=aligned)
            share = whole if inside is None else mnp.where(inside, whole, mnp.zeros_like(whole))
            weight = share if weight is None else weight * share
            place = held if place is None else place * extent + held
        part = rows[batch, place] * mnp.expand_dims(weight, 2)
        total = part if total is None else total + part
    return total


def _taps(at: Array, mode: str) -> list[tuple[Array, Array]]:
    """Return the elements of an axis that a place between them is made of, with their weights."""
    if mode == "nearest":
        return [(mnp.round_even(at).astype("i64"), mnp.ones_like(at))]
    low = mnp.floor(at)
    rest, first = at - low, low.astype("i64")
    if mode == "linear":
        return [(first, 1.0 - rest), (first + 1, rest)]
    a = -0.75

    def near(x: Array) -> Array:
        return ((a + 2) * x - (a + 3)) * x * x + 1.0

    def far(x: Array) -> Array:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [
        (first - 1, far(rest + 1.0)),
        (first, near(rest)),
        (first + 1, near(1.0 - rest)),
        (first + 2, far(2.0 - rest)),
    ]


def _held(index: Array, extent: int, padding: str, *, aligned: bool) -> tuple[Array, Array | None]:
    """Return an index within its axis, and where it has been within it already; None where all count."""
    last = extent - 1
    if padding == "reflection":
        period = max(2 * last if aligned else 2 * extent, 1)
        index = index % period
        return mnp.where(index > last, (period if aligned else period - 1) - index, index), None
    held = mnp.minimum(mnp.maximum(index, 0), last)
    return held, None if padding == "border" else (index >= 0) & (index <= last)


def at_grid(x: Array, grid: Array, mode: str, padding: str, *, aligned: bool) -> Array:
    """Return elements of images ``[N, C, ...]`` at places ``[N, ..., axes]``, the last axis first.

    Places are shares from -1 to 1 of each axis: between the middles of the last elements where they are
    ``aligned``, else between their ends.
    """
    rank, extents = x.ndim - 2, x.shape[2:]
    rows = mnp.moveaxis(x, 1, -1).reshape((x.shape[0], math.prod(extents), x.shape[1]))
    at = []
    for axis, extent in enumerate(extents):
        shares = grid[..., rank - 1 - axis].reshape((x.shape[0], -1)).astype(x.dtype)
        if aligned:
            at.append((shares + 1.0) * (0.5 * (extent - 1)))
        else:
            at.append(((shares + 1.0) * float(extent) - 1.0) * 0.5)
    found = sampled(rows, extents, at, mode, padding, aligned=aligned)
    return mnp.moveaxis(found, -1, 1).reshape((x.shape[0], x.shape[1], *grid.shape[1:-1]))
