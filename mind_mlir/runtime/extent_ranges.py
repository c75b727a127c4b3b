"""Ranges of extents that share a program, and what callers say of open dimensions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from mind_mlir.support import argument_checks

#: Extents below this one have a program each: of one or two elements, others differ in more than extents.
FEWEST = 4
#: The greatest extents of the first ranges; then there are eight to each power of two.
_FIRST = (8, 16, 24, 32)
_PARTS = 8


def range_of(extent: int, buckets: Sequence[int] = ()) -> tuple[int, int]:
    """Return the range of extents, from the least to the greatest, whose program an extent has.

    Args:
        extent: The extent.
        buckets: The greatest extents of ranges, ascending; beyond them, and without any, ranges are such that
            no more than a ninth of a tensor is padding.

    Example:
        >>> range_of(100), range_of(3), range_of(100, [64, 256])
        ((97, 104), (3, 3), (65, 256))
    """
    if extent < FEWEST:
        return extent, extent
    ends = [each for each in (*buckets, *(() if buckets else _FIRST)) if each >= FEWEST]
    place = bisect_left(ends, extent)
    before = ends[place - 1] if place else FEWEST - 1
    if place < len(ends):
        return before + 1, ends[place]
    step = 1 << (extent - 1).bit_length() - 1
    step = max(step // _PARTS, 1)
    end = -(-extent // step) * step
    return max(before, end - step) + 1, end


def checked_dynamic(dynamic: object) -> dict[str, dict[int, str]]:
    """Return what a caller gives as open dimensions as plain data.

    Raises:
        TypeError: It is no mapping from names of arguments to mappings from axes to names.
        ValueError: An axis is negative, or an argument has no open axis.
    """
    what = 'a mapping from arguments to names of their open axes: {"x": {0: "batch"}}'
    found: dict[str, dict[int, str]] = {}
    for name, axes in argument_checks.mapping(dynamic, "dynamic", what).items():
        given = argument_checks.mapping(
            axes, f"dynamic of {name!r}", 'a mapping from axes to names: {0: "batch"}'
        )
        plain = {
            argument_checks.integer(axis, "an axis of dynamic"): argument_checks.text(
                symbol, "a name of dynamic"
            )
            for axis, symbol in given.items()
        }
        if not plain or min(plain) < 0:
            raise ValueError(f"dynamic must name axes of {name!r} that are 0 or more")
        found[argument_checks.text(name, "an argument of dynamic")] = plain
    if not found:
        raise ValueError("dynamic must name an argument that has open axes")
    return found


def checked_buckets(buckets: object, dynamic: Mapping[str, Mapping[int, str]]) -> dict[str, tuple[int, ...]]:
    """Return the greatest extents of ranges that a caller gives, ascending.

    Raises:
        TypeError: It is no mapping from names of dimensions to integers.
        ValueError: There is no such open dimension, or an extent is below 1.
    """
    if buckets is None:
        return {}
    symbols = {symbol for axes in dynamic.values() for symbol in axes.values()}
    found = {}
    what = 'a mapping from open dimensions to extents: {"batch": [8, 64]}'
    for name, given in argument_checks.mapping(buckets, "buckets", what).items():
        if name not in symbols:
            raise ValueError(
                f"buckets must be of open dimensions ({', '.join(sorted(symbols))}), not {name!r}"
            )
        found[name] = checked_ends(given, f"buckets of {name!r}")
    return found


def checked_ends(given: object, name: str) -> tuple[int, ...]:
    """Return the greatest extents of ranges that a caller gives for a dimension, ascending.

    Raises:
        TypeError: It is no sequence of integers.
        ValueError: There is none, or one is below 1.
    """
    ends = [
        argument_checks.integer(each, f"an extent of {name}")
        for each in argument_checks.items(given, name, "a sequence of extents")
    ]
    if not ends or min(ends) < 1:
        raise ValueError(f"{name} must be extents of 1 or more")
    return tuple(sorted(set(ends)))
