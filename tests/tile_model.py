"""What products of bf16 by TDPBF16PS are, as Intel's manual (SDM volume 2) says what the instruction does."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias

import numpy as np

from mind_mlir.lowering.schedule.contraction.schedule import even_block
from mind_mlir.target import named_target

AMX = named_target("amx")
#: Vector code takes the place of the instructions.
TILES = dataclasses.replace(AMX, cpu="", features=(), emulates_tiles=True)
#: Small caches give small products several blocks and pieces each way.
SMALL = dataclasses.replace(TILES, l1_bytes=1024, l2_bytes=4096)
Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


def fused(left: Array, right: Array, total: Array) -> Array:
    """Return ``left * right + total`` of f32, rounded once."""
    product = left.astype(np.float64) * right.astype(np.float64)  # of two bf16: exact
    wide = total.astype(np.float64)
    found = product + wide
    part = found - wide
    error = (wide - (found - part)) + (product - part)
    # Rounded to odd first, it is not rounded wrongly when it is rounded again.
    is_even = np.isfinite(found) & (error != 0) & (found.view(np.int64) & 1 == 0)
    nudged = np.nextafter(found, np.where(error > 0, np.inf, -np.inf))
    return np.where(is_even, nudged, found).astype(np.float32)


def flushed(values: Array, *, flushes: bool) -> Array:
    """Return ``values`` with zeros for subnormal numbers, if so told."""
    if not flushes:
        return values
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), values), values)


#: Of which summands, of the left factor and the right one, products are added up, in this order.
PAIRS = {
    1: [(0, 0)],
    2: [(1, 0), (1, 1), (0, 1), (0, 0)],
    3: [(2, 0), (1, 0), (1, 1), (0, 1), (0, 2), (0, 0)],
}


def summands_of(values: Array, count: int) -> list[Array]:
    """Return bf16, as f32, that add up to ``values``: each is rounded, halves away from zero."""
    found, rest = [], values.astype(np.float32)
    for _ in range(count):
        upper = ((rest.view(np.uint32) + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view(np.float32)
        found.append(upper)
        rest = rest - upper
    return found


def by_tiles(left: Array, right: Array, block: int, *, flushes: bool, summands: int = 1) -> Array:
    """Return the product of two matrices of bf16, or of sums of these, by TDPBF16PS as Intel's manual has it.

    Sums of a ``block`` of words start from zero, and are then added to the result.
    """
    terms = -(-left.shape[1] // 32) * 32
    one = np.zeros((left.shape[0], terms), np.float32)
    other = np.zeros((terms, right.shape[1]), np.float32)
    one[:, : left.shape[1]], other[: right.shape[0]] = (each.astype(np.float32) for each in (left, right))
    ones, others = (
        [flushed(each, flushes=flushes) for each in summands_of(factor, summands)] for factor in (one, other)
    )
    out = np.zeros((left.shape[0], right.shape[1]), np.float32)
    size = even_block(terms // 2, block, 16)
    for first in range(0, terms // 2, size):
        total = np.zeros_like(out)
        for word in range(first, min(terms // 2, first + size), 16):
            for i, j in PAIRS[summands]:
                total = flushed(total + _dot(ones[i], others[j], word, flushes=flushes), flushes=flushes)
        out = out + total
    return out


def _dot(left: Array, right: Array, word: int, *, flushes: bool) -> Array:
    """Return what the instruction adds for 16 words from number ``word`` on."""
    sums = []
    for part in (0, 1):
        found = np.zeros((left.shape[0], right.shape[1]), np.float32)
        for term in range(2 * word + part, 2 * word + 32, 2):
            found = flushed(fused(left[:, term, None], right[None, term], found), flushes=flushes)
        sums.append(found)
    return flushed(sums[0] + sums[1], flushes=flushes)
